//! Reads the JUnit reports of a command.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use glob::MatchOptions;
use signalbox_reports::identity::TestKey;
use signalbox_reports::junit::{self, CaseRun, Limits};

use super::verdict::{FailedTest, Read};
use crate::CliError;

/// By how much the time of a file may lie before that of its writing.
const COARSE: Duration = Duration::from_secs(1);

/// What identifies the tests of an upload.
pub(super) struct Naming<'a> {
    pub(super) org: &'a str,
    pub(super) repo: &'a str,
    pub(super) variant: &'a str,
}

/// The files that match the patterns and were written since then. Files of an earlier command must
/// not explain this one.
pub(super) fn matching(
    patterns: &[String],
    since: Option<SystemTime>,
) -> Result<Vec<PathBuf>, CliError> {
    let options = MatchOptions { require_literal_separator: true, ..MatchOptions::default() };
    let is_new = |file: &Path| {
        let written = std::fs::metadata(file).and_then(|it| it.modified());
        since.is_none_or(|since| written.is_ok_and(|written| written + COARSE >= since))
    };
    let mut files = Vec::new();
    for pattern in patterns {
        let wrong = |problem: String| CliError::Pattern { pattern: pattern.clone(), problem };
        let found = glob::glob_with(pattern, options).map_err(|error| wrong(error.to_string()))?;
        for file in found {
            let file = file.map_err(|error| wrong(error.to_string()))?;
            if file.is_file() && is_new(&file) && !files.contains(&file) {
                files.push(file);
            }
        }
    }
    Ok(files)
}

/// Reads them. A test that is reported several times in a file has failed if one of its elements
/// did.
pub(super) fn read(files: &[PathBuf], naming: &Naming<'_>) -> Read {
    let mut all = Read { files: files.len(), ..Read::default() };
    for path in files {
        let shown = path.display();
        let mut failed: BTreeMap<(String, String), FailedTest> = BTreeMap::new();
        let opened = match File::open(path) {
            Ok(file) => file,
            Err(error) => {
                all.problems.push(format!("{shown}: {error}"));
                continue;
            }
        };
        let done = junit::read(BufReader::new(opened), &Limits::default(), |run| {
            if run.concludes && run.status.is_failure() {
                let test = test_of(run, naming);
                failed.insert((test.id.clone(), test.name.clone()), test);
            }
            ControlFlow::Continue(())
        });
        all.failed.extend(failed.into_values());
        match done {
            Ok(summary) => {
                all.tests += summary.cases;
                if summary.declared > summary.cases {
                    all.problems.push(format!(
                        "{shown}: the report has {} of its {} tests",
                        summary.cases, summary.declared
                    ));
                }
            }
            Err(error) => all.problems.push(format!("{shown}: {error}")),
        }
    }
    all
}

fn test_of(run: &CaseRun<'_>, naming: &Naming<'_>) -> FailedTest {
    let text = |it: Option<&str>| it.unwrap_or_default().to_owned();
    let key = TestKey {
        org: naming.org,
        repo: naming.repo,
        file: run.file.unwrap_or_default(),
        classname: run.classname.unwrap_or_default(),
        parent: run.parent(),
        name: run.name,
        info: run.id.unwrap_or_default(),
        variant: naming.variant,
    };
    let detail = run.detail.and_then(|detail| detail.message.or(detail.text).or(detail.kind));
    FailedTest {
        id: key.asked_id(),
        suite: run.parent().to_owned(),
        class: text(run.classname),
        file: text(run.file),
        line: run.line,
        name: run.name.to_owned(),
        message: detail.unwrap_or_default().lines().next().unwrap_or_default().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    const NAMING: Naming<'static> =
        Naming { org: "acme", repo: "git.local/acme/calc", variant: "" };

    fn read_one(xml: &str) -> Read {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("junit.xml");
        std::fs::write(&path, xml).expect("written");
        read(&[path], &NAMING)
    }

    #[test]
    fn failures_are_those_of_last_attempts() {
        let read = read_one(
            "<testsuite name='s' tests='3'><testcase name='a'/>\
             <testcase name='b' classname='C' file='f.rs' line='7'>\
             <failure message='left&#10;right'/></testcase>\
             <testcase name='c'><flakyFailure message='once'/></testcase></testsuite>",
        );
        assert_eq!((read.files, read.tests, read.problems.len()), (1, 3, 0));
        let [test] = read.failed.as_slice() else { panic!("{:?}", read.failed) };
        assert_eq!((test.name.as_str(), test.class.as_str(), test.line), ("b", "C", Some(7)));
        assert_eq!((test.message.as_str(), test.suite.as_str()), ("left", "s"));
        let key = TestKey {
            org: "acme",
            repo: "git.local/acme/calc",
            file: "f.rs",
            classname: "C",
            parent: "s",
            name: "b",
            ..TestKey::default()
        };
        assert_eq!(test.id, key.id());
    }

    #[test]
    fn cut_off_and_incomplete_reports_are_problems() {
        for xml in [
            "<testsuite name='s' tests='2'><testcase name='a'><failure/></testcase></testsuite>",
            "<testsuite name='s'><testcase name='a'><failure/></testcase>",
            "not a report",
            "",
        ] {
            let read = read_one(xml);
            assert_eq!(read.problems.len(), 1, "{xml}: {:?}", read.problems);
        }
    }

    #[test]
    fn files_of_an_earlier_command_are_not_read() {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("junit.xml");
        std::fs::write(&path, "").expect("written");
        let patterns = [folder.path().join("*.xml").display().to_string()];
        let written = std::fs::metadata(&path).and_then(|it| it.modified()).expect("a time");
        let count = |since| matching(&patterns, since).expect("a pattern").len();
        assert_eq!((count(None), count(Some(written))), (1, 1));
        assert_eq!(count(Some(written + COARSE * 2)), 0);
        assert!(matching(&["a[".to_owned()], None).is_err());
    }
}
