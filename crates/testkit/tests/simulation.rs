//! The simulation: many seeds, and the seeds that once found something.

use signalbox_testkit::memory::MemoryDatabase;
use signalbox_testkit::simulation::{Failure, Report, simulate};

/// Seeds that failed once. A change of the simulation makes other histories of them; then they are
/// seeds like all others.
///
/// * 34, 78, 332: targets that were reported while a pull request was being submitted were
///   forgotten until the next restart.
/// * 9, 24: targets that an entry under test had not taken were its own after the next load.
const REGRESSIONS: [u64; 5] = [9, 24, 34, 78, 332];

fn run(seed: u64) -> Result<Report, Failure> {
    simulate(seed, MemoryDatabase::new().stores())
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|text| text.parse().ok())
}

/// Runs seeds, shared out to threads; the lowest one that fails is told. Returns what they landed.
fn run_all(seeds: &[u64]) -> usize {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let part = |first: usize| {
        let (mut landed, mut failed) = (0, None);
        for seed in seeds.iter().skip(first).step_by(threads) {
            match run(*seed) {
                Ok(report) => landed += report.landed,
                Err(failure) => {
                    failed = Some(failure);
                    break;
                }
            }
        }
        (landed, failed)
    };
    let parts: Vec<(usize, Option<Failure>)> = std::thread::scope(|scope| {
        let started: Vec<_> = (0..threads).map(|first| scope.spawn(move || part(first))).collect();
        started.into_iter().map(|it| it.join().expect("failures are values")).collect()
    });
    let landed = parts.iter().map(|(landed, _)| landed).sum();
    let failures = parts.into_iter().filter_map(|(_, failed)| failed);
    if let Some(failure) = failures.min_by_key(|it| it.seed) {
        panic!("{failure}");
    }
    landed
}

#[test]
fn everything_comes_right_whatever_happens() {
    let seeds = number("SIGNALBOX_SIMULATION_SEEDS").unwrap_or(250);
    let seeds: Vec<u64> = (0..seeds).collect();
    let landed = run_all(&seeds);
    assert!(landed >= seeds.len(), "the simulation has become idle: {landed} landings");
}

#[test]
fn what_was_found_once_is_not_found_again() {
    run_all(&REGRESSIONS);
}

#[test]
fn a_seed_determines_everything() {
    for seed in 0..10 {
        let (one, two) = (run(seed), run(seed));
        let trace = |ran: Result<Report, Failure>| match ran {
            Ok(report) => report.trace,
            Err(failure) => failure.trace,
        };
        assert_eq!(trace(one), trace(two), "seed {seed}");
    }
}

#[test]
#[ignore = "shows one seed: SIGNALBOX_SIMULATION_SEED=7 cargo test … -- --ignored --nocapture"]
fn one_seed() {
    let (failure, trace) = match run(number("SIGNALBOX_SIMULATION_SEED").unwrap_or(0)) {
        Ok(report) => (None, report.trace),
        Err(failure) => (Some(failure.clone()), failure.trace),
    };
    println!("{}", trace.join("\n"));
    if let Some(failure) = failure {
        panic!("{failure}");
    }
}
