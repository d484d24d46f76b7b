//! Flaky tests: what is committed is whole, counted, and judged the same on every store.

use std::collections::BTreeMap;

use signalbox_domain::flaky::{
    Admission, AutoQuarantine, Base, BranchClass, CodeSummary, Command, MonitorId, Origin,
    QuarantineOverride, ReportedRun, Run, RunOutcome, SameCode, SettingsPatch, StatusReason,
    Summary, TestId, TestStatus,
};
use signalbox_domain::ids::{OrgId, PrNumber, Sha};
use signalbox_domain::ports::{CommitError, FlakyCommit, RepoRef, Stores, TestList, Version};
use signalbox_domain::time::{Span, Timestamp};
use signalbox_services::FlakyService;
use signalbox_services::{QuarantineAnswer, QuarantineLookup, ResultsSink};
use uuid::Uuid;

use super::flaky_lists::ids;
use super::flaky_scenario::Scenario;

fn sorted(mut summary: Summary) -> Summary {
    summary.buckets.sort_by(|a, b| (a.start, &a.branch).cmp(&(b.start, &b.branch)));
    let key = |it: &CodeSummary| (it.code.clone(), it.branch.clone(), it.origin);
    summary.codes.sort_by_key(key);
    summary
}

/// The counts of a store over many uploads equal [`Summary::of`] over all runs.
pub async fn summaries_agree_with_the_runs(stores: &Stores) {
    let scenario = Scenario::new(stores, "acme").await;
    let mut all: Vec<Run> = Vec::new();
    for step in 0_u32..40 {
        let passed = step % 3 != 0;
        let upload = {
            let mut upload = scenario.upload(step % 4);
            upload.branch = format!("branch-{}", step % 2);
            let jobs = ["unit", "windows"];
            let job = usize::try_from(step % 5).expect("small");
            upload.origin = Origin::new(jobs.get(job).map(std::slice::from_ref), Base::Itself);
            upload
        };
        // Some runs started before others that were reported earlier.
        let mut run = scenario.run("adds", passed);
        let early = Span::minutes((step * 7) % 30);
        run.started_at = Some(scenario.now().minus(early));
        all.push(Run {
            at: scenario.now().minus(early),
            branch: upload.branch.clone(),
            class: upload.class,
            codes: vec![SameCode::Commit(upload.sha.clone().expect("a commit"))],
            origin: upload.origin,
            passed,
        });
        scenario.service.take_in(&upload, vec![run]).await.expect("stored");
        scenario.clock.advance(Span::minutes(2));
    }
    let id = scenario.key("adds").id();
    let long_ago = Timestamp::from_unix_seconds(0);
    let kept = stores.flaky.tests.summaries(scenario.repo, &[id], long_ago).await.expect("a read");
    assert_eq!(kept.get(&id).cloned().map(sorted), Some(sorted(Summary::of(&all))));
    let later = scenario.now();
    assert!(
        stores.flaky.tests.summaries(scenario.repo, &[id], later).await.expect("a read").is_empty()
    );
}

/// The same upload again is counted once.
pub async fn an_upload_is_counted_once(stores: &Stores) {
    let scenario = Scenario::new(stores, "acme").await;
    let upload = scenario.upload(1);
    let runs = vec![scenario.run("adds", false), scenario.run("subtracts", true)];
    let first = scenario.service.take_in(&upload, runs.clone()).await.expect("stored");
    assert_eq!((first.tests, first.failed, first.runs, first.repeated), (2, 1, 2, false));
    assert_eq!(first.admission, Admission::Counts);
    let again = scenario.service.take_in(&upload, runs).await.expect("stored");
    assert!(again.repeated && again.tests == 2);
    let id = scenario.key("adds").id();
    let numbers =
        stores.flaky.reads.numbers(scenario.repo, &[id], scenario.now().plus(Span::hours(1))).await;
    assert_eq!(numbers.expect("a read").get(&id).map(|it| it.runs_7d), Some(1));
    assert_eq!(stores.flaky.reads.recent_runs(scenario.repo, id, 10).await.expect("runs").len(), 1);
}

/// A failure and a success on one commit: status, list, journal and events change in one commit.
pub async fn a_disagreement_changes_status_list_and_events_in_one_commit(stores: &Stores) {
    let scenario = Scenario::new(stores, "acme").await;
    scenario.report_pr(7, 3, vec![scenario.run("adds", false)]).await;
    assert_eq!(scenario.test("adds").await.test.standing.value, TestStatus::Healthy);
    scenario.wait(30);
    scenario.report_pr(7, 3, vec![scenario.run("adds", true)]).await;
    let record = scenario.test("adds").await;
    assert_eq!(record.test.standing.value, TestStatus::Flaky);
    assert_eq!(record.test.standing.reason, StatusReason::PassOnRetry);
    assert_eq!(record.owners, ["@acme/calc"]);
    let list = TestList::Unhealthy(TestStatus::Flaky);
    assert_eq!(ids(stores, scenario.repo, list).await, [record.test.id]);
    let events =
        stores.webhook.event_log.after(scenario.repo.org, 0, None, 10).await.expect("events");
    let kinds: Vec<&str> = events.iter().map(|it| it.kind.as_str()).collect();
    assert_eq!(
        kinds,
        [
            "test_case.monitor_status_changed",
            "test_case.status_changed",
            "v2.test_case.status_changed"
        ]
    );
    let told = "test_case.status_changed flaky 1 of 2 failed, 1 pull requests";
    assert_eq!(events[1].payload, told, "what was true at the commit");
    assert!(events.iter().all(|it| it.repo == Some(scenario.repo.id)));
    let next =
        stores.webhook.event_log.after(scenario.repo.org, events[1].position, None, 10).await;
    assert_eq!(next.expect("events"), events[2..]);
    let journal = stores.flaky.reads.test_journal(scenario.repo, record.test.id, None, 10).await;
    assert_eq!(journal.expect("a journal").len(), 1);
}

/// Of two steps that were decided on one version, one is committed.
pub async fn a_step_on_an_old_version_writes_nothing(stores: &Stores) {
    let scenario = Scenario::new(stores, "acme").await;
    let (windows, presences) = (BTreeMap::new(), BTreeMap::new());
    let commit = |version| FlakyCommit {
        repo: scenario.repo,
        expected: Version(version),
        settings: None,
        steps: &[],
        windows: &windows,
        presences: &presences,
        incidents: None,
        progress: None,
        at: scenario.now(),
        audit: None,
    };
    assert_eq!(stores.flaky.tests.commit(&commit(0)).await.expect("the first"), Version(1));
    for old in [0, 2] {
        let refused = stores.flaky.tests.commit(&commit(old)).await;
        assert!(matches!(refused, Err(CommitError::Conflict)), "{refused:?}");
    }
    assert_eq!(stores.flaky.tests.commit(&commit(1)).await.expect("the second"), Version(2));
    assert_eq!(stores.flaky.tests.repo(scenario.repo).await.expect("a read").revision, 0);
}

/// Concurrent uploads on two servers: each is counted, and the disagreement is found.
pub async fn concurrent_uploads_are_judged_together(stores: &Stores) {
    let scenario = Scenario::new(stores, "acme").await;
    let other = scenario.another();
    let services: [&FlakyService; 2] = [&scenario.service, &other];
    let mut uploads = Vec::new();
    for number in 0..8_usize {
        let (upload, service) = (scenario.upload(1), services[number % 2]);
        let runs = vec![scenario.run("adds", number % 2 == 0)];
        uploads.push(async move { service.take_in(&upload, runs).await });
    }
    let mut waiting: Vec<_> = uploads.into_iter().map(Box::pin).collect();
    let mut done = 0;
    std::future::poll_fn(|cx| {
        waiting.retain_mut(|upload| match upload.as_mut().poll(cx) {
            std::task::Poll::Ready(answer) => {
                answer.expect("stored");
                done += 1;
                false
            }
            std::task::Poll::Pending => true,
        });
        if waiting.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    assert_eq!(done, 8);
    assert_eq!(scenario.test("adds").await.test.standing.value, TestStatus::Flaky);
    assert_eq!(stores.flaky.tests.repo(scenario.repo).await.expect("a read").version, Version(8));
    let id = scenario.key("adds").id();
    let later = scenario.now().plus(Span::minutes(1));
    let numbers = stores.flaky.reads.numbers(scenario.repo, &[id], later).await.expect("a read");
    assert_eq!((numbers[&id].runs_24h, numbers[&id].failures_24h), (8, 4));
}

fn quarantine(auto: AutoQuarantine) -> SettingsPatch {
    SettingsPatch {
        quarantine_enabled: Some(true),
        auto_quarantine: Some(auto),
        ..SettingsPatch::default()
    }
}

/// The list, the look-up and the rule say the same; what another server commits is seen.
pub async fn quarantine_follows_settings_overrides_and_time(stores: &Stores) {
    let scenario = Scenario::new(stores, "acme").await;
    let flaky = scenario.make_flaky("flaky", 1).await;
    scenario.report(2, vec![scenario.run("healthy", true), scenario.run("never", false)]).await;
    scenario.make_flaky("never", 2).await;
    let names = ["flaky", "healthy", "never", "unknown"];
    assert_eq!(scenario.quarantined(&names).await, [false; 4]);
    scenario.set(quarantine(AutoQuarantine::FlakyAndBroken)).await;
    assert_eq!(scenario.quarantined(&names).await, [true, false, true, false]);
    // Another server decides.
    let other = scenario.another();
    let by = FlakyService::actor(&scenario.caller);
    let decide = async |name: &str, setting, expires_at| {
        let by = by.clone();
        let command = Command::SetQuarantine { setting, expires_at, reason: None, by };
        let test = scenario.key(name).id();
        other.command(&scenario.caller, scenario.name(), test, command).await.expect("decided");
    };
    decide("never", QuarantineOverride::Never, None).await;
    let end = scenario.now().plus(Span::hours(2));
    decide("healthy", QuarantineOverride::Always, Some(end)).await;
    assert!(!scenario.quarantined(&names).await[2], "an id that a client claims is verified");
    scenario.clock.advance(Span::seconds(1));
    assert_eq!(scenario.quarantined(&names).await, [true, true, false, false]);
    let settings = scenario.service.settings(&scenario.caller, scenario.name()).await;
    let settings = settings.expect("settings").quarantine;
    let list = |at| TestList::Quarantined { settings, at };
    assert_eq!(ids(stores, scenario.repo, list(scenario.now())).await.len(), 2);
    assert_eq!(ids(stores, scenario.repo, list(end)).await, [flaky], "the override expires");
    scenario.wait(2);
    assert_eq!(scenario.quarantined(&names).await, [true, false, false, false]);
    assert_eq!(scenario.service.measure().await.expect("measured"), 3, "two active, one expired");
    assert_eq!(
        scenario.test("healthy").await.test.quarantining().setting,
        QuarantineOverride::Follow
    );
    scenario
        .set(SettingsPatch { quarantine_enabled: Some(false), ..SettingsPatch::default() })
        .await;
    let answer = scenario
        .service
        .quarantined(scenario.repo.org, scenario.repo.id, &[scenario.asked("flaky")])
        .await;
    let answer = answer.expect("an answer");
    assert!(answer.disabled && answer.ids.is_empty());
    let gate = Some(true);
    scenario.set(SettingsPatch { gate_while_off: gate, ..SettingsPatch::default() }).await;
    let answer = scenario
        .service
        .quarantined(scenario.repo.org, scenario.repo.id, &[scenario.asked("flaky")])
        .await;
    assert_eq!(answer.expect("an answer"), QuarantineAnswer::default(), "failures stay failures");
    let log = stores.flaky.reads.settings_history(scenario.repo, 10).await.expect("a log");
    assert_eq!(log.len(), 3, "what changes nothing is not logged");
    assert!(!log[0].settings.quarantine.enabled && log[0].by.full_name == "ada");
}

/// A client that sends an `id` attribute or another file's id finds the test, and no other.
pub async fn a_test_is_found_by_every_id_that_is_sent_for_it(stores: &Stores) {
    let scenario = Scenario::new(stores, "acme").await;
    let with_file = |passed| {
        let mut run = scenario.run("adds", passed);
        run.key.info = "case-17".into();
        run.other_files = vec!["suite.xml".into()];
        run
    };
    scenario.report(1, vec![with_file(false)]).await;
    scenario.report(1, vec![with_file(true)]).await;
    scenario.set(quarantine(AutoQuarantine::Flaky)).await;
    let mut key = scenario.key("adds");
    let mut other_file = scenario.asked("adds");
    key.file = "suite.xml".into();
    other_file.id = key.id().to_string();
    let mut attribute = scenario.asked("adds");
    attribute.id = "case-17".into();
    let mut variant = scenario.asked("adds");
    variant.key.variant = "mac".into();
    let mut stranger = scenario.asked("subtracts");
    stranger.id = "case-18".into();
    let mut nul = scenario.asked("adds");
    nul.id = "a\0b".into();
    let asked = [
        scenario.asked("adds"),
        other_file.clone(),
        attribute.clone(),
        nul.clone(),
        variant,
        stranger,
    ];
    let answer = scenario.service.quarantined(scenario.repo.org, scenario.repo.id, &asked).await;
    let ids = answer.expect("an answer").ids;
    assert_eq!(ids, [asked[0].id.clone(), other_file.id.clone(), attribute.id.clone(), nul.id]);
    let org = stores
        .account
        .orgs
        .find(scenario.repo.org)
        .await
        .expect("a read")
        .expect("an organization")
        .slug;
    let linked = async |id: &str| {
        let (owner, name) = (&scenario.name().owner, &scenario.name().name);
        let found = scenario.service.details_by_link(&org, owner, name, id, None).await;
        found.expect("a read").map(|it| it.snapshot.record.test.id)
    };
    let test = scenario.test("adds").await.test.id;
    for id in [&test.to_string(), &other_file.id, "case-17"] {
        assert_eq!(linked(id).await, Some(test), "{id}");
    }
    for id in ["", "case-18", "a\0b", "00000000-0000-5000-8000-000000000000"] {
        assert_eq!(linked(id).await, None, "{id}");
    }
    let by_alias = TestId(other_file.id.parse().expect("an id"));
    let found =
        scenario.service.test(&scenario.caller, scenario.name(), by_alias).await.expect("a test");
    assert_eq!(found.record.test.id, test);
    // A second test under the same attribute: which one is meant is unknown.
    let mut second = scenario.run("multiplies", true);
    second.key.info = "case-17".into();
    scenario.report(2, vec![second]).await;
    let mut vague = attribute;
    vague.key.name = "renamed".into();
    let answer = scenario.service.quarantined(scenario.repo.org, scenario.repo.id, &[vague]).await;
    assert_eq!(answer.expect("an answer").ids, Vec::<String>::new());
    assert_eq!(linked("case-17").await, None);
}

/// A monitor resolves by the clock, and only if the test has run.
pub async fn time_resolves_a_monitor(stores: &Stores) {
    let scenario = Scenario::new(stores, "acme").await;
    scenario.make_flaky("adds", 1).await;
    assert_eq!(scenario.service.measure().await.expect("measured"), 0, "nothing is due yet");
    scenario.wait(8 * 24);
    assert_eq!(scenario.service.measure().await.expect("measured"), 1);
    assert_eq!(
        scenario.test("adds").await.test.standing.value,
        TestStatus::Flaky,
        "it did not run"
    );
    assert_eq!(scenario.service.measure().await.expect("measured"), 0, "not before 20 minutes");
    scenario.report(2, vec![scenario.run("adds", true)]).await;
    assert_eq!(scenario.test("adds").await.test.standing.value, TestStatus::Healthy);
    scenario.make_flaky("adds", 3).await;
    scenario.wait(6 * 24);
    scenario.report(4, vec![scenario.run("adds", true)]).await;
    scenario.wait(24);
    assert_eq!(scenario.test("adds").await.test.standing.value, TestStatus::Flaky);
    scenario.service.measure().await.expect("measured");
    assert_eq!(
        scenario.test("adds").await.test.standing.value,
        TestStatus::Healthy,
        "by the clock"
    );
    assert_eq!(
        scenario.service.measure().await.expect("measured"),
        0,
        "nothing is active any more"
    );
}

/// A monitor that is deleted resolves for every test in the same commit.
pub async fn a_deleted_monitor_resolves_for_every_test(stores: &Stores) {
    let scenario = Scenario::new(stores, "acme").await;
    scenario.make_flaky("a", 1).await;
    scenario.make_flaky("b", 1).await;
    let settings =
        scenario.service.settings(&scenario.caller, scenario.name()).await.expect("settings");
    let id = settings.monitors[0].id;
    scenario.service.delete_monitor(&scenario.caller, scenario.name(), id).await.expect("deleted");
    for name in ["a", "b"] {
        let standing = scenario.test(name).await.test.standing;
        assert_eq!(standing.value, TestStatus::Healthy);
        assert_eq!(standing.reason, StatusReason::MonitorChanged);
    }
    assert_eq!(ids(stores, scenario.repo, TestList::Unhealthy(TestStatus::Flaky)).await, []);
    let gone =
        scenario.service.delete_monitor(&scenario.caller, scenario.name(), MonitorId(id.0)).await;
    assert!(gone.is_err());
}

/// Another organization that uses the same repository id finds nothing and changes nothing.
pub async fn another_organization_sees_no_tests(stores: &Stores) {
    let scenario = Scenario::new(stores, "acme").await;
    let test = scenario.make_flaky("adds", 1).await;
    scenario.set(quarantine(AutoQuarantine::Flaky)).await;
    let foreign = RepoRef { org: OrgId(Uuid::new_v4()), id: scenario.repo.id };
    let (flaky, reads) = (&stores.flaky.tests, &stores.flaky.reads);
    assert_eq!(flaky.repo(foreign).await.expect("a read").version, Version(0));
    assert!(flaky.tests(foreign, &[test]).await.expect("a read").is_empty());
    assert!(flaky.watched(foreign).await.expect("a read").is_empty());
    let long_ago = Timestamp::from_unix_seconds(0);
    assert!(flaky.summaries(foreign, &[test], long_ago).await.expect("a read").is_empty());
    assert!(!flaky.link_ticket(foreign, test, "KAN-1").await.expect("an answer"));
    assert!(reads.numbers(foreign, &[test], scenario.now()).await.expect("a read").is_empty());
    assert!(reads.recent_runs(foreign, test, 9).await.expect("a read").is_empty());
    assert!(reads.test_journal(foreign, test, None, 9).await.expect("a read").is_empty());
    assert!(reads.settings_history(foreign, 9).await.expect("a read").is_empty());
    assert!(
        stores.webhook.event_log.after(foreign.org, 0, None, 9).await.expect("a read").is_empty()
    );
    let (from, until) = (long_ago, scenario.now().plus(Span::hours(9)));
    for list in [TestList::Unhealthy(TestStatus::Flaky), TestList::Failing { from, until }] {
        assert!(ids(stores, foreign, list).await.is_empty());
        assert_eq!(ids(stores, scenario.repo, list).await, [test]);
    }
    assert!(scenario.quarantined(&["adds"]).await[0]);
}

/// Old rows are deleted, others stay.
pub async fn old_history_is_deleted(stores: &Stores) {
    let scenario = Scenario::new(stores, "acme").await;
    stores.flaky.tests.prepare_days(scenario.now()).await.expect("prepared");
    stores.flaky.tests.prepare_days(scenario.now()).await.expect("prepared again");
    scenario.make_flaky("old", 1).await;
    scenario.report(2, vec![scenario.run("kept", false)]).await;
    scenario.wait(40 * 24);
    scenario.report(3, vec![scenario.run("kept", true)]).await;
    scenario.wait(10 * 24);
    let mut rounds = 0;
    while scenario.service.prune(Span::hours(45 * 24)).await.expect("pruned") > 0 {
        rounds += 1;
        assert!(rounds < 20, "pruning comes to an end");
    }
    let tests = [scenario.key("old").id(), scenario.key("kept").id()];
    let left = stores.flaky.tests.tests(scenario.repo, &tests).await.expect("a read");
    assert_eq!(left.iter().map(|it| it.test.id).collect::<Vec<_>>(), [tests[1]]);
    let reads = &stores.flaky.reads;
    assert!(reads.recent_runs(scenario.repo, tests[0], 9).await.expect("runs").is_empty());
    let runs = reads.recent_runs(scenario.repo, tests[1], 9).await.expect("runs");
    assert_eq!(runs.iter().map(|run| run.outcome).collect::<Vec<_>>(), [RunOutcome::Passed]);
    let long_ago = Timestamp::from_unix_seconds(0);
    let kept = stores.flaky.tests.summaries(scenario.repo, &tests, long_ago).await.expect("a read");
    assert_eq!(kept.len(), 1);
    assert_eq!((kept[&tests[1]].buckets.len(), kept[&tests[1]].codes.len()), (1, 1));
    assert!(
        reads.test_journal(scenario.repo, tests[0], None, 9).await.expect("journal").is_empty()
    );
}

/// A failure and a success on one commit are kept together for as long as the later one is.
pub async fn results_of_one_commit_stay_together(stores: &Stores) {
    let scenario = Scenario::new(stores, "acme").await;
    let (fails_first, passes_first) = ("fails first", "passes first");
    let both = |failing: &str| {
        [fails_first, passes_first].map(|name| scenario.run(name, name != failing)).to_vec()
    };
    scenario.report(1, both(fails_first)).await;
    scenario.wait(30 * 24);
    scenario.report(1, both(passes_first)).await;
    scenario.wait(20 * 24);
    while scenario.service.prune(Span::hours(45 * 24)).await.expect("pruned") > 0 {}
    let code = SameCode::Commit(scenario.upload(1).sha.expect("a commit"));
    let tests = [fails_first, passes_first].map(|name| scenario.key(name).id());
    let known = stores.flaky.tests.codes(scenario.repo, &tests, &code).await.expect("a read");
    for test in tests {
        let [summary] = &known[&test][..] else { panic!("{known:?}") };
        assert!(summary.first_failure_at.zip(summary.first_success_at).is_some(), "{summary:?}");
    }
}

/// The runs of a test are listed as they were reported, whatever their outcome.
pub async fn recent_runs_are_listed_as_they_were_reported(stores: &Stores) {
    let scenario = Scenario::new(stores, "acme").await;
    let mut upload = scenario.upload(1);
    (upload.pr, upload.class) = (Some(PrNumber(7)), BranchClass::PullRequest);
    let skipped = ReportedRun { outcome: RunOutcome::Skipped, ..scenario.run("adds", true) };
    let started = |hours| Some(scenario.now().minus(Span::hours(hours)));
    let runs = vec![
        ReportedRun {
            started_at: started(1),
            took: None,
            attempt: 2,
            ..scenario.run("adds", true)
        },
        ReportedRun { started_at: started(2), attempt: 1, ..scenario.run("adds", false) },
        ReportedRun { started_at: started(80), quarantined: true, ..scenario.run("adds", true) },
        ReportedRun { started_at: started(3), ..skipped },
    ];
    scenario.service.take_in(&upload, runs.clone()).await.expect("stored");
    let test = scenario.key("adds").id();
    let listed = stores.flaky.reads.recent_runs(scenario.repo, test, 9).await.expect("runs");
    let said: Vec<_> = listed.iter().map(|run| (Some(run.at), run.outcome, run.attempt)).collect();
    let expected = [0, 1, 3, 2].map(|at| &runs[at]);
    assert_eq!(said, expected.map(|run| (run.started_at, run.outcome, run.attempt)));
    for (run, reported) in listed.iter().zip(expected) {
        assert_eq!((run.took, run.quarantined), (reported.took, reported.quarantined));
        assert_eq!((&run.branch, run.class), (&upload.branch, upload.class));
        assert_eq!((run.upload, run.pr, &run.job_url), (upload.id, upload.pr, &upload.job_url));
        assert_eq!(run.sha.as_deref(), upload.sha.as_ref().map(Sha::as_str));
    }
}

/// A ticket replaces the previous one, and an unknown test has none.
pub async fn a_ticket_is_linked(stores: &Stores) {
    let scenario = Scenario::new(stores, "acme").await;
    scenario.report(1, vec![scenario.run("adds", true)]).await;
    let test = scenario.key("adds").id();
    for ticket in ["KAN-1", "KAN-2"] {
        assert!(stores.flaky.tests.link_ticket(scenario.repo, test, ticket).await.expect("linked"));
        assert_eq!(scenario.test("adds").await.ticket.as_deref(), Some(ticket));
    }
    let unknown = TestId(Uuid::new_v4());
    assert!(
        !stores.flaky.tests.link_ticket(scenario.repo, unknown, "KAN-3").await.expect("an answer")
    );
    scenario.report(2, vec![scenario.run("adds", true)]).await;
    assert_eq!(scenario.test("adds").await.ticket.as_deref(), Some("KAN-2"), "runs leave it");
}

/// The first stored key is kept.
pub async fn the_key_of_page_tokens_is_stable(stores: &Stores) {
    for new in [[7; 32], [8; 32]] {
        assert_eq!(stores.flaky.tests.page_key(new).await.expect("a key"), [7; 32]);
    }
}
