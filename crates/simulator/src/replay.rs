//! Replays: a history with different settings, and whether the simulation agrees with what happened.

use signalbox_domain::queue::Mode;
use signalbox_domain::time::Timestamp;

use crate::numbers::{Interval, float, ratio};
use crate::simulation::simulate_while;
use crate::{Choice, Effort, History, Outcome, SimulationError, Study};

/// How far the simulated median may lie outside the interval of the recorded one: tests and hosts are never
/// as regular as the model.
const TOLERANCE: f64 = 0.05;
/// The largest share of pull requests with another outcome than recorded.
const OTHER_OUTCOMES: f64 = 0.02;
/// The maximum number of examples.
const EXAMPLES: usize = 4;

/// A history, simulated with several combinations of settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// When the first pull request entered the line, and when the last one left it.
    pub period: (Timestamp, Timestamp),
    /// The number of cancelled pull requests, which are not simulated.
    pub cancelled: usize,
    /// The recorded median of the minutes in the queue, with its 95 % interval.
    pub median: Interval,
    /// The 95th percentile of these minutes.
    pub p95: f64,
    /// The median and the 95th percentile that the simulation gives with the settings of the history;
    /// `None` if it has none.
    pub simulated: Option<(f64, f64)>,
    /// The share of pull requests that merge in that simulation although they failed, or the other way
    /// round.
    pub other_outcomes: f64,
    /// The comparison; the settings of the history are the first combination.
    pub study: Study,
    /// The combination that the examples are about: the advised one, or the only one besides the
    /// recorded settings.
    pub changed: Option<Choice>,
    /// Pull requests that it would have changed most, largest improvement first.
    pub examples: Vec<Example>,
}

/// What different settings would have changed for a pull request.
#[derive(Clone, Debug, PartialEq)]
pub struct Example {
    /// Its number.
    pub number: u32,
    /// Minutes in the queue: simulated with the settings of the history, else recorded.
    pub before: f64,
    /// Minutes in the queue with the other combination.
    pub after: f64,
}

impl Replay {
    /// Simulates the settings of the history and each choice: once as recorded, and with the seeds of a
    /// [`Study`].
    pub fn new(
        history: &History,
        choices: Vec<Choice>,
        effort: Effort<'_>,
    ) -> Result<Self, SimulationError> {
        let as_recorded = |settings| Choice::recorded(settings).with_policy(history.policy.clone());
        let recorded = history.settings.as_ref().map(as_recorded);
        let others = choices.into_iter().filter(|choice| Some(choice) != recorded.as_ref());
        let choices: Vec<Choice> = recorded.clone().into_iter().chain(others).collect();
        let has_lanes = |choice: &Choice| choice.settings.mode == Mode::Parallel;
        if choices.iter().any(has_lanes) && !history.has_targets() {
            return Err(SimulationError::Replay {
                rule: "PARALLEL mode needs the targets of every pull request",
            });
        }
        let stream = history.recorded();
        let once = |choice: &Choice| simulate_while(&stream, choice, effort.may_continue);
        // Of two, both come before the seeds, which may take all the time.
        let outcomes: Vec<Outcome> = choices.iter().take(2).map(once).collect::<Result<_, _>>()?;
        let outcome = recorded.as_ref().and(outcomes.first());
        let mut study = Study::new(history, choices, effort)?;
        study.recorded = recorded.as_ref().map(|_| 0);
        let changed = changed(&study);
        let changed = changed.and_then(|place| Some((place, study.findings.get(place)?)));
        let examples = match changed {
            Some((place, finding)) => match outcomes.get(place) {
                Some(after) => examples(history, outcome, after),
                None => examples(history, outcome, &once(&finding.choice)?),
            },
            None => Vec::new(),
        };
        let changed = changed.map(|(_, finding)| finding.choice.clone());
        let real = history.minutes();
        let differ = |outcome: &Outcome| {
            let pairs = history.past.iter().zip(&outcome.merges);
            ratio(
                float(pairs.filter(|(past, merged)| past.failed() == **merged).count()),
                history.past.len(),
            )
        };
        Ok(Self {
            other_outcomes: outcome.map(differ).unwrap_or_default(),
            period: history.period(),
            cancelled: history.cancelled,
            median: real.median_interval(),
            p95: real.percentile(95),
            simulated: outcome.map(|it| (it.minutes().median(), it.minutes().percentile(95))),
            changed,
            study,
            examples,
        })
    }

    /// Whether the simulated median lies within the interval of the recorded one or at most 5 % outside it,
    /// and at most 2 % of the pull requests have another outcome. `None` if the history has no settings.
    pub fn fits(&self) -> Option<bool> {
        let (median, _) = self.simulated?;
        let Interval { low, high, .. } = self.median;
        let is_within = median >= low * (1.0 - TOLERANCE) && median <= high * (1.0 + TOLERANCE);
        Some(is_within && self.other_outcomes <= OTHER_OUTCOMES)
    }
}

/// The place of the combination that examples are about.
fn changed(study: &Study) -> Option<usize> {
    let advised = study.advice().filter(|advice| !study.is_recorded(advice));
    let place = |of: &Choice| study.findings.iter().position(|finding| finding.choice == *of);
    match (advised, study.recorded, study.findings.len()) {
        (Some(advised), ..) => place(&advised.choice),
        (None, Some(0), 2) => Some(1),
        (None, ..) => None,
    }
}

/// The pull requests with the greatest differences of more than a minute.
fn examples(history: &History, before: Option<&Outcome>, after: &Outcome) -> Vec<Example> {
    let past = history.past.iter().skip(history.counted_from()).enumerate();
    let mut examples: Vec<Example> = past
        .filter_map(|(at, past)| {
            let simulated = before.and_then(|it| it.minutes_in_queue.get(at).copied());
            let before = simulated.unwrap_or_else(|| past.minutes());
            let after = *after.minutes_in_queue.get(at)?;
            Some(Example { number: past.number, before, after })
        })
        .filter(|it| it.change().abs() > 1.0)
        .collect();
    examples.sort_by(|one, other| other.change().abs().total_cmp(&one.change().abs()));
    examples.truncate(EXAMPLES);
    examples.sort_by(|one, other| one.change().total_cmp(&other.change()));
    examples
}

impl Example {
    fn change(&self) -> f64 {
        self.after - self.before
    }
}
