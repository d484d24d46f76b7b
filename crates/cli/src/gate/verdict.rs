//! Whether a failed command counts as passed, because only quarantined tests have failed.

use std::collections::BTreeSet;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// With an exit code.
    Code(i32),
    /// By a signal.
    Signal(i32),
}

impl Ended {
    /// The exit code that a shell would report.
    pub(super) const fn code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }
}

/// A test that failed in the reports.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FailedTest {
    /// The id that the server is sent.
    pub(super) id: String,
    pub(super) suite: String,
    pub(super) class: String,
    pub(super) file: String,
    pub(super) line: Option<u32>,
    pub(super) name: String,
    /// The first line of its failure.
    pub(super) message: String,
}

impl FailedTest {
    /// Whether both are the same test, whatever its failures are.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let key =
            |it: &Self| (it.suite.clone(), it.class.clone(), it.file.clone(), it.name.clone());
        key(self) == key(other)
    }
}

/// The reports of a command.
#[derive(Clone, Debug, Default)]
pub(super) struct Read {
    /// Files that were read.
    pub(super) files: usize,
    /// Tests in them.
    pub(super) tests: u64,
    /// Tests whose last attempt failed.
    pub(super) failed: Vec<FailedTest>,
    /// Files that could not be read, or that lack tests, with the reason.
    pub(super) problems: Vec<String>,
}

/// The answer of the server about failed tests.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    /// The ids of the quarantined ones.
    Quarantined(BTreeSet<String>),
    /// Quarantine is off for the repository.
    Off,
    /// There is none, for this reason.
    Unknown(String),
}

/// What the gate answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The command succeeded.
    Passed,
    /// The command failed, and every failure is a quarantined test.
    Excused,
    /// The command failed, for a reason that is not excused.
    Failed(String),
}

/// The largest exit code of a command that has run its tests. Larger ones mean that it could not
/// be started, ran out of time (124 of `timeout`) or was killed.
const MAX_CODE: i32 = 123;

/// Decides. Nothing is excused unless the reports explain the failure completely.
pub(super) fn judge(ended: Ended, read: &Read, answer: &Answer) -> Verdict {
    let failed = |why: String| Verdict::Failed(why);
    match ended {
        Ended::Code(0) => return Verdict::Passed,
        Ended::Signal(signal) => {
            return failed(format!("the command was killed by signal {signal}"));
        }
        Ended::Code(code) if !(1..=MAX_CODE).contains(&code) => {
            return failed(format!("exit code {code}: the command did not complete"));
        }
        Ended::Code(_) => {}
    }
    if let Some(problem) = read.problems.first() {
        return failed(problem.clone());
    }
    if read.files == 0 {
        return failed("the command wrote no report".to_owned());
    }
    if read.failed.is_empty() {
        let code = ended.code();
        return failed(format!("exit code {code}, but no test of the reports failed"));
    }
    match answer {
        Answer::Off => failed("quarantine is off for this repository".to_owned()),
        Answer::Unknown(why) => failed(format!("unknown which tests are quarantined: {why}")),
        Answer::Quarantined(ids) => {
            match read.failed.iter().filter(|test| !ids.contains(&test.id)).count() {
                0 => Verdict::Excused,
                1 => failed("1 failed test is not quarantined".to_owned()),
                many => failed(format!("{many} failed tests are not quarantined")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(id: &str) -> FailedTest {
        let text = String::new;
        FailedTest {
            id: id.to_owned(),
            suite: text(),
            class: text(),
            file: text(),
            line: None,
            name: id.to_owned(),
            message: text(),
        }
    }

    fn read(failed: &[&str]) -> Read {
        let failed = failed.iter().map(|id| test(id)).collect();
        Read { files: 1, tests: 10, failed, problems: Vec::new() }
    }

    fn quarantined(ids: &[&str]) -> Answer {
        Answer::Quarantined(ids.iter().map(|id| (*id).to_owned()).collect())
    }

    #[test]
    fn only_a_failure_that_is_explained_completely_is_excused() {
        let (known, all) = (quarantined(&["a", "b"]), read(&["a", "b"]));
        assert_eq!(judge(Ended::Code(1), &all, &known), Verdict::Excused);
        assert_eq!(judge(Ended::Code(123), &all, &known), Verdict::Excused);
        assert_eq!(judge(Ended::Code(0), &read(&["new"]), &known), Verdict::Passed);
        for (ended, read, answer, why) in [
            (Ended::Code(1), read(&["a", "new"]), known.clone(), "1 failed test is not"),
            (Ended::Code(1), read(&["new", "other"]), known.clone(), "2 failed tests are not"),
            (Ended::Code(124), all.clone(), known.clone(), "exit code 124"),
            (Ended::Code(-9), all.clone(), known.clone(), "exit code -9"),
            (Ended::Signal(9), all.clone(), known.clone(), "killed by signal 9"),
            (Ended::Code(1), read(&[]), known.clone(), "no test of the reports failed"),
            (Ended::Code(1), Read::default(), known.clone(), "wrote no report"),
            (Ended::Code(1), all.clone(), Answer::Off, "quarantine is off"),
            (Ended::Code(1), all.clone(), Answer::Unknown("no answer".into()), "no answer"),
            (
                Ended::Code(1),
                Read { problems: vec!["a.xml: cut off".into()], ..all.clone() },
                known.clone(),
                "a.xml: cut off",
            ),
        ] {
            let Verdict::Failed(given) = judge(ended, &read, &answer) else {
                panic!("{why} is excused")
            };
            assert!(given.contains(why), "{given}");
        }
        assert_eq!((Ended::Signal(15).code(), Ended::Code(3).code()), (143, 3));
    }
}
