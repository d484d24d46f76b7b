//! Studies: the same streams under several combinations of settings, over several seeds.

use signalbox_domain::queue::Settings;

use crate::numbers::{float, ratio};
use crate::{Arrivals, Interval, Outcome, Sample, SimulationError, Workload, simulate};

/// A recommended combination may be slower than the fastest by this factor.
pub(crate) const PATIENCE: f64 = 1.2;
/// Queues whose last third of pull requests waits longer than the first by more than this factor
/// do not keep up.
const GROWTH: f64 = 2.0;

/// A combination of settings to compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The most test runs at the same time, including those of bisection.
    pub concurrency: u32,
    /// The size of batches; 1 tests every pull request alone.
    pub batch_size: u32,
    /// All settings, which include the two above.
    pub settings: Settings,
}

impl Choice {
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
        settings.batching_min_size = batch_size;
        settings.check()?;
        Ok(Self { concurrency, batch_size, settings })
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
    /// depend on the length of the simulation. `None` if all are submitted at the start.
    pub keeps_up: Option<bool>,
    /// Whether no other combination is at least as fast with at most as many runs.
    pub on_front: bool,
}

/// Several combinations of settings on the same workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// The workload.
    pub workload: Workload,
    /// The number of seeds.
    pub seeds: u32,
    /// What each combination gives, in the order of the choices.
    pub findings: Vec<Finding>,
    /// Steps of the planner.
    pub steps: usize,
}

impl Study {
    /// Simulates each choice with the seeds 1 to `seeds`.
    pub fn new(
        workload: &Workload,
        choices: Vec<Choice>,
        seeds: u32,
    ) -> Result<Self, SimulationError> {
        let mut outcomes: Vec<Vec<Outcome>> = vec![Vec::new(); choices.len()];
        for seed in 1..=seeds {
            let stream = workload.stream(u64::from(seed))?;
            for (choice, outcomes) in choices.iter().zip(&mut outcomes) {
                outcomes.push(simulate(&stream, &choice.settings)?);
            }
        }
        let steps = outcomes.iter().flatten().map(|outcome| outcome.steps).sum();
        let of = |(choice, outcomes): (Choice, &Vec<Outcome>)| finding(workload, choice, outcomes);
        let mut findings: Vec<Finding> = choices.into_iter().zip(&outcomes).map(of).collect();
        let all = findings.clone();
        for finding in &mut findings {
            finding.on_front = !all.iter().any(|other| other.beats(finding));
        }
        Ok(Self { workload: workload.clone(), seeds, findings, steps })
    }

    /// Of the combinations that keep up and whose median is at most 1.2 times the lowest one, the one
    /// with the fewest runs. If none keeps up, the fastest.
    pub fn advice(&self) -> Option<&Finding> {
        let keeps_up = |finding: &&Finding| finding.keeps_up != Some(false);
        if !self.findings.iter().any(|finding| keeps_up(&finding)) {
            let median = |finding: &&Finding| finding.median.mean;
            return self.findings.iter().min_by(|one, other| median(one).total_cmp(&median(other)));
        }
        let front = || self.findings.iter().filter(|finding| finding.on_front).filter(keeps_up);
        let fastest = front().map(|finding| finding.median.mean).min_by(f64::total_cmp)?;
        let fast = front().filter(|finding| finding.median.mean <= PATIENCE * fastest);
        fast.min_by(|one, other| one.runs.mean.total_cmp(&other.runs.mean))
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

fn finding(workload: &Workload, choice: Choice, outcomes: &[Outcome]) -> Finding {
    let over =
        |of: &dyn Fn(&Outcome) -> f64| outcomes.iter().map(of).collect::<Sample>().interval();
    Finding {
        choice,
        median: over(&|it| it.minutes().median()),
        p95: over(&|it| it.minutes().percentile(95)),
        runs: over(&Outcome::runs_per_pull_request),
        run_minutes: over(&Outcome::run_minutes_per_merge),
        cancelled: over(&|it| ratio(float(it.cancelled_runs), it.runs)),
        false_ejections: over(&|it| ratio(float(it.false_ejections), it.submitted)),
        merged_per_hour: over(&Outcome::merged_per_hour),
        keeps_up: (workload.arrivals != Arrivals::Burst).then(|| keeps_up(outcomes)),
        on_front: false,
    }
}

fn keeps_up(outcomes: &[Outcome]) -> bool {
    let (mut first, mut last) = (0.0, 0.0);
    for outcome in outcomes {
        let minutes = &outcome.minutes_in_queue;
        let third = minutes.len() / 3;
        first += minutes.iter().take(third).sum::<f64>();
        last += minutes.iter().rev().take(third).sum::<f64>();
    }
    last <= GROWTH * first
}
