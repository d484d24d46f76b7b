//! Where the paths of files have the commit and the branch of their runs.

use std::collections::BTreeMap;

use crate::CliError;

/// What paths may have.
const NAMES: [&str; 7] = ["branch", "sha", "base", "job", "pr", "variant", ""];

/// A part of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// This text.
    Text(String),
    /// A value, at least one character; without a name, any text.
    Value(&'static str),
}

/// A pattern of paths, by segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pattern: String,
    segments: Vec<Vec<Part>>,
}

impl Layout {
    pub(super) fn parse(pattern: &str) -> Result<Self, CliError> {
        let wrong = |problem: String| CliError::Layout { pattern: pattern.to_owned(), problem };
        let segments = pattern.split('/').filter(|it| !it.is_empty()).map(|segment| {
            let mut parts = Vec::new();
            let mut rest = segment;
            while let Some((before, after)) = rest.split_once('{') {
                let (name, after) =
                    after.split_once('}').ok_or_else(|| wrong("missing }".into()))?;
                let known = NAMES.into_iter().find(|known| *known == name);
                let known = known.ok_or_else(|| {
                    let expected = "expected {branch}, {sha}, {base}, {job}, {pr}, {variant} or {}";
                    wrong(format!("unknown value {{{name}}}: {expected}"))
                })?;
                if !before.is_empty() {
                    parts.push(Part::Text(before.to_owned()));
                }
                if matches!(parts.last(), Some(Part::Value(_))) {
                    return Err(wrong("two values without a text between them".into()));
                }
                parts.push(Part::Value(known));
                rest = after;
            }
            if !rest.is_empty() {
                parts.push(Part::Text(rest.to_owned()));
            }
            Ok(parts)
        });
        let segments: Vec<Vec<Part>> = segments.collect::<Result<_, _>>()?;
        if segments.is_empty() {
            return Err(wrong("it is empty".into()));
        }
        Ok(Self { pattern: pattern.to_owned(), segments })
    }

    /// The pattern as it was given.
    pub(super) fn pattern(&self) -> &str {
        &self.pattern
    }

    /// The values that the end of a path has; `None` when it does not match.
    pub(super) fn values(&self, path: &str) -> Option<BTreeMap<&'static str, String>> {
        let path: Vec<&str> = path.split('/').filter(|it| !it.is_empty()).collect();
        let first = path.len().checked_sub(self.segments.len())?;
        let mut values = BTreeMap::new();
        for (parts, segment) in self.segments.iter().zip(path.get(first..)?) {
            matched(parts, segment, &mut values).then_some(())?;
        }
        values.remove("");
        Some(values)
    }
}

/// Whether a segment has these parts; notes their values.
fn matched(parts: &[Part], text: &str, values: &mut BTreeMap<&'static str, String>) -> bool {
    match parts {
        [] => text.is_empty(),
        [Part::Text(expected), rest @ ..] => {
            text.strip_prefix(expected.as_str()).is_some_and(|text| matched(rest, text, values))
        }
        [Part::Value(name), rest @ ..] => {
            let ends = text.char_indices().map(|(at, _)| at).skip(1).chain([text.len()]);
            let mut ends = ends.filter(|end| *end > 0);
            ends.any(|end| {
                let (value, after) = text.split_at(end);
                let is_matched = matched(rest, after, values);
                if is_matched {
                    values.insert(name, value.to_owned());
                }
                is_matched
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(pattern: &str, path: &str) -> Option<Vec<String>> {
        let values = Layout::parse(pattern).expect(pattern).values(path)?;
        Some(values.into_iter().map(|(name, value)| format!("{name}={value}")).collect())
    }

    #[test]
    fn the_end_of_a_path_has_the_values() {
        let found = values("{branch}/{sha}/junit-{job}.xml", "/home/ci/main/1f0c/junit-unit.xml");
        assert_eq!(found.expect("matched"), ["branch=main", "job=unit", "sha=1f0c"]);
        let found = values("{sha}-{}/{}.xml", "artifacts/1f0c-17-2/any.xml");
        assert_eq!(found.expect("matched"), ["sha=1f0c"]);
        assert_eq!(values("{sha}/a.xml", "1f0c/b.xml"), None);
        assert_eq!(values("{branch}/{sha}/a.xml", "1f0c/a.xml"), None);
    }

    #[test]
    fn a_malformed_layout_is_refused_with_the_rule() {
        for (pattern, problem) in [
            ("{commit}/{}.xml", "unknown value {commit}: expected {branch}"),
            ("{sha", "missing }"),
            ("{sha}{branch}", "two values without a text between them"),
            ("/", "it is empty"),
        ] {
            let error = Layout::parse(pattern).expect_err(pattern).to_string();
            assert!(
                error.starts_with(&format!("invalid layout {pattern:?}: {problem}")),
                "{error}"
            );
        }
    }
}
