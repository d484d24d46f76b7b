//! The command `signalbox simulate`.

mod written;

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use signalbox_domain::queue::{
    BisectionMode, Mode, OptimizationMode, ReparentingMode, Settings, SharedPolicy,
    SuccessEstimates,
};
use signalbox_simulator::{
    Agents, Arrivals, Choice, Durations, Effort, History, Overlap, Replay, SimulationError, Study,
    Workload,
};
use signalbox_terminal::Format;

use self::written::{document, replay_document, replayed, table};
use crate::CliError;

/// The most combinations of a grid.
const MOST: usize = 400;

/// The workload, the settings to compare, and the output.
#[derive(Args, Clone, Debug)]
pub struct Simulate {
    /// Replay a history from `signalbox queue history` (- for the standard input) instead of a stated
    /// workload. Settings without a flag come from the history.
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Workload",
        conflicts_with_all = ["pull_requests", "per_hour", "daily_swing", "failing", "agents", "overlap", "conflicting"]
    )]
    pub history: Option<PathBuf>,
    /// The number of pull requests.
    #[arg(long, value_name = "NUMBER", default_value_t = 1_000, help_heading = "Workload")]
    pub pull_requests: u32,
    /// Pull requests an hour, at random times; 0 submits all at the start.
    #[arg(long, value_name = "RATE", default_value_t = 20.0, help_heading = "Workload")]
    pub per_hour: f64,
    /// How far the rate rises and falls in a day: 0 not at all, 1 down to nothing.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, help_heading = "Workload")]
    pub daily_swing: f64,
    /// Minutes of a test run: 30, evenly from 20 to 40 as 20-40, or lognormal with median 30 and
    /// spread 0.35 as 30~0.35. With --history, applies only where testMinutes is missing
    /// [default: 30; with --history, the duration of another pull request].
    #[arg(long, value_name = "MINUTES", help_heading = "Workload")]
    pub test_minutes: Option<Minutes>,
    /// The share of pull requests that fail on their own.
    #[arg(long, value_name = "SHARE", default_value_t = 0.05, help_heading = "Workload")]
    pub failing: f64,
    /// The share of pull requests from three agents, and the share of these that fail on their own, as
    /// 0.2:0.3; the others are from 20 people [default: one author].
    #[arg(long, value_name = "SHARE:FAILING", value_parser = agents, help_heading = "Workload")]
    pub agents: Option<Agents>,
    /// The share of test runs that fail without a cause in any change.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, help_heading = "Workload")]
    pub flaky: f64,
    /// Which pull requests may conflict: everything, each pair with a probability as pairs:0.03, or
    /// the ones that change the same of 50 areas as areas:50.
    #[arg(long, value_name = "WHICH", default_value = "everything", help_heading = "Workload")]
    pub overlap: Which,
    /// The probability that two pull requests which may conflict do.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, help_heading = "Workload")]
    pub conflicting: f64,
    /// Seconds until the git host answers.
    #[arg(long, value_name = "SECONDS", default_value_t = 2, help_heading = "Workload")]
    pub host_seconds: u32,
    /// The share of pull requests at the start whose minutes do not count.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, help_heading = "Workload")]
    pub warm_up: f64,
    /// The maximum number of concurrent test runs, including those of bisection unless that has slots of its
    /// own. Several values are compared [default: 20; with --history, the recorded value].
    #[arg(long, value_name = "NUMBER", value_delimiter = ',', help_heading = "Settings")]
    pub concurrency: Vec<u32>,
    /// The number of test slots that only bisection uses [default: 0; with --history, the recorded value].
    #[arg(long, value_name = "NUMBER", help_heading = "Settings")]
    pub bisection_concurrency: Option<u32>,
    /// Failures reduce the number of concurrent test runs, and landings raise it again.
    #[arg(long, help_heading = "Settings")]
    pub adaptive_window: bool,
    /// Failures never reduce the number of concurrent test runs below this number [default: 3].
    #[arg(long, value_name = "NUMBER", help_heading = "Settings")]
    pub window_floor: Option<u32>,
    /// The size of batches; 1 tests every pull request alone. Several values are compared
    /// [default: 1; with --history, the recorded value].
    #[arg(long, value_name = "NUMBER", value_delimiter = ',', help_heading = "Settings")]
    pub batch_size: Vec<u32>,
    /// The maximum number of minutes that a batch waits to fill [default: 5].
    #[arg(long, value_name = "MINUTES", help_heading = "Settings")]
    pub batch_wait: Option<u32>,
    /// Bisect failed batches in place instead of outside the line.
    #[arg(long, help_heading = "Settings")]
    pub bisect_in_place: bool,
    /// Which failed runs are tested beside the line while runs ahead are unfinished: off, batches or
    /// all [default: batches].
    #[arg(long, value_name = "WHICH", value_parser = reparenting, help_heading = "Settings")]
    pub reparenting: Option<ReparentingMode>,
    /// The lowest probability of passing, in percent, at which a group is tested in the line, instead of
    /// beside it first; 0 turns pretests off [default: 50].
    #[arg(long, value_name = "PERCENT", help_heading = "Settings")]
    pub pretest_threshold: Option<u32>,
    /// Which failure rate to use for the probability of passing: queue for that of all, authors for one of
    /// each author [default: authors].
    #[arg(long, value_name = "WHICH", value_parser = estimates, help_heading = "Settings")]
    pub success_estimates: Option<SuccessEstimates>,
    /// Skip bisection test runs whose result follows from earlier ones.
    #[arg(long, help_heading = "Settings")]
    pub skip_redundant_tests: bool,
    /// Parallel lanes of pull requests that may conflict, instead of one line.
    #[arg(long, help_heading = "Settings")]
    pub parallel: bool,
    /// A passing run merges everything that its candidate contains.
    #[arg(long, help_heading = "Settings")]
    pub optimistic: bool,
    /// How many later test runs the queue waits for before a failure is final [default: 0].
    #[arg(long, value_name = "NUMBER", help_heading = "Settings")]
    pub pending_failure_depth: Option<u32>,
    /// The number of seeds, from 1 to 1000. Intervals need about 20.
    #[arg(long, value_name = "NUMBER", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub seeds: u32,
    /// How the result is printed.
    #[command(flatten)]
    pub format: Format,
}

/// Simulates every combination, and prints the result.
pub fn simulate(simulate: &Simulate, policy: &SharedPolicy) -> Result<(), CliError> {
    let read = |file: &PathBuf| {
        signalbox_terminal::read(file).map_err(|error| CliError::File { file: file.clone(), error })
    };
    let history = simulate.history.as_ref().map(read).transpose()?;
    let text = simulate.run(history.as_deref(), policy)?;
    simulate.format.say(&text, || text.clone());
    Ok(())
}

impl Simulate {
    /// Simulates every combination with this policy, and returns the result as text. `history` is what
    /// `--history` names.
    pub fn run(
        &self,
        history: Option<&str>,
        policy: &SharedPolicy,
    ) -> Result<String, SimulationError> {
        let Some(text) = history else {
            let choices = self.choices(None, policy)?;
            let study = Study::new(&self.workload(), choices, Effort::seeds(self.seeds))?;
            return Ok(if self.format.is_json() { document(&study) } else { table(&study) });
        };
        let conditions = self.workload().conditions();
        let unknown = self.test_minutes.map(|it| it.0);
        let history = History::parse(text, conditions, unknown)?.with_policy(policy.clone());
        let choices = self.choices(history.settings.as_ref(), policy)?;
        let replay = Replay::new(&history, choices, Effort::seeds(self.seeds))?;
        Ok(if self.format.is_json() { replay_document(&replay) } else { replayed(&replay) })
    }

    fn workload(&self) -> Workload {
        let (per_hour, swing) = (self.per_hour, self.daily_swing);
        let arrivals = match (per_hour == 0.0, swing == 0.0) {
            (true, true) => Arrivals::Burst,
            (false, true) => Arrivals::Poisson { per_hour },
            // A rate of 0 cannot rise and fall: it is refused.
            (_, false) => Arrivals::Daily { per_hour, swing },
        };
        Workload {
            pull_requests: self.pull_requests,
            arrivals,
            durations: self.test_minutes.map_or(Durations::Fixed { minutes: 30.0 }, |it| it.0),
            failing: self.failing,
            agents: self.agents,
            flaky: self.flaky,
            overlap: self.overlap.0,
            conflicting: self.conflicting,
            host_seconds: self.host_seconds,
            warm_up: self.warm_up,
        }
    }

    /// Every combination. What no flag sets is as in `recorded`.
    fn choices(
        &self,
        recorded: Option<&Settings>,
        policy: &SharedPolicy,
    ) -> Result<Vec<Choice>, SimulationError> {
        let or = |given: &[u32], default| match given {
            [] => vec![default],
            given => given.to_vec(),
        };
        let now = recorded.map(Choice::recorded);
        let (slots, size) = now.as_ref().map_or((20, 1), |it| (it.concurrency, it.batch_size));
        let (slots, sizes) = (or(&self.concurrency, slots), or(&self.batch_size, size));
        if slots.len() * sizes.len() > MOST {
            return Err(SimulationError::Workload {
                field: "number of combinations",
                value: (slots.len() * sizes.len()).to_string(),
                rule: "at most 400",
            });
        }
        let mut others = recorded.cloned().unwrap_or_default();
        if self.parallel {
            others.mode = Mode::Parallel;
        }
        if self.bisect_in_place {
            others.bisection_mode = BisectionMode::InPlace;
        }
        if self.skip_redundant_tests {
            others.optimization_mode = OptimizationMode::BisectionSkipRedundantTests;
        }
        others.adaptive_window |= self.adaptive_window;
        others.can_optimistically_merge |= self.optimistic;
        let numbers = [
            (self.window_floor, &mut others.window_floor),
            (self.batch_wait, &mut others.batching_max_wait_time_minutes),
            (self.pretest_threshold, &mut others.pretest_threshold),
            (self.pending_failure_depth, &mut others.pending_failure_depth),
        ];
        for (given, setting) in numbers {
            *setting = given.unwrap_or(*setting);
        }
        others.reparenting_mode = self.reparenting.unwrap_or(others.reparenting_mode);
        others.success_estimates = self.success_estimates.unwrap_or(others.success_estimates);
        others.check()?;
        let pairs = slots.iter().flat_map(|slots| sizes.iter().map(move |size| (*slots, *size)));
        let mut choices = pairs
            .map(|(slots, size)| Ok(Choice::new(slots, size, &others)?.with_policy(policy.clone())))
            .collect::<Result<Vec<Choice>, SimulationError>>()?;
        let kept = recorded.map(|settings| settings.bisection_concurrency);
        for choice in &mut choices {
            let own = choice.settings.bisection_concurrency;
            choice.settings.bisection_concurrency =
                self.bisection_concurrency.or(kept).unwrap_or(own);
            choice.settings.check()?;
        }
        Ok(choices)
    }
}

/// A mode, as the command line writes it.
fn reparenting(text: &str) -> Result<ReparentingMode, String> {
    ReparentingMode::parse(text).ok_or_else(|| "expected off, batches or all".to_owned())
}

/// Whose failure rate counts, as the command line writes it.
fn estimates(text: &str) -> Result<SuccessEstimates, String> {
    SuccessEstimates::parse(text).ok_or_else(|| "expected queue or authors".to_owned())
}

/// Agents, as the command line writes them.
fn agents(text: &str) -> Result<Agents, String> {
    let share = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
    let read = text.split_once(':').and_then(|(one, other)| Some((share(one)?, share(other)?)));
    let agents = read.map(|(share, failing)| Agents { share, failing });
    agents.ok_or_else(|| "expected two shares such as 0.2:0.3".to_owned())
}

/// Minutes of a test run, as the command line writes them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Minutes(pub Durations);

impl FromStr for Minutes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
        let two = |mark| {
            let (one, other) = text.split_once(mark)?;
            Some((number(one)?, number(other)?))
        };
        let found = number(text)
            .map(|minutes| Durations::Fixed { minutes })
            .or_else(|| two('-').map(|(from, to)| Durations::Uniform { from, to }))
            .or_else(|| two('~').map(|(median, sigma)| Durations::LogNormal { median, sigma }));
        found.map(Self).ok_or_else(|| "expected minutes such as 30, 20-40 or 30~0.35".to_owned())
    }
}

/// Which pull requests may conflict, as the command line writes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Which(pub Overlap);

impl FromStr for Which {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = match text.split_once(':') {
            None if text == "everything" => Some(Overlap::Everything),
            Some(("pairs", share)) => share.parse().ok().map(|share| Overlap::Pairs { share }),
            Some(("areas", count)) => count.parse().ok().map(|count| Overlap::Areas { count }),
            _ => None,
        };
        found.map(Self).ok_or_else(|| "expected everything, pairs:0.03 or areas:50".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use signalbox_domain::queue::{Entry, Policy, PolicyId, PolicyView};

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        simulate: Simulate,
    }

    fn parsed(flags: &[&str]) -> Result<Simulate, String> {
        let flags = std::iter::once(&"simulate").chain(flags);
        let parsed = Program::try_parse_from(flags).map(|program| program.simulate);
        parsed.map_err(|error| error.to_string())
    }

    fn run(flags: &[&str]) -> Result<String, String> {
        parsed(flags)?.run(None, &SharedPolicy::default()).map_err(|error| error.to_string())
    }

    #[test]
    fn flags_say_the_workload_and_the_grid() {
        let simulate = parsed(&[
            "--per-hour=0",
            "--test-minutes=30~0.35",
            "--overlap=areas:50",
            "--agents=0.2:0.3",
            "--success-estimates=queue",
            "--concurrency=5,10",
            "--batch-size=1,4",
        ])
        .expect("valid flags");
        let workload = simulate.workload();
        assert_eq!(workload.arrivals, Arrivals::Burst);
        assert_eq!(workload.durations, Durations::LogNormal { median: 30.0, sigma: 0.35 });
        assert_eq!(workload.overlap, Overlap::Areas { count: 50 });
        assert_eq!(workload.agents, Some(Agents { share: 0.2, failing: 0.3 }));
        let choices = simulate.choices(None, &SharedPolicy::default()).expect("valid settings");
        let pairs: Vec<_> = choices.iter().map(|it| (it.concurrency, it.batch_size)).collect();
        assert_eq!(pairs, [(5, 1), (5, 4), (10, 1), (10, 4)]);
        assert!(!choices.iter().any(|it| it.settings.batch != (it.batch_size > 1)));
        let queue = SuccessEstimates::Queue;
        assert!(choices.iter().all(|it| it.settings.success_estimates == queue));
    }

    #[test]
    fn bad_input_is_named_with_its_rule() {
        let cases: [(&[&str], &str); 9] = [
            (&["--per-hour=0", "--daily-swing=0.5"], "invalid number of pull requests an hour 0"),
            (&["--test-minutes=long"], "expected minutes such as 30, 20-40 or 30~0.35"),
            (&["--overlap=some"], "expected everything, pairs:0.03 or areas:50"),
            (&["--agents=0.2"], "expected two shares such as 0.2:0.3"),
            (&["--agents=0.2:2"], "invalid failing share of agents 2: must be from 0 to 1"),
            (&["--seeds=0"], "0 is not in 1..=1000"),
            (&["--failing=5"], "invalid failing share 5: must be from 0 to 1"),
            (&["--concurrency=0"], "concurrency must be a whole number from 1 to 1000"),
            (&["--per-hour=-1"], "invalid number of pull requests an hour -1"),
        ];
        for (flags, expected) in cases {
            let error = run(flags).expect_err("refused");
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn the_same_flags_give_the_same_text_and_the_json_has_the_same_figures() {
        let flags = ["--pull-requests=20", "--seeds=3", "--concurrency=2,4", "--batch-size=1,3"];
        let text = run(&flags).expect("a result");
        assert_eq!(text, run(&flags).expect("a result"));
        let document = run(&[&flags[..], &["--output=json"]].concat()).expect("a result");
        let document: serde_json::Value = serde_json::from_str(&document).expect("JSON");
        let findings =
            document.get("combinations").and_then(serde_json::Value::as_array).expect("a list");
        assert_eq!(findings.len(), 4);
        for finding in findings {
            let median = finding.pointer("/medianMinutes/mean").and_then(serde_json::Value::as_f64);
            let median = median.expect("a number");
            assert!(text.contains(&format!("{median:.0} [")), "{median} in {text}");
        }
        assert!(findings.iter().any(|finding| finding.get("onFront") == Some(&true.into())));
        assert!(document.pointer("/advice/concurrency").is_some() && text.contains("Advice: "));
    }

    #[test]
    fn a_policy_of_a_team_is_named() {
        #[derive(Debug)]
        struct Alone;
        impl Policy for Alone {
            fn id(&self) -> PolicyId {
                PolicyId::new("alone", 3)
            }
            fn batch_size(&self, _view: &PolicyView<'_>, _first: &Entry) -> u32 {
                1
            }
        }
        let flags = ["--pull-requests=20", "--seeds=1", "--batch-size=4"];
        let with = |policy: SharedPolicy| parsed(&flags).expect("flags").run(None, &policy);
        let (ours, own) = (with(SharedPolicy::default()), with(Alone.into()));
        let (ours, own) = (ours.expect("a result"), own.expect("a result"));
        assert!(!ours.contains("Policy") && own.ends_with("\nPolicy: alone 3."), "{own}");
        assert_ne!(ours.lines().nth(1), own.lines().nth(1), "no batches are formed");
    }
}
