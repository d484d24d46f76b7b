//! One test case, its runs and a clock.

use signalbox_domain::flaky::{
    Action, Actor, Base, BranchScope, Classification, Command, Decision, Event, Fact, FailureCount,
    FailureRate, Monitor, MonitorId, MuteLength, Origin, QuarantineOverride, Refusal, Rule, Run,
    SameCode, Settings, Summary, Template, TestCase, TestKey, TestStatus, Transition, absorb,
    decide,
};
use signalbox_domain::ids::{OrgId, RepoId, Sha};
use signalbox_domain::time::{Span, Timestamp};
use uuid::Uuid;

/// What came of a step.
#[derive(Debug, PartialEq)]
pub(crate) struct Done {
    pub(crate) test: TestCase,
    pub(crate) decisions: Vec<Decision>,
    pub(crate) events: Vec<Event>,
    pub(crate) empty: bool,
}

/// One test case with its runs and a clock.
pub(crate) struct Scenario {
    pub(crate) settings: Settings,
    pub(crate) test: TestCase,
    pub(crate) runs: Vec<Run>,
    pub(crate) now: Timestamp,
}

pub(crate) fn start() -> Timestamp {
    Timestamp::parse("2026-11-02T00:00:00Z").expect("valid")
}

pub(crate) fn by() -> Actor {
    Actor { full_name: "Ada Lovelace".into(), email: "ada@acme.test".into() }
}

impl Scenario {
    /// A test watched by these monitors only.
    pub(crate) fn new(monitors: Vec<Monitor>) -> Self {
        let (org, repo) = (OrgId(Uuid::from_u128(1)), RepoId(Uuid::from_u128(2)));
        let key = TestKey { name: "adds".into(), ..TestKey::default() };
        let settings = Settings { monitors, ..Settings::new(repo) };
        Self { settings, test: TestCase::new(org, repo, key, start()), runs: vec![], now: start() }
    }

    /// A test of a repository with default settings.
    pub(crate) fn by_default() -> Self {
        Self::new(Settings::new(RepoId(Uuid::from_u128(2))).monitors)
    }

    /// A run of the job `unit`, on the commit as it is.
    pub(crate) fn run(&mut self, branch: &str, commit: u32, passed: bool) {
        let unit = Origin::new(Some(&["unit"]), Base::Itself);
        self.run_of(unit, branch, commit, passed);
    }

    pub(crate) fn run_of(&mut self, origin: Origin, branch: &str, commit: u32, passed: bool) {
        self.runs.push(Run {
            at: self.now,
            branch: branch.into(),
            class: self.settings.branches.classify(branch, branch.starts_with("pr")),
            codes: vec![SameCode::Commit(Sha::new(format!("{commit:040x}")).expect("valid"))],
            origin,
            passed,
        });
    }

    /// Runs on the main branch, each on a commit of its own.
    pub(crate) fn runs(&mut self, passes: u32, failures: u32) {
        for number in 0..passes + failures {
            let commit = u32::try_from(self.runs.len()).expect("few") + 1_000;
            self.run("main", commit, number < passes);
        }
    }

    pub(crate) fn wait(&mut self, hours: u32) {
        self.now = self.now.plus(Span::hours(hours));
    }

    pub(crate) fn absorb(&mut self, fact: &Fact) -> Done {
        let done = absorb(&self.test, &self.settings, fact, self.now);
        self.take(done)
    }

    fn take(&mut self, done: Transition) -> Done {
        self.test = done.test.clone();
        let empty = done.is_empty();
        Done { test: done.test, decisions: done.decisions, events: done.events, empty }
    }

    /// What monitors see one minute from now.
    pub(crate) fn measured(&mut self) -> Fact {
        self.now = self.now.plus(Span::minutes(1));
        let summary = Summary::of(&self.runs);
        let read = |monitor: &Monitor| (monitor.id, monitor.read(&summary, self.now));
        let readings = self.settings.monitors.iter().map(read).collect();
        Fact::Measured { as_of: self.now, readings }
    }

    pub(crate) fn measure(&mut self) -> Done {
        let fact = self.measured();
        self.absorb(&fact)
    }

    /// The status after a measurement.
    pub(crate) fn status(&mut self) -> TestStatus {
        self.measure().test.standing.value
    }

    pub(crate) fn ask(&mut self, command: &Command) -> Result<Done, Refusal> {
        let done = decide(&self.test, &self.settings, command, self.now)?;
        Ok(self.take(done))
    }

    pub(crate) fn set_quarantine(
        &mut self,
        setting: QuarantineOverride,
        expires_at: Option<Timestamp>,
    ) -> Result<Done, Refusal> {
        self.ask(&Command::SetQuarantine { setting, expires_at, reason: None, by: by() })
    }

    pub(crate) fn mute(&mut self, length: MuteLength) -> Result<Done, Refusal> {
        let monitor = self.settings.monitors[0].id;
        self.ask(&Command::Mute { monitor, length, reason: None, by: by() })
    }
}

pub(crate) fn monitor(id: u128, classification: Classification, rule: Rule) -> Monitor {
    let template = Template::FlakyInQueue.monitor(MonitorId(Uuid::from_u128(id)));
    let action = Action::Classify(classification);
    Monitor { action, rule, scope: BranchScope::all(), ..template }
}

pub(crate) fn rate(activation_percent: u32, resolution_percent: u32) -> Rule {
    let (window_hours, min_sample) = (24, 10);
    Rule::FailureRate(FailureRate {
        activation_percent,
        resolution_percent,
        window_hours,
        min_sample,
        min_failing_times: 1,
    })
}

pub(crate) fn count(count: u32, window_hours: u32, resolution_timeout_hours: u32) -> Rule {
    Rule::FailureCount(FailureCount { count, window_hours, resolution_timeout_hours })
}

pub(crate) fn flaky(rule: Rule) -> Scenario {
    Scenario::new(vec![monitor(7, Classification::Flaky, rule)])
}
