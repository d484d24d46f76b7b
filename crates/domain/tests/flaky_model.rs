//! A test case under a random mix: runs, measurements, commands and settings in any order,
//! repeated and late; the invariants after every step.

use proptest::prelude::*;
use signalbox_domain::flaky::{
    Action, Actor, AutoQuarantine, Base, BranchScope, Classification, Command, Decision, EventKind,
    Fact, FailureCount, FailureRate, FailureStreak, Inheritance, Input, Monitor, MonitorCause,
    MonitorId, MonitorStatus, MuteLength, Origin, PassOnRetry, QuarantineOverride, Reading,
    Retirement, Rule, Run, SameCode, Settings, Summary, TestCase, TestKey, TestStatus, Transition,
    absorb, check_invariants, decide, fold, next_deadline,
};
use signalbox_domain::ids::{OrgId, RepoId, Sha};
use signalbox_domain::time::{Span, Timestamp};
use uuid::Uuid;

/// One thing that happens.
#[derive(Clone, Debug)]
enum Op {
    /// Some runs in a row: branch, commit, how many, and a bit for each whether it passes.
    Run(usize, u32, u32, u32),
    /// Minutes.
    Wait(u32),
    Measure,
    /// An earlier measurement is repeated.
    Repeat(usize),
    TimePassed,
    Flag,
    Unflag,
    Mute(usize, MuteLength),
    Unmute(usize),
    /// The override, and the hours until it expires.
    Quarantine(QuarantineOverride, Option<u32>),
    /// A monitor is switched on or off.
    Toggle(usize),
    Delete(usize),
    /// A monitor is created or given another action.
    Give(usize, Action),
    Auto(bool, AutoQuarantine),
    /// Stable branches no longer contain the test.
    Retire,
    /// A commit contains it that was made so many minutes ago.
    Return(u32),
    /// Another test, whose monitors up to that number are active, was renamed to this one.
    Inherit(usize, QuarantineOverride, Option<u32>),
}

const BRANCHES: [&str; 3] = ["main", "signalbox-merge/1", "topic"];

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        Just(Action::Classify(Classification::Flaky)),
        Just(Action::Classify(Classification::Broken)),
        any::<bool>().prop_map(|remove_when_resolved| Action::Label {
            labels: vec!["shaky".into()],
            remove_when_resolved
        }),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let monitor = || 0..MONITORS;
    prop_oneof![
        10 => (0..BRANCHES.len(), 0..8_u32, 1..12_u32, any::<u32>())
            .prop_map(|(branch, commit, runs, bits)| Op::Run(branch, commit, runs, bits)),
        4 => (0..BRANCHES.len(), 1..12_u32).prop_map(|(branch, runs)| Op::Run(branch, 8, runs, !0)),
        6 => prop_oneof![1..600_u32, 600..20_000_u32].prop_map(Op::Wait),
        10 => Just(Op::Measure),
        2 => (0..20_usize).prop_map(Op::Repeat),
        2 => Just(Op::TimePassed),
        1 => Just(Op::Flag),
        1 => Just(Op::Unflag),
        2 => (monitor(), prop::sample::select(MuteLength::ALL)).prop_map(|(it, for_)| Op::Mute(it, for_)),
        1 => monitor().prop_map(Op::Unmute),
        2 => (prop::sample::select(QuarantineOverride::ALL), prop::option::of(1..200_u32))
            .prop_map(|(setting, hours)| Op::Quarantine(setting, hours)),
        1 => monitor().prop_map(Op::Toggle),
        1 => monitor().prop_map(Op::Delete),
        1 => (monitor(), action()).prop_map(|(it, action)| Op::Give(it, action)),
        1 => (any::<bool>(), prop::sample::select(AutoQuarantine::ALL))
            .prop_map(|(enabled, auto)| Op::Auto(enabled, auto)),
        1 => Just(Op::Retire),
        2 => (0..200_u32).prop_map(Op::Return),
        1 => (monitor(), prop::sample::select(QuarantineOverride::ALL), prop::option::of(1..200_u32))
            .prop_map(|(it, setting, hours)| Op::Inherit(it, setting, hours)),
    ]
}

const MONITORS: usize = 5;

fn monitor(number: usize, action: Action) -> Monitor {
    let (rule, stale_timeout_hours) = match number {
        0 => (Rule::PassOnRetry(PassOnRetry { recovery_days: 2 }), None),
        1 => (Rule::FailureRate(RATE), None),
        2 => (Rule::FailureCount(COUNT), None),
        3 => (Rule::FailureRate(FailureRate { min_sample: 3, ..RATE }), Some(30)),
        _ => (Rule::FailureStreak(FailureStreak { streak: 3, window_hours: 12 }), None),
    };
    let action = match (number, action) {
        (0, Action::Classify(_)) => Action::Classify(Classification::Flaky),
        (_, action) => action,
    };
    Monitor {
        id: MonitorId(Uuid::from_u128(u128::try_from(number).expect("small"))),
        name: "a monitor".into(),
        enabled: true,
        scope: BranchScope::all(),
        scope_since: None,
        action,
        rule,
        stale_timeout_hours,
    }
}

const RATE: FailureRate = FailureRate {
    activation_percent: 40,
    resolution_percent: 20,
    window_hours: 12,
    min_sample: 6,
    min_failing_times: 1,
};
const COUNT: FailureCount =
    FailureCount { count: 3, window_hours: 6, resolution_timeout_hours: 24 };

struct World {
    settings: Settings,
    test: TestCase,
    runs: Vec<Run>,
    now: Timestamp,
    told: Vec<Fact>,
    journal: Vec<(Timestamp, Settings, Input)>,
}

fn new_test() -> TestCase {
    let key = TestKey { name: "adds".into(), ..TestKey::default() };
    let (org, repo) = (OrgId(Uuid::from_u128(1)), RepoId(Uuid::from_u128(2)));
    TestCase::new(org, repo, key, Timestamp::from_unix_seconds(0))
}

impl World {
    fn new() -> Self {
        let test = new_test();
        let flaky = || Action::Classify(Classification::Flaky);
        let broken = || Action::Classify(Classification::Broken);
        let actions = [flaky(), broken(), flaky(), broken(), broken()];
        let monitors = actions.into_iter().enumerate().map(|(n, it)| monitor(n, it)).collect();
        let settings = Settings { monitors, ..Settings::new(test.repo) };
        let now = Timestamp::from_unix_seconds(0);
        Self { settings, test, runs: vec![], now, told: vec![], journal: vec![] }
    }

    fn measured(&self) -> Fact {
        let summary = Summary::of(&self.runs);
        let read = |monitor: &Monitor| (monitor.id, monitor.read(&summary, self.now));
        Fact::Measured {
            as_of: self.now,
            readings: self.settings.monitors.iter().map(read).collect(),
        }
    }

    fn absorb(&mut self, fact: &Fact) {
        let done = absorb(&self.test, &self.settings, fact, self.now);
        let again = absorb(&done.test, &self.settings, fact, self.now);
        assert!(again.is_empty(), "F5: {again:?}");
        assert_eq!(again.test, done.test, "F5");
        self.check(&Input::Fact(fact.clone()), &done);
        self.commit(Input::Fact(fact.clone()), done);
    }

    fn ask(&mut self, command: Command) {
        if let Ok(done) = decide(&self.test, &self.settings, &command, self.now) {
            let input = Input::Command(command);
            self.check(&input, &done);
            self.commit(input, done);
        }
    }

    /// Only what is worth it is written, as a store does.
    fn commit(&mut self, input: Input, done: Transition) {
        if done.is_empty() {
            assert_eq!(done.test.sequence, self.test.sequence, "F7");
            assert_eq!(done.test.standing, self.test.standing, "F7");
        } else {
            assert_eq!(done.test.sequence, self.test.sequence + 1, "F7");
            self.journal.push((self.now, self.settings.clone(), input));
            self.test = done.test;
        }
    }

    fn check(&self, input: &Input, done: &Transition) {
        assert_eq!(check_invariants(&done.test, &self.settings), Vec::new());
        self.hysteresis(done);
        self.not_run_is_not_healed(input, done);
        self.audit(input, done);
        self.events(done);
        self.quarantine(done);
    }

    /// F2: thresholds are crossed, never only approached.
    fn hysteresis(&self, done: &Transition) {
        for decision in &done.decisions {
            let Decision::MonitorMoved { monitor, cause, evidence, .. } = decision else {
                continue;
            };
            let active_before = self
                .test
                .monitors
                .get(monitor)
                .is_some_and(|it| it.status == MonitorStatus::Active);
            assert_eq!(active_before, *cause != MonitorCause::Detected, "F2: no move in place");
            let Some(Reading::FailureRate(seen)) = evidence else { continue };
            let Some(Rule::FailureRate(rule)) = self.settings.monitor(*monitor).map(|it| it.rule)
            else {
                panic!("F2: a monitor of another kind")
            };
            let share = f64::from(seen.failures) / f64::from(seen.runs.max(1));
            match cause {
                MonitorCause::Detected => assert!(share >= 0.4 && seen.runs >= rule.min_sample),
                MonitorCause::Recovered => assert!(share < 0.2 && seen.runs >= rule.min_sample),
                MonitorCause::Stale | MonitorCause::Removed | MonitorCause::Excluded => {}
            }
        }
    }

    /// F3: what recovers has run within the time that the recovery is about.
    fn not_run_is_not_healed(&self, input: &Input, done: &Transition) {
        for decision in &done.decisions {
            let Decision::MonitorMoved { monitor, cause: MonitorCause::Recovered, .. } = decision
            else {
                continue;
            };
            let Input::Fact(Fact::Measured { as_of, .. }) = input else {
                panic!("F3: only measurements show that something is gone")
            };
            let hours = match self.settings.monitor(*monitor).map(|it| it.rule) {
                Some(Rule::PassOnRetry(rule)) => rule.recovery_days * 24,
                Some(Rule::FailureRate(rule)) => rule.window_hours,
                Some(Rule::FailureCount(rule)) => rule.resolution_timeout_hours,
                Some(Rule::FailureStreak(rule)) => rule.window_hours,
                None => panic!("F3: a monitor that is gone"),
            };
            let from = as_of.minus(Span::hours(hours));
            assert!(self.runs.iter().any(|run| run.at > from && run.at <= *as_of), "F3");
        }
    }

    /// F1 and F7: a status changes only together with a cause that is written down.
    fn audit(&self, input: &Input, done: &Transition) {
        let status_changes =
            done.decisions.iter().filter(|it| matches!(it, Decision::StatusChanged { .. }));
        let changed = done.test.standing.value != self.test.standing.value;
        assert_eq!(status_changes.count(), usize::from(changed), "F7");
        let causes = done.decisions.iter().any(|it| {
            matches!(
                it,
                Decision::MonitorMoved { .. }
                    | Decision::Muted { .. }
                    | Decision::Unmuted { .. }
                    | Decision::Flagged { .. }
                    | Decision::Unflagged { .. }
                    | Decision::Retired(_)
                    | Decision::Returned
                    | Decision::Inherited { .. }
            )
        });
        let settings = matches!(input, Input::Fact(Fact::SettingsChanged));
        assert!(!changed || causes || settings, "F1: {:?}", done.decisions);
        let overridden = done.test.quarantining() != self.test.quarantining();
        let set = |it: &&Decision| matches!(it, Decision::QuarantineSet { .. });
        assert_eq!(done.decisions.iter().any(|it| set(&it)), overridden, "F7");
        assert!(changed || done.test.standing.since == self.test.standing.since, "F7");
    }

    /// F8: events are exactly the changes, each once, numbered without gaps.
    fn events(&self, done: &Transition) {
        let numbers: Vec<u64> = done.events.iter().map(|event| event.number).collect();
        let expected: Vec<u64> = (self.test.events + 1..=done.test.events).collect();
        assert_eq!(numbers, expected, "F8");
        let of = |name: &str| done.events.iter().filter(|it| it.kind.name() == name).count();
        let changed = usize::from(done.test.standing.value != self.test.standing.value);
        assert_eq!(of("test_case.status_changed"), changed, "F8");
        assert_eq!(of("v2.test_case.status_changed"), changed, "F8");
        let moved = done.decisions.iter().filter(|it| matches!(it, Decision::MonitorMoved { .. }));
        assert_eq!(of("test_case.monitor_status_changed"), moved.count(), "F8");
        for event in &done.events {
            assert_eq!(event.quarantined, done.test.is_quarantined(&self.settings, event.at), "F8");
            if let EventKind::StatusChanged { previous, current } = &event.kind {
                assert_eq!(*previous, self.test.standing.value, "F8");
                assert_eq!(current, &done.test.standing, "F8");
            }
        }
    }

    /// F6: quarantine in its own words, now and later.
    fn quarantine(&self, done: &Transition) {
        for hours in [0, 1, 100, 10_000] {
            let at = self.now.plus(Span::hours(hours));
            let over = done.test.quarantining();
            let always = over.setting == QuarantineOverride::Always
                && over.expires_at.is_none_or(|end| at < end);
            let covered = match self.settings.quarantine.auto {
                AutoQuarantine::Off => false,
                AutoQuarantine::Flaky => done.test.standing.value == TestStatus::Flaky,
                AutoQuarantine::FlakyAndBroken => done.test.standing.value != TestStatus::Healthy,
            };
            let never = over.setting == QuarantineOverride::Never;
            let expected = self.settings.quarantine.enabled
                && done.test.retired.is_none()
                && (always || (covered && !never));
            assert_eq!(done.test.is_quarantined(&self.settings, at), expected, "F6");
        }
    }

    fn change(&mut self, settings: Settings) {
        self.settings = settings;
        self.absorb(&Fact::SettingsChanged);
    }

    fn inherit(&mut self, number: usize, setting: QuarantineOverride, hours: Option<u32>) {
        let mut other = World { now: self.now, settings: self.settings.clone(), ..Self::new() };
        let at = self.now.plus(Span::hours(hours.unwrap_or_default()));
        for op in [
            Op::Run(0, 3, 4, 0b1010),
            Op::Measure,
            Op::Flag,
            Op::Mute(number, MuteLength::Hour),
            Op::Quarantine(setting, hours.filter(|_| setting == QuarantineOverride::Always)),
        ] {
            other.apply(&op);
        }
        self.now = at.max(other.now);
        let mut inheritance = Inheritance::of(&other.test, &self.test);
        let key = TestKey { name: format!("another {number}"), ..TestKey::default() };
        inheritance.from = key.id();
        // The runs of both count.
        self.runs.append(&mut other.runs);
        self.absorb(&Fact::Inherited(inheritance));
    }

    fn apply(&mut self, op: &Op) {
        let by = Actor { full_name: "Ada".into(), email: "ada@acme.test".into() };
        let id = |number: usize| MonitorId(Uuid::from_u128(u128::try_from(number).expect("small")));
        match op {
            Op::Run(branch, commit, runs, bits) => {
                for number in 0..*runs {
                    self.now = self.now.plus(Span::seconds(7));
                    let sha = Sha::new(format!("{commit:040x}")).expect("valid");
                    let branch = BRANCHES[*branch];
                    let class = self.settings.branches.classify(branch, false);
                    let (codes, passed) = (vec![SameCode::Commit(sha)], bits >> number & 1 == 1);
                    let known = Origin::new(Some(&["unit"]), Base::Itself);
                    // Of every third commit the job is unknown.
                    let origin = if commit % 3 == 2 { Origin::default() } else { known };
                    self.runs.push(Run {
                        at: self.now,
                        branch: branch.into(),
                        class,
                        codes,
                        origin,
                        passed,
                    });
                }
            }
            Op::Wait(minutes) => self.now = self.now.plus(Span::minutes(*minutes)),
            Op::Measure => {
                self.now = self.now.plus(Span::seconds(1));
                let kept = self.now.minus(Span::hours(5 * 24));
                self.runs.retain(|run| run.at > kept);
                let fact = self.measured();
                self.absorb(&fact);
                self.told.push(fact);
            }
            Op::Repeat(at) => {
                if !self.told.is_empty() {
                    let fact = self.told[at % self.told.len()].clone();
                    self.absorb(&fact);
                }
            }
            Op::Retire => {
                let at = self.now;
                let (missing_since, code_at) = (at.minus(Span::hours(30)), at);
                let renamed_to = None;
                let retired = Retirement { at, missing_since, commits: 10, code_at, renamed_to };
                self.absorb(&Fact::Retired(retired));
                assert_eq!(self.test.standing.value, TestStatus::Healthy);
            }
            Op::Return(minutes) => {
                let code_at = self.now.minus(Span::minutes(*minutes));
                self.absorb(&Fact::Returned { code_at });
            }
            Op::Inherit(number, setting, hours) => self.inherit(*number, *setting, *hours),
            Op::TimePassed => {
                self.absorb(&Fact::TimePassed);
                assert!(next_deadline(&self.test).is_none_or(|next| next > self.now));
            }
            Op::Flag => self.ask(Command::Flag { reason: None, by }),
            Op::Unflag => self.ask(Command::Unflag { reason: None, by }),
            Op::Mute(number, length) => {
                let (monitor, length) = (id(*number), *length);
                self.ask(Command::Mute { monitor, length, reason: None, by });
            }
            Op::Unmute(number) => self.ask(Command::Unmute { monitor: id(*number), by }),
            Op::Quarantine(setting, hours) => {
                let expires_at = hours.map(|hours| self.now.plus(Span::hours(hours)));
                let reason = Some("ticket 7".into());
                self.ask(Command::SetQuarantine { setting: *setting, expires_at, reason, by });
            }
            Op::Toggle(number) => {
                if let Some(old) = self.settings.monitor(id(*number)) {
                    let new = Monitor { enabled: !old.enabled, ..old.clone() };
                    self.change(self.settings.with_monitor(new, self.now).expect("valid"));
                }
            }
            Op::Delete(number) => {
                if let Ok(settings) = self.settings.without_monitor(id(*number)) {
                    self.change(settings);
                }
            }
            Op::Give(number, action) => {
                let new = monitor(*number, action.clone());
                self.change(self.settings.with_monitor(new, self.now).expect("valid"));
            }
            Op::Auto(enabled, auto) => {
                let mut settings = self.settings.clone();
                settings.quarantine.enabled = *enabled;
                settings.quarantine.auto = *auto;
                self.change(settings);
            }
        }
    }
}

/// How many histories: `SIGNALBOX_PROPTEST_CASES`, or few enough for every build.
fn cases() -> u32 {
    std::env::var("SIGNALBOX_PROPTEST_CASES").ok().and_then(|it| it.parse().ok()).unwrap_or(500)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(),
        failure_persistence: Some(Box::new(
            proptest::test_runner::FileFailurePersistence::Direct(
                "tests/flaky_model.proptest-regressions"
            )
        )),
        ..ProptestConfig::default()
    })]

    #[test]
    fn invariants_hold_in_every_history(ops in prop::collection::vec(op(), 1..100)) {
        let mut world = World::new();
        for op in &ops {
            world.apply(op);
        }
        let journal = world.journal.iter().map(|(at, settings, input)| (*at, settings, input));
        let mut folded = fold(new_test(), journal);
        // The time of a measurement that changed nothing is not written.
        folded.measured_at = world.test.measured_at;
        prop_assert_eq!(&folded, &world.test, "F4");
        let stored = serde_json::to_string(&world.test).expect("can be written");
        let loaded: TestCase = serde_json::from_str(&stored).expect("can be read");
        prop_assert_eq!(&loaded, &world.test);
        for (_, _, input) in &world.journal {
            let stored = serde_json::to_string(input).expect("can be written");
            prop_assert_eq!(&serde_json::from_str::<Input>(&stored).expect("can be read"), input);
        }
    }

    /// F3 over time: after any history, no more runs and no more commands.
    #[test]
    fn a_test_without_runs_gets_no_better(
        ops in prop::collection::vec(op(), 1..60),
        waits in prop::collection::vec(1..100_000_u32, 1..20),
    ) {
        let mut world = World::new();
        for op in ops.iter().filter(|op| !matches!(op, Op::Give(3, _))) {
            world.apply(op);
        }
        if let Ok(settings) = world.settings.without_monitor(monitor(3, Action::Classify(Classification::Broken)).id) {
            world.change(settings);
        }
        // What was seen last may still be judged, until it is older than every window.
        let last = world.now;
        for wait in std::iter::once(1).chain(std::iter::once(48 * 60)).chain(waits) {
            world.apply(&Op::Wait(wait));
            world.apply(&Op::TimePassed);
            let before = world.test.standing.value;
            world.apply(&Op::Measure);
            if world.now.since(last) > Span::hours(48) {
                prop_assert!(world.test.standing.value >= before, "F3");
            }
        }
    }
}
