//! `signalbox queue set`: every setting of a queue, by its name in the API.

use std::collections::BTreeMap;
use std::fmt::Write;

use signalbox_client::{BatchingRule, Setting};
use signalbox_domain::queue::{SETTINGS, SettingKind, SettingSpec, SettingValue, setting};
use thiserror::Error;

/// Why `NAME=VALUE` is no setting with a value.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum SettingError {
    /// There is no `=` in it.
    #[error("{0:?}: expected NAME=VALUE")]
    NoValue(String),
    /// The queue has no such setting.
    #[error("{0}: not a setting; see --help")]
    Unknown(String),
    /// The setting cannot have that value.
    #[error("invalid {name} {value:?}: expected {expected}")]
    Value {
        /// The setting.
        name: String,
        /// The given value.
        value: String,
        /// The values that it may have.
        expected: String,
    },
}

/// The settings with the values that they may have, for `--help`.
pub(crate) fn help() -> String {
    let mut text = String::from(
        "Example: signalbox queue set concurrency=5 batch=yes --repo git.local/acme/calc\n\nSettings:",
    );
    for spec in SETTINGS {
        // Writing to a String does not fail.
        let _line = write!(text, "\n  {}={}", spec.name, values(spec));
    }
    text
}

fn values(spec: &SettingSpec) -> String {
    match spec.kind {
        SettingKind::Whole { min, max, .. } => format!("{min}..{max}"),
        SettingKind::Flag => "yes|no".to_owned(),
        SettingKind::Word(words) => words.join("|"),
        SettingKind::Text { .. } => "TEXT".to_owned(),
        SettingKind::Names { .. } => "NAME,NAME...".to_owned(),
        SettingKind::Rules => "PATTERN,PATTERN...".to_owned(),
        SettingKind::Lines(syntax) => format!("{},...", syntax.form()),
    }
}

/// Reads texts such as `concurrency=5`.
pub(crate) fn settings(given: &[String]) -> Result<BTreeMap<String, Setting>, SettingError> {
    let mut settings = BTreeMap::new();
    for text in given {
        let (name, value) =
            text.split_once('=').ok_or_else(|| SettingError::NoValue(text.clone()))?;
        let spec = setting(name).ok_or_else(|| SettingError::Unknown(name.to_owned()))?;
        let is_list = spec.kind.is_list();
        let lines = if is_list { value.replace(',', "\n") } else { value.to_owned() };
        let wrong = || SettingError::Value {
            name: name.to_owned(),
            value: value.to_owned(),
            expected: values(spec),
        };
        settings.insert(name.to_owned(), sent(spec.parse(&lines).ok_or_else(wrong)?));
    }
    Ok(settings)
}

fn sent(value: SettingValue) -> Setting {
    match value {
        SettingValue::Whole(number) => Setting::Whole(number),
        SettingValue::Flag(flag) => Setting::Flag(flag),
        SettingValue::Word(word) => Setting::Text(word.to_owned()),
        SettingValue::Text(text) => Setting::Text(text),
        SettingValue::Names(names) => Setting::Names(names),
        SettingValue::Rules(rules) => {
            let rule = |rule: signalbox_domain::queue::BatchingRule| BatchingRule {
                target_pattern: rule.target_pattern,
                policy: rule.policy,
            };
            Setting::Rules(rules.into_iter().map(rule).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_sent_in_their_own_forms() {
        let given = [
            "concurrency=5",
            "batch=yes",
            "mode=parallel",
            "requiredStatuses=test,lint",
            "batchingRules=//db/*",
        ];
        let expected = json!({
            "concurrency": 5, "batch": true, "mode": "PARALLEL",
            "requiredStatuses": ["test", "lint"],
            "batchingRules": [{"targetPattern": "//db/*", "policy": "isolate"}]
        });
        let read = settings(&given.map(str::to_owned)).expect("readable");
        assert_eq!(serde_json::to_value(read).expect("JSON"), expected);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let refused = |text: &str| settings(&[text.to_owned()]).expect_err("refused").to_string();
        assert_eq!(refused("concurrency"), "\"concurrency\": expected NAME=VALUE");
        assert_eq!(refused("colour=red"), "colour: not a setting; see --help");
        assert_eq!(refused("concurrency=many"), "invalid concurrency \"many\": expected 1..1000");
    }

    #[test]
    fn the_help_names_every_setting() {
        let help = help();
        assert!(SETTINGS.iter().all(|spec| help.contains(&format!("\n  {}=", spec.name))));
    }
}
