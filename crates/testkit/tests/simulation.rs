//! The simulation: many seeds, and the seeds that failed once.

use signalbox_testkit::memory::MemoryDatabase;
use signalbox_testkit::simulation::{Failure, Report, simulate};

/// Seeds that failed once. A change of the simulation changes their histories; then they are
/// ordinary seeds.
///
/// * 34, 78, 332: targets that were reported during a submission were lost until the next restart.
/// * 9, 24: after a load, an entry under test had targets that it had not accepted.
const REGRESSIONS: [u64; 5] = [9, 24, 34, 78, 332];

fn run(seed: u64) -> Result<Report, Failure> {
    simulate(seed, MemoryDatabase::new().stores())
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|text| text.parse().ok())
}

/// Runs seeds on several threads; panics with the lowest one that fails. Returns the number of
/// landings.
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
fn every_seed_settles_without_violations() {
    let seeds = number("SIGNALBOX_SIMULATION_SEEDS").unwrap_or(250);
    let seeds: Vec<u64> = (0..seeds).collect();
    let landed = run_all(&seeds);
    assert!(landed >= seeds.len(), "the simulation has become idle: {landed} landings");
}

#[test]
fn seeds_that_failed_once_pass() {
    run_all(&REGRESSIONS);
}

#[test]
fn a_seed_determines_the_whole_trace() {
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
