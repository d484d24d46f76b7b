//! Histories: what a queue did, to be replayed with different settings.

use std::collections::BTreeMap;

use signalbox_domain::queue::{
    SETTINGS, SettingGroup, SettingSpec, Settings, SettingsPatch, SharedPolicy, is_endless_freeze,
    is_partial_freeze,
};
use signalbox_domain::time::{Span, Timestamp};

use crate::random::Random;
use crate::stream::{CHANGE, Conditions, Source, Stream};
use crate::{Areas, Change, Choice, Durations, PastStay, Sample, SimulationError};

/// The settings that a replay does not simulate, besides those about the host. They are about what a
/// history does not contain: statuses, test results, labels, the names of targets, and runs of a pull
/// request's own head. Limits and turns of authors are among them because each seed draws other authors, and
/// timeouts because the recorded durations contain the waiting for CI.
const NOT_SIMULATED: [&str; 25] = [
    "agentLabels",
    "authorDailyMinutes",
    "authorHourlyLimit",
    "authorLimit",
    "automaticTestingTimeout",
    "batchingRules",
    "dependenciesEnabled",
    "directMergeMode",
    "evidenceChecks",
    "evidenceNeedsIdentity",
    "evidenceWaitSeconds",
    "fairShare",
    "impactedTargetRules",
    "infrastructureMessages",
    "infrastructureRetries",
    "knownFlakyRetries",
    "mergeMethod",
    "notReadyTimeoutHours",
    "redTargetHoldMinutes",
    "requiredStatuses",
    "retriesPerHour",
    "seenElsewhereRetries",
    "startTimeoutMinutes",
    "targetCapacities",
    "testingTimeoutMinutes",
];

/// Whether a replay simulates a setting.
pub fn is_simulated(spec: &SettingSpec) -> bool {
    let is_elsewhere = matches!(spec.group, SettingGroup::Host | SettingGroup::WithoutEffect);
    !is_elsewhere && !NOT_SIMULATED.contains(&spec.name)
}

/// How a pull request left a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "json", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "json", serde(rename_all = "SCREAMING_SNAKE_CASE"))]
pub enum Ending {
    /// It merged.
    Merged,
    /// Its tests failed.
    Failed,
    /// It left without a result of its tests. It is counted but not simulated.
    Cancelled,
}

/// A history, in the order in which the pull requests entered the line.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    /// The settings of the queue, if the history contains them.
    pub settings: Option<Settings>,
    /// The policy of the queue.
    pub policy: SharedPolicy,
    /// The number of pull requests that left without a result.
    pub cancelled: usize,
    pub(crate) past: Vec<PastStay>,
    conditions: Conditions,
    unknown: Option<Durations>,
}

impl History {
    /// A history of these stays, in any order, in a queue with these settings, if they are known. Test
    /// runs whose duration is not known take as long as others of the history, drawn at random, or as
    /// `unknown` states.
    pub fn new(
        settings: Option<&Settings>,
        stays: Vec<PastStay>,
        conditions: Conditions,
        unknown: Option<Durations>,
    ) -> Result<Self, SimulationError> {
        conditions.check()?;
        unknown.map(Durations::check).transpose()?;
        let all = stays.len();
        let is_simulated = |stay: &PastStay| stay.outcome != Ending::Cancelled;
        let mut past: Vec<PastStay> = stays.into_iter().filter(is_simulated).collect();
        past.sort_by_key(|it| it.queued_at);
        let (settings, cancelled) = (settings.map(simulated).transpose()?, all - past.len());
        let policy = SharedPolicy::default();
        let history = Self { settings, policy, cancelled, past, conditions, unknown };
        history.check()?;
        Ok(history)
    }

    /// The same history of a queue with another policy.
    #[must_use]
    pub fn with_policy(self, policy: SharedPolicy) -> Self {
        Self { policy, ..self }
    }

    /// Settings to compare; only the [simulated](is_simulated) ones have an effect.
    pub fn choice(settings: &Settings) -> Result<Choice, SimulationError> {
        Ok(Choice::recorded(&simulated(settings)?))
    }

    fn check(&self) -> Result<(), SimulationError> {
        let refused = |rule| Err(SimulationError::Replay { rule });
        if self.past.is_empty() {
            return refused("it has no merged or failed pull requests");
        }
        if self.counted_from() == self.past.len() {
            return refused("the warm-up share leaves no pull request");
        }
        if self.unknown.is_none() && self.known().next().is_none() {
            return Err(SimulationError::NoDurations);
        }
        Ok(())
    }

    /// Whether lanes can be simulated: the targets of all pull requests are known.
    pub fn has_targets(&self) -> bool {
        self.past.iter().all(|it| it.areas.is_some())
    }

    fn known(&self) -> impl Iterator<Item = Span> {
        self.past.iter().filter_map(|it| it.tests_take)
    }

    /// When the first pull request entered the line, and when the last one left it.
    pub fn period(&self) -> (Timestamp, Timestamp) {
        let first = self.past.iter().map(|it| it.queued_at).min();
        let last = self.past.iter().map(|it| it.ended_at).max();
        (
            first.unwrap_or(Timestamp::from_unix_micros(0)),
            last.unwrap_or(Timestamp::from_unix_micros(0)),
        )
    }

    /// The recorded minutes of the pull requests in the queue, without the first ones, which do not
    /// count.
    pub fn minutes(&self) -> Sample {
        let counted = self.counted_from();
        self.past.iter().skip(counted).map(PastStay::minutes).collect()
    }

    /// The position of the first pull request whose results count.
    pub(crate) fn counted_from(&self) -> usize {
        self.conditions.counted_from(self.past.len())
    }

    /// The pull requests as they were: seed 0.
    pub fn recorded(&self) -> Stream {
        self.stream_of(0, |place, _| place)
    }

    /// Pull requests that arrive when those of the history did; `pick` gives the place of the one in
    /// the history that each is otherwise like.
    fn stream_of(&self, seed: u64, pick: impl Fn(usize, &mut Random) -> usize) -> Stream {
        let known: Vec<Span> = self.known().collect();
        let changes = self.past.iter().enumerate().filter_map(|(place, past)| {
            let mut random =
                Random::keyed(&[seed, CHANGE, u64::try_from(place).unwrap_or(u64::MAX)]);
            let like = self.past.get(pick(place, &mut random))?;
            let drawn = |random: &mut Random| match self.unknown {
                Some(unknown) => Some(unknown.draw(random)),
                None => known.get(below(random, known.len())).copied(),
            };
            Some(Change {
                at: past.queued_at,
                tests_take: like.tests_take.or_else(|| drawn(&mut random))?,
                fails: like.failed(),
                areas: like.areas.clone().unwrap_or(Areas::All),
                conflicts: Vec::new(),
                priority: past.priority,
                author: like.author.clone(),
            })
        });
        Stream { conditions: self.conditions, seed, changes: changes.collect() }
    }
}

/// Each seed draws, for each pull request, one of the history whose outcome, test duration, targets and
/// author it has.
impl Source for History {
    /// Pull requests come at any rate: more of them at the end say nothing about the settings.
    fn is_steady(&self) -> bool {
        false
    }

    fn stream(&self, seed: u64) -> Result<Stream, SimulationError> {
        Ok(self.stream_of(seed, |_, random| below(random, self.past.len())))
    }
}

fn below(random: &mut Random, count: usize) -> usize {
    let bound = u32::try_from(count).unwrap_or(u32::MAX);
    usize::try_from(random.below(bound)).unwrap_or_default()
}

/// Numbers the targets of a history.
#[derive(Clone, Debug, Default)]
pub struct AreaNumbers(BTreeMap<String, u64>);

impl AreaNumbers {
    /// The areas of a pull request with these targets.
    pub fn of<S: Into<String>>(&mut self, targets: impl IntoIterator<Item = S>) -> Areas {
        let number = |target: S| {
            let next = u64::try_from(self.0.len()).unwrap_or(u64::MAX);
            *self.0.entry(target.into()).or_insert(next)
        };
        Areas::Only(targets.into_iter().map(number).collect())
    }
}

/// The simulated settings, with the others at their defaults and without a timeout. A freeze without an end would
/// hold what was under test at its start forever, and a history has neither labels nor the names of targets.
fn simulated(settings: &Settings) -> Result<Settings, SimulationError> {
    let mut patch = SettingsPatch::default();
    for spec in SETTINGS.iter().filter(|spec| is_simulated(spec)) {
        spec.set(&mut patch, spec.value(settings));
    }
    let others = Settings { testing_timeout_minutes: 0, ..Settings::default() };
    let mut simulated = patch.applied_to(&others)?;
    simulated.freezes.retain(|rule| !is_endless_freeze(rule) && !is_partial_freeze(rule));
    Ok(simulated)
}

#[cfg(test)]
mod tests {
    use signalbox_domain::queue::setting;

    use super::*;

    #[test]
    fn the_settings_that_are_not_simulated_exist() {
        for name in NOT_SIMULATED {
            assert!(setting(name).is_some(), "{name}");
        }
        assert!(setting("concurrency").is_some_and(is_simulated));
        assert!(!setting("commentsEnabled").is_some_and(is_simulated));
    }
}
