//! The monitors that are compared.

use signalbox_domain::flaky::{
    Action, BranchScope, Classification, FailureCount, FailureRate, Monitor, MonitorId,
    PassOnRetry, Rule, Template,
};
use uuid::Uuid;

/// What is compared.
pub(crate) struct Setup {
    pub(crate) name: &'static str,
    pub(crate) monitors: Vec<Monitor>,
    pub(crate) guard: bool,
}

fn monitor(number: u128, rule: Rule) -> Monitor {
    let template = Template::FlakyInQueue.monitor(MonitorId(Uuid::from_u128(number)));
    let action = Action::Classify(Classification::Flaky);
    Monitor { rule, action, scope: BranchScope::all(), ..template }
}

/// The rows of the table.
pub(crate) fn setups() -> Vec<Setup> {
    let retry = || monitor(1, Rule::PassOnRetry(PassOnRetry::default()));
    let rate = |activation_percent, resolution_percent, window_hours, min_sample| {
        monitor(
            2,
            Rule::FailureRate(FailureRate {
                activation_percent,
                resolution_percent,
                window_hours,
                min_sample,
                min_failing_times: 1,
            }),
        )
    };
    let count = |count| {
        let (window_hours, resolution_timeout_hours) = (24, 7 * 24);
        monitor(
            3,
            Rule::FailureCount(FailureCount { count, window_hours, resolution_timeout_hours }),
        )
    };
    let broken =
        || Monitor { action: Action::Classify(Classification::Broken), ..rate(90, 50, 6, 5) };
    let on = |name, monitors| Setup { name, monitors, guard: true };
    vec![
        on("pass-on-retry, 7 days (default)", vec![retry()]),
        Setup { name: "pass-on-retry, no guard", monitors: vec![retry()], guard: false },
        on("rate ≥ 20 %, < 10 %, 24 h, ≥ 20 runs", vec![rate(20, 10, 24, 20)]),
        on("rate ≥ 10 %, < 5 %, 48 h, ≥ 50 runs", vec![rate(10, 5, 48, 50)]),
        on("rate ≥ 5 %, < 2 %, 48 h, ≥ 50 runs", vec![rate(5, 2, 48, 50)]),
        on("count 1 in 24 h", vec![count(1)]),
        Setup { name: "count 1 in 24 h, no guard", monitors: vec![count(1)], guard: false },
        on("count 2 in 24 h", vec![count(2)]),
        on("count 4 in 24 h", vec![count(4)]),
        on("broken on stable: rate ≥ 90 %, 6 h, ≥ 5 runs", vec![broken()]),
        on("default + broken on stable", vec![retry(), broken()]),
    ]
}
