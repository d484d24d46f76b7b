//! Histories as files: JSON Lines.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use signalbox_domain::queue::{
    BatchingRule, Priority, SettingKind, SettingSpec, SettingValue, Settings, SettingsPatch,
    setting,
};
use signalbox_domain::time::Timestamp;

use crate::workload::{MAX_TEST_MINUTES, minutes, span};
use crate::{AreaNumbers, Conditions, Durations, Ending, History, PastStay, SimulationError};

/// The maximum number of pull requests in a history, without cancelled ones.
const MOST: usize = 100_000;

/// The first line of a history: the settings of the queue by their names in the API.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PastSettings {
    /// The settings; omitted ones have their defaults.
    pub settings: Map<String, Value>,
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
    /// Its author; empty if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub author: String,
    /// Its impacted targets; `None` if they are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets: Option<BTreeSet<String>>,
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
        let text = text.trim_start_matches('\u{feff}');
        let (mut settings, mut stays, mut cancelled) = (None, Vec::new(), 0);
        let mut areas = AreaNumbers::default();
        for (line, number) in text.lines().zip(1_usize..) {
            if line.trim().is_empty() {
                continue;
            }
            let wrong = |rule: String| SimulationError::History { line: number, rule };
            let value: Value = serde_json::from_str(line)
                .map_err(|error| wrong(format!("is not JSON, column {}", error.column())))?;
            if value.get("settings").is_some() {
                if settings.is_some() || !stays.is_empty() {
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
            let stay = read.checked(&mut areas).map_err(wrong)?;
            cancelled += usize::from(stay.outcome == Ending::Cancelled);
            stays.push(stay);
            if stays.len() - cancelled > MOST {
                return Err(wrong(format!("exceeds the limit of {MOST} pull requests")));
            }
        }
        Self::new(settings.as_ref(), stays, conditions, unknown)
    }
}

impl PastPullRequest {
    /// A stay as a line of a history.
    pub fn of(stay: &PastStay) -> Self {
        Self {
            number: stay.number,
            queued_at: stay.queued_at.to_string(),
            ended_at: stay.ended_at.to_string(),
            outcome: stay.outcome,
            test_minutes: stay.tests_take.map(minutes),
            priority: stay.priority.map(|it| it.value),
            author: stay.author.clone(),
            targets: None,
        }
    }

    /// Refused with the rule that it breaks.
    fn checked(self, areas: &mut AreaNumbers) -> Result<PastStay, String> {
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
        Ok(PastStay {
            number: self.number,
            queued_at,
            ended_at,
            outcome: self.outcome,
            tests_take: self.test_minutes.map(span),
            priority: self.priority.map(Priority::number),
            areas: self.targets.map(|targets| areas.of(targets)),
            author: self.author,
        })
    }
}

/// The settings of a history.
fn settings_of(given: &Map<String, Value>) -> Result<Settings, String> {
    let mut patch = SettingsPatch::default();
    for (name, value) in given.iter().filter(|(_, value)| !value.is_null()) {
        let spec = setting(name).ok_or_else(|| format!("has an unknown setting {name:?}"))?;
        if !read(spec, value).is_some_and(|read| spec.set(&mut patch, read)) {
            return Err(format!("has an invalid value {value} of the setting {name}"));
        }
    }
    patch.applied_to(&Settings::default()).map_err(|refusal| refusal.to_string())
}

/// A value of a setting as the API writes it.
fn read(spec: &SettingSpec, value: &Value) -> Option<SettingValue> {
    match (spec.kind, value) {
        (SettingKind::Names { .. } | SettingKind::Lines(_), Value::Array(items)) => {
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
