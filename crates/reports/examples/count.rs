//! Compares how many cases and failed cases this crate finds in a folder of reports with a list.
//!
//! `count FOLDER LIST`: the list has lines of `file,tests,failed`, files being names in the folder,
//! tests `<testcase>` elements, and failed the different tests with an element for a failure.
//! Prints the differences, the reason for each report that is refused, and where cases were
//! repeated.

#![expect(clippy::print_stdout, reason = "prints its findings")]

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs::{self, File};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use signalbox_reports::junit::{self, Limits};

#[derive(Default)]
struct Counts {
    cases: u64,
    failed: u64,
    repeats: u64,
    flaky: u64,
    refusal: Option<String>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(folder), Some(list)) = (arguments.next(), arguments.next()) else {
        return Err("usage: count FOLDER LIST".into());
    };
    let list = fs::read_to_string(list)?;
    let (mut same, mut different) = (0, 0);
    for line in list.lines().skip(1) {
        let mut fields = line.rsplitn(3, ',');
        let (Some(failed), Some(cases), Some(name)) = (fields.next(), fields.next(), fields.next())
        else {
            return Err(format!("line {line:?} is not of the form file,tests,failed").into());
        };
        let expected: (u64, u64) = (cases.parse()?, failed.parse()?);
        let found = count(&folder.join(name))?;
        let is_same = (found.cases, found.failed) == expected;
        if is_same && found.refusal.is_none() && found.repeats == 0 {
            same += 1;
            continue;
        }
        different += u64::from(!is_same);
        println!(
            "{name}: expected {}/{}, found {}/{}, {} repeats, {} flaky{}",
            expected.0,
            expected.1,
            found.cases,
            found.failed,
            found.repeats,
            found.flaky,
            found.refusal.map(|it| format!("; refused: {it}")).unwrap_or_default()
        );
    }
    println!("{same} the same, {different} different");
    Ok(())
}

fn count(path: &Path) -> Result<Counts, Box<dyn Error>> {
    let mut counts = Counts::default();
    let mut last: BTreeMap<String, bool> = BTreeMap::new();
    let mut failed = BTreeSet::new();
    let read = junit::read(File::open(path)?, &Limits::default(), |run| {
        counts.cases += u64::from(run.concludes);
        counts.repeats += u64::from(run.attempt > 1);
        let key = format!(
            "{}#{:?}#{:?}#{}#{:?}",
            run.parent(),
            run.file,
            run.classname,
            run.name,
            run.id
        );
        let is_failure = run.status.is_failure();
        if run.concludes && is_failure {
            failed.insert(key.clone());
        }
        if last.insert(key, is_failure).is_some_and(|it| it != is_failure) {
            counts.flaky += 1;
        }
        ControlFlow::Continue(())
    });
    counts.failed = u64::try_from(failed.len())?;
    counts.refusal = read.err().map(|error| error.to_string());
    Ok(counts)
}
