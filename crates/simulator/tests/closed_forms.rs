//! Simulations against results that are known in closed form.

use signalbox_domain::queue::{Settings, SettingsBuilder};
use signalbox_simulator::{Arrivals, Durations, Outcome, Sample, Source, Workload, simulate};

fn outcomes(workload: &Workload, settings: SettingsBuilder, seeds: u64) -> Vec<Outcome> {
    let settings = settings.build().expect("valid settings");
    let run = |seed| {
        let stream = workload.stream(seed).expect("a valid workload");
        simulate(&stream, &settings).expect("a result")
    };
    (1..=seeds).map(run).collect()
}

fn mean(outcomes: &[Outcome], of: impl Fn(&Outcome) -> f64) -> f64 {
    outcomes.iter().map(of).collect::<Sample>().mean()
}

fn slots(concurrency: u32) -> SettingsBuilder {
    Settings::builder().concurrency(concurrency).bisection_concurrency(0_u32)
}

fn close(found: f64, expected: f64, share: f64) {
    assert!((found / expected - 1.0).abs() <= share, "{found} instead of {expected}");
}

/// One slot is a server with Poisson arrivals and a fixed time of service (M/D/1): the mean time is
/// V + ρV / (2 (1 − ρ)).
#[test]
fn one_slot_is_a_queue_with_one_server() {
    for (per_hour, load) in [(3.0, 0.5), (4.8, 0.8)] {
        let workload = Workload {
            pull_requests: 1_500,
            arrivals: Arrivals::Poisson { per_hour },
            durations: Durations::Fixed { minutes: 10.0 },
            warm_up: 0.1,
            ..Workload::default()
        };
        let outcomes = outcomes(&workload, slots(1), 8);
        let expected = 10.0 + load * 10.0 / (2.0 * (1.0 - load));
        close(mean(&outcomes, |it| it.minutes().mean()), expected, 0.06);
        assert!(outcomes.iter().all(|it| it.runs == it.submitted));
    }
}

/// With a slot for everything and without failures, each pull request takes one test run and its
/// duration.
#[test]
fn without_failures_and_limits_a_test_run_is_all() {
    let outcomes = outcomes(&Workload::default(), slots(1_000), 3);
    for outcome in outcomes {
        assert_eq!((outcome.runs, outcome.merged), (1_000, 1_000));
        let minutes = outcome.minutes();
        assert!((minutes.percentile(0) - 30.0).abs() < 1e-6);
        assert!((minutes.percentile(100) - 30.0).abs() < 1e-6);
    }
}

/// A full window of w runs that end together: a failing share p stops a round at its first
/// failure, so each pull request needs w·p / (1 − (1 − p)^w) runs as long as the window is full.
/// Towards the end of a burst it is not; the recursion counts the runs and the rounds of a burst of
/// `left`.
fn burst(left: usize, window: usize, p: f64) -> (f64, f64) {
    let mut known = vec![(0.0, 0.0)];
    for left in 1..=left {
        let full = window.min(left);
        let mut sum = (f64::from(u32::try_from(full).expect("a window")), 1.0);
        let mut passes = 1.0;
        for resolved in 1..=full {
            // The first failure is at this place, or nowhere.
            let share = if resolved == full { passes } else { passes * p };
            let rest = known.get(left - resolved).expect("computed before");
            sum = (sum.0 + share * rest.0, sum.1 + share * rest.1);
            passes *= 1.0 - p;
        }
        known.push(sum);
    }
    known.pop().expect("at least the empty burst")
}

#[test]
fn a_window_restarts_what_is_behind_a_failure() {
    let each = burst(20_000, 20, 0.05).0 / 20_000.0;
    close(each, 20.0 * 0.05 / (1.0 - 0.95_f64.powi(20)), 0.002);
    for (window, failing) in [(5_u32, 0.05), (20, 0.05), (5, 0.1)] {
        let workload = Workload {
            pull_requests: 60,
            arrivals: Arrivals::Burst,
            failing,
            ..Workload::default()
        };
        let (runs, rounds) = burst(60, usize::try_from(window).expect("a window"), failing);
        let outcomes = outcomes(&workload, slots(window), 30);
        close(mean(&outcomes, Outcome::runs_per_pull_request), runs / 60.0, 0.05);
        close(mean(&outcomes, |it| it.makespan_minutes) / 30.0, rounds, 0.05);
    }
}

/// Batches of b without failures need 1/b runs for each pull request. Few failures cost about what
/// testing each member of a failed batch alone costs, 1/b + 1 − (1 − p)^b, and never more than twice
/// that.
#[test]
fn batches_divide_the_runs() {
    let batches = |size: u32| slots(1).batch(true).batching_min_size(size);
    let workload = Workload { pull_requests: 80, arrivals: Arrivals::Burst, ..Workload::default() };
    for size in [2_u32, 4, 8] {
        let each = 1.0 / f64::from(size);
        let outcomes = outcomes(&workload, batches(size), 1);
        close(mean(&outcomes, Outcome::runs_per_pull_request), each, 0.001);
    }
    for (size, p) in [(4, 0.01), (8, 0.01), (4, 0.03)] {
        let workload = Workload { failing: p, ..workload.clone() };
        let each = 1.0 / f64::from(size);
        let formula = each + 1.0 - (1.0 - p).powi(size);
        let outcomes = outcomes(&workload, batches(size.unsigned_abs()), 20);
        let found = mean(&outcomes, Outcome::runs_per_pull_request);
        assert!(found > each && found < 2.0 * formula, "{found} for {formula}");
    }
}

/// With one slot a flaky run is the only evidence: the share of false ejections is the share of
/// flaky runs.
#[test]
fn a_flaky_run_ejects_a_pull_request_that_is_tested_once() {
    let arrivals = Arrivals::Poisson { per_hour: 1.0 };
    let workload = Workload { arrivals, flaky: 0.05, ..Workload::default() };
    let outcomes = outcomes(&workload, slots(1), 5);
    let share = mean(&outcomes, |it| {
        f64::from(u32::try_from(it.false_ejections).expect("a count")) / 1_000.0
    });
    close(share, 0.05, 0.1);
}

/// The rate of a day averages to the stated one, and rises in its first half.
#[test]
fn a_daily_rate_averages_to_the_stated_one() {
    let arrivals = Arrivals::Daily { per_hour: 50.0, swing: 0.9 };
    let workload = Workload { pull_requests: 24_000, arrivals, ..Workload::default() };
    let stream = workload.stream(1).expect("a valid workload");
    let first = stream.changes.first().expect("a change").at;
    let hours = |change: &signalbox_simulator::Change| {
        change.at.since(first).to_std().as_secs_f64() / 3_600.0
    };
    close(stream.changes.last().map_or(0.0, hours), 480.0, 0.03);
    let by_day = |change: &&signalbox_simulator::Change| hours(change) % 24.0 < 12.0;
    let share =
        f64::from(u32::try_from(stream.changes.iter().filter(by_day).count()).expect("a count"))
            / 24_000.0;
    // The mean of a sine over its first half is 2/π.
    close(share, 0.5 + 0.9 / std::f64::consts::PI, 0.03);
}
