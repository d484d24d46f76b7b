//! The reporters whose reports count: the app that a rule pins, otherwise the reporters of the name
//! on the target.

use std::collections::{BTreeMap, BTreeSet};

use signalbox_domain::queue::{Check, CheckConclusion, CheckReport, CheckStatus};
use signalbox_domain::time::Timestamp;

/// Who has reported.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reporter {
    /// An app, by a check run or a commit status.
    App(u64),
    /// An account, or an app that cannot be read, by its login.
    Account(String),
}

impl std::fmt::Display for Reporter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::App(id) => write!(f, "app {id}"),
            Self::Account(login) => f.write_str(login),
        }
    }
}

/// The current report of a reporter, without replaced attempts.
#[derive(Clone, Debug)]
pub(crate) struct Current {
    pub(crate) by: Reporter,
    pub(crate) check: CheckReport,
}

/// Who has reported which name on a commit.
pub(crate) type ReportersByName = BTreeMap<String, BTreeSet<Reporter>>;

/// Who must report a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// Each of these apps, and only these: rules of the target branch pin them, or they report
    /// it on the target.
    Apps(BTreeSet<u64>),
    /// One of these accounts, which report it on the target. Reports by others must succeed too,
    /// because an account can be a user.
    Accounts(BTreeSet<String>),
    /// Any reporter; all reports must succeed.
    Any,
}

/// Whose reports count on commits for a target.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expectations {
    pub(crate) pins: BTreeMap<String, BTreeSet<u64>>,
    pub(crate) on_target: ReportersByName,
}

impl Expectations {
    pub(crate) fn of(&self, name: &str) -> Expected {
        if let Some(apps) = self.pins.get(name) {
            return Expected::Apps(apps.clone());
        }
        let (mut apps, mut accounts) = (BTreeSet::new(), BTreeSet::new());
        for reporter in self.on_target.get(name).into_iter().flatten() {
            match reporter {
                Reporter::App(id) => drop(apps.insert(*id)),
                Reporter::Account(login) => drop(accounts.insert(login.clone())),
            }
        }
        if !apps.is_empty() {
            Expected::Apps(apps)
        } else if accounts.is_empty() {
            Expected::Any
        } else {
            Expected::Accounts(accounts)
        }
    }

    /// One report for each name. All that count must be good: one that has not ended keeps it
    /// pending, then a failure makes it fail.
    pub(crate) fn folded(&self, current: &[Current]) -> Vec<CheckReport> {
        let mut by_name = BTreeMap::<&str, Vec<&Current>>::new();
        for one in current {
            by_name.entry(&one.check.name).or_default().push(one);
        }
        by_name.values().filter_map(|reports| self.fold(reports)).collect()
    }

    fn fold(&self, reports: &[&Current]) -> Option<CheckReport> {
        let first = reports.first()?;
        let by_app = |apps: &BTreeSet<u64>, one: &Current| match &one.by {
            Reporter::App(id) => apps.contains(id),
            Reporter::Account(_) => false,
        };
        let expected = self.of(&first.check.name);
        let (counted, missing): (Vec<&Current>, Vec<String>) = match &expected {
            Expected::Any => (reports.to_vec(), Vec::new()),
            Expected::Apps(apps) => {
                let has = |app: &u64| reports.iter().any(|it| it.by == Reporter::App(*app));
                let missing = apps.iter().filter(|app| !has(app));
                let missing = missing.map(|app| Reporter::App(*app).to_string()).collect();
                (reports.iter().copied().filter(|it| by_app(apps, it)).collect(), missing)
            }
            Expected::Accounts(logins) => {
                let is_one = |it: &&Current| match &it.by {
                    Reporter::Account(login) => logins.contains(login),
                    Reporter::App(_) => false,
                };
                let has = reports.iter().copied().any(|it| is_one(&it));
                let missing = if has { Vec::new() } else { logins.iter().cloned().collect() };
                (reports.to_vec(), missing)
            }
        };
        // The worst report counts for all, unless one is missing: then only a failure counts.
        // A failure may be retried or excused, so all that count must have ended first.
        let open = counted.iter().filter(|it| rank(&it.check) == OPEN);
        let open = open.max_by_key(|it| it.check.at);
        let worst = counted.iter().max_by_key(|it| (rank(&it.check), it.check.at));
        let worst = open.or(worst);
        let told = worst.filter(|it| missing.is_empty() || rank(&it.check) == FAILED);
        let at = reports.iter().map(|it| it.check.at).max()?;
        Some(match told {
            Some(worst) => Check { at, ..worst.check.clone() },
            None => waiting(&first.check.name, reports, &missing, at),
        })
    }
}

/// Some reporters whose reports count have not reported.
fn waiting(name: &str, reports: &[&Current], missing: &[String], at: Timestamp) -> CheckReport {
    let by: BTreeSet<String> = reports.iter().map(|it| it.by.to_string()).collect();
    let by: Vec<String> = by.into_iter().collect();
    let summary =
        format!("waiting for a report from {}; reported by {}", missing.join(", "), by.join(", "));
    Check {
        name: name.to_owned(),
        status: CheckStatus::Queued,
        conclusion: None,
        url: String::new(),
        summary: Some(summary),
        at,
        excused: Vec::new(),
    }
}

/// The rank of a check that has not ended.
const OPEN: u8 = 1;
/// The rank of a failure.
const FAILED: u8 = 2;

/// The severity of a report: success is lowest, failure highest.
fn rank(report: &CheckReport) -> u8 {
    match (report.status, report.conclusion.map(CheckConclusion::is_success)) {
        (CheckStatus::Completed, Some(true)) => 0,
        (CheckStatus::Queued | CheckStatus::InProgress, _) | (CheckStatus::Completed, None) => OPEN,
        (CheckStatus::Completed, Some(false)) => FAILED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CI: u64 = 15_368;

    fn report(by: Reporter, end: Option<bool>, at: i64) -> Current {
        let conclusion =
            end.map(|good| if good { CheckConclusion::Success } else { CheckConclusion::Failure });
        let status = if end.is_some() { CheckStatus::Completed } else { CheckStatus::InProgress };
        let at = Timestamp::from_unix_seconds(at);
        let (name, url) = ("test".to_owned(), String::new());
        Current {
            by,
            check: Check { name, status, conclusion, url, summary: None, at, excused: Vec::new() },
        }
    }

    fn person(login: &str) -> Reporter {
        Reporter::Account(login.to_owned())
    }

    fn pinned(apps: &[u64]) -> Expectations {
        let pins = BTreeMap::from([("test".to_owned(), apps.iter().copied().collect())]);
        Expectations { pins, ..Expectations::default() }
    }

    fn on_target(reporters: &[Reporter]) -> Expectations {
        let on_target = BTreeMap::from([("test".to_owned(), reporters.iter().cloned().collect())]);
        Expectations { on_target, ..Expectations::default() }
    }

    /// `Some(true)` for success, `Some(false)` for failure, `None` for pending.
    fn end(expected: &Expectations, reports: &[Current]) -> Option<bool> {
        let folded = expected.folded(reports);
        assert_eq!(folded.len(), 1, "{folded:?}");
        folded[0].conclusion.map(CheckConclusion::is_success)
    }

    #[test]
    fn only_the_pinned_app_counts() {
        let expected = pinned(&[CI]);
        let spoof = report(person("eve"), Some(true), 9);
        let other = report(Reporter::App(7), Some(true), 9);
        assert_eq!(end(&expected, std::slice::from_ref(&spoof)), None);
        assert_eq!(end(&expected, std::slice::from_ref(&other)), None);
        let summary = expected.folded(&[spoof.clone(), other.clone()])[0].summary.clone();
        let wanted = "waiting for a report from app 15368; reported by app 7, eve";
        assert_eq!(summary.as_deref(), Some(wanted));
        let good = report(Reporter::App(CI), Some(true), 1);
        let bad = report(Reporter::App(CI), Some(false), 1);
        assert_eq!(end(&expected, &[spoof.clone(), good.clone()]), Some(true));
        assert_eq!(end(&expected, &[spoof, bad]), Some(false));
        let red = report(person("eve"), Some(false), 9);
        assert_eq!(end(&expected, &[red, good.clone()]), Some(true), "it does not count either");
        assert_eq!(end(&pinned(&[CI, 7]), std::slice::from_ref(&good)), None, "one is missing");
        assert_eq!(end(&pinned(&[CI, 7]), &[good, other]), Some(true));
    }

    #[test]
    fn without_a_pin_the_app_on_the_target_counts() {
        let expected = on_target(&[Reporter::App(CI), person("ci-bot")]);
        assert_eq!(end(&expected, &[report(person("eve"), Some(true), 9)]), None);
        assert_eq!(end(&expected, &[report(Reporter::App(7), Some(true), 9)]), None);
        let good = report(Reporter::App(CI), Some(true), 1);
        let red = report(person("eve"), Some(false), 9);
        assert_eq!(end(&expected, &[red, good.clone()]), Some(true));
        // An app that adds its own report on the target does not replace the other one.
        let both = on_target(&[Reporter::App(CI), Reporter::App(7)]);
        assert_eq!(end(&both, &[report(Reporter::App(7), Some(true), 9)]), None);
        assert_eq!(end(&both, &[report(Reporter::App(7), Some(true), 9), good]), Some(true));
    }

    #[test]
    fn an_account_on_the_target_must_report_and_the_others_must_be_good() {
        let expected = on_target(&[person("ci-bot")]);
        let spoof = report(person("eve"), Some(true), 9);
        assert_eq!(end(&expected, std::slice::from_ref(&spoof)), None);
        let good = report(person("ci-bot"), Some(true), 1);
        assert_eq!(end(&expected, &[spoof.clone(), good.clone()]), Some(true));
        let bad = report(person("ci-bot"), Some(false), 1);
        assert_eq!(end(&expected, &[spoof, bad]), Some(false));
        let red = report(Reporter::App(CI), Some(false), 1);
        assert_eq!(end(&expected, &[good, red]), Some(false));
    }

    #[test]
    fn without_reports_on_the_target_all_must_succeed() {
        let expected = Expectations::default();
        let good = report(Reporter::App(CI), Some(true), 1);
        let (pending, bad) =
            (report(person("eve"), None, 2), report(person("eve"), Some(false), 2));
        assert_eq!(end(&expected, std::slice::from_ref(&good)), Some(true));
        assert_eq!(end(&expected, &[good.clone(), pending.clone()]), None);
        assert_eq!(end(&expected, &[good, bad.clone()]), Some(false));
        assert_eq!(end(&expected, &[pending, bad]), None, "a failure may be retried or excused");
    }
}
