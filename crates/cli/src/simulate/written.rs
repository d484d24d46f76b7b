//! A study as text: a table with advice, or JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};
use signalbox_domain::queue::PolicyId;
use signalbox_simulator::{Choice, Example, Finding, Interval, PATIENCE, Replay, Study};
use signalbox_wording::model;

/// The columns of the table.
const HEADINGS: [&str; 9] = [
    "concurrency",
    "batch",
    "median min",
    "P95 min",
    "vs oracle",
    "runs/PR",
    "cancelled",
    "false ejections",
    "",
];

/// What was recorded, whether the model fits, the table, and examples.
pub(crate) fn replayed(replay: &Replay) -> String {
    let count = |count: usize| {
        if count == 1 { "1 pull request".to_owned() } else { format!("{count} pull requests") }
    };
    let (from, until) = replay.period;
    let mut text = format!("{} from {from} to {until}", count(replay.study.pull_requests));
    if replay.cancelled > 0 {
        let _written = write!(text, "; not simulated: {} cancelled", replay.cancelled);
    }
    let (median, p95) = (interval(replay.median, 0, 1.0, ""), replay.p95);
    let _written = write!(text, ".\nRecorded: median {median} minutes, P95 {p95:.0}.");
    if let Some((median, p95)) = replay.simulated {
        let _written = write!(
            text,
            "\nSimulated with the recorded settings: median {median:.0} minutes, P95 {p95:.0}. {}",
            model(replay.fits() == Some(true))
        );
    } else {
        text.push_str("\nThe history has no settings, so it does not show whether the model fits.");
    }
    text.push_str("\n\n");
    text.push_str(&table(&replay.study));
    let advised = replay.study.advice().map(|advice| &advice.choice);
    if let Some(Choice { concurrency, batch_size, .. }) =
        replay.changed.as_ref().filter(|changed| Some(*changed) != advised)
        && !replay.examples.is_empty()
    {
        let batches = batches(*batch_size);
        let _written = write!(text, "\nWith concurrency {concurrency} {batches}:");
    }
    for Example { number, before, after } in &replay.examples {
        let _written = write!(text, "\n#{number}: {after:.0} minutes instead of {before:.0}.");
    }
    text
}

/// A table of all combinations, the front, and advice.
pub(crate) fn table(study: &Study) -> String {
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    rows.extend(study.findings.iter().map(|finding| row(finding, study.is_recorded(finding))));
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
    let (seeds, pull_requests) = (study.seeds, study.pull_requests);
    let _written = write!(
        text,
        "\nMeans over {seeds} seeds of {pull_requests} pull requests, with 95 % intervals. \
         * = no other combination is as fast with as few runs."
    );
    let own = study.findings.first().map(|finding| finding.choice.policy.id());
    if let Some(policy) = own.filter(|policy| *policy != PolicyId::default()) {
        let _written = write!(text, "\nPolicy: {policy}.");
    }
    let behind = |finding: &Finding| finding.keeps_up == Some(false);
    if study.findings.iter().any(behind) {
        text.push_str(
            "\nThe minutes of a queue that falls behind grow with the number of pull requests.",
        );
    }
    if let (Some(advice), true) = (study.advice(), study.findings.len() > 1) {
        let words = words(advice, study.is_recorded(advice));
        let _written = if behind(advice) {
            write!(text, "\nNo combination keeps up. The fastest: {words}.")
        } else {
            write!(text, "\nAdvice: {words}, the fewest within {PATIENCE} times the lowest median.")
        };
    }
    text
}

fn row(finding: &Finding, is_recorded: bool) -> [String; HEADINGS.len()] {
    let front = if finding.on_front { "* " } else { "" };
    let notes = [(finding.keeps_up == Some(false), "falls behind"), (is_recorded, "recorded")];
    let notes = notes.into_iter().filter(|(holds, _)| *holds).map(|(_, note)| note);
    let notes = notes.collect::<Vec<_>>().join(", ");
    [
        finding.choice.concurrency.to_string(),
        finding.choice.batch_size.to_string(),
        interval(finding.median, 0, 1.0, ""),
        interval(finding.p95, 0, 1.0, ""),
        format!("{:.2}, {:.2}", finding.median_by_oracle.mean, finding.p95_by_oracle.mean),
        interval(finding.runs, 2, 1.0, ""),
        interval(finding.cancelled, 1, 100.0, " %"),
        interval(finding.false_ejections, 2, 100.0, " %"),
        format!("{front}{notes}"),
    ]
}

fn interval(interval: Interval, digits: usize, times: f64, unit: &str) -> String {
    let Interval { mean, low, high } = interval;
    format!("{}{unit}", signalbox_wording::interval([mean, low, high].map(|it| it * times), digits))
}

fn batches(size: u32) -> String {
    if size > 1 { format!("with batches of {size}") } else { "without batches".to_owned() }
}

fn words(advice: &Finding, is_recorded: bool) -> String {
    let (concurrency, batches) = (advice.choice.concurrency, batches(advice.choice.batch_size));
    let (median, p95, runs) = (advice.median.mean, advice.p95.mean, advice.runs.mean);
    let recorded = if is_recorded { " as recorded" } else { "" };
    format!(
        "concurrency {concurrency} {batches}{recorded}: median {median:.0} minutes, P95 {p95:.0}, \
         {runs:.2} runs/PR"
    )
}

/// The study as JSON.
pub(crate) fn document(study: &Study) -> String {
    value(study).to_string()
}

/// The replay as JSON: a study with the figures of the history.
pub(crate) fn replay_document(replay: &Replay) -> String {
    let mut document = value(&replay.study);
    let example = |Example { number, before, after }: &Example| json!({ "number": number, "minutesBefore": before, "minutes": after });
    if let Some(fields) = document.as_object_mut() {
        let history = json!({
            "from": replay.period.0.to_string(),
            "until": replay.period.1.to_string(),
            "cancelled": replay.cancelled,
            "medianMinutes": replay.median,
            "p95Minutes": replay.p95,
            "simulatedMedianMinutes": replay.simulated.map(|(median, _)| median),
            "simulatedP95Minutes": replay.simulated.map(|(_, p95)| p95),
            "otherOutcomes": replay.other_outcomes,
            "modelFits": replay.fits(),
        });
        fields.insert("history".to_owned(), history);
        fields.insert("examples".to_owned(), replay.examples.iter().map(example).collect());
    }
    document.to_string()
}

fn value(study: &Study) -> Value {
    let advice = study.advice().map(|advice| {
        json!({
            "concurrency": advice.choice.concurrency,
            "batchSize": advice.choice.batch_size,
            "recorded": study.is_recorded(advice),
        })
    });
    let combinations = study.findings.iter().map(|it| combination(it, study.is_recorded(it)));
    json!({
        "pullRequests": study.pull_requests,
        "seeds": study.seeds,
        "steps": study.steps,
        "combinations": combinations.collect::<Vec<Value>>(),
        "advice": advice,
    })
}

fn combination(finding: &Finding, is_recorded: bool) -> Value {
    json!({
        "concurrency": finding.choice.concurrency,
        "batchSize": finding.choice.batch_size,
        "medianMinutes": finding.median,
        "p95Minutes": finding.p95,
        "medianByOracle": finding.median_by_oracle,
        "p95ByOracle": finding.p95_by_oracle,
        "runsPerPullRequest": finding.runs,
        "runMinutesPerMerge": finding.run_minutes,
        "cancelledRuns": finding.cancelled,
        "falseEjections": finding.false_ejections,
        "mergedPerHour": finding.merged_per_hour,
        "keepsUp": finding.keeps_up,
        "onFront": finding.on_front,
        "recorded": is_recorded,
    })
}
