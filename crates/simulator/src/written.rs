//! A study as text: a table with advice, or JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::study::PATIENCE;
use crate::{Finding, Interval, Study};

/// The columns of the table.
const HEADINGS: [&str; 8] = [
    "concurrency",
    "batch",
    "median min",
    "P95 min",
    "runs/PR",
    "cancelled",
    "false ejections",
    "",
];

/// A table of all combinations, the front, and advice.
pub(crate) fn table(study: &Study) -> String {
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    rows.extend(study.findings.iter().map(row));
    let widths: Vec<usize> = (0..HEADINGS.len())
        .map(|at| rows.iter().filter_map(|row| Some(row.get(at)?.len())).max().unwrap_or_default())
        .collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let _written = write!(line, "{cell:<width$}  ");
        }
        let _written = writeln!(text, "{}", line.trim_end());
    }
    let (seeds, pull_requests) = (study.seeds, study.workload.pull_requests);
    let _written = write!(
        text,
        "\nMeans over {seeds} seeds of {pull_requests} pull requests, with 95 % intervals. \
         * = no other combination is as fast with as few runs."
    );
    let behind = |finding: &Finding| finding.keeps_up == Some(false);
    if study.findings.iter().any(behind) {
        text.push_str(
            "\nThe minutes of a queue that falls behind grow with the number of pull requests.",
        );
    }
    if let (Some(advice), true) = (study.advice(), study.findings.len() > 1) {
        let words = words(advice);
        let _written = if behind(advice) {
            write!(text, "\nNo combination keeps up. The fastest: {words}.")
        } else {
            write!(text, "\nAdvice: {words}, the fewest within {PATIENCE} times the lowest median.")
        };
    }
    text
}

fn row(finding: &Finding) -> [String; HEADINGS.len()] {
    let behind = if finding.keeps_up == Some(false) { "falls behind" } else { "" };
    let front = if finding.on_front { "*" } else { "" };
    [
        finding.choice.concurrency.to_string(),
        finding.choice.batch_size.to_string(),
        interval(finding.median, 0, 1.0, ""),
        interval(finding.p95, 0, 1.0, ""),
        interval(finding.runs, 2, 1.0, ""),
        interval(finding.cancelled, 1, 100.0, " %"),
        interval(finding.false_ejections, 2, 100.0, " %"),
        format!("{front} {behind}").trim().to_owned(),
    ]
}

fn interval(interval: Interval, digits: usize, times: f64, unit: &str) -> String {
    let Interval { mean, low, high } = interval;
    let [mean, low, high] = [mean, low, high].map(|it| it * times);
    format!("{mean:.digits$} [{low:.digits$}, {high:.digits$}]{unit}")
}

fn words(advice: &Finding) -> String {
    let (concurrency, size) = (advice.choice.concurrency, advice.choice.batch_size);
    let batches =
        if size > 1 { format!("with batches of {size}") } else { "without batches".into() };
    let (median, runs) = (advice.median.mean, advice.runs.mean);
    format!("concurrency {concurrency} {batches}: median {median:.0} minutes, {runs:.2} runs/PR")
}

/// The study as JSON.
pub(crate) fn document(study: &Study) -> String {
    let advice = study.advice().map(|advice| {
        json!({ "concurrency": advice.choice.concurrency, "batchSize": advice.choice.batch_size })
    });
    let document = json!({
        "pullRequests": study.workload.pull_requests,
        "seeds": study.seeds,
        "steps": study.steps,
        "combinations": study.findings.iter().map(combination).collect::<Vec<Value>>(),
        "advice": advice,
    });
    document.to_string()
}

fn combination(finding: &Finding) -> Value {
    json!({
        "concurrency": finding.choice.concurrency,
        "batchSize": finding.choice.batch_size,
        "medianMinutes": finding.median,
        "p95Minutes": finding.p95,
        "runsPerPullRequest": finding.runs,
        "runMinutesPerMerge": finding.run_minutes,
        "cancelledRuns": finding.cancelled,
        "falseEjections": finding.false_ejections,
        "mergedPerHour": finding.merged_per_hour,
        "keepsUp": finding.keeps_up,
        "onFront": finding.on_front,
    })
}
