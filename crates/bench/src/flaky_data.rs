//! Tests of a repository with many, their attempts and their uploads.

use signalbox_domain::flaky::{
    Base, BranchClass, Origin, ReportedFailure, ReportedRun, RunOutcome, TestKey, Trust, Upload,
    UploadId, UploadSource,
};
use signalbox_domain::ids::Sha;
use signalbox_domain::ports::{Clock, IdSource};
use signalbox_domain::time::Span;

use crate::failure::{During, Failure};
use crate::parts::{RandomIds, SystemClock};
use crate::product::Product;

/// A test of the repository.
pub(crate) fn key(product: &Product, name: &str) -> TestKey {
    TestKey {
        org: product.org.slug.to_string(),
        repo: product.repository.name.to_string(),
        parent: "bench".into(),
        classname: "Calc".into(),
        file: "tests/calc.rs".into(),
        name: name.into(),
        ..TestKey::default()
    }
}

/// The name of a test by its number.
pub(crate) fn name(number: usize) -> String {
    format!("test number {number:07}")
}

/// One attempt of a test.
pub(crate) fn run(product: &Product, name: &str, outcome: RunOutcome) -> ReportedRun {
    let message = "expected 1, got 2".to_owned();
    ReportedRun {
        key: key(product, name),
        other_files: Vec::new(),
        outcome,
        attempt: 0,
        started_at: None,
        took: Some(Span::seconds(1)),
        failure: (outcome == RunOutcome::Failed)
            .then(|| ReportedFailure { message, text: String::new() }),
        owners: Vec::new(),
        quarantined: false,
    }
}

/// An upload of a commit on the branch `main`.
pub(crate) fn upload(product: &Product, commit: u64) -> Result<Upload, Failure> {
    Ok(Upload {
        id: UploadId(RandomIds.new_id()),
        org: product.org.id,
        repo: product.repository.id,
        source: UploadSource::JUnit,
        trust: Trust::Token,
        received_at: SystemClock.now(),
        sha: Some(Sha::new(format!("{commit:040x}")).during("a commit")?),
        committed_at: None,
        branch: "main".into(),
        class: BranchClass::Stable,
        pr: None,
        job_url: None,
        job_name: Some("bench".into()),
        origin: Origin::new(Some(&["bench"]), Base::Itself),
        author: None,
        variant: String::new(),
    })
}
