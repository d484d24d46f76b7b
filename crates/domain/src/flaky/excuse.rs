//! A check that fails only because of quarantined tests counts as passed, and its summary names
//! them, each with who or what quarantined it.

use std::collections::{BTreeMap, BTreeSet};

use super::{AskedTest, QuarantineCause};

/// The most tests that are kept with a check.
const MOST_NAMED: usize = 100;

/// The tests of a failing check.
#[derive(Clone, Copy, Debug)]
pub struct FailedCheck<'a> {
    /// The tests that failed in the end, as its reports name them.
    pub failing: &'a [AskedTest],
    /// Whether its reports are complete: the check exited, wrote all of them, and each could be
    /// read. A run that was cut short hides what else would have failed.
    pub complete: bool,
}

/// A failing test that counts as passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excused {
    /// Its name.
    pub name: String,
    /// Who or what quarantined it.
    pub cause: QuarantineCause,
}

/// Whether a failing check counts as passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Excuse {
    /// It does: everything that failed is quarantined. The tests, by their names.
    Excused(Vec<Excused>),
    /// It does not: the names of the tests that failed and are not quarantined, in order.
    Failing(Vec<String>),
    /// It does not: its reports are not whole, or name no test that failed, so that something else
    /// went wrong.
    Unexplained,
}

impl Excuse {
    /// The tests that count as passed, at most 100, each with who or what quarantined it.
    pub fn excused(&self) -> Vec<String> {
        match self {
            Self::Excused(tests) => tests.iter().take(MOST_NAMED).map(named).collect(),
            Self::Failing(_) | Self::Unexplained => Vec::new(),
        }
    }

    /// What is shown beside the check: at most ten names.
    pub fn words(&self) -> String {
        match self {
            Self::Excused(tests) => {
                format!("only quarantined tests failed: {}", listed(tests.iter().map(named)))
            }
            Self::Failing(tests) => {
                format!("tests failed: {}", listed(tests.iter().map(|name| shown(name))))
            }
            Self::Unexplained => "the check failed for a reason that no report names".into(),
        }
    }
}

/// A test with who or what quarantined it.
fn named(test: &Excused) -> String {
    format!("{} ({})", shown(&test.name), shown(&test.cause.to_string()))
}

/// Texts on one line: the first ten, and the number of the others.
pub(crate) fn listed(tests: impl ExactSizeIterator<Item = String>) -> String {
    let more = tests.len().saturating_sub(10);
    let shown: Vec<String> = tests.take(10).collect();
    match more {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// A text on one line, of at most 120 characters.
fn shown(text: &str) -> String {
    text.chars().take(120).map(|it| if it.is_control() { ' ' } else { it }).collect()
}

/// Decides by the quarantined tests, under the ids of the request.
pub fn excuse(check: FailedCheck<'_>, quarantined: &BTreeMap<String, QuarantineCause>) -> Excuse {
    if !check.complete || check.failing.is_empty() {
        return Excuse::Unexplained;
    }
    let (mut excused, mut failing) = (BTreeMap::new(), BTreeSet::new());
    for test in check.failing {
        let name = &test.key.name;
        match quarantined.get(&test.id) {
            Some(cause) => drop(excused.insert(name, cause)),
            None => drop(failing.insert(name)),
        }
    }
    if failing.is_empty() {
        let excused = excused.into_iter();
        let excused =
            excused.map(|(name, cause)| Excused { name: name.clone(), cause: cause.clone() });
        Excuse::Excused(excused.collect())
    } else {
        Excuse::Failing(failing.into_iter().cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Actor, TestKey, TestStatus};
    use super::*;

    fn asked(name: &str) -> AskedTest {
        let key = TestKey { name: name.into(), ..TestKey::default() };
        AskedTest { id: key.id().to_string(), key }
    }

    fn cause() -> QuarantineCause {
        QuarantineCause::Monitor { status: TestStatus::Flaky, name: "Pass on retry".into() }
    }

    #[test]
    fn a_check_is_excused_only_when_everything_that_failed_is_quarantined() {
        let (a, b) = (asked("a"), asked("b"));
        let cause = cause();
        let quarantined = BTreeMap::from([(a.id.clone(), cause.clone())]);
        let judge = |failing: &[AskedTest], complete| {
            excuse(FailedCheck { failing, complete }, &quarantined)
        };
        let excused = Excuse::Excused(vec![Excused { name: "a".into(), cause }]);
        assert_eq!(judge(std::slice::from_ref(&a), true), excused);
        assert_eq!(judge(&[a.clone(), b.clone()], true), Excuse::Failing(vec!["b".into()]));
        assert_eq!(judge(std::slice::from_ref(&b), true), Excuse::Failing(vec!["b".into()]));
        assert_eq!(judge(&[], true), Excuse::Unexplained, "something else failed");
        assert_eq!(judge(&[a], false), Excuse::Unexplained, "it was cut short");
    }

    #[test]
    fn the_words_stay_on_one_line() {
        let words = Excuse::Failing(vec![format!("a\nb{}", "x".repeat(500))]).words();
        assert!(words.starts_with("tests failed: a bxx") && words.len() < 140, "{words}");
    }

    #[test]
    fn the_words_name_ten_tests_at_most() {
        let excused = |number| Excused { name: format!("t{number:02}"), cause: cause() };
        let words = Excuse::Excused((0..12).map(excused).collect()).words();
        let first = "only quarantined tests failed: t00 (flaky by monitor Pass on retry), t01 (";
        assert!(words.starts_with(first), "{words}");
        assert!(words.ends_with(") and 2 more"), "{words}");
    }

    #[test]
    fn the_words_say_who_or_what_excused_a_test() {
        let by = Actor { full_name: "Ada\nLovelace".into(), email: String::new() };
        for (cause, expected) in [
            (QuarantineCause::Flag { by: by.clone() }, "adds (flagged as flaky by Ada Lovelace)"),
            (QuarantineCause::Override { by }, "adds (always quarantined by Ada Lovelace)"),
        ] {
            let words = Excuse::Excused(vec![Excused { name: "adds".into(), cause }]).words();
            assert_eq!(words, format!("only quarantined tests failed: {expected}"));
        }
    }
}
