//! Public events as lines for people, and what they say about test runs.

use serde_json::Value;
use signalbox_domain::ids::OrgId;
use signalbox_domain::ports::PublicEvent;
use signalbox_domain::queue::Mode;
use signalbox_terminal::say;

use crate::chapter::Chapter;
use crate::story::Pr;
use crate::{DemoError, Running};

/// A test run that was started.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// The pull requests that are tested together.
    pub(crate) prs: Vec<u32>,
    /// Whether it looks for the culprit of a failed batch.
    pub(crate) bisection: bool,
}

/// What has been told of a chapter.
pub(crate) struct Narrator<'a> {
    chapter: &'a Chapter,
    after: i64,
    pub(crate) runs: Vec<Run>,
}

impl<'a> Narrator<'a> {
    pub(crate) const fn new(chapter: &'a Chapter) -> Self {
        Self { chapter, after: 0, runs: Vec::new() }
    }

    /// Tells what has happened since the last time.
    pub(crate) async fn go_on(
        &mut self,
        app: &dyn Running,
        org: OrgId,
        prs: &[Pr],
    ) -> Result<(), DemoError> {
        let logged =
            app.context().stores.webhook.event_log.after(org, self.after, None, 1_000).await;
        let logged = logged?;
        self.after = logged.last().map_or(self.after, |it| it.position);
        let news: Vec<News> = logged.iter().filter_map(News::of).collect();
        let of_queue: Vec<&News> =
            news.iter().filter(|it| it.branch == self.chapter.target).collect();
        for together in of_queue.chunk_by(|one, next| one.is_same(next)) {
            let Some(first) = together.first() else { continue };
            let numbers: Vec<u32> = together.iter().map(|it| it.pr).collect();
            if let Some(words) = first.words(self.chapter.mode) {
                let time = first.at.get(11..19).unwrap_or_default();
                say(&format!("  {time}  {:38} {words}", who(&numbers, prs)));
            }
            if first.kind == "testing" {
                self.runs.push(Run { prs: numbers, bisection: first.bisection });
            }
        }
        Ok(())
    }
}

/// What the payload of a pull request's event says.
struct News {
    kind: String,
    at: String,
    branch: String,
    pr: u32,
    reason: String,
    test_branch: String,
    batched: bool,
    bisection: bool,
}

impl News {
    /// Reads a payload. Events of batches and queues say nothing that is not said of their pull
    /// requests too.
    fn of(event: &PublicEvent) -> Option<Self> {
        let kind = event.kind.strip_prefix("pull_request.")?;
        let payload: Value = serde_json::from_str(&event.payload).ok()?;
        let text = |field: &str| payload[field].as_str().unwrap_or_default().to_owned();
        let reasons = ["queued_reason", "failure_reason", "cancellation_reason"];
        Some(Self {
            kind: kind.to_owned(),
            at: text("timestamp"),
            branch: text("target_branch"),
            pr: u32::try_from(payload["pr_number"].as_u64()?).ok()?,
            reason: reasons.iter().map(|field| text(field)).collect(),
            test_branch: text("test_branch"),
            batched: payload["batched"] == true,
            bisection: payload["is_bisection"] == true,
        })
    }

    /// Whether two are one piece of news about several pull requests.
    fn is_same(&self, next: &Self) -> bool {
        let parts =
            |it: &Self| (it.kind.clone(), it.at.clone(), it.test_branch.clone(), it.reason.clone());
        self.kind != "submitted"
            && self.reason != "MERGE_ITEM_NOW_READY"
            && parts(self) == parts(next)
    }

    fn words(&self, mode: Mode) -> Option<String> {
        let reason = &self.reason;
        Some(match self.kind.as_str() {
            "queued" if reason == "MERGE_ITEM_NOW_READY" => "in the line".to_owned(),
            "queued" => format!("back in the line: {reason}"),
            "testing" => match (self.bisection, self.batched) {
                (false, false) => match mode {
                    Mode::Single => "under test, on top of what is ahead".to_owned(),
                    Mode::Parallel => "under test, on top of what is ahead in its lane".to_owned(),
                },
                (false, true) => "under test together, as one batch".to_owned(),
                (true, true) => "under test as a half of the failed batch".to_owned(),
                (true, false) => "under test alone, as a part of the failed batch".to_owned(),
            },
            "pending_failure" => format!("failed, but the fault may lie elsewhere: {reason}"),
            "failed" => format!("FAILED: {reason}"),
            "canceled" => format!("CANCELLED: {reason}"),
            "merged" => "MERGED".to_owned(),
            _ => return None,
        })
    }
}

fn who(numbers: &[u32], prs: &[Pr]) -> String {
    if let [number] = numbers {
        let title = prs.iter().find(|pr| pr.number == *number).map_or("", |pr| pr.branch.title);
        return format!("#{number} {title}");
    }
    let named: Vec<String> = numbers.iter().map(|number| format!("#{number}")).collect();
    named.join(" ")
}
