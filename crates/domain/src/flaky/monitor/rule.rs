//! What a kind of monitor is: parameters, what it reads of a test's runs, and how it judges that.

use std::fmt;

use crate::time::{Span, Timestamp};

use super::super::{BranchScope, Refusal};
use super::kinds::Disagreement;
use super::summary::Tally;
use super::windows::{disagreements, horizon};
use super::{Classification, Period, Summary, Verdict, Window};

/// A kind of monitor. The type holds its parameters; the table in `kinds` lists it.
pub trait MonitorRule: Copy + 'static {
    /// What it reads.
    type Reading: MonitorReading;

    /// Its parameters, in the order in which the API shows them.
    const PARAMETERS: &'static [Parameter<Self>];

    /// What a new monitor starts with. 0 is out of bounds: such a parameter must be given, or
    /// [follows](Parameter::following) from another one.
    const START: Self;

    /// What it may classify a test as.
    const CLASSIFIES: &'static [Classification] = Classification::ALL;

    /// Whether it compares the results of a code: `Runs::disagreements`.
    const COMPARES: bool = false;

    /// How far back it counts runs: each window that it passes to `Runs::tally`.
    fn windows(self) -> Vec<Span>;

    /// What it sees in the runs of a test.
    fn read(self, runs: &Runs<'_>) -> Self::Reading;

    /// What follows from a reading that was taken at a time. `evidence` is the reading by which the
    /// monitor last became active or was renewed.
    fn judge(
        self,
        active: bool,
        evidence: Option<&Self::Reading>,
        reading: &Self::Reading,
        at: Timestamp,
    ) -> Verdict;

    /// Until when a reading that does not make it active is a suspicion; `None`: it is none.
    fn suspects_until(self, _reading: &Self::Reading, _at: Timestamp) -> Option<Timestamp> {
        None
    }

    /// Refuses the first parameter that is out of its bounds.
    fn check(mut self) -> Result<(), Refusal> {
        Self::PARAMETERS.iter().try_for_each(|parameter| {
            let low = parameter.at_least.map_or(parameter.spec.min, |at_least| at_least(&self));
            let high = parameter.at_most.map_or(parameter.spec.max, |at_most| at_most(&self));
            bound(parameter.spec.name, *(parameter.field)(&mut self), low, high)
        })
    }

    /// The names and values of its parameters.
    fn values(mut self) -> Vec<(&'static str, u32)> {
        let value = |it: &Parameter<Self>| (it.spec.name, *(it.field)(&mut self));
        Self::PARAMETERS.iter().map(value).collect()
    }

    /// With these values, within their bounds or not. Names of other kinds are ignored.
    #[must_use]
    fn with(mut self, given: &[(&str, u32)]) -> Self {
        for parameter in Self::PARAMETERS {
            if let Some((_, value)) = given.iter().find(|(name, _)| *name == parameter.spec.name) {
                *(parameter.field)(&mut self) = *value;
            }
        }
        self
    }

    /// A new one with these values; parameters that follow from others, and are not given, follow.
    fn start_with(given: &[(&str, u32)]) -> Self {
        let mut rule = Self::START.with(given);
        for parameter in Self::PARAMETERS {
            let is_given = given.iter().any(|(name, _)| *name == parameter.spec.name);
            if let Some(follows) = parameter.follows.filter(|_| !is_given) {
                *(parameter.field)(&mut rule) = follows(&rule);
            }
        }
        rule
    }
}

/// What a kind of monitor sees of a test, and shows as evidence in few words.
pub trait MonitorReading: fmt::Display {
    /// The last run that the monitor knows of.
    fn last_run_at(&self) -> Option<Timestamp>;

    /// Its evidence as the API and events carry it: names and values.
    fn evidence(&self) -> Vec<(&'static str, Evidence)>;
}

/// A value of a piece of evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// How many there are.
    Count(u32),
    /// When it was, if it ever was.
    Time(Option<Timestamp>),
    /// One of several words.
    Word(Option<&'static str>),
}

/// What is known about a parameter without its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParameterSpec {
    /// Its name in the API, such as `windowHours`.
    pub name: &'static str,
    /// What it means and its unit, a lower-case fragment.
    pub doc: &'static str,
    /// The least value.
    pub min: u32,
    /// The greatest value.
    pub max: u32,
}

impl ParameterSpec {
    /// Refuses a value that the parameter cannot have in any monitor.
    pub fn check(&self, value: u32) -> Result<(), Refusal> {
        bound(self.name, value, self.min, self.max)
    }
}

/// A parameter of a kind of monitor: a whole number.
pub struct Parameter<T> {
    pub(super) spec: ParameterSpec,
    field: fn(&mut T) -> &mut u32,
    at_least: Option<fn(&T) -> u32>,
    at_most: Option<fn(&T) -> u32>,
    follows: Option<fn(&T) -> u32>,
}

impl<T> Parameter<T> {
    /// A parameter from `min` to `max`.
    pub const fn new(
        name: &'static str,
        doc: &'static str,
        (min, max): (u32, u32),
        field: fn(&mut T) -> &mut u32,
    ) -> Self {
        let spec = ParameterSpec { name, doc, min, max };
        Self { spec, field, at_least: None, at_most: None, follows: None }
    }

    /// At least as much as another parameter.
    #[must_use]
    pub const fn at_least(mut self, other: fn(&T) -> u32) -> Self {
        self.at_least = Some(other);
        self
    }

    /// At most as much as another parameter.
    #[must_use]
    pub const fn at_most(mut self, other: fn(&T) -> u32) -> Self {
        self.at_most = Some(other);
        self
    }

    /// Of a new monitor, unless it is given.
    #[must_use]
    pub const fn following(mut self, other: fn(&T) -> u32) -> Self {
        self.follows = Some(other);
        self
    }
}

/// The runs of a test as a monitor looks at them.
#[derive(Clone, Copy, Debug)]
pub struct Runs<'a> {
    pub(super) known: Known<'a>,
    /// When the scope was last changed.
    pub(super) scope_since: Option<Timestamp>,
    /// The time of the reading.
    pub(super) at: Timestamp,
}

/// The source of the counts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Known<'a> {
    /// All runs, and the scope of the monitor.
    All(&'a Summary, &'a BranchScope),
    /// The window of the monitor; `None` while it has counted nothing.
    Window(Option<&'a Window>),
}

impl Runs<'_> {
    /// Counts those of the last `span`, and the last times ever.
    pub(super) fn tally(&self, span: Span) -> Tally {
        match self.known {
            Known::All(summary, scope) => summary.tally(scope, span, self.at),
            Known::Window(window) => {
                window.map_or_else(Tally::default, |window| window.tally(span, self.at))
            }
        }
    }

    /// Runs of the last `span` by bucket, the oldest first. A bucket is about a 48th of the span.
    pub(super) fn periods(&self, span: Span) -> Vec<Period> {
        match self.known {
            Known::All(summary, scope) => summary.periods(scope, span, self.at),
            Known::Window(window) => {
                window.map_or_else(Vec::new, |window| window.periods(span, self.at))
            }
        }
    }

    /// The failures and successes on one code, the newest first. Those from before the scope was
    /// changed were judged by another scope.
    pub(super) fn disagreements(&self) -> Vec<Disagreement> {
        let mut found = match self.known {
            Known::All(summary, scope) => disagreements(&summary.codes, scope),
            Known::Window(window) => {
                window.map_or_else(Vec::new, |window| window.disagreements().to_vec())
            }
        };
        let since = self.scope_since.max(Some(horizon(self.at)));
        found.retain(|it| it.at <= self.at && Some(it.at) >= since);
        found.sort_by(|one, other| (other.at, &other.code).cmp(&(one.at, &one.code)));
        found
    }
}

/// Refuses a number that does not lie between two others, both allowed.
pub(in crate::flaky) fn bound(field: &str, value: u32, low: u32, high: u32) -> Result<(), Refusal> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(Refusal::setting(field, format!("must be a whole number from {low} to {high}")))
}
