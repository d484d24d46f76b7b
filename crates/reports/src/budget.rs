//! How much of an upload is kept in memory, however large its files are.

use signalbox_domain::upload::FoundRun;

/// Bytes of messages and texts of all failures of an upload. After them a failure keeps the start
/// of its message: its test still counts, but similar failures are harder to distinguish.
pub(crate) const FAILURES: usize = 32 * 1024 * 1024;
/// Bytes of a message that comes after that.
pub(crate) const SHORT_MESSAGE: usize = 200;
/// Bytes of the names, classes, files, ids and owners of all runs of an upload. More is refused:
/// they are part of what tests are.
pub(crate) const NAMES: usize = 96 * 1024 * 1024;

/// The remaining bytes of both.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    failures: usize,
    names: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { failures: FAILURES, names: NAMES }
    }
}

impl Budget {
    /// Takes a run's share, and cuts its failure when there is none left. Whether its names fit.
    pub(crate) fn take(&mut self, run: &mut FoundRun) -> bool {
        if let Some(failure) = &mut run.failure {
            let bytes = failure.message.len() + failure.text.len();
            if let Some(left) = self.failures.checked_sub(bytes) {
                self.failures = left;
            } else {
                let end = failure.message.floor_char_boundary(SHORT_MESSAGE);
                failure.message = failure.message.get(..end).unwrap_or_default().to_owned();
                failure.text = String::new();
            }
        }
        let names = [&run.parent, &run.classname, &run.file, &run.name, &run.info];
        let names = names.into_iter().chain(&run.other_files).chain(&run.owners);
        let bytes = names.map(String::len).sum();
        let fits = bytes <= self.names;
        self.names = self.names.saturating_sub(bytes);
        fits
    }
}

#[cfg(test)]
mod tests {
    use signalbox_domain::flaky::{ReportedFailure, RunOutcome};

    use super::*;

    fn run(name: String, message: String, text: String) -> FoundRun {
        FoundRun {
            parent: String::new(),
            classname: String::new(),
            file: String::new(),
            name,
            info: String::new(),
            other_files: Vec::new(),
            outcome: RunOutcome::Failed,
            started_at: None,
            took: None,
            failure: Some(ReportedFailure { message, text }),
            owners: Vec::new(),
            quarantined: false,
            told_again: false,
            contradicted: false,
        }
    }

    #[test]
    fn failures_are_cut_when_there_were_too_many_before() {
        let mut budget = Budget { failures: 1_000, names: 100 };
        let whole = run("a".into(), "m".repeat(500), "t".repeat(500));
        let mut first = whole.clone();
        assert!(budget.take(&mut first));
        assert_eq!(first, whole);
        let mut second = run("b".into(), "é".repeat(150), "t".into());
        assert!(budget.take(&mut second));
        let failure = second.failure.expect("a failure");
        assert_eq!((failure.message.len(), failure.text.as_str()), (200, ""));
    }

    #[test]
    fn names_are_refused_when_there_were_too_many_before() {
        let mut budget = Budget { failures: 0, names: 100 };
        let mut named =
            |bytes: usize| budget.take(&mut run("n".repeat(bytes), String::new(), String::new()));
        assert_eq!([named(60), named(40), named(1)], [true, true, false]);
    }
}
