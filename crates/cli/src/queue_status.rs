//! `signalbox queue status`: the line of a queue, and what failed lately.

use std::fmt::Write as _;

use signalbox_client::{
    Client, EntriesPage, EntriesQuery, Entry, Freeze, PartialFreeze, QueueList, QueueRef,
    QueueStatus, Reply, Repo,
};
use signalbox_domain::queue::{PrState, QueueStateName};
use signalbox_domain::time::{Span, Timestamp};
use signalbox_terminal::{Table, one_line, say_json};
use signalbox_wording::Named;

use crate::queue::QueueArgs;
use crate::{CliError, clock, say};

/// How far back failures are shown, in hours.
const HOURS: u32 = 24;
/// The most failures that are shown.
const MAX_FAILURES: usize = 5;
/// The most failures that are read.
const PAGE: u32 = 100;

/// A queue, and the pull requests that failed lately, the last one first.
pub(crate) struct Status {
    pub(crate) queue: Reply<QueueStatus>,
    failed: Vec<Reply<Entry>>,
    /// Whether more failed than were read.
    has_more: bool,
}

/// Prints the queue once.
pub(crate) async fn status(place: &QueueArgs) -> Result<(), CliError> {
    let status = read(&place.server.client()?, &place.queue()).await?;
    if place.format.is_json() {
        let mut json = status.queue.json;
        json["recentlyFailed"] = status.failed.into_iter().map(|entry| entry.json).collect();
        say_json(&json);
    } else {
        say(&described(&status, place, clock::now()));
    }
    Ok(())
}

/// Reads the queue and its failures.
pub(crate) async fn read(client: &Client, queue: &QueueRef) -> Result<Status, CliError> {
    let since = clock::now().minus(Span::hours(HOURS));
    let query = EntriesQuery {
        state: Some(PrState::Failed.as_str().to_owned()),
        since: Some(since.to_string()),
        take: Some(PAGE),
        cursor: None,
    };
    let status = client.queue(queue).await?;
    let EntriesPage { pull_requests: mut failed, next_cursor } =
        client.entries(queue, &query).await?.value;
    failed.sort_by(|a, b| b.value.state_changed_at.cmp(&a.value.state_changed_at));
    Ok(Status { queue: status, failed, has_more: next_cursor.is_some() })
}

/// The queues as a table.
pub(crate) fn listed(list: QueueList) -> Table {
    let headers = ["REPOSITORY", "BRANCH", "STATE…", "QUEUED", "TEST RUNS"];
    let mut table =
        Table::new("no queues found; create one with: signalbox queue create", &headers);
    for it in list.queues {
        let Repo { host, owner, name } = &it.repo;
        let reason = it.paused_reason.map_or(String::new(), |reason| format!(" ({reason})"));
        let freeze = it.freeze.as_ref().map_or_else(String::new, freeze);
        table.row([
            format!("{host}/{owner}/{name}").into(),
            it.target_branch.into(),
            format!("{}{reason}{freeze}", state_label(&it.state)).into(),
            it.enqueued_pull_requests_count.to_string().into(),
            it.test_runs_count.to_string().into(),
        ]);
    }
    table
}

fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn state_label(state: &str) -> String {
    let known = QueueStateName::parse(&state.to_uppercase());
    known.map_or_else(|| state.to_owned(), |it| label(&it))
}

/// The queue as text.
pub(crate) fn described(status: &Status, place: &QueueArgs, now: Timestamp) -> String {
    let queue = &status.queue.value;
    let state = state_label(&queue.state);
    let entries = &queue.enqueued_pull_requests;
    let count = counted(entries.len() as u64, "pull request");
    let freeze = queue.freeze.as_ref().map_or_else(String::new, freeze);
    let partial: String = queue.partial_freezes.iter().map(partial_freeze).collect();
    let head = format!("{}: {state}{freeze}, {count}{partial}", one_line(&queue.branch));
    let lines = entries.iter().map(|entry| format!("\n  {}", line(&entry.value)));
    head + &lines.collect::<String>() + &failures(status, place, now)
}

/// The freeze in force, such as `, frozen until 2027-01-04T08:00:00.000Z (holidays)`.
fn freeze(freeze: &Freeze) -> String {
    format!(", {}", frozen(freeze.until.as_deref(), freeze.reason.as_deref()))
}

/// A line for a freeze of some pull requests, such as `target:ios-*: frozen until …`.
fn partial_freeze(freeze: &PartialFreeze) -> String {
    let frozen = frozen(freeze.until.as_deref(), freeze.reason.as_deref());
    format!("\n  {}: {frozen}", one_line(&freeze.scope))
}

fn frozen(until: Option<&str>, reason: Option<&str>) -> String {
    let until = until.map_or_else(String::new, |until| format!(" until {until}"));
    let reason = reason.map_or_else(String::new, |it| format!(" ({it})"));
    format!("frozen{}", one_line(&format!("{until}{reason}")))
}

fn failures(status: &Status, place: &QueueArgs, now: Timestamp) -> String {
    let failed = &status.failed;
    let Some(first) = failed.first() else { return String::new() };
    // Writing to a string never fails.
    let least = if status.has_more { "at least " } else { "" };
    let mut text = format!("\nfailed in the last {HOURS} hours: {least}{}", failed.len());
    for entry in failed.iter().take(MAX_FAILURES).map(|entry| &entry.value) {
        let at = entry.state_changed_at.as_deref().and_then(Timestamp::parse);
        let ago = at.map_or(String::new(), |at| format!(", {} ago", duration(now.since(at))));
        let title = one_line(entry.pr_title.as_deref().unwrap_or_default());
        let reason = one_line(entry.reason.as_deref().unwrap_or_default());
        let reason = reason.strip_prefix("failed: ").unwrap_or(&reason);
        let _ = write!(text, "\n      #{} {title} ({reason}{ago})", entry.pr_number);
    }
    if failed.len() > MAX_FAILURES {
        let or_more = if status.has_more { " or more" } else { "" };
        let _ = write!(text, "\n      and {} more{or_more}", failed.len() - MAX_FAILURES);
    }
    let (number, place) = (first.value.pr_number, place.flags());
    let _ = write!(text, "\n  why: signalbox queue why {number} {place}");
    text
}

/// A span as people say it, such as `12 min`.
fn duration(span: Span) -> String {
    match span.millis() / 1_000 {
        seconds @ ..60 => format!("{} s", seconds.max(0)),
        seconds @ 60..3_600 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3_600),
    }
}

/// A pull request as a line.
pub(crate) fn line(entry: &Entry) -> String {
    let position = entry.position.map_or_else(|| "-".into(), |it| it.to_string());
    let text = |text: &Option<String>| one_line(text.as_deref().unwrap_or_default());
    let (number, title, reason) = (entry.pr_number, text(&entry.pr_title), text(&entry.reason));
    format!("{position:>3} #{number} {:28} {title} ({reason})", state(entry))
}

/// The label of the state of a pull request.
pub(crate) fn state(entry: &Entry) -> String {
    let state = PrState::parse(&entry.state.to_uppercase());
    state.map_or_else(|| entry.state.clone(), |it| label(&it))
}

fn label(state: &impl Named) -> String {
    state.named().label.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freeze_has_its_end_and_reason_if_they_are_known() {
        let shown = |until: Option<&str>, reason: Option<&str>| {
            let (until, reason) = (until.map(ToOwned::to_owned), reason.map(ToOwned::to_owned));
            freeze(&Freeze { until, reason })
        };
        assert_eq!(shown(None, None), ", frozen");
        let until = Some("2027-01-04T08:00:00.000Z");
        assert_eq!(
            shown(until, Some("the\nholidays")),
            ", frozen until 2027-01-04T08:00:00.000Z (the holidays)"
        );
    }

    #[test]
    fn a_freeze_of_some_pull_requests_has_its_scope() {
        let scope = "target:ios-*; !label:docs".to_owned();
        let of = PartialFreeze { scope, until: None, reason: Some("train".to_owned()) };
        assert_eq!(partial_freeze(&of), "\n  target:ios-*; !label:docs: frozen (train)");
    }

    #[test]
    fn spans_are_short() {
        for (seconds, text) in [(-5, "0 s"), (59, "59 s"), (60, "1 min"), (7_199, "1 h")] {
            let now = Timestamp::from_unix_seconds(10_000 + seconds);
            assert_eq!(duration(now.since(Timestamp::from_unix_seconds(10_000))), text);
        }
    }
}
