//! Which tests fail in a job, why, and what their reports say.

use signalbox_domain::flaky::ReportedFailure;

use super::ci::{Execution, Job};
use super::plan::{IncidentKind, Kind, Plan, PlannedTest};
use super::tests_of::word;
use crate::simulation::random::mixed;

/// Why a test failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The pull request broke it.
    PullRequest,
    /// It is broken on `main`.
    Broken,
    /// A helper that is broken on `main` breaks many tests.
    Helper,
    /// It does not work on this platform.
    Platform,
    /// It is flaky.
    Flaky,
    /// An incident.
    Incident,
    /// The network or the machine, in one job.
    Noise,
}

impl Cause {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::PullRequest,
        Self::Broken,
        Self::Helper,
        Self::Platform,
        Self::Flaky,
        Self::Incident,
        Self::Noise,
    ];

    /// Its name in tables.
    pub const fn label(self) -> &'static str {
        match self {
            Self::PullRequest => "a bug of a pull request",
            Self::Broken => "broken on main",
            Self::Helper => "a helper broken on main",
            Self::Platform => "broken on a platform",
            Self::Flaky => "flaky",
            Self::Incident => "an incident",
            Self::Noise => "infrastructure noise",
        }
    }

    /// Whether the code is to blame, so that the failure must not be excused.
    pub const fn is_real(self) -> bool {
        matches!(self, Self::PullRequest | Self::Broken | Self::Helper | Self::Platform)
    }
}

/// One job in so many has a test or two that fail for no reason of their own.
const NOISE: u64 = 400;

/// A number from 0 to 999 that follows from others.
fn draw(parts: &[u64]) -> u64 {
    parts.iter().fold(0x5169_6e61, |all, part| mixed(all ^ part)) % 1_000
}

/// A run of a job with everything that is true in it.
pub(super) struct Circumstances<'a> {
    plan: &'a Plan,
    execution: &'a Execution,
    /// The tests that fail because of noise.
    noise: Vec<usize>,
}

impl<'a> Circumstances<'a> {
    pub(super) fn new(plan: &'a Plan, execution: &'a Execution) -> Self {
        let (tests, number) = (plan.tests.len(), execution.number);
        let count =
            if mixed(number ^ 1).is_multiple_of(NOISE) { 1 + mixed(number ^ 2) % 2 } else { 0 };
        let among = u64::try_from(tests).unwrap_or(1).max(1);
        let noise =
            (0..count).filter_map(|it| usize::try_from(mixed(number ^ (3 + it)) % among).ok());
        Self { plan, execution, noise: noise.collect() }
    }

    /// Whether a test belongs to the job.
    pub(super) fn runs(&self, number: usize, test: &PlannedTest) -> bool {
        let exists = test.exists.contains(self.execution.commit.code_of);
        exists && self.shard(number).is_none_or(|shard| self.execution.job == Job::Linux(shard))
    }

    /// The shard of a test, by the commit; `None` where there are none.
    fn shard(&self, number: usize) -> Option<u32> {
        let of_commit = || 1 + u32::from(draw(&[self.execution.commit.sha, salt(number)]) < 500);
        matches!(self.execution.job, Job::Linux(_)).then(of_commit)
    }

    /// Why a test fails in this attempt, and its failure; `None` when it passes.
    pub(super) fn failure(
        &self,
        number: usize,
        test: &PlannedTest,
        attempt: u32,
    ) -> Option<(Cause, ReportedFailure)> {
        let Execution { commit, job, .. } = self.execution;
        let own = |words: &str| failure(number, words, None);
        if commit.bug.contains(&number) {
            return Some((Cause::PullRequest, own("is not what it was")));
        }
        match test.broken_at(commit.code_of) {
            Some(true) => {
                let trace = format!("Helper.call(Helper.java:3)\n  at T{number}.run(T.java:1)");
                return Some((
                    Cause::Helper,
                    failure(number, "has no such function", Some(&trace)),
                ));
            }
            Some(false) => return Some((Cause::Broken, own("is not equal"))),
            None => {}
        }
        let shows = test.wrong.contains(commit.code_of);
        if test.kind == Kind::Platform && shows && *job == Job::Windows {
            return Some((Cause::Platform, own("has a path with the wrong separator")));
        }
        if let Some(failure) = self.incident(number, attempt) {
            return Some((Cause::Incident, failure));
        }
        if attempt == 0 && self.noise.contains(&number) {
            return Some((Cause::Noise, own("lost its connection")));
        }
        (shows && self.is_unlucky(number, test, attempt))
            .then(|| (Cause::Flaky, own("did not happen in time")))
    }

    /// Whether a flaky test fails in this attempt.
    fn is_unlucky(&self, number: usize, test: &PlannedTest, attempt: u32) -> bool {
        let Execution { commit, number: run, .. } = self.execution;
        let together = || self.shard(number) == self.shard(test.polluter);
        let number = salt(number);
        match test.kind {
            Kind::Stable | Kind::Platform => false,
            Kind::Flaky(per_mille) => {
                draw(&[*run, number, u64::from(attempt)]) < u64::from(per_mille)
            }
            // Alone it passes.
            Kind::RandomOrder => attempt == 0 && together() && draw(&[*run, number, 7]) < 200,
            Kind::FixedOrder => {
                let sharded = self.shard(0).is_some();
                attempt == 0 && sharded && together() && draw(&[commit.sha, number, 8]) < 300
            }
        }
    }

    fn incident(&self, number: usize, attempt: u32) -> Option<ReportedFailure> {
        let Execution { at, job, number: run, .. } = self.execution;
        let incident = self.plan.incidents.iter().find(|it| it.period.contains(*at))?;
        let tests = u64::try_from(self.plan.tests.len()).unwrap_or(u64::MAX);
        let test = salt(number);
        let own = |words: &str, trace: Option<&str>| Some(failure(number, words, trace));
        match incident.kind {
            IncidentKind::BadMachine => {
                let fails = draw(&[*run, 11]) < 333 && draw(&[*run, test, 12]) < 600;
                fails.then(|| failure(number, "was not what was expected", None))
            }
            IncidentKind::HostDown if test % 5 == 1 => {
                own("needs its rows: db.internal:5432 refused the connection", None)
            }
            IncidentKind::Certificate if test < tests / 20 => {
                own("has no answer", Some(&format!("Tls.accept(Tls.java:{number})")))
            }
            IncidentKind::SlowDisk if draw(&[*run, test, 13, u64::from(attempt)]) < 80 => {
                own("took longer than its limit", None)
            }
            IncidentKind::FullDisk
                if *job == Job::Linux(1) && draw(&[*run, 14]) < 500 && test * 20 > tests * 17 =>
            {
                own("could not be written: no space left on device", None)
            }
            IncidentKind::HostDown
            | IncidentKind::Certificate
            | IncidentKind::SlowDisk
            | IncidentKind::FullDisk => None,
        }
    }
}

fn salt(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

fn failure(number: usize, words: &str, trace: Option<&str>) -> ReportedFailure {
    let message = format!("the sum of {} {words}", word(number));
    let text = trace.map_or_else(String::new, |trace| format!("{message}\n  at {trace}"));
    ReportedFailure { message, text }
}
