//! Judging by running windows is judging by all runs: random uploads, early and late, while monitors
//! are created, changed, switched off and deleted, and time passes.

use proptest::prelude::*;
use signalbox_domain::flaky::{
    Action, Base, BranchPattern, BranchScope, Classification, Fact, FailureCount, FailureRate,
    FailureStreak, Monitor, MonitorId, Origin, PassOnRetry, Rule, Run, SameCode, Settings, Summary,
    TestCase, TestKey, WindowRules, Windows, absorb, bucket_length, horizon,
};
use signalbox_domain::ids::{OrgId, RepoId, Sha};
use signalbox_domain::time::{Span, Timestamp};
use uuid::Uuid;

const BRANCHES: [&str; 3] = ["main", "signalbox-merge/1", "topic"];
const SCOPES: [&str; 3] = ["*", "main", "*i*"];
const MONITORS: usize = 6;
/// As many disagreements as a window keeps.
const CODES: u32 = 8;

/// One thing that happens.
#[derive(Clone, Debug)]
enum Op {
    /// An upload of one code on one branch and of one origin: how many minutes ago each run started,
    /// and whether it passed.
    Upload(usize, u32, Origin, Vec<(u32, bool)>),
    /// Minutes pass.
    Wait(u32),
    /// A monitor is created, or gets another scope and other parameters.
    Set(usize, usize, u32),
    Toggle(usize),
    Delete(usize),
}

/// One of few jobs, bases and attempts, or an unknown one.
fn origin() -> impl Strategy<Value = Origin> {
    (0..3_usize, 0..3_usize, 0..3_usize).prop_map(|(job, base, attempt)| {
        let job = ["unit", "windows"].get(job).map(std::slice::from_ref);
        let base = [Base::Itself, Base::Merged("abc"), Base::Unknown][base];
        let origin = Origin::new(job, base);
        match ["1", "2"].get(attempt) {
            Some(attempt) => origin.in_attempt(&[attempt]),
            None => origin,
        }
    })
}

fn op() -> impl Strategy<Value = Op> {
    let ago = prop_oneof![6 => 0..30_u32, 3 => 0..3_000_u32, 1 => 0..80_000_u32];
    let runs = prop::collection::vec((ago, any::<bool>()), 1..4);
    prop_oneof![
        12 => (0..BRANCHES.len(), 0..CODES, origin(), runs)
            .prop_map(|(branch, code, origin, runs)| Op::Upload(branch, code, origin, runs)),
        6 => prop_oneof![1..600_u32, 600..20_000_u32].prop_map(Op::Wait),
        1 => (0..MONITORS, 0..SCOPES.len(), 1..200_u32)
            .prop_map(|(monitor, scope, hours)| Op::Set(monitor, scope, hours)),
        1 => (0..MONITORS).prop_map(Op::Toggle),
        1 => (0..MONITORS).prop_map(Op::Delete),
    ]
}

fn monitor(number: usize, scope: usize, hours: u32) -> Monitor {
    let rate = FailureRate {
        activation_percent: 40,
        resolution_percent: 20,
        window_hours: hours,
        min_sample: 2,
        min_failing_times: 2,
    };
    let (rule, stale_timeout_hours) = match number {
        0 => (Rule::PassOnRetry(PassOnRetry { recovery_days: 1 + hours % 15 }), None),
        1 => (Rule::FailureRate(rate), None),
        2 => {
            let resolution_timeout_hours = hours * 2;
            let rule = FailureCount { count: 2, window_hours: hours, resolution_timeout_hours };
            (Rule::FailureCount(rule), None)
        }
        3 => (Rule::FailureRate(FailureRate { min_sample: 1, ..rate }), Some(hours)),
        4 => (
            Rule::FailureStreak(FailureStreak { streak: 2 + hours % 5, window_hours: hours }),
            None,
        ),
        // It counts the same runs as the first rate.
        _ => (Rule::FailureRate(FailureRate { min_failing_times: 1, ..rate }), None),
    };
    Monitor {
        id: MonitorId(Uuid::from_u128(u128::try_from(number).expect("small"))),
        name: "a monitor".into(),
        enabled: true,
        scope: BranchScope {
            patterns: vec![BranchPattern(SCOPES[scope].into())],
            ..BranchScope::all()
        },
        scope_since: None,
        action: Action::Classify(Classification::Flaky),
        rule,
        stale_timeout_hours,
    }
}

struct World {
    settings: Settings,
    now: Timestamp,
    /// All runs: what the reference judges by.
    runs: Vec<Run>,
    windows: Windows,
    by_all_runs: TestCase,
    by_windows: TestCase,
}

impl World {
    fn new() -> Self {
        let (org, repo) = (OrgId(Uuid::from_u128(1)), RepoId(Uuid::from_u128(2)));
        let now = Timestamp::parse("2026-11-02T00:00:00Z").expect("valid");
        let key = TestKey { name: "adds".into(), ..TestKey::default() };
        let test = TestCase::new(org, repo, key, now);
        let monitors = (0..MONITORS).map(|number| monitor(number, 0, 24)).collect();
        let settings = Settings { monitors, ..Settings::new(repo) };
        let windows = Windows::default();
        Self { settings, now, runs: vec![], windows, by_all_runs: test.clone(), by_windows: test }
    }

    /// The summary of all runs, as far back as monitors look.
    fn summary(&self) -> Summary {
        let since = horizon(self.now);
        let mut summary = Summary::of(&self.runs);
        summary.buckets.retain(|bucket| bucket.start >= since);
        summary
    }

    fn rebuild_if_partial(&mut self) {
        let rules = WindowRules::of(&self.settings.monitors);
        if self.windows.are_partial(&rules) {
            self.windows = Windows::rebuilt(&rules, &self.summary(), self.now);
        }
    }

    fn step(&mut self, op: Op) {
        match op {
            Op::Upload(branch, code, origin, runs) => {
                self.rebuild_if_partial();
                let code = SameCode::Commit(Sha::new(format!("{code:040x}")).expect("valid"));
                let run = |(ago, passed): &(u32, bool)| Run {
                    at: self.now.minus(Span::minutes(*ago)),
                    branch: BRANCHES[branch].into(),
                    class: self.settings.branches.classify(BRANCHES[branch], false),
                    codes: vec![code.clone()],
                    origin,
                    passed: *passed,
                };
                let new: Vec<Run> = runs.iter().map(run).collect();
                self.runs.extend(new.iter().cloned());
                let mut codes = Summary::of(&self.runs).codes;
                codes.retain(|known| known.code == code);
                let rules = WindowRules::of(&self.settings.monitors);
                self.windows.count(&rules, &Summary::of(&new), &codes, self.now);
            }
            Op::Wait(minutes) => self.now = self.now.plus(Span::minutes(minutes)),
            Op::Set(number, scope, hours) => {
                let monitor = monitor(number, scope, hours);
                self.settings = self.settings.with_monitor(monitor, self.now).expect("valid");
            }
            Op::Toggle(number) => {
                if let Some(monitor) = self.settings.monitors.get_mut(number) {
                    monitor.enabled = !monitor.enabled;
                }
            }
            Op::Delete(number) => {
                if number < self.settings.monitors.len() {
                    self.settings.monitors.remove(number);
                }
            }
        }
        self.judge();
    }

    fn judge(&mut self) {
        self.now = self.now.plus(Span::MICROSECOND);
        self.rebuild_if_partial();
        let (now, summary) = (self.now, self.summary());
        let working = || self.settings.monitors.iter().filter(|monitor| monitor.enabled);
        let by_all_runs: Vec<_> = working().map(|it| (it.id, it.read(&summary, now))).collect();
        let rules = WindowRules::of(&self.settings.monitors);
        let by_windows: Vec<_> = self.windows.read(&rules, now).collect();
        assert_eq!(by_windows, by_all_runs);
        for (test, readings) in
            [(&mut self.by_all_runs, by_all_runs), (&mut self.by_windows, by_windows)]
        {
            let fact = Fact::Measured { as_of: now, readings };
            *test = absorb(test, &self.settings, &fact, now).test;
        }
        assert_eq!(self.by_windows, self.by_all_runs);
    }
}

fn cases() -> u32 {
    let more = std::env::var("SIGNALBOX_PROPTEST_CASES").ok();
    more.and_then(|more| more.parse().ok()).unwrap_or(500)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn windows_say_what_all_runs_say(ops in prop::collection::vec(op(), 1..80)) {
        let mut world = World::new();
        for op in ops {
            world.step(op);
        }
    }
}

/// A window does not grow with the runs that it counts.
#[test]
fn a_window_is_bounded() {
    let mut world = World::new();
    let mut longest = 0;
    for upload in 0..9_000_u32 {
        let code = SameCode::Commit(Sha::new(format!("{upload:040x}")).expect("valid"));
        let run = |passed| Run {
            at: world.now,
            branch: "main".into(),
            class: world.settings.branches.classify("main", false),
            codes: vec![code.clone()],
            origin: Origin::default(),
            passed,
        };
        let added = Summary::of(&[run(false), run(true)]);
        let rules = WindowRules::of(&world.settings.monitors);
        world.windows.count(&rules, &added, &added.codes, world.now);
        world.now = world.now.plus(Span::minutes(7));
        if upload > 1_000 && upload % 50 == 0 {
            let text = serde_json::to_string(&world.windows).expect("JSON");
            longest = longest.max(text.len());
            assert_eq!(serde_json::from_str::<Windows>(&text).expect("read"), world.windows);
        }
    }
    assert!(longest < 6_000, "{longest} bytes for {MONITORS} monitors");
}

#[test]
fn buckets_are_about_a_48th_of_their_window() {
    let minutes = |hours| bucket_length(Span::hours(hours)).micros() / 60_000_000;
    assert_eq!([1, 4, 6, 24, 168, 1_080].map(minutes), [5, 5, 10, 30, 210, 1_350]);
}
