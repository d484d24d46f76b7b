//! `.trunk/trunk.yaml`: the list of required statuses of repositories that used another merge queue
//! before. Other parts of the file are ignored.

use serde::Deserialize;

/// The file's path in the repository.
pub const TRUNK_FILE: &str = ".trunk/trunk.yaml";

/// The most statuses of a list.
pub const MAX_STATUSES: usize = 100;
/// The most bytes of a status's name.
const MAX_NAME: usize = 255;

#[derive(Debug, Deserialize)]
struct File {
    merge: Option<Merge>,
}

#[derive(Debug, Deserialize)]
struct Merge {
    required_statuses: Option<Vec<String>>,
}

/// Reads `merge.required_statuses` out of the file's text. `None` when there is no such list. The
/// error names the file and the key.
///
/// Anchors and aliases are read, but their expansion is bounded: a file that is small and
/// would be huge is an error.
pub fn trunk_statuses(text: &str) -> Result<Option<Vec<String>>, String> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: 100_000,
            max_depth: 64,
            max_nodes: 50_000,
            max_anchors: 1_000,
            max_aliases: 1_000,
            max_recorded_anchor_events: 100_000,
            max_recorded_anchor_bytes: 1024 * 1024,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 10_000,
            max_replay_stack_depth: 16,
        },
        with_snippet: false,
    };
    let mut at = None;
    let read = serde_saphyr::with_deserializer_from_str_with_options(text, options, |yaml| {
        serde_path_to_error::deserialize(yaml).map_err(|error| {
            at = Some(error.path().to_string()).filter(|path| path != ".");
            error.into_inner()
        })
    });
    let file: Option<File> = read.map_err(|error| {
        let key = at.map(|at| format!("{at}: ")).unwrap_or_default();
        wrong(&format!("{key}{error}"))
    })?;
    let names = file.and_then(|file| file.merge).and_then(|merge| merge.required_statuses);
    names.as_deref().map_or(Ok(()), check_statuses).map_err(|words| wrong(&words))?;
    Ok(names)
}

/// Checks the list `merge.required_statuses` of a file. The error names the key.
pub fn check_statuses(names: &[String]) -> Result<(), String> {
    let key = "merge.required_statuses";
    if names.len() > MAX_STATUSES {
        return Err(format!("{key}: must have at most {MAX_STATUSES} items"));
    }
    match names.iter().position(|name| name.is_empty() || name.len() > MAX_NAME) {
        Some(at) => Err(format!("{key}[{at}]: must have 1 to {MAX_NAME} bytes")),
        None => Ok(()),
    }
}

fn wrong(words: &str) -> String {
    format!("{TRUNK_FILE}: {words}")
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use signalbox_testkit::fuzz::{committed, fuzz};

    use super::*;

    #[test]
    fn the_list_is_read_and_the_rest_is_ignored() {
        let text = "version: 0.1\ncli: {version: 1.22.2}\nlint:\n  enabled: [a@1, b@2]\n\
                    merge:\n  required_statuses:\n    - Unit Tests\n    - 'build: linux'\n  x: y\n";
        let names = trunk_statuses(text).expect("valid");
        assert_eq!(names, Some(vec!["Unit Tests".to_owned(), "build: linux".to_owned()]));
        let shared = "names: &names [a, b]\nmerge: {required_statuses: *names}\n";
        let names = trunk_statuses(shared).expect("valid");
        assert_eq!(names, Some(vec!["a".to_owned(), "b".to_owned()]));
        for text in
            ["", "# nothing\n", "version: 0.1\n", "merge:\n", "merge: {}\n", "merge: {x: 1}"]
        {
            assert_eq!(trunk_statuses(text), Ok(None), "{text:?}");
        }
    }

    #[test]
    fn errors_name_the_file_and_the_key() {
        for (text, words) in [
            ("merge: {required_statuses: test}", "merge.required_statuses"),
            ("merge:\n  required_statuses:\n    - {name: a}\n", "merge.required_statuses[0]"),
            ("merge: {required_statuses: ['']}", "merge.required_statuses[0]"),
            ("merge: [a]", "merge: "),
            ("- a\n- b\n", ""),
            ("merge: {required_statuses: [a", ""),
            ("merge: *unknown", ""),
        ] {
            let error = trunk_statuses(text).expect_err(text);
            assert!(error.starts_with(".trunk/trunk.yaml: "), "{error}");
            assert!(error.contains(words), "{text}: {error}");
            assert!(error.len() < 500 && !error.contains('\n'), "{error}");
        }
        let many = format!("merge: {{required_statuses: [{}]}}", "a,".repeat(101));
        let error = trunk_statuses(&many).expect_err("too many");
        assert!(error.contains("at most 100 items"), "{error}");
    }

    /// A list that is read is within the limits and read again from its own text; an error is short.
    #[test]
    fn fuzz_files() {
        let words = [
            "&a ",
            "*a",
            "<<: *a",
            "!!binary ",
            "- ",
            "? ",
            "|\n  ",
            "{",
            "[",
            "\t",
            "...\n",
            "---\n",
        ];
        fuzz("trunk-yaml", &committed("trunk-yaml"), &words, |input| {
            let Ok(text) = std::str::from_utf8(input) else { return };
            match trunk_statuses(text) {
                Ok(None) => {}
                Ok(Some(names)) => {
                    assert!(names.len() <= MAX_STATUSES, "{names:?}");
                    assert!(names.iter().all(|name| (1..=MAX_NAME).contains(&name.len())));
                    let again =
                        format!("{{\"merge\": {{\"required_statuses\": {}}}}}", json(&names));
                    assert_eq!(trunk_statuses(&again), Ok(Some(names)), "{again}");
                }
                Err(error) => {
                    assert!(error.starts_with(".trunk/trunk.yaml: "), "{error}");
                    assert!(error.len() < 2_000, "{}", error.len());
                }
            }
        });
    }

    /// A list as JSON, which is YAML.
    fn json(names: &[String]) -> String {
        let mut list = String::new();
        for name in names {
            list += "\"";
            for c in name.chars() {
                write!(list, "\\U{:08x}", u32::from(c)).expect("a string");
            }
            list += "\",";
        }
        format!("[{list}]")
    }

    #[test]
    fn a_file_that_would_grow_is_refused_and_one_that_is_deep_too() {
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
            writeln!(bomb, "a{level}: &a{level} [{aliases}]").expect("a string");
        }
        bomb += "merge: {required_statuses: *a11}\n";
        let error = trunk_statuses(&bomb).expect_err("refused");
        assert!(error.starts_with(".trunk/trunk.yaml: ") && error.len() < 500, "{error}");
        let deep = format!("merge: {}", "[".repeat(100_000));
        assert!(trunk_statuses(&deep).is_err());
        let deep = "- ".repeat(50_000);
        assert!(trunk_statuses(&deep).is_err());
    }
}
