//! Tests that vanish and return: what was found and decided about them, on every store.

use signalbox_domain::flaky::{
    Actor, AutoQuarantine, Base, Command, Origin, QuarantineOverride, RETIRED_AFTER_COMMITS,
    ReportedRun, RunOutcome, SettingsPatch, StatusReason, TestId, TestStatus, Trust, Upload,
};
use signalbox_domain::ports::{Stores, TestList};
use signalbox_domain::time::Span;
use signalbox_services::ResultsSink;

use super::flaky_lists::ids;
use super::flaky_scenario::Scenario;

fn by() -> Actor {
    Actor { full_name: "ada".into(), email: String::new() }
}

/// A repository with quarantine, in which the test `adds` is flaky and `stays` surrounds it.
pub(super) async fn flaky<'a>(stores: &'a Stores, org: &str) -> Scenario<'a> {
    let scenario = Scenario::new(stores, org).await;
    let patch = SettingsPatch {
        quarantine_enabled: Some(true),
        auto_quarantine: Some(AutoQuarantine::Flaky),
        ..SettingsPatch::default()
    };
    scenario.set(patch).await;
    for passed in [false, true] {
        let runs = vec![scenario.run("adds", passed), scenario.run("stays", true)];
        scenario.report(1, runs).await;
    }
    assert_eq!(scenario.test("adds").await.test.standing.value, TestStatus::Flaky);
    scenario
}

/// An upload with those passing tests, three hours after the one before.
pub(super) async fn upload(scenario: &Scenario<'_>, upload: Upload, names: &[&str]) {
    let runs: Vec<ReportedRun> = names.iter().map(|name| scenario.run(name, true)).collect();
    scenario.service.take_in(&upload, runs).await.expect("stored");
}

/// So many commits on `main` with those passing tests, three hours apart.
pub(super) async fn commits(scenario: &Scenario<'_>, from: u32, count: u32, names: &[&str]) {
    for commit in from..from + count {
        scenario.wait(3);
        upload(scenario, scenario.upload(commit), names).await;
    }
}

async fn unhealthy(scenario: &Scenario<'_>) -> Vec<TestId> {
    let list = TestList::Unhealthy(TestStatus::Flaky);
    ids(scenario.stores, scenario.repo, list).await
}

async fn listed_as_quarantined(scenario: &Scenario<'_>) -> Vec<TestId> {
    let settings = scenario.service.settings(&scenario.caller, scenario.name()).await;
    let settings = settings.expect("settings").quarantine;
    let list = TestList::Quarantined { settings, at: scenario.now() };
    ids(scenario.stores, scenario.repo, list).await
}

pub(super) async fn retired(scenario: &Scenario<'_>) -> Vec<TestId> {
    ids(scenario.stores, scenario.repo, TestList::Retired).await
}

pub(super) async fn kinds(scenario: &Scenario<'_>) -> Vec<String> {
    let log = &scenario.stores.webhook.event_log;
    let events = log.after(scenario.repo.org, 0, None, 1_000).await.expect("events");
    events.into_iter().map(|it| it.kind).collect()
}

/// A test that ten commits of its job did not contain, over a day, is in no list; a branch that still
/// has it is answered as before.
pub async fn a_vanished_test_leaves_the_lists(stores: &Stores) {
    let scenario = flaky(stores, "acme").await;
    let adds = scenario.key("adds").id();
    commits(&scenario, 2, RETIRED_AFTER_COMMITS - 1, &["stays"]).await;
    assert_eq!(unhealthy(&scenario).await, [adds]);
    assert_eq!(listed_as_quarantined(&scenario).await, [adds]);
    commits(&scenario, 50, 1, &["stays"]).await;
    assert_eq!(unhealthy(&scenario).await, []);
    assert_eq!(listed_as_quarantined(&scenario).await, []);
    assert_eq!(retired(&scenario).await, [adds]);
    let test = scenario.test("adds").await.test;
    assert_eq!(test.standing.reason, StatusReason::Retired);
    assert_eq!(test.retired.map(|it| it.commits), Some(RETIRED_AFTER_COMMITS));
    assert_eq!(scenario.quarantined(&["adds", "stays"]).await, [true, false]);
    scenario.wait(1);
    assert_eq!(scenario.another().measure().await.expect("measured"), 1);
    assert_eq!(unhealthy(&scenario).await, []);
}

/// A retired test that a stable branch reports again, even as skipped, is what it was; so are decisions.
pub async fn a_retired_test_returns_as_it_was(stores: &Stores) {
    let scenario = flaky(stores, "acme").await;
    let Scenario { service, caller, .. } = &scenario;
    let command = Command::SetQuarantine {
        setting: QuarantineOverride::Always,
        expires_at: None,
        reason: Some("ticket 7".into()),
        by: by(),
    };
    let decided = service.command(caller, scenario.name(), scenario.key("stays").id(), command);
    decided.await.expect("decided");
    let both = [scenario.key("adds").id(), scenario.key("stays").id()];
    commits(&scenario, 2, 1, &["adds", "stays", "else"]).await;
    commits(&scenario, 3, RETIRED_AFTER_COMMITS, &["else"]).await;
    assert_eq!(listed_as_quarantined(&scenario).await, []);
    assert_eq!(retired(&scenario).await.len(), 2);
    assert_eq!(scenario.quarantined(&["adds", "stays", "else"]).await, [true, true, false]);
    let skipped = ReportedRun { outcome: RunOutcome::Skipped, ..scenario.run("adds", true) };
    scenario.wait(1);
    scenario.report(50, vec![skipped, scenario.run("stays", true)]).await;
    assert_eq!(retired(&scenario).await, []);
    assert_eq!(unhealthy(&scenario).await, [both[0]]);
    assert_eq!(listed_as_quarantined(&scenario).await.len(), 2);
    let told = kinds(&scenario).await;
    let count = |kind: &str| told.iter().filter(|it| *it == kind).count();
    assert_eq!((count("test_case.retired"), count("test_case.returned")), (2, 2));
}

/// Shards, parts of the tests, other jobs, unknown jobs, broken machines, quiet weeks, skipped tests and
/// other branches retire nothing.
pub async fn runs_that_would_not_contain_a_test_prove_nothing(stores: &Stores) {
    let scenario = flaky(stores, "acme").await;
    let mut commit = 2;
    let mut prove = async |change: &dyn Fn(&mut Upload), runs: &dyn Fn() -> Vec<ReportedRun>| {
        for _ in 0..2 * RETIRED_AFTER_COMMITS {
            scenario.wait(3);
            commit += 1;
            let mut upload = scenario.upload(commit);
            change(&mut upload);
            scenario.service.take_in(&upload, runs()).await.expect("stored");
        }
        assert_eq!(retired(&scenario).await, []);
    };
    let stays = || vec![scenario.run("stays", true)];
    // A shard, or a part of the tests: other files.
    let elsewhere = || {
        let mut run = scenario.run("stays", true);
        run.key.file = "tests/other.rs".into();
        vec![run]
    };
    prove(&|_| {}, &elsewhere).await;
    prove(&|upload| upload.origin = Origin::new(Some(&["lint"]), Base::Itself), &stays).await;
    let unknown = |upload: &mut Upload| {
        (upload.origin, upload.job_name) = (Origin::default(), None);
    };
    prove(&unknown, &stays).await;
    let entry = Origin::new(Some(&["test"]), Base::Itself).in_attempt(&["1"]);
    prove(&|upload| upload.origin = entry, &stays).await;
    prove(&|upload| upload.branch = "develop".into(), &stays).await;
    prove(&|upload| upload.trust = Trust::Public, &stays).await;
    let broken = || (0..30).map(|test| scenario.run(&format!("test {test}"), false)).collect();
    prove(&|_| {}, &broken).await;
    // The same commit, however often it runs.
    let commit = scenario.upload(1_000).sha;
    prove(&|upload| upload.sha.clone_from(&commit), &stays).await;
    // Skipped, at the end of nine commits without the test.
    for round in 0..4 {
        let from = 2_000 + 20 * round;
        commits(&scenario, from, RETIRED_AFTER_COMMITS - 2, &["stays"]).await;
        let skipped = ReportedRun { outcome: RunOutcome::Skipped, ..scenario.run("adds", true) };
        scenario.wait(1);
        scenario.report(from + 15, vec![skipped]).await;
        assert_eq!(retired(&scenario).await, []);
    }
    // A test that is often missing must be missing for much longer.
    commits(&scenario, 3_000, RETIRED_AFTER_COMMITS + 2, &["stays"]).await;
    assert_eq!(retired(&scenario).await, []);
    commits(&scenario, 4_000, 2 * RETIRED_AFTER_COMMITS, &["stays"]).await;
    assert_eq!(retired(&scenario).await.len(), 1);
}

/// The author of a pull request can neither clear a quarantine nor bring one back.
pub async fn pull_requests_neither_retire_a_test_nor_bring_it_back(stores: &Stores) {
    let scenario = flaky(stores, "acme").await;
    for commit in 0..2 * RETIRED_AFTER_COMMITS {
        scenario.wait(3);
        scenario.report_pr(100 + commit, 1, vec![scenario.run("stays", true)]).await;
    }
    assert_eq!(retired(&scenario).await, []);
    commits(&scenario, 200, RETIRED_AFTER_COMMITS, &["stays"]).await;
    assert_eq!(retired(&scenario).await.len(), 1);
    scenario.wait(1);
    scenario.report_pr(300, 1, vec![scenario.run("adds", true)]).await;
    let mut public = scenario.upload(301);
    public.trust = Trust::Public;
    upload(&scenario, public, &["adds"]).await;
    assert_eq!(retired(&scenario).await.len(), 1);
}

/// Each upload counts once, and reports of older commits neither count nor bring a test back.
pub async fn a_repeated_or_late_upload_changes_nothing(stores: &Stores) {
    let scenario = flaky(stores, "acme").await;
    let made = |commit: u32| {
        let at = scenario.now().minus(Span::minutes(10));
        Upload { committed_at: Some(at), ..scenario.upload(commit) }
    };
    scenario.wait(1);
    let with_it = made(2);
    upload(&scenario, with_it, &["adds", "stays"]).await;
    let mut late = None;
    for commit in 0..RETIRED_AFTER_COMMITS - 1 {
        scenario.wait(3);
        let one = made(10 + commit);
        late.get_or_insert(Upload { id: scenario.upload(0).id, ..one.clone() });
        upload(&scenario, one.clone(), &["stays"]).await;
        upload(&scenario, one, &["stays"]).await;
    }
    scenario.wait(3);
    let late = late.expect("an upload");
    // An older commit, without the test.
    upload(&scenario, Upload { id: scenario.upload(0).id, ..late.clone() }, &["stays"]).await;
    assert_eq!(retired(&scenario).await, []);
    upload(&scenario, made(50), &["stays"]).await;
    assert_eq!(retired(&scenario).await.len(), 1);
    // An older commit, with the test.
    upload(&scenario, late, &["adds", "stays"]).await;
    assert_eq!(retired(&scenario).await.len(), 1);
}

async fn command(scenario: &Scenario<'_>, name: &str, command: Command) {
    let Scenario { service, caller, .. } = scenario;
    let test = scenario.key(name).id();
    service.command(caller, scenario.name(), test, command).await.expect("decided");
}

async fn set_quarantine(scenario: &Scenario<'_>, name: &str, setting: QuarantineOverride) {
    let (expires_at, reason) = (None, None);
    command(scenario, name, Command::SetQuarantine { setting, expires_at, reason, by: by() }).await;
}

/// The test `adds` is renamed to `adds numbers` on `main`: it is flaky, always quarantined, has a label and
/// a ticket, and its old name is in no list and answered by the new one.
pub async fn a_renamed_test_keeps_everything(stores: &Stores) {
    let scenario = flaky(stores, "acme").await;
    set_quarantine(&scenario, "adds", QuarantineOverride::Always).await;
    command(&scenario, "adds", Command::AddLabel { label: "slow".into(), by: by() }).await;
    let Scenario { service, caller, repo, .. } = &scenario;
    let (old, new) = (scenario.key("adds").id(), scenario.key("adds numbers").id());
    service.link_ticket(caller, scenario.name(), old, "CALC-7").await.expect("linked");
    commits(&scenario, 2, 1, &["adds", "stays"]).await;
    scenario.report_pr(3, 1, vec![scenario.run("adds numbers", true)]).await;
    commits(&scenario, 4, 1, &["adds numbers", "stays"]).await;
    assert_eq!(unhealthy(&scenario).await, [old], "one commit is not enough");
    commits(&scenario, 5, 1, &["adds numbers", "stays"]).await;
    assert_eq!(unhealthy(&scenario).await, [new]);
    assert_eq!(listed_as_quarantined(&scenario).await, [new]);
    assert_eq!(retired(&scenario).await, [old]);
    let before = scenario.test("adds").await;
    let after = scenario.test("adds numbers").await;
    assert_eq!(before.test.renamed_to(), Some(new));
    assert_eq!(after.test.renamed_from, Some(old));
    assert_eq!(after.ticket.as_deref(), Some("CALC-7"));
    assert_eq!(after.test.labels, before.test.labels);
    assert_eq!(after.test.standing.reason, StatusReason::PassOnRetry);
    assert_eq!(after.test.monitors, before.test.monitors);
    let told = kinds(&scenario).await;
    let count = |kind: &str| told.iter().filter(|it| *it == kind).count();
    assert_eq!((count("test_case.retired"), count("test_case.renamed")), (1, 1));
    // What monitors saw under the old name counts: the recovery takes as long as without the new one.
    let passes = ["adds numbers", "stays"];
    commits(&scenario, 10, 8, &passes).await;
    service.measure().await.expect("measured");
    assert_eq!(unhealthy(&scenario).await, [new]);
    // A branch with the old name is answered by what is decided about the new one.
    assert_eq!(scenario.quarantined(&["adds", "adds numbers", "stays"]).await, [true, true, false]);
    set_quarantine(&scenario, "adds numbers", QuarantineOverride::Never).await;
    assert_eq!(scenario.quarantined(&["adds", "adds numbers"]).await, [false, false]);
    let refused = Command::Flag { reason: None, by: by() };
    let refused = service.command(caller, scenario.name(), old, refused).await;
    assert!(refused.is_err(), "decisions belong to the new name");
    assert_eq!(stores.flaky.tests.tests(*repo, &[old, new]).await.expect("a read").len(), 2);
}

/// A test with the same name in another file, while the file of before still has others.
pub async fn a_moved_test_keeps_everything(stores: &Stores) {
    let scenario = flaky(stores, "acme").await;
    let moved = || {
        let mut run = scenario.run("adds", true);
        run.key.file = "tests/moved.rs".into();
        run
    };
    for commit in 2..4 {
        scenario.wait(3);
        scenario.report(commit, vec![moved(), scenario.run("stays", true)]).await;
    }
    assert_eq!(unhealthy(&scenario).await, [moved().key.id()]);
    assert_eq!(retired(&scenario).await, [scenario.key("adds").id()]);
}

/// A reverted rename: the first report of the old name is enough, and what was decided about the new
/// name holds.
pub async fn a_test_that_is_renamed_back_keeps_what_was_decided_since(stores: &Stores) {
    let scenario = flaky(stores, "acme").await;
    set_quarantine(&scenario, "adds", QuarantineOverride::Always).await;
    commits(&scenario, 2, 1, &["adds", "stays"]).await;
    commits(&scenario, 3, 2, &["adds numbers", "stays"]).await;
    command(&scenario, "adds numbers", Command::Flag { reason: None, by: by() }).await;
    set_quarantine(&scenario, "adds numbers", QuarantineOverride::Never).await;
    commits(&scenario, 6, 1, &["adds", "stays"]).await;
    let (old, new) = (scenario.key("adds").id(), scenario.key("adds numbers").id());
    assert_eq!(retired(&scenario).await, [new]);
    assert_eq!(unhealthy(&scenario).await, [old]);
    let test = scenario.test("adds").await.test;
    assert_eq!(test.quarantining().setting, QuarantineOverride::Never);
    assert!(test.flag.is_some());
    commits(&scenario, 7, 1, &["adds numbers", "stays"]).await;
    assert_eq!(retired(&scenario).await, [old], "and forth");
    assert_eq!(unhealthy(&scenario).await, [new]);
}

/// Names in pull requests, and uploads without a token, take over nothing.
pub async fn a_pull_request_takes_over_nothing(stores: &Stores) {
    let scenario = flaky(stores, "acme").await;
    let runs = || vec![scenario.run("adds numbers", true), scenario.run("stays", true)];
    for commit in 2..20 {
        scenario.wait(3);
        scenario.report_pr(commit, 1, runs()).await;
        let public = Upload { trust: Trust::Public, ..scenario.upload(commit) };
        upload(&scenario, public, &["adds numbers", "stays"]).await;
    }
    assert_eq!(retired(&scenario).await, []);
    assert_eq!(scenario.quarantined(&["adds", "adds numbers"]).await, [true, false]);
    assert_eq!(scenario.test("adds numbers").await.stable_since, None);
}

/// `adds` vanishes while these tests are there, after a commit with these others; it stays as it is.
async fn stays_alone(stores: &Stores, before: &[&str], after: &[&str]) {
    let scenario = flaky(stores, "acme").await;
    commits(&scenario, 2, 1, before).await;
    commits(&scenario, 3, 4, after).await;
    assert_eq!(retired(&scenario).await, []);
    assert_eq!(unhealthy(&scenario).await, [scenario.key("adds").id()]);
}

/// Two new names fit equally well.
pub async fn a_name_that_could_be_two_others_stays_alone(stores: &Stores) {
    let two = ["adds one", "adds two", "stays"];
    stays_alone(stores, &["adds", "stays"], &two).await;
}

/// The new name has little in common with the old one.
pub async fn a_different_name_is_another_test(stores: &Stores) {
    stays_alone(stores, &["adds", "stays"], &["multiplies", "stays"]).await;
}

/// The other name was there while the test was.
pub async fn a_test_that_was_there_before_is_no_new_name(stores: &Stores) {
    let both = ["adds", "adds before", "stays"];
    stays_alone(stores, &both, &["adds before", "stays"]).await;
}

/// A new test moves a similar one into the other shard, whose report comes later.
pub async fn a_test_that_moved_between_shards_is_not_renamed(stores: &Stores) {
    let scenario = flaky(stores, "acme").await;
    let shard = |commit: u32, job: &str| Upload {
        origin: Origin::new(Some(&[job]), Base::Itself),
        ..scenario.upload(commit)
    };
    for commit in 2..8 {
        scenario.wait(3);
        upload(&scenario, shard(commit, "test"), &["adds again", "stays"]).await;
        scenario.clock.advance(Span::minutes(40));
        upload(&scenario, shard(commit, "other"), &["adds"]).await;
    }
    assert_eq!(retired(&scenario).await, []);
    assert_eq!(unhealthy(&scenario).await, [scenario.key("adds").id()]);
}
