//! Public events as lines for people, and what they say about test runs.

use signalbox_domain::ids::OrgId;
use signalbox_domain::queue::{Event, EventKind, Mode};

use super::chapter::Chapter;
use super::story::Pr;
use crate::terminal::say;
use crate::wiring::App;

/// A test run that was started.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// The pull requests that are tested together.
    pub(super) prs: Vec<u32>,
    /// Whether it looks for the culprit of a failed batch.
    pub(super) bisection: bool,
}

/// What has been told of a chapter.
pub(super) struct Telling<'a> {
    chapter: &'a Chapter,
    after: i64,
    pub(super) runs: Vec<Run>,
}

impl<'a> Telling<'a> {
    pub(super) const fn new(chapter: &'a Chapter) -> Self {
        Self { chapter, after: 0, runs: Vec::new() }
    }

    /// Tells what has happened since the last time.
    pub(super) async fn go_on(&mut self, app: &App, org: OrgId, prs: &[Pr]) -> Result<(), String> {
        let logged = app.context.stores.reads.events(org, self.after, 1_000).await;
        let logged = logged.map_err(|it| it.to_string())?;
        self.after = logged.last().map_or(self.after, |it| it.position);
        let of_queue = logged.iter().filter(|it| it.branch.as_str() == self.chapter.target);
        let events: Vec<&Event> = of_queue.map(|it| &it.event).collect();
        for together in events.chunk_by(|one, next| is_same(one, next)) {
            let Some(first) = together.first() else { continue };
            let numbers: Vec<u32> = together.iter().filter_map(|it| it.pr).map(|pr| pr.0).collect();
            if let Some(words) = words(first, self.chapter.mode) {
                let time = first.at.to_string();
                let time = time.get(11..19).unwrap_or_default();
                say(&format!("  {time}  {:38} {words}", who(&numbers, prs)));
            }
            if first.kind == EventKind::Testing {
                self.runs.push(Run { prs: numbers, bisection: first.is_bisection });
            }
        }
        Ok(())
    }
}

/// Whether two events are one piece of news about several pull requests.
fn is_same(one: &Event, next: &Event) -> bool {
    one.kind != EventKind::Submitted
        && one.reason.as_deref() != Some("MERGE_ITEM_NOW_READY")
        && (one.kind, one.at, one.run, &one.reason) == (next.kind, next.at, next.run, &next.reason)
}

fn who(numbers: &[u32], prs: &[Pr]) -> String {
    if let [number] = numbers {
        let title = prs.iter().find(|pr| pr.number == *number).map_or("", |pr| pr.branch.title);
        return format!("#{number} {title}");
    }
    let named: Vec<String> = numbers.iter().map(|number| format!("#{number}")).collect();
    named.join(" ")
}

fn words(event: &Event, mode: Mode) -> Option<String> {
    let reason = event.reason.as_deref().unwrap_or_default();
    Some(match event.kind {
        EventKind::Queued if reason == "MERGE_ITEM_NOW_READY" => "in the line".to_owned(),
        EventKind::Queued => format!("back in the line: {reason}"),
        EventKind::Testing => match (event.is_bisection, event.batched) {
            (false, false) => match mode {
                Mode::Single => "under test, on top of what is ahead".to_owned(),
                Mode::Parallel => "under test, on top of what is ahead in its lane".to_owned(),
            },
            (false, true) => "under test together, as one batch".to_owned(),
            (true, true) => "under test as a half of the failed batch".to_owned(),
            (true, false) => "under test alone, as a part of the failed batch".to_owned(),
        },
        EventKind::PendingFailure => format!("failed, but the fault may lie elsewhere: {reason}"),
        EventKind::Failed => format!("FAILED: {reason}"),
        EventKind::Canceled => format!("CANCELLED: {reason}"),
        EventKind::Merged => "MERGED".to_owned(),
        EventKind::Submitted | EventKind::QueueStateChanged | EventKind::QueueConfigChanged => {
            return None;
        }
    })
}
