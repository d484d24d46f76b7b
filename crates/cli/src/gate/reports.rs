//! Reads the JUnit reports of a command.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::BufReader;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use glob::MatchOptions;
use signalbox_reports::identity::TestKey;
use signalbox_reports::junit::{self, CaseRun, Limits};

use super::verdict::{FailedTest, Read};
use crate::CliError;

/// Files as they were before a command: their inodes, times and sizes.
pub(super) type Before = BTreeMap<PathBuf, (u64, i64, i64, u64)>;

/// What identifies the tests of an upload.
pub(super) struct Naming<'a> {
    pub(super) org: &'a str,
    pub(super) repo: &'a str,
    pub(super) variant: &'a str,
}

/// The files that match the patterns; none if there is none.
pub(crate) fn matching(patterns: &[String]) -> Result<Vec<PathBuf>, CliError> {
    let options = MatchOptions { require_literal_separator: true, ..MatchOptions::default() };
    let mut files = Vec::new();
    for pattern in patterns {
        let wrong = |problem: String| CliError::Pattern { pattern: pattern.clone(), problem };
        let found = glob::glob_with(pattern, options).map_err(|error| wrong(error.to_string()))?;
        for file in found {
            let file = file.map_err(|error| wrong(error.to_string()))?;
            if file.is_file() && !files.contains(&file) {
                files.push(file);
            }
        }
    }
    Ok(files)
}

/// The files that exist already: those of an earlier command must not explain the next one.
pub(super) fn before(patterns: &[String]) -> Result<Before, CliError> {
    let files = matching(patterns)?;
    Ok(files.into_iter().filter_map(|file| Some((file.clone(), seen(&file)?))).collect())
}

/// Whether a file is new, or another one than before.
pub(super) fn is_new(file: &Path, before: &Before) -> bool {
    before.get(file).is_none_or(|known| seen(file).as_ref() != Some(known))
}

fn seen(file: &Path) -> Option<(u64, i64, i64, u64)> {
    let found = std::fs::metadata(file).ok()?;
    Some((found.ino(), found.mtime(), found.mtime_nsec(), found.size()))
}

/// Reads them. A test that is reported several times in a file has failed if one of its elements
/// did, also one that is reported as skipped and failed. Failed tests that share an id cannot be
/// excused, because the answer of the server has ids.
pub(super) fn read(files: &[PathBuf], naming: &Naming<'_>) -> Read {
    let mut all = Read { files: files.len(), ..Read::default() };
    for path in files {
        let shown = path.display();
        let mut failed: BTreeSet<FailedTest> = BTreeSet::new();
        let opened = match File::open(path) {
            Ok(file) => file,
            Err(error) => {
                all.problems.push(format!("{shown}: {error}"));
                continue;
            }
        };
        let done = junit::read(BufReader::new(opened), &Limits::default(), |run| {
            if run.concludes && (run.status.is_failure() || run.contradicted) {
                failed.insert(test_of(run, naming));
            }
            ControlFlow::Continue(())
        });
        all.failed.extend(failed);
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
    let mut known: BTreeMap<&str, &FailedTest> = BTreeMap::new();
    let mut shared = None;
    for test in &all.failed {
        let first = known.entry(&test.id).or_insert(test);
        if !first.is_same(test) {
            shared =
                Some(format!("the failed tests {:?} and {:?} share an id", first.name, test.name));
        }
    }
    all.problems.extend(shared);
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
    fn tests_that_share_an_id_are_a_problem_and_a_skip_hides_no_error() {
        let shared = read_one(
            "<testsuite name='s'><testcase name='a' id='1' classname='A'><failure/></testcase>\
             <testcase name='b' id='1' classname='A'><failure/></testcase></testsuite>",
        );
        assert_eq!((shared.failed.len(), shared.problems.len()), (2, 1), "{shared:?}");
        let both = read_one(
            "<testsuite name='s'><testcase name='a'><skipped/><error message='x'/></testcase></testsuite>",
        );
        assert_eq!((both.failed.len(), both.problems.len()), (1, 0), "{both:?}");
    }

    #[test]
    fn files_of_an_earlier_command_are_not_read() {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("junit.xml");
        std::fs::write(&path, "one").expect("written");
        let patterns = [folder.path().join("*.xml").display().to_string()];
        let known = before(&patterns).expect("a pattern");
        assert_eq!((matching(&patterns).expect("one").len(), is_new(&path, &known)), (1, false));
        std::fs::write(&path, "another").expect("written");
        assert!(is_new(&path, &known));
        assert!(matching(&["a[".to_owned()]).is_err());
    }
}
