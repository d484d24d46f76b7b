//! Results of tests, as CI sends them.

use signalbox_domain::flaky::{
    Base, BranchClass, Origin, ReportedFailure, ReportedRun, RunOutcome, TestKey, Trust, Upload,
    UploadId, UploadSource,
};
use signalbox_domain::ids::{PrNumber, Sha};
use signalbox_domain::time::Span;
use signalbox_services::ResultsSink;
use uuid::Uuid;

use crate::support::House;

/// One run of a test of that name on that commit: it failed with this message, or passed. A second
/// goes by.
pub(crate) async fn report(house: &House, sha: &str, name: &str, failure: Option<&str>) {
    report_all(house, sha, &[(name, failure)], &["@acme/calc"]).await;
}

/// The same of several tests in one upload, with these owners.
pub(crate) async fn report_all(
    house: &House,
    sha: &str,
    tests: &[(&str, Option<&str>)],
    owners: &[&str],
) {
    let repos = house.stores.account.repos.list(None).await.expect("a list");
    let repo = repos.into_iter().next().expect("the repository");
    let now = house.pages.reads.now();
    let upload = Upload {
        id: UploadId(Uuid::new_v5(&repo.id.0, format!("{sha} {tests:?}").as_bytes())),
        org: repo.org,
        repo: repo.id,
        source: UploadSource::JUnit,
        trust: Trust::Token,
        received_at: now,
        sha: Some(Sha::new(sha).expect("a commit")),
        committed_at: None,
        branch: "topic".into(),
        class: BranchClass::PullRequest,
        pr: Some(PrNumber(1)),
        job_url: None,
        job_name: None,
        origin: Origin::new(Some(&["unit"]), Base::Itself),
        author: None,
        variant: String::new(),
    };
    let failed = |message: &str| ReportedFailure { message: message.into(), text: message.into() };
    let run = |(name, failure): &(&str, Option<&str>)| ReportedRun {
        key: TestKey { classname: "Calc".into(), name: (*name).into(), ..TestKey::default() },
        other_files: Vec::new(),
        outcome: if failure.is_none() { RunOutcome::Passed } else { RunOutcome::Failed },
        attempt: 0,
        started_at: None,
        took: None,
        failure: failure.map(failed),
        owners: owners.iter().map(|&it| it.to_owned()).collect(),
        quarantined: false,
    };
    let runs = tests.iter().map(run).collect();
    house.pages.flaky.take_in(&upload, runs).await.expect("stored");
    house.clock.advance(Span::seconds(1));
}
