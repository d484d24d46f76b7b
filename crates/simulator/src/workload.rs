//! Workloads: what arrives at a queue, and what its tests are like.

use signalbox_domain::time::Span;

use crate::random::Random;
use crate::{Conditions, SimulationError};

/// When pull requests arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// All at the start.
    Burst,
    /// Independently of each other, on average this many an hour.
    Poisson {
        /// Pull requests an hour.
        per_hour: f64,
    },
    /// As `Poisson`, with a rate that follows the time of day as a sine.
    Daily {
        /// Pull requests an hour, on average over the day.
        per_hour: f64,
        /// How far the rate rises above the average and falls below it, from 0 to 1.
        swing: f64,
    },
}

/// How long a test run takes, in minutes. The newest pull request of a run decides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Durations {
    /// Always the same.
    Fixed {
        /// Minutes.
        minutes: f64,
    },
    /// Evenly distributed.
    Uniform {
        /// The shortest, in minutes.
        from: f64,
        /// The longest, in minutes.
        to: f64,
    },
    /// Lognormal, cut to a fifth and four times the median.
    LogNormal {
        /// The median, in minutes.
        median: f64,
        /// The standard deviation of the logarithm.
        sigma: f64,
    },
}

/// Which pull requests may conflict: the ones that share an impacted target. In PARALLEL mode the
/// queue knows the targets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Overlap {
    /// All of them.
    Everything,
    /// Each pair with this probability, independently of other pairs.
    Pairs {
        /// The probability.
        share: f64,
    },
    /// The ones that share an area of the repository. Of 100 pull requests 75 change one area, 15
    /// two, 9 three and one changes all.
    Areas {
        /// The number of areas.
        count: u32,
    },
}

/// Agents, whose pull requests fail at another rate: 3 of them beside 20 people. Without agents, all pull
/// requests have the same author.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Agents {
    /// The share of pull requests that are of agents.
    pub share: f64,
    /// The share of these that fail on their own.
    pub failing: f64,
}

/// A stated workload. The default has 1000 pull requests, 20 an hour, none of which fails, with
/// tests of 30 minutes.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// The number of pull requests.
    pub pull_requests: u32,
    /// When they arrive.
    pub arrivals: Arrivals,
    /// How long their tests take.
    pub durations: Durations,
    /// The share of pull requests, other than those of agents, that fail on their own.
    pub failing: f64,
    /// The agents, if there are some.
    pub agents: Option<Agents>,
    /// The share of test runs that fail without a cause in any change.
    pub flaky: f64,
    /// Which pull requests may conflict.
    pub overlap: Overlap,
    /// The probability that two pull requests which may conflict do: each passes alone, and both
    /// together fail. Only the 500 pull requests before a pull request count.
    pub conflicting: f64,
    /// Seconds until the git host answers.
    pub host_seconds: u32,
    /// The share of pull requests at the start whose results do not count, because the queue was
    /// empty before.
    pub warm_up: f64,
}

/// The most pull requests of a workload: their numbers and the steps of a queue stay countable.
const MOST: u32 = 10_000_000;
/// The most minutes of a test run that the planner's largest timeout allows.
pub(crate) const MAX_TEST_MINUTES: f64 = 10_080.0;

impl Default for Workload {
    fn default() -> Self {
        Self {
            pull_requests: 1_000,
            arrivals: Arrivals::Poisson { per_hour: 20.0 },
            durations: Durations::Fixed { minutes: 30.0 },
            failing: 0.0,
            agents: None,
            flaky: 0.0,
            overlap: Overlap::Everything,
            conflicting: 0.0,
            host_seconds: 0,
            warm_up: 0.0,
        }
    }
}

impl Workload {
    /// Refuses the first number that is out of its bounds.
    pub fn check(&self) -> Result<(), SimulationError> {
        if !(1..=MOST).contains(&self.pull_requests) {
            return Err(SimulationError::Workload {
                field: "number of pull requests",
                value: self.pull_requests.to_string(),
                rule: "from 1 to 10000000",
            });
        }
        match self.arrivals {
            Arrivals::Burst => {}
            Arrivals::Poisson { per_hour } => rate(per_hour)?,
            Arrivals::Daily { per_hour, swing } => {
                rate(per_hour)?;
                share("daily swing", swing)?;
            }
        }
        self.durations.check()?;
        if let Overlap::Pairs { share: pairs } = self.overlap {
            share("share of overlapping pairs", pairs)?;
        }
        if self.overlap == (Overlap::Areas { count: 0 }) {
            return Err(SimulationError::Workload {
                field: "number of areas",
                value: "0".to_owned(),
                rule: "at least 1",
            });
        }
        share("failing share", self.failing)?;
        if let Some(agents) = self.agents {
            share("share of agents", agents.share)?;
            share("failing share of agents", agents.failing)?;
        }
        share("conflicting share", self.conflicting)?;
        self.conditions().check()
    }

    /// The conditions of its streams.
    pub const fn conditions(&self) -> Conditions {
        let Self { flaky, host_seconds, warm_up, .. } = *self;
        Conditions { flaky, host_seconds, warm_up }
    }
}

impl Conditions {
    /// Refuses the first number that is out of its bounds.
    pub(crate) fn check(&self) -> Result<(), SimulationError> {
        share("flaky share", self.flaky)?;
        share("warm-up share", self.warm_up)
    }
}

fn within(
    field: &'static str,
    value: f64,
    ok: bool,
    rule: &'static str,
) -> Result<(), SimulationError> {
    if ok {
        Ok(())
    } else {
        Err(SimulationError::Workload { field, value: value.to_string(), rule })
    }
}

fn share(field: &'static str, value: f64) -> Result<(), SimulationError> {
    within(field, value, (0.0..=1.0).contains(&value), "from 0 to 1")
}

fn rate(value: f64) -> Result<(), SimulationError> {
    let ok = value > 0.0 && value <= 100_000.0;
    within("number of pull requests an hour", value, ok, "more than 0, at most 100000")
}

fn duration(minutes: f64) -> Result<(), SimulationError> {
    let ok = minutes > 0.0 && minutes <= MAX_TEST_MINUTES;
    within("test duration", minutes, ok, "more than 0 and at most 10080 minutes")
}

/// A span of this many minutes, at least 0.
pub(crate) fn span(minutes: f64) -> Span {
    let micros = std::time::Duration::from_secs_f64((minutes * 60.0).max(0.0)).as_micros();
    Span::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
}

/// A span in minutes.
pub(crate) fn minutes(span: Span) -> f64 {
    span.to_std().as_secs_f64() / 60.0
}

impl Durations {
    /// Refuses the first number that is out of its bounds.
    pub(crate) fn check(self) -> Result<(), SimulationError> {
        match self {
            Self::Fixed { minutes } => duration(minutes),
            Self::Uniform { from, to } => {
                duration(from)?;
                duration(to)?;
                within("longest test duration", to, from <= to, "at least the shortest")
            }
            Self::LogNormal { median, sigma } => {
                duration(4.0 * median)?;
                let ok = (0.0..=3.0).contains(&sigma);
                within("spread of test durations", sigma, ok, "from 0 to 3")
            }
        }
    }

    pub(crate) fn draw(self, random: &mut Random) -> Span {
        span(match self {
            Self::Fixed { minutes } => minutes,
            Self::Uniform { from, to } => from + (to - from) * random.share(),
            Self::LogNormal { median, sigma } => {
                (median * (sigma * random.normal()).exp()).clamp(median / 5.0, median * 4.0)
            }
        })
    }
}

impl Arrivals {
    /// The minutes from one arrival, at this time in minutes, to the next.
    pub(crate) fn gap(self, at: f64, random: &mut Random) -> f64 {
        match self {
            Self::Burst => 0.0,
            Self::Poisson { per_hour } => random.exponential(60.0 / per_hour),
            // Thinning: draw at the highest rate, and keep each with the share of the present rate.
            Self::Daily { per_hour, swing } => {
                let (mut gap, highest) = (0.0, 1.0 + swing);
                loop {
                    gap += random.exponential(60.0 / (per_hour * highest));
                    let day = std::f64::consts::TAU * (at + gap) / 1_440.0;
                    if random.is((1.0 + swing * day.sin()) / highest) {
                        return gap;
                    }
                }
            }
        }
    }
}
