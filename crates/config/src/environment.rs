//! Settings from the environment: `SIGNALBOX_A__B=value` is `a.b`, and `SIGNALBOX_A__B_FILE=path`
//! the content of that file.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use toml::{Table, Value};

use crate::ConfigError;

const PREFIX: &str = "SIGNALBOX_";
const SHORT: [(&str, &str); 4] = [
    ("LISTEN", "SERVER__LISTEN"),
    ("DATABASE_URL", "DATABASE__URL"),
    ("DATA_DIR", "DATA_DIR"),
    ("PUBLIC_URL", "SERVER__PUBLIC_URL"),
];

/// Which variable set which key, for errors: `server.listen` to `SIGNALBOX_LISTEN`.
pub(super) type Origins = BTreeMap<String, String>;

/// Puts the settings among these variables into the table. Others are ignored: the same prefix is
/// used for variables of checks, and for addresses and tokens of commands.
pub(super) fn overlay(
    table: &mut Table,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Origins, ConfigError> {
    let mut origins = Origins::new();
    let mut settings = Vec::new();
    // All of them first: their order is random, and so would be the error.
    for (variable, value) in environment {
        let Some((variable, keys, from_file)) = variable.to_str().and_then(setting) else {
            continue;
        };
        if let Some(other) = origins.insert(keys.join("."), variable.clone()) {
            let (first, second) = (other.clone().min(variable.clone()), other.max(variable));
            return Err(ConfigError::SetTwice { first, second });
        }
        settings.push((variable, keys, from_file, value));
    }
    for (variable, keys, from_file, value) in settings {
        let wrong = |problem: String| ConfigError::Variable { variable: variable.clone(), problem };
        let value = value.into_string().map_err(|_| wrong("the value is not UTF-8".to_owned()))?;
        let value = if from_file {
            let text = super::load::read(Path::new(&value));
            text.map_err(|error| wrong(error.to_string()))?.trim_end().to_owned()
        } else {
            value
        };
        // All values here are text; lists of tables need a file.
        insert(table, &variable, &keys, value)?;
    }
    Ok(origins)
}

/// The variable, the keys that it sets, and whether its value names a file.
fn setting(variable: &str) -> Option<(String, Vec<String>, bool)> {
    let name = variable.strip_prefix(PREFIX)?;
    let (name, from_file) = match name.strip_suffix("_FILE") {
        Some(name) => (name, true),
        None => (name, false),
    };
    let short = SHORT.iter().find(|(short, _)| *short == name).map(|(_, long)| *long);
    let path = short.or(name.contains("__").then_some(name))?;
    let keys = path.split("__").map(str::to_lowercase).collect();
    Some((variable.to_owned(), keys, from_file))
}

/// Sets a key to the value of that variable.
fn insert(
    table: &mut Table,
    variable: &str,
    keys: &[String],
    value: String,
) -> Result<(), ConfigError> {
    match keys {
        [] => Ok(()),
        [key] => {
            table.insert(key.clone(), Value::String(value));
            Ok(())
        }
        [key, rest @ ..] => {
            let inner = table.entry(key.clone()).or_insert_with(|| Value::Table(Table::new()));
            let inner = inner.as_table_mut().ok_or_else(|| ConfigError::Variable {
                variable: variable.to_owned(),
                problem: format!(
                    "{key} cannot be set by an environment variable; use a configuration file"
                ),
            })?;
            insert(inner, variable, rest, value)
        }
    }
}
