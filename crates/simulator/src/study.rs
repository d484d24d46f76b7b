//! Studies: the same streams under several combinations of settings, over several seeds.

use signalbox_domain::queue::{Settings, SharedPolicy};

use crate::numbers::{float, ratio};
use crate::simulation::simulate_while;
use crate::{Interval, Outcome, Sample, SimulationError, Source, oracle};

/// A recommended combination may be slower than the fastest by this factor.
pub const PATIENCE: f64 = 1.2;
/// Queues whose last third of pull requests waits longer than the first by more than this factor
/// do not keep up.
const GROWTH: f64 = 2.0;

/// The fewest seeds of a study that was stopped.
const FEWEST_SEEDS: u32 = 5;

/// How much a study simulates.
#[derive(Clone, Copy)]
pub struct Effort<'a> {
    /// The number of seeds.
    pub seeds: u32,
    /// Called before each step of the planner: `false` stops the study.
    pub may_continue: &'a dyn Fn() -> bool,
}

impl Effort<'static> {
    /// All these seeds, however long they take.
    pub const fn seeds(seeds: u32) -> Self {
        Self { seeds, may_continue: &|| true }
    }
}

/// A combination of settings to compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The most test runs at the same time, including those of bisection.
    pub concurrency: u32,
    /// The size of batches; 1 tests every pull request alone.
    pub batch_size: u32,
    /// All settings, which include the two above.
    pub settings: Settings,
    /// The policy of the queue.
    pub policy: SharedPolicy,
}

impl Choice {
    /// The settings of a queue as they are.
    pub fn recorded(settings: &Settings) -> Self {
        let mut settings = settings.clone();
        settings.batch &= settings.batching_min_size > 1;
        let batch_size = if settings.batch { settings.batching_min_size } else { 1 };
        let policy = SharedPolicy::default();
        Self { concurrency: settings.concurrency, batch_size, settings, policy }
    }

    /// The same combination with another policy.
    #[must_use]
    pub fn with_policy(self, policy: SharedPolicy) -> Self {
        Self { policy, ..self }
    }

    /// The combination of these two with otherwise these settings. Bisection shares the slots.
    pub fn new(
        concurrency: u32,
        batch_size: u32,
        others: &Settings,
    ) -> Result<Self, SimulationError> {
        let mut settings = others.clone();
        settings.concurrency = concurrency;
        settings.bisection_concurrency = 0;
        settings.batch = batch_size > 1;
        if settings.batch {
            settings.batching_min_size = batch_size;
        }
        settings.check()?;
        Ok(Self { concurrency, batch_size, settings, policy: SharedPolicy::default() })
    }
}

/// What a combination of settings gives: means over the seeds with their 95 % intervals.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The combination.
    pub choice: Choice,
    /// Median minutes in the queue.
    pub median: Interval,
    /// 95th percentile of the minutes in the queue.
    pub p95: Interval,
    /// How many times the oracle's median its median is.
    pub median_by_oracle: Interval,
    /// How many times the oracle's 95th percentile its 95th percentile is.
    pub p95_by_oracle: Interval,
    /// Test runs for each pull request.
    pub runs: Interval,
    /// Minutes of test runs for each merged pull request.
    pub run_minutes: Interval,
    /// The share of test runs that were cancelled before their end.
    pub cancelled: Interval,
    /// The share of pull requests that failed although they were good.
    pub false_ejections: Interval,
    /// Pull requests that merged in an hour.
    pub merged_per_hour: Interval,
    /// Whether the last pull requests wait no longer than the first, so that the minutes do not
    /// depend on the length of the simulation. `None` if pull requests do not arrive at a steady rate.
    pub keeps_up: Option<bool>,
    /// Whether no other combination is at least as fast with at most as many runs.
    pub on_front: bool,
}

/// Several combinations of settings on the same streams.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// The number of pull requests of a stream.
    pub pull_requests: usize,
    /// The number of seeds.
    pub seeds: u32,
    /// What each combination gives, in the order of the choices.
    pub findings: Vec<Finding>,
    /// Steps of the planner.
    pub steps: usize,
    /// The position of the finding about the settings of a history.
    pub recorded: Option<usize>,
}

impl Study {
    /// Simulates each choice with the seeds from 1. A study that is stopped has the seeds that all
    /// choices were simulated with; it is an error if these are fewer than 5.
    pub fn new(
        source: &impl Source,
        choices: Vec<Choice>,
        effort: Effort<'_>,
    ) -> Result<Self, SimulationError> {
        let mut outcomes: Vec<Vec<(Outcome, Sample)>> = vec![Vec::new(); choices.len()];
        let (mut pull_requests, mut seeds) = (0, 0);
        while seeds < effort.seeds {
            let stream = source.stream(u64::from(seeds + 1))?;
            pull_requests = stream.changes.len();
            let once = |choice: &Choice| {
                let outcome = simulate_while(&stream, choice, effort.may_continue)?;
                Ok((outcome, oracle(&stream, choice.concurrency)))
            };
            let of_seed: Vec<(Outcome, Sample)> = match choices.iter().map(once).collect() {
                Err(SimulationError::Stopped) if seeds >= FEWEST_SEEDS => break,
                of_seed => of_seed?,
            };
            for (outcomes, outcome) in outcomes.iter_mut().zip(of_seed) {
                outcomes.push(outcome);
            }
            seeds += 1;
        }
        let steps = outcomes.iter().flatten().map(|(outcome, _)| outcome.steps).sum();
        let is_steady = source.is_steady();
        let of = |(choice, outcomes): (Choice, &Vec<(Outcome, Sample)>)| {
            finding(is_steady, choice, outcomes)
        };
        let mut findings: Vec<Finding> = choices.into_iter().zip(&outcomes).map(of).collect();
        let all = findings.clone();
        for finding in &mut findings {
            finding.on_front = !all.iter().any(|other| other.beats(finding));
        }
        Ok(Self { pull_requests, seeds, findings, steps, recorded: None })
    }

    /// Whether a finding is about the settings of a history.
    pub fn is_recorded(&self, finding: &Finding) -> bool {
        let recorded = self.recorded.and_then(|at| self.findings.get(at));
        recorded.is_some_and(|recorded| recorded.choice == finding.choice)
    }

    /// Of the combinations that keep up and whose median is at most 1.2 times the lowest one, the one
    /// with the fewest runs. If none keeps up, the fastest.
    pub fn advice(&self) -> Option<&Finding> {
        let keeps_up = |finding: &&Finding| finding.keeps_up != Some(false);
        if !self.findings.iter().any(|finding| keeps_up(&finding)) {
            let median = |finding: &&Finding| finding.median.mean;
            return self.findings.iter().min_by(|one, other| median(one).total_cmp(&median(other)));
        }
        // One that does not keep up beats no other here.
        let able: Vec<&Finding> = self.findings.iter().filter(keeps_up).collect();
        let front = || able.iter().filter(|it| !able.iter().any(|other| other.beats(it)));
        let fastest = front().map(|finding| finding.median.mean).min_by(f64::total_cmp)?;
        let fast = front().filter(|finding| finding.median.mean <= PATIENCE * fastest);
        fast.min_by(|one, other| one.runs.mean.total_cmp(&other.runs.mean)).copied()
    }
}

impl Finding {
    /// Whether it is at least as good in both figures, and better in one or with fewer slots.
    fn beats(&self, other: &Self) -> bool {
        let (median, runs) = (self.median.mean, self.runs.mean);
        let as_good = median <= other.median.mean && runs <= other.runs.mean;
        let better = median < other.median.mean || runs < other.runs.mean;
        as_good && (better || self.choice.concurrency < other.choice.concurrency)
    }
}

fn finding(is_steady: bool, choice: Choice, outcomes: &[(Outcome, Sample)]) -> Finding {
    let over = |of: &dyn Fn(&Outcome) -> f64| {
        outcomes.iter().map(|(outcome, _)| of(outcome)).collect::<Sample>().interval()
    };
    let by_oracle = |of: &dyn Fn(&Sample) -> f64| {
        let ratios = outcomes.iter().map(|(outcome, oracle)| of(&outcome.minutes()) / of(oracle));
        ratios.filter(|ratio| ratio.is_finite()).collect::<Sample>().interval()
    };
    Finding {
        choice,
        median: over(&|it| it.minutes().median()),
        p95: over(&|it| it.minutes().percentile(95)),
        median_by_oracle: by_oracle(&Sample::median),
        p95_by_oracle: by_oracle(&|it| it.percentile(95)),
        runs: over(&Outcome::runs_per_pull_request),
        run_minutes: over(&Outcome::run_minutes_per_merge),
        cancelled: over(&|it| ratio(float(it.cancelled_runs), it.runs)),
        false_ejections: over(&|it| ratio(float(it.false_ejections), it.submitted)),
        merged_per_hour: over(&Outcome::merged_per_hour),
        keeps_up: is_steady.then(|| keeps_up(outcomes)),
        on_front: false,
    }
}

fn keeps_up(outcomes: &[(Outcome, Sample)]) -> bool {
    let (mut first, mut last) = (0.0, 0.0);
    for (outcome, _) in outcomes {
        let minutes = &outcome.minutes_in_queue;
        let third = minutes.len() / 3;
        first += minutes.iter().take(third).sum::<f64>();
        last += minutes.iter().rev().take(third).sum::<f64>();
    }
    last <= GROWTH * first
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(concurrency: u32, median: f64, runs: f64, keeps_up: bool) -> Finding {
        let exactly = |mean| Interval { mean, low: mean, high: mean };
        Finding {
            choice: Choice::new(concurrency, 1, &Settings::default()).expect("valid settings"),
            median: exactly(median),
            p95: exactly(median),
            median_by_oracle: exactly(1.0),
            p95_by_oracle: exactly(1.0),
            runs: exactly(runs),
            run_minutes: exactly(30.0 * runs),
            cancelled: exactly(0.0),
            false_ejections: exactly(0.0),
            merged_per_hour: exactly(1.0),
            keeps_up: Some(keeps_up),
            on_front: false,
        }
    }

    fn advised(findings: &[Finding]) -> Option<u32> {
        let findings = findings.to_vec();
        let study = Study { pull_requests: 1, seeds: 1, findings, steps: 0, recorded: None };
        study.advice().map(|it| it.choice.concurrency)
    }

    #[test]
    fn advice_has_the_fewest_runs_among_the_fast_ones_that_keep_up() {
        let slow = found(5, 100.0, 1.0, true);
        let (near, fast) = (found(10, 45.0, 1.2, true), found(20, 40.0, 1.5, true));
        assert_eq!(advised(&[slow.clone(), near, fast.clone()]), Some(10));
        assert_eq!(advised(&[slow.clone(), fast.clone()]), Some(20));
        // What falls behind is not advised, and is no reason against another.
        let behind = found(4, 30.0, 0.9, false);
        assert_eq!(advised(&[behind.clone(), slow, fast.clone()]), Some(20));
        assert_eq!(advised(&[found(6, 35.0, 0.9, false), behind]), Some(4));
        // Of two with the same figures, the one with fewer slots.
        assert_eq!(advised(&[found(30, 40.0, 1.5, true), fast]), Some(20));
    }
}
