//! What every simulation obeys: pull requests are conserved, a seed determines everything, and
//! exactly the good pull requests merge.

use signalbox_domain::queue::{BisectionMode, Mode, OptimizationMode, Settings, SettingsBuilder};
use signalbox_simulator::{
    Agents, Arrivals, Durations, Outcome, Overlap, Source, Stream, Workload, simulate,
};

fn base() -> Workload {
    Workload {
        pull_requests: 90,
        durations: Durations::LogNormal { median: 30.0, sigma: 0.35 },
        failing: 0.08,
        conflicting: 0.01,
        host_seconds: 2,
        ..Workload::default()
    }
}

fn workloads() -> Vec<Workload> {
    let daily = Arrivals::Daily { per_hour: 30.0, swing: 0.8 };
    let uniform = Durations::Uniform { from: 10.0, to: 40.0 };
    let areas = Overlap::Areas { count: 20 };
    vec![
        base(),
        Workload { arrivals: Arrivals::Burst, ..base() },
        Workload { arrivals: daily, durations: uniform, ..base() },
        Workload { overlap: Overlap::Pairs { share: 0.1 }, conflicting: 0.2, ..base() },
        Workload { overlap: areas, conflicting: 0.1, host_seconds: 0, ..base() },
        Workload { agents: Some(Agents { share: 0.3, failing: 0.4 }), ..base() },
    ]
}

fn batches(size: u32) -> SettingsBuilder {
    Settings::builder()
        .concurrency(8_u32)
        .bisection_concurrency(0_u32)
        .batch(true)
        .batching_min_size(size)
}

fn settings() -> Vec<Settings> {
    let single = Settings::builder().concurrency(6_u32);
    let skipping = OptimizationMode::BisectionSkipRedundantTests;
    let parallel = Mode::Parallel;
    let all = [
        Settings::builder(),
        single.clone(),
        single.clone().pretest_threshold(0_u32),
        single.can_optimistically_merge(true).pending_failure_depth(2_u32),
        batches(4),
        batches(8).optimization_mode(skipping).bisection_concurrency(4_u32),
        Settings::builder().concurrency(6_u32).mode(parallel),
        Settings::builder().concurrency(6_u32).mode(parallel).pretest_threshold(0_u32),
        batches(3).mode(parallel),
        batches(4).bisection_mode(BisectionMode::InPlace),
        batches(3).mode(parallel).bisection_mode(BisectionMode::InPlace),
    ];
    all.map(|builder| builder.build().expect("valid settings")).into()
}

fn each(mut check: impl FnMut(&Stream, &Settings, &Outcome)) {
    for workload in workloads() {
        for seed in 1..=2 {
            let stream = workload.stream(seed).expect("a valid workload");
            for settings in settings() {
                let outcome = simulate(&stream, &settings).expect("a result");
                check(&stream, &settings, &outcome);
            }
        }
    }
}

#[test]
fn every_pull_request_ends_and_exactly_the_good_ones_merge() {
    each(|stream, settings, outcome| {
        assert_eq!(outcome.submitted, stream.changes.len());
        assert_eq!(outcome.merged + outcome.failed, outcome.submitted);
        assert_eq!(outcome.minutes().len(), outcome.submitted);
        assert_eq!(outcome.bad_merges, 0, "{settings:?}");
        // Of two that conflict the later one fails, unless it passes one that is tested aside.
        let in_order = settings.bisection_mode == BisectionMode::InPlace
            || (!settings.batch && settings.pretest_threshold == 0);
        if in_order || stream.changes.iter().all(|it| it.conflicts.is_empty()) {
            assert_eq!(outcome.false_ejections, 0, "{settings:?}");
            assert_eq!(outcome.merges, stream.acceptable(), "{} {settings:?}", stream.seed);
        }
        assert!(outcome.cancelled_runs <= outcome.runs);
        // No more tests run at a time than there are slots.
        let slots = f64::from(settings.concurrency + settings.bisection_concurrency);
        assert!(outcome.run_minutes <= slots * outcome.makespan_minutes);
        // What merges was tested: alone at least once, or in a batch of the largest size.
        let batch = if settings.batch { settings.batching_min_size * 2 } else { 1 };
        let most = usize::try_from(batch).expect("a size") * outcome.runs;
        assert!(outcome.merged <= most, "{} {settings:?}", stream.seed);
    });
}

#[test]
fn no_failing_pull_request_merges_when_tests_are_flaky() {
    for seed in 1..=2 {
        let workload = Workload { flaky: 0.1, ..base() };
        let stream = workload.stream(seed).expect("a valid workload");
        for settings in settings() {
            let outcome = simulate(&stream, &settings).expect("a result");
            assert_eq!(outcome.bad_merges, 0);
            assert_eq!(outcome.merged + outcome.failed, outcome.submitted);
        }
    }
}

#[test]
fn a_seed_determines_everything() {
    let workload = Workload { flaky: 0.05, ..base() };
    let outcome = |seed| {
        let stream = workload.stream(seed).expect("a valid workload");
        simulate(&stream, &batches(4).build().expect("valid settings")).expect("a result")
    };
    assert_eq!(outcome(1), outcome(1));
    assert_ne!(outcome(1), outcome(2));
}

#[test]
fn settings_do_not_change_the_stream() {
    let more_failing = Workload { failing: 0.2, ..base() };
    let (one, two) = (base().stream(4).expect("valid"), more_failing.stream(4).expect("valid"));
    for (one, two) in one.changes.iter().zip(&two.changes) {
        assert_eq!((one.at, one.tests_take), (two.at, two.tests_take));
        assert!(two.fails || !one.fails, "a failing change of fewer fails among more");
    }
}

#[test]
fn a_number_out_of_bounds_is_named_with_its_rule() {
    let refused = |workload: Workload| workload.stream(1).expect_err("refused").to_string();
    assert_eq!(
        refused(Workload { failing: 1.5, ..base() }),
        "invalid failing share 1.5: must be from 0 to 1"
    );
    assert_eq!(
        refused(Workload { pull_requests: 0, ..base() }),
        "invalid number of pull requests 0: must be from 1 to 10000000"
    );
    assert_eq!(
        refused(Workload { arrivals: Arrivals::Poisson { per_hour: f64::NAN }, ..base() }),
        "invalid number of pull requests an hour NaN: must be more than 0, at most 100000"
    );
    assert_eq!(
        refused(Workload { durations: Durations::Uniform { from: 5.0, to: 4.0 }, ..base() }),
        "invalid longest test duration 4: must be at least the shortest"
    );
}
