//! Events of pull requests, batches and queues.

use serde_json::{Map, Value, json};
use signalbox_domain::ids::PrNumber;
use signalbox_domain::ports::QueuePlace;
use signalbox_domain::queue::{Event, EventKind, EventRun, Subject};

/// Which fields an event has beside those of its subject.
struct Extras {
    /// The field of the reason.
    reason: Option<&'static str>,
    /// Whether the run is told of.
    run: bool,
    /// Whether it says if the run belongs to a bisection.
    bisection: bool,
}

/// What a kind of event has.
const fn extras(kind: EventKind) -> Extras {
    let (reason, run, bisection) = match kind {
        EventKind::Submitted => (Some("submitted_reason"), false, false),
        EventKind::Queued => (Some("queued_reason"), false, false),
        EventKind::BatchSubmitted => (Some("submitted_reason"), true, false),
        EventKind::BatchQueued => (Some("queued_reason"), true, false),
        EventKind::Testing | EventKind::BatchTesting => (None, true, true),
        EventKind::PendingFailure | EventKind::BatchPendingFailure => {
            (Some("failure_reason"), true, false)
        }
        EventKind::Failed | EventKind::BatchFailed => (Some("failure_reason"), true, true),
        EventKind::Canceled | EventKind::BatchCanceled => (Some("cancellation_reason"), true, true),
        EventKind::Merged | EventKind::BatchMerged => (Some("merged_reason"), true, false),
        EventKind::QueueStateChanged | EventKind::RemovedFromTarget => {
            (Some("reason"), false, false)
        }
        EventKind::QueueConfigChanged => (None, false, false),
    };
    Extras { reason, run, bisection }
}

/// What leaves the house for an event.
pub(super) fn payload(place: &QueuePlace, event: &Event) -> Value {
    let (name, repo) = (event.kind.word(), &place.repo);
    let mut fields = Map::new();
    let mut put = |key: &str, value: Value| {
        fields.insert(key.to_owned(), value);
    };
    put("type", json!(name));
    put("timestamp", json!(event.at.to_string()));
    put(
        "repository",
        json!({"host": repo.host.to_string(), "owner": repo.owner, "name": repo.name}),
    );
    put("target_branch", json!(place.branch.to_string()));
    let status = name.rsplit_once('.').map_or(name, |(_, status)| status);
    match &event.subject {
        Subject::PullRequest { pr, author, url } => {
            put("action", json!(status));
            put("status", json!(status));
            put("author", json!(author));
            put("http_details_url", json!(url));
            put("pr_number", json!(pr.0));
        }
        Subject::Batch { prs, together } => {
            put("action", json!(status));
            put("status", json!(status));
            put("pr_numbers", numbers(prs));
            put("pr_numbers_in_batch", numbers(together));
        }
        Subject::Queue { by, from, to } => {
            put("actor", json!(by));
            put("state", json!(to.word()));
            if event.kind == EventKind::QueueStateChanged {
                put("previous_state", json!(from.word()));
            }
        }
    }
    let extras = extras(event.kind);
    if let Some((field, reason)) = extras.reason.zip(event.reason.as_deref()) {
        put(field, json!(reason));
    }
    if let Some(run) = event.run.as_ref().filter(|_| extras.run) {
        put_run(&mut put, run, &event.subject);
    }
    if extras.bisection {
        put("is_bisection", json!(event.run.as_ref().is_some_and(|run| run.bisection)));
    }
    Value::Object(fields)
}

fn put_run(put: &mut impl FnMut(&str, Value), run: &EventRun, subject: &Subject) {
    put("test_branch", json!(run.branch.to_string()));
    if let Some(sha) = &run.sha {
        put("test_branch_sha", json!(sha.to_string()));
    }
    if let Subject::PullRequest { .. } = subject {
        put("batched", json!(run.batched));
    }
}

fn numbers(prs: &[PrNumber]) -> Value {
    prs.iter().map(|pr| json!(pr.0)).collect()
}
