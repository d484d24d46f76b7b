//! Histories: what a queue did, as a file that is replayed with different settings.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use signalbox_domain::queue::{
    BatchingRule, Mode, Priority, SettingKind, SettingSpec, SettingValue, Settings, SettingsPatch,
    is_endless_freeze, setting,
};
use signalbox_domain::time::{Span, Timestamp};

use crate::random::Random;
use crate::stream::{CHANGE, Conditions, Source, Stream};
use crate::workload::{MAX_TEST_MINUTES, minutes, span};
use crate::{Areas, Change, Durations, Sample, SimulationError};

/// The maximum number of pull requests in a history.
const MOST: usize = 100_000;

/// The first line of a history: the settings of the queue by their names in the API.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PastSettings {
    /// The settings; omitted ones have their defaults.
    pub settings: Map<String, Value>,
}

/// How a pull request left a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Ending {
    /// It merged.
    Merged,
    /// Its tests failed.
    Failed,
    /// It left without a result of its tests. It is counted but not simulated.
    Cancelled,
}

/// A line of a history: a pull request that was in a queue and has left it. One that was submitted
/// several times has several lines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PastPullRequest {
    /// Its number.
    pub number: u32,
    /// When it entered the line, RFC 3339.
    pub queued_at: String,
    /// When it left the queue, RFC 3339.
    pub ended_at: String,
    /// How it left the queue.
    pub outcome: Ending,
    /// The minutes of its last complete test run; `None` if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_minutes: Option<f64>,
    /// Its priority as a number: 0 is urgent, 100 the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// Its impacted targets; `None` if they are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets: Option<BTreeSet<String>>,
}

/// A pull request of a history that merged or failed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Past {
    pub(crate) number: u32,
    queued_at: Timestamp,
    ended_at: Timestamp,
    pub(crate) failed: bool,
    tests_take: Option<Span>,
    priority: Option<Priority>,
    areas: Option<Areas>,
}

/// A history, in the order in which the pull requests entered the line.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    /// The settings of the queue, if the history contains them.
    pub settings: Option<Settings>,
    /// The number of pull requests that left without a result.
    pub cancelled: usize,
    pub(crate) past: Vec<Past>,
    conditions: Conditions,
    unknown: Option<Durations>,
}

impl History {
    /// Reads a history: one JSON object on each line, of which the first may be [`PastSettings`] and
    /// the others are [`PastPullRequest`]s. The error names the line and the rule.
    ///
    /// Test runs whose minutes are not known take as long as others of the history, drawn at random,
    /// or as `unknown` states.
    pub fn parse(
        text: &str,
        conditions: Conditions,
        unknown: Option<Durations>,
    ) -> Result<Self, SimulationError> {
        conditions.check()?;
        unknown.map(Durations::check).transpose()?;
        let text = text.trim_start_matches('\u{feff}');
        let (mut settings, mut cancelled, mut past) = (None, 0, Vec::new());
        let mut areas = BTreeMap::new();
        for (line, number) in text.lines().zip(1_usize..) {
            if line.trim().is_empty() {
                continue;
            }
            let wrong = |rule: String| SimulationError::History { line: number, rule };
            let value: Value = serde_json::from_str(line)
                .map_err(|error| wrong(format!("is not JSON, column {}", error.column())))?;
            if value.get("settings").is_some() {
                if settings.is_some() || !past.is_empty() || cancelled > 0 {
                    return Err(wrong(
                        "has settings, which are allowed only in the first line".into(),
                    ));
                }
                let read: PastSettings = serde_json::from_value(value)
                    .map_err(|error| wrong(format!("is invalid: {error}")))?;
                settings = Some(settings_of(&read.settings).map_err(wrong)?);
                continue;
            }
            let read: PastPullRequest = serde_json::from_value(value)
                .map_err(|error| wrong(format!("is invalid: {error}")))?;
            match read.checked(&mut areas).map_err(wrong)? {
                Some(read) => past.push(read),
                None => cancelled += 1,
            }
            if past.len() > MOST {
                return Err(wrong(format!("exceeds the limit of {MOST} pull requests")));
            }
        }
        past.sort_by_key(|it| it.queued_at);
        let history = Self { settings, cancelled, past, conditions, unknown };
        history.check()?;
        Ok(history)
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
            return refused(
                "it has no testMinutes; set the duration of test runs with --test-minutes",
            );
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
        self.past.iter().skip(counted).map(Past::minutes).collect()
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
                fails: like.failed,
                areas: like.areas.clone().unwrap_or(Areas::All),
                conflicts: Vec::new(),
                priority: past.priority,
            })
        });
        Stream { conditions: self.conditions, seed, changes: changes.collect() }
    }
}

/// Each seed draws, for each pull request, one of the history whose outcome, test duration and targets it
/// has.
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

impl Past {
    pub(crate) fn minutes(&self) -> f64 {
        minutes(self.ended_at.since(self.queued_at))
    }
}

impl PastPullRequest {
    /// Refused with the rule that it breaks; nothing for one that was cancelled. `areas` numbers the
    /// targets.
    fn checked(self, areas: &mut BTreeMap<String, u64>) -> Result<Option<Past>, String> {
        let time = |field: &str, text: &str| {
            Timestamp::parse(text).ok_or_else(|| {
                format!("has an invalid {field} {text:?}: must be a time in RFC 3339")
            })
        };
        let queued_at = time("queuedAt", &self.queued_at)?;
        let ended_at = time("endedAt", &self.ended_at)?;
        if self.number == 0 {
            return Err("has an invalid number 0: must be at least 1".to_owned());
        }
        if ended_at < queued_at {
            return Err(format!("has an endedAt {ended_at} before its queuedAt {queued_at}"));
        }
        if let Some(given) = self.test_minutes.filter(|it| !(*it > 0.0 && *it <= MAX_TEST_MINUTES))
        {
            return Err(format!(
                "has invalid testMinutes {given}: must be more than 0 and at most {MAX_TEST_MINUTES}"
            ));
        }
        let mut area = |target: String| {
            let next = u64::try_from(areas.len()).unwrap_or(u64::MAX);
            *areas.entry(target).or_insert(next)
        };
        let areas =
            self.targets.map(|targets| Areas::Only(targets.into_iter().map(&mut area).collect()));
        Ok((self.outcome != Ending::Cancelled).then_some(Past {
            number: self.number,
            queued_at,
            ended_at,
            failed: self.outcome == Ending::Failed,
            tests_take: self.test_minutes.map(span),
            priority: self.priority.map(Priority::number),
            areas,
        }))
    }
}

/// The settings of a history. Settings about what a history does not contain have no effect: required
/// statuses, test results, authors and the names of targets. The recorded durations contain the
/// waiting for CI, to which timeouts do not apply, and a freeze without an end would hold what was
/// under test at its start forever.
fn settings_of(given: &Map<String, Value>) -> Result<Settings, String> {
    let mut patch = SettingsPatch::default();
    for (name, value) in given.iter().filter(|(_, value)| !value.is_null()) {
        let spec = setting(name).ok_or_else(|| format!("has an unknown setting {name:?}"))?;
        if !read(spec, value).is_some_and(|read| spec.set(&mut patch, read)) {
            return Err(format!("has an invalid value {value} of the setting {name}"));
        }
    }
    let defaults = Settings { mode: patch.mode.unwrap_or(Mode::Single), ..Settings::default() };
    let mut settings = patch.applied_to(&defaults).map_err(|refusal| refusal.to_string())?;
    settings.freezes.retain(|rule| !is_endless_freeze(rule));
    Ok(Settings {
        required_statuses: None,
        evidence_checks: Vec::new(),
        author_limit: 0,
        batching_rules: Vec::new(),
        testing_timeout_minutes: 0,
        automatic_testing_timeout: false,
        ..settings
    })
}

/// A value of a setting as the API writes it.
fn read(spec: &SettingSpec, value: &Value) -> Option<SettingValue> {
    match (spec.kind, value) {
        (SettingKind::Names { .. } | SettingKind::Freezes, Value::Array(items)) => {
            let names = items.iter().map(|item| item.as_str().map(ToOwned::to_owned));
            names.collect::<Option<Vec<String>>>().map(SettingValue::Names)
        }
        (SettingKind::Rules, Value::Array(items)) => {
            let text = |item: &Value, name: &str| Some(item.get(name)?.as_str()?.to_owned());
            let rule = |item: &Value| {
                let target_pattern = text(item, "targetPattern")?;
                Some(BatchingRule { target_pattern, policy: text(item, "policy")? })
            };
            items.iter().map(rule).collect::<Option<Vec<BatchingRule>>>().map(SettingValue::Rules)
        }
        (_, Value::Bool(flag)) => spec.parse(&flag.to_string()),
        (_, Value::Number(number)) => spec.parse(&number.to_string()),
        (_, Value::String(text)) => spec.parse(text),
        (_, Value::Null | Value::Array(_) | Value::Object(_)) => None,
    }
}
