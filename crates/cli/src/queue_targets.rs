//! `signalbox queue targets`: the impacted targets that rules compute for changed paths.

use std::path::Path;

use serde_json::json;
use signalbox_domain::queue::{
    ChangedPaths, ComputedTargets, MAX_CHANGED_PATHS, TargetRules, Targets,
};
use signalbox_terminal::{Format, one_line, read};

use crate::CliError;

pub(crate) fn targets(rules: &Path, format: Format) -> Result<(), CliError> {
    let file = |file: &Path, error| CliError::File { file: file.to_owned(), error };
    let text = read(rules).map_err(|error| file(rules, error))?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let rules = TargetRules::new(&lines.map(ToOwned::to_owned).collect::<Vec<_>>())
        .map_err(|invalid| CliError::TargetRule { file: rules.to_owned(), invalid })?;
    let paths = read(Path::new("-")).map_err(|error| file(Path::new("standard input"), error))?;
    let separator = if paths.contains('\0') { '\0' } else { '\n' };
    let paths = paths.split(separator).filter(|path| !path.is_empty());
    let paths: Vec<String> = paths.map(ToOwned::to_owned).collect();
    let matched = paths.iter().take(MAX_CHANGED_PATHS);
    let matched: Vec<(&str, Vec<&str>)> =
        matched.map(|path| (path.as_str(), rules.matching(path).collect())).collect();
    let computed = rules.computed(&ChangedPaths::Complete(paths.clone()));
    format.say(&in_json(&computed, &matched), || in_words(&computed, &matched));
    Ok(())
}

fn in_json(computed: &ComputedTargets, matched: &[(&str, Vec<&str>)]) -> serde_json::Value {
    let path = |(path, rules): &(&str, Vec<&str>)| json!({ "path": path, "rules": rules });
    json!({
        "impactedTargets": match &computed.targets {
            Targets::All => json!("ALL"),
            Targets::Only(names) => json!(sorted(names.iter())),
        },
        "whyAll": computed.why_all.as_ref().map(ToString::to_string),
        "paths": matched.iter().map(path).collect::<Vec<_>>(),
    })
}

fn in_words(computed: &ComputedTargets, matched: &[(&str, Vec<&str>)]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for (path, rules) in matched {
        let rules = if rules.is_empty() { "no rule".to_owned() } else { rules.join("; ") };
        lines.push(format!("{}: {rules}", one_line(path)));
    }
    lines.push(match (&computed.targets, &computed.why_all) {
        (Targets::All, Some(why)) => format!("All targets: {}", one_line(&why.to_string())),
        (Targets::All, None) => "All targets".to_owned(),
        (Targets::Only(names), _) if names.is_empty() => "No targets".to_owned(),
        (Targets::Only(names), _) => format!("Targets: {}", sorted(names.iter()).join(" ")),
    });
    lines.join("\n")
}

fn sorted<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names
}
