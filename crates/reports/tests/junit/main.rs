//! JUnit XML: reports of frameworks, refusals, and properties of all reports.

mod frameworks;
mod properties;
mod reading;
mod refusals;
mod reruns;

use std::fmt::Write;
use std::io::Read;
use std::ops::ControlFlow;

use signalbox_reports::junit::{self, CaseRun, JunitError, Limits, Summary};

/// Runs as one line each: status, attempt, suites, class, name, then what else there is.
pub(crate) fn lines(input: impl Read) -> Result<Vec<String>, JunitError> {
    read(input, &Limits::default(), line).map(|(lines, _)| lines)
}

/// Something of every run.
pub(crate) fn read<T>(
    input: impl Read,
    limits: &Limits,
    mut each: impl FnMut(&CaseRun<'_>) -> T,
) -> Result<(Vec<T>, Summary), JunitError> {
    let mut found = Vec::new();
    let summary = junit::read(input, limits, |run| {
        found.push(each(run));
        ControlFlow::Continue(())
    })?;
    assert_eq!(summary.attempts, u64::try_from(found.len()).expect("it fits"));
    Ok((found, summary))
}

fn line(run: &CaseRun<'_>) -> String {
    let suites = run.suites.join(" / ");
    let class = run.classname.or(run.class).unwrap_or("-");
    let mut line = format!("{} #{} {suites} | {class} | {}", run.status, run.attempt, run.name);
    let mut add = |label: &str, value: Option<String>| {
        if let Some(value) = value {
            write!(line, " | {label}{value}").expect("a string");
        }
    };
    let place = run.line.map(|it| format!(":{it}")).unwrap_or_default();
    add("", run.file.map(|file| format!("{file}{place}")));
    add("", run.duration.map(|it| format!("{}s", it.as_secs_f64())));
    add("message ", run.detail.and_then(|it| it.message).map(str::to_owned));
    add("kind ", run.detail.and_then(|it| it.kind).map(str::to_owned));
    add(
        "text ",
        run.detail.and_then(|it| it.text).map(|it| it.lines().next().expect("a line").to_owned()),
    );
    line
}
