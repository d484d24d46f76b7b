//! Converts the contents of files to values of the domain.

use std::time::Duration;

use signalbox_domain::flaky::{ReportedFailure, RunOutcome};
use signalbox_domain::time::{Span, Timestamp};
use signalbox_domain::upload::{BundleMeta, FoundRun};
use time::OffsetDateTime;

use crate::bundle::Meta;
use crate::bundle::internal::{RunStatus, TestCaseRun};
use crate::junit::limits::{DETAIL_BYTES, FIELD_BYTES};
use crate::junit::{CaseRun, Status};

/// The identity of tests within one upload: outermost suite, file, class, name and id.
pub(crate) type Identity = (String, String, String, String, String);

pub(crate) fn identity(run: &FoundRun) -> Identity {
    let FoundRun { parent, file, classname, name, info, .. } = run;
    (parent.clone(), file.clone(), classname.clone(), name.clone(), info.clone())
}

pub(crate) fn meta(meta: Meta) -> BundleMeta {
    let uncloned = meta.use_uncloned_repo.or(meta.repo.use_uncloned_repo).unwrap_or_default();
    let mut variables = meta.envs;
    variables.extend(meta.trunk_envs.unwrap_or_default());
    let time = |seconds: i64| {
        let at = OffsetDateTime::from_unix_timestamp(seconds).ok().filter(|_| seconds > 0);
        at.map(Timestamp::from)
    };
    BundleMeta {
        sha: meta.repo.repo_head_sha,
        branch: meta.repo.repo_head_branch,
        committed_at: time(meta.repo.repo_head_commit_epoch),
        uploaded_at: time(meta.upload_time_epoch),
        author: meta.repo.repo_head_author_name,
        uncloned,
        variant: meta.variant.unwrap_or_default(),
        variables,
        excused: meta.quarantined_tests.into_iter().map(|test| test.id).collect(),
    }
}

pub(crate) fn case_run(case: &CaseRun<'_>) -> FoundRun {
    let text = |it: Option<&str>| it.unwrap_or_default().to_owned();
    let (file, asked_file) = (text(case.file), text(case.asked_file));
    let outcome = match case.status {
        Status::Passed => RunOutcome::Passed,
        Status::Failed | Status::Errored => RunOutcome::Failed,
        Status::Skipped => RunOutcome::Skipped,
    };
    let failed = case.detail.filter(|_| outcome == RunOutcome::Failed);
    let failure = failed.map(|detail| {
        // A text that only repeats that the test failed does not hide a better one.
        let telling = |it: &&str| detail.text.is_none() || !it.eq_ignore_ascii_case("failed");
        let kind = detail.kind.filter(|_| detail.text.is_none());
        ReportedFailure {
            message: text(detail.message.filter(telling).or(kind)),
            text: text(detail.text),
        }
    });
    FoundRun {
        parent: case.parent().to_owned(),
        classname: text(case.classname),
        other_files: Some(asked_file).filter(|it| *it != file).into_iter().collect(),
        file,
        name: case.name.to_owned(),
        info: text(case.id),
        outcome,
        started_at: case.timestamp.map(Timestamp::from),
        took: case.duration.map(span),
        failure,
        owners: Vec::new(),
        quarantined: false,
        told_again: case.element > 1,
        contradicted: case.contradicted,
    }
}

pub(crate) fn internal_run(run: TestCaseRun) -> FoundRun {
    // A run without an outcome did not run.
    let outcome = match RunStatus::try_from(run.status) {
        Ok(RunStatus::Success) => RunOutcome::Passed,
        Ok(RunStatus::Failure) => RunOutcome::Failed,
        Ok(RunStatus::Skipped | RunStatus::Unspecified) | Err(_) => RunOutcome::Skipped,
    };
    let (started, took) = (run.started(), run.duration());
    let output = run.test_output.unwrap_or_default();
    let message = if output.message.is_empty() { run.old_message } else { output.message };
    let failure = ReportedFailure { message: cut(message), text: cut(output.text) };
    FoundRun {
        parent: name(run.parent_name),
        classname: name(run.classname),
        file: name(run.file),
        name: name(run.name),
        info: run.id,
        other_files: Vec::new(),
        outcome,
        started_at: started.map(Timestamp::from),
        took: took.map(span),
        failure: Some(failure).filter(|_| outcome == RunOutcome::Failed),
        owners: run.codeowners.into_iter().map(|owner| owner.name).collect(),
        quarantined: run.is_quarantined,
        told_again: false,
        contradicted: false,
    }
}

/// A name as the reader of XML takes it, so that both find the same test.
pub(crate) fn name(text: String) -> String {
    let trimmed = text.trim();
    let end = trimmed.floor_char_boundary(FIELD_BYTES);
    if end == text.len() { text } else { trimmed.get(..end).unwrap_or_default().to_owned() }
}

pub(crate) fn cut(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(DETAIL_BYTES));
    text
}

/// Durations that a span cannot hold are the longest that it can.
pub(crate) fn span(duration: Duration) -> Span {
    let start = Timestamp::from_unix_micros(0);
    let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_unix_micros(micros).since(start)
}
