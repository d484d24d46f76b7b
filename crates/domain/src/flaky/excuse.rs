//! A check that fails only because of quarantined tests counts as passed, and its summary names
//! them.

use std::collections::BTreeSet;

use super::AskedTest;

/// The tests of a failing check.
#[derive(Clone, Copy, Debug)]
pub struct FailedCheck<'a> {
    /// The tests that failed in the end, as its reports name them.
    pub failing: &'a [AskedTest],
    /// Whether its reports are complete: the check exited, wrote all of them, and each could be
    /// read. A run that was cut short hides what else would have failed.
    pub complete: bool,
}

/// Whether a failing check counts as passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Excuse {
    /// It does: everything that failed is quarantined. The names of the tests, in order.
    Excused(Vec<String>),
    /// It does not: the names of the tests that failed and are not quarantined, in order.
    Failing(Vec<String>),
    /// It does not: its reports are not whole, or name no test that failed, so that something else
    /// went wrong.
    Unexplained,
}

impl Excuse {
    /// What is shown beside the check: at most ten names.
    pub fn words(&self) -> String {
        match self {
            Self::Excused(tests) => format!("only quarantined tests failed: {}", listed(tests)),
            Self::Failing(tests) => format!("tests failed: {}", listed(tests)),
            Self::Unexplained => "the check failed for a reason that no report names".into(),
        }
    }
}

fn listed(tests: &[String]) -> String {
    let shown: Vec<String> = tests.iter().take(10).map(|name| shown(name)).collect();
    match tests.len().saturating_sub(shown.len()) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// A name on one line, of at most 120 characters.
fn shown(name: &str) -> String {
    name.chars().take(120).map(|it| if it.is_control() { ' ' } else { it }).collect()
}

/// Decides by the quarantined tests, under the ids of the request.
pub fn excuse(check: FailedCheck<'_>, quarantined: &BTreeSet<String>) -> Excuse {
    if !check.complete || check.failing.is_empty() {
        return Excuse::Unexplained;
    }
    let names = |tests: &[&AskedTest]| -> Vec<String> {
        let names: BTreeSet<String> = tests.iter().map(|test| test.key.name.clone()).collect();
        names.into_iter().collect()
    };
    let (excused, failing): (Vec<&AskedTest>, Vec<&AskedTest>) =
        check.failing.iter().partition(|test| quarantined.contains(&test.id));
    if failing.is_empty() {
        Excuse::Excused(names(&excused))
    } else {
        Excuse::Failing(names(&failing))
    }
}

#[cfg(test)]
mod tests {
    use super::super::TestKey;
    use super::*;

    fn asked(name: &str) -> AskedTest {
        let key = TestKey { name: name.into(), ..TestKey::default() };
        AskedTest { id: key.id().to_string(), key }
    }

    #[test]
    fn a_check_is_excused_only_when_everything_that_failed_is_quarantined() {
        let (a, b) = (asked("a"), asked("b"));
        let quarantined: BTreeSet<String> = [a.id.clone()].into();
        let judge = |failing: &[AskedTest], complete| {
            excuse(FailedCheck { failing, complete }, &quarantined)
        };
        assert_eq!(judge(std::slice::from_ref(&a), true), Excuse::Excused(vec!["a".into()]));
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
        let names = (0..12).map(|number| format!("t{number:02}")).collect();
        let words = Excuse::Excused(names).words();
        assert!(words.starts_with("only quarantined tests failed: t00, t01"), "{words}");
        assert!(words.ends_with("t09 and 2 more"), "{words}");
    }
}
