//! Uploads that are committed in parts.

use std::collections::{BTreeMap, BTreeSet};

use signalbox_domain::flaky::{
    KnownKeys, Outline, ReportedRun, RunsPart, Settings, TestId, TestStatus, Upload, UploadRuns,
    intake,
};
use signalbox_domain::ports::{
    CommitError, FlakyCommit, FlakyDraft, IntakePart, NewIntake, Stores, TestList, Version,
};
use signalbox_domain::time::Span;
use signalbox_services::ResultsSink as _;

use super::flaky_scenario::Scenario;

/// A draft with all parts of an upload, each of one test.
async fn draft(
    stores: &Stores,
    scenario: &Scenario<'_>,
    upload: &Upload,
    runs: &[ReportedRun],
) -> (Box<dyn FlakyDraft>, Version) {
    let (repo, at) = (scenario.repo, scenario.now());
    let runs = UploadRuns::new(runs.to_vec());
    let mut outline = Outline::new(upload, &Settings::new(repo.id));
    for part in runs.parts(1) {
        outline.add(part, &KnownKeys::new());
    }
    let expected = stores.flaky.tests.repo(repo).await.expect("a read").version;
    let ids: Vec<TestId> = runs.parts(1).flat_map(RunsPart::ids).collect();
    let known = stores.flaky.tests.known_tests(repo, &ids).await.expect("a read");
    let known: KnownKeys<'_> = known.iter().map(|it| (it.test.id, &it.test.key)).collect();
    let new = NewIntake { repo, expected, upload, taken_in: outline.outcome(), at };
    let mut draft = stores.flaky.tests.draft(&new).await.expect("a draft");
    for part in runs.parts(1) {
        let intake = intake(&outline, part, &BTreeSet::new(), &known);
        let part = IntakePart {
            intake: &intake,
            steps: &[],
            windows: &BTreeMap::new(),
            presences: &BTreeMap::new(),
        };
        draft.add(&part).await.expect("a part");
    }
    (draft, expected)
}

async fn commit(
    scenario: &Scenario<'_>,
    (draft, expected): (Box<dyn FlakyDraft>, Version),
) -> Result<Version, CommitError> {
    let commit = FlakyCommit {
        repo: scenario.repo,
        expected,
        settings: None,
        steps: &[],
        windows: &BTreeMap::new(),
        presences: &BTreeMap::new(),
        incidents: None,
        progress: None,
        at: scenario.now(),
        audit: None,
    };
    draft.commit(&commit).await
}

/// The names of the stored tests, and the number of their runs.
async fn stored(stores: &Stores, scenario: &Scenario<'_>, names: &[&str]) -> (String, usize) {
    let ids: Vec<TestId> = names.iter().map(|name| scenario.key(name).id()).collect();
    let found = stores.flaky.tests.tests(scenario.repo, &ids).await.expect("a read");
    let mut found: Vec<String> = found.into_iter().map(|it| it.test.key.name).collect();
    found.sort();
    let mut runs = 0;
    for id in ids {
        let of_test = stores.flaky.reads.recent_runs(scenario.repo, id, 100).await;
        runs += of_test.expect("a read").len();
    }
    (found.concat(), runs)
}

/// Before its commit a draft writes nothing, and on an old version neither.
pub async fn a_draft_writes_everything_or_nothing(stores: &Stores) {
    let scenario = Scenario::new(stores, "acme").await;
    scenario.report(1, vec![scenario.run("a", true)]).await;
    let names = ["a", "b", "c"];
    let before = stored(stores, &scenario, &names).await;
    assert_eq!(before, ("a".to_owned(), 1));
    let runs = [scenario.run("a", false), scenario.run("b", true), scenario.run("c", false)];
    let upload = scenario.upload(2);
    let outcome = async || {
        let found = stores.flaky.tests.ingest_outcome(scenario.repo, upload.id).await;
        found.expect("a read").map(|it| (it.tests, it.failed, it.runs))
    };

    drop(draft(stores, &scenario, &upload, &runs).await);
    assert_eq!(stored(stores, &scenario, &names).await, before, "dropped");

    let old = draft(stores, &scenario, &upload, &runs).await;
    scenario.report(3, vec![scenario.run("a", true)]).await;
    let refused = commit(&scenario, old).await;
    assert!(matches!(refused, Err(CommitError::Conflict)), "{refused:?}");
    assert_eq!(stored(stores, &scenario, &names).await, ("a".to_owned(), 2), "old");
    assert_eq!(outcome().await, None);

    let new = draft(stores, &scenario, &upload, &runs).await;
    assert_eq!(commit(&scenario, new).await.expect("a commit"), Version(3));
    assert_eq!(stored(stores, &scenario, &names).await, ("abc".to_owned(), 5));
    assert_eq!(outcome().await, Some((3, 2, 3)));
}

/// A test that retention deletes before the commit is stored again whole, or the commit conflicts.
pub async fn a_test_that_is_deleted_before_the_commit_is_not_half_stored(stores: &Stores) {
    let scenario = Scenario::new(stores, "acme").await;
    scenario.report(1, vec![scenario.run("a", true)]).await;
    scenario.wait(50 * 24);
    let runs = [scenario.run("a", true), scenario.run("b", true)];
    let upload = scenario.upload(2);
    let new = draft(stores, &scenario, &upload, &runs).await;
    let recently = scenario.now().minus(Span::hours(24));
    while stores.flaky.tests.prune(recently, 1_000).await.expect("deleted") > 0 {}
    let names = ["a", "b"];
    assert_eq!(stored(stores, &scenario, &names).await, (String::new(), 0));
    match commit(&scenario, new).await {
        Ok(_) => {
            assert_eq!(stored(stores, &scenario, &names).await, ("ab".to_owned(), 2));
        }
        Err(CommitError::Conflict) => {
            assert_eq!(stored(stores, &scenario, &names).await, (String::new(), 0));
        }
        Err(error) => panic!("{error}"),
    }
}

/// Whatever its parts are, an upload is one step: tests, their status, lists and events.
pub async fn parts_of_an_upload_are_one_step(stores: &Stores) {
    let scenario = Scenario::new(stores, "acme").await;
    let whole = scenario.another();
    let names: Vec<String> = (0..9).map(|number| format!("test {number}")).collect();
    let report = |commit: u32, flaky: &[usize]| {
        let mut runs = Vec::new();
        for (number, name) in names.iter().enumerate() {
            if flaky.contains(&number) {
                runs.push(scenario.run(name, false));
            }
            let attempt = u32::from(flaky.contains(&number));
            runs.push(ReportedRun { attempt, ..scenario.run(name, true) });
        }
        (scenario.upload(commit), runs)
    };
    let ids = async || {
        let list = TestList::Unhealthy(TestStatus::Flaky);
        stores.flaky.reads.ids(scenario.repo, list).await.expect("a read")
    };
    let kinds = async || {
        let log = &stores.webhook.event_log;
        let events = log.after(scenario.repo.org, 0, None, 100).await.expect("events");
        events.len()
    };
    let version = async || stores.flaky.tests.repo(scenario.repo).await.expect("a read").version;

    let (upload, runs) = report(1, &[0, 4, 8]);
    let taken = scenario.service.take_in(&upload, runs.clone()).await.expect("stored");
    assert_eq!((taken.tests, taken.failed, taken.runs), (9, 0, 12));
    assert_eq!((version().await, ids().await.len(), kinds().await), (Version(1), 3, 9));
    let again = scenario.service.take_in(&upload, runs).await.expect("stored");
    assert!(again.repeated);

    scenario.clock.advance(Span::minutes(10));
    let (upload, runs) = report(2, &[1, 4]);
    whole.take_in(&upload, runs).await.expect("stored");
    assert_eq!((version().await, ids().await.len(), kinds().await), (Version(2), 4, 12));
}
