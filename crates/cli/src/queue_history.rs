//! `signalbox queue history`: what a queue did, for a simulation.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use signalbox_client::{EntriesQuery, Passage, TryStreamExt as _};
use signalbox_domain::queue::{
    FailReason, MergeReason, PassReason, PrState, SETTINGS, TestFailure,
};
use signalbox_domain::time::Timestamp;
use signalbox_simulator::{Ending, MAX_TEST_MINUTES, PastPullRequest, PastSettings};
use signalbox_terminal::say_json;

use crate::queue::QueueArgs;
use crate::{CliError, clock};

/// The maximum number of pull requests on a page.
const PAGE: u32 = 100;
/// The maximum number of pull requests in a request for passages.
const AT_A_TIME: usize = 50;

/// Prints the settings, and each pull request that has left the queue since a time.
pub(crate) async fn history(place: &QueueArgs, since: &str) -> Result<(), CliError> {
    let since = clock::since(since, clock::now())?;
    let (client, queue) = (place.server.client()?, place.queue());
    let settings = settings(&client.queue(&queue).await?.json);
    let query = EntriesQuery {
        since: Some(since.to_string()),
        take: Some(PAGE),
        ..EntriesQuery::default()
    };
    let all: Vec<_> = client.all_entries(&queue, query.clone()).try_collect().await?;
    let mut numbers: BTreeSet<u64> = all.iter().map(|entry| entry.value.pr_number).collect();
    // What was submitted again meanwhile has moved to the first page.
    loop {
        let first = client.entries(&queue, &query).await?.value.pull_requests;
        let before = numbers.len();
        numbers.extend(first.iter().map(|entry| entry.value.pr_number));
        if numbers.len() == before {
            break;
        }
    }
    let numbers: Vec<u64> = numbers.into_iter().collect();
    let mut past = Vec::new();
    for numbers in numbers.chunks(AT_A_TIME) {
        for passage in client.passages(&queue, numbers).await? {
            past.extend(stays(&passage, since));
        }
    }
    past.sort_by_key(|(queued_at, _)| *queued_at);
    say_json(&json!(PastSettings { settings }));
    for (_, pull_request) in past {
        say_json(&json!(pull_request));
    }
    Ok(())
}

/// The settings in a description of a queue.
fn settings(queue: &Value) -> Map<String, Value> {
    let value = |name: &str| queue.get(name).filter(|value| !value.is_null()).cloned();
    let named = SETTINGS.iter().filter_map(|spec| Some((spec.name.to_owned(), value(spec.name)?)));
    named.collect()
}

/// The stays of a pull request in a queue that ended at a time or later, each with the time at which it
/// last entered the line.
fn stays(passage: &Passage, since: Timestamp) -> Vec<(Timestamp, PastPullRequest)> {
    let mut found = Vec::new();
    // The first known step may be within a stay.
    let (mut may_enter, mut queued_at) = (false, None);
    let (mut testing, mut test_minutes) = (None, None);
    for step in passage.timeline.iter().rev() {
        let state = PrState::parse(&step.state.to_uppercase());
        let (Some(at), Some(state)) = (Timestamp::parse(&step.timestamp), state) else { continue };
        if let Some(began) = testing.take().filter(|_| is_tested(state, step.reason())) {
            test_minutes = Some(at.since(began).to_std().as_secs_f64() / 60.0);
        }
        let outcome = match state {
            PrState::NotReady => {
                (may_enter, queued_at) = (true, None);
                continue;
            }
            PrState::Pending => {
                if std::mem::take(&mut may_enter) {
                    queued_at = Some(at);
                }
                continue;
            }
            PrState::Testing => {
                testing = Some(at);
                continue;
            }
            PrState::TestsPassed | PrState::PendingFailure => continue,
            PrState::Merged | PrState::Failed | PrState::Cancelled => ending(state, step.reason()),
        };
        let is_long_enough = |minutes: &f64| *minutes > 0.0 && *minutes <= MAX_TEST_MINUTES;
        let test_minutes = test_minutes.take().filter(is_long_enough);
        if let (Some(queued_at), true) = (queued_at.take(), at >= since) {
            let past = PastPullRequest {
                number: passage.pr_number,
                queued_at: queued_at.to_string(),
                ended_at: at.to_string(),
                outcome,
                test_minutes,
                priority: Some(passage.priority_value),
                targets: None,
            };
            found.push((queued_at, past));
        }
    }
    found
}

/// Whether its own test run led to this step, and no conflict, earlier result or later run.
fn is_tested(state: PrState, reason: Option<&str>) -> bool {
    let reason = reason.map(str::to_uppercase).unwrap_or_default();
    match state {
        PrState::TestsPassed => PassReason::parse(&reason) == Some(PassReason::OwnRun),
        PrState::PendingFailure => {
            let failure = TestFailure::parse(&reason);
            matches!(failure, Some(TestFailure::RequiredStatus | TestFailure::Timeout))
        }
        PrState::Failed => {
            let failure = FailReason::parse(&reason);
            matches!(failure, Some(FailReason::RequiredStatus | FailReason::Timeout))
        }
        PrState::NotReady
        | PrState::Pending
        | PrState::Testing
        | PrState::Merged
        | PrState::Cancelled => false,
    }
}

/// How a stay counts: as merged or failed only if tests decided.
fn ending(state: PrState, reason: Option<&str>) -> Ending {
    let reason = reason.map(str::to_uppercase).unwrap_or_default();
    match (state, MergeReason::parse(&reason), FailReason::parse(&reason)) {
        (PrState::Merged, Some(MergeReason::Queue | MergeReason::Direct), _) => Ending::Merged,
        (
            PrState::Failed,
            _,
            Some(FailReason::RequiredStatus | FailReason::Timeout | FailReason::Optimization),
        ) => Ending::Failed,
        _ => Ending::Cancelled,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps: the time, the state and the reason of its result.
    fn found(steps: &[(&str, &str, &str)], since: &str) -> Vec<PastPullRequest> {
        let step = |(at, state, reason): &(&str, &str, &str)| {
            let mut step =
                json!({ "timestamp": format!("2026-09-17T{at}:00.000Z"), "state": state });
            let named = match *state {
                "TESTS_PASSED" => "testsPassed",
                "PENDING_FAILURE" => "pendingFailure",
                "FAILED" => "failure",
                "MERGED" => "merged",
                _ => return step,
            };
            step[named] = json!({ "reason": reason });
            step
        };
        let timeline: Vec<Value> = steps.iter().rev().map(step).collect();
        let passage = json!({ "prNumber": 7, "priorityValue": 10, "timeline": timeline });
        let passage: Passage = serde_json::from_value(passage).expect("a passage");
        let since = Timestamp::parse(since).expect("a time");
        stays(&passage, since).into_iter().map(|(_, it)| it).collect()
    }

    fn stay(
        queued: &str,
        ended: &str,
        outcome: Ending,
        test_minutes: Option<f64>,
    ) -> PastPullRequest {
        PastPullRequest {
            number: 7,
            queued_at: format!("2026-09-17T{queued}:00.000Z"),
            ended_at: format!("2026-09-17T{ended}:00.000Z"),
            outcome,
            test_minutes,
            priority: Some(10),
            targets: None,
        }
    }

    #[test]
    fn each_stay_has_its_last_complete_test() {
        let steps = [
            ("08:00", "NOT_READY", ""),
            ("08:30", "PENDING", ""),
            ("08:31", "TESTING", ""),
            ("08:40", "PENDING", ""),
            ("08:41", "TESTING", ""),
            ("09:11", "PENDING_FAILURE", "TEST_RUN_REQUIRED_STATUS_FAILED"),
            ("09:20", "FAILED", "TEST_RUN_REQUIRED_STATUS_FAILED"),
            ("10:00", "NOT_READY", ""),
            ("10:01", "PENDING", ""),
            ("10:02", "TESTING", ""),
            ("10:22", "TESTS_PASSED", "TEST_RUN_PASSED"),
            ("10:23", "TESTING", ""),
            // The same tree again.
            ("10:24", "TESTS_PASSED", "SAME_TREE_PASSED_BEFORE"),
            ("10:50", "MERGED", "MERGE_GRAPH_MERGE"),
            ("11:00", "NOT_READY", ""),
            ("11:10", "CANCELLED", ""),
            ("11:20", "NOT_READY", ""),
            ("11:21", "PENDING", ""),
            ("11:30", "CANCELLED", ""),
            ("12:00", "NOT_READY", ""),
            ("12:01", "PENDING", ""),
        ];
        let first = stay("08:30", "09:20", Ending::Failed, Some(30.0));
        let rest = [
            stay("10:01", "10:50", Ending::Merged, Some(20.0)),
            stay("11:21", "11:30", Ending::Cancelled, None),
        ];
        assert_eq!(found(&steps, "2026-09-17T00:00:00Z"), [&[first], &rest[..]].concat());
        assert_eq!(found(&steps, "2026-09-17T10:00:00Z"), rest);
        let lower: Vec<_> =
            steps.map(|(at, state, reason)| (at, state, reason.to_lowercase())).into();
        let lower: Vec<_> =
            lower.iter().map(|(at, state, it)| (*at, *state, it.as_str())).collect();
        assert_eq!(found(&lower, "2026-09-17T10:00:00Z"), rest);
    }

    #[test]
    fn a_stay_begins_when_it_last_entered_the_line_and_counts_if_tests_decided() {
        let all = "2026-09-17T00:00:00Z";
        let returned = [
            ("08:00", "NOT_READY", ""),
            ("08:01", "PENDING", ""),
            ("08:05", "NOT_READY", ""),
            ("09:05", "PENDING", ""),
            ("09:06", "TESTING", ""),
            ("09:07", "FAILED", "START_TEST_RUN_MERGE_CONFLICT"),
        ];
        assert_eq!(found(&returned, all), [stay("09:05", "09:07", Ending::Cancelled, None)]);
        // The beginning is not known.
        assert_eq!(
            found(&[("08:40", "PENDING", ""), ("09:00", "MERGED", "MERGE_GRAPH_MERGE")], all),
            []
        );
        let by_hand = [
            ("08:00", "NOT_READY", ""),
            ("08:01", "PENDING", ""),
            ("08:09", "MERGED", "MANUAL_MERGE"),
        ];
        assert_eq!(found(&by_hand, all), [stay("08:01", "08:09", Ending::Cancelled, None)]);
    }

    #[test]
    fn the_settings_are_those_of_the_queue_without_its_state() {
        let queue = json!({ "state": "RUNNING", "concurrency": 3, "requiredStatuses": null, "branch": "main" });
        assert_eq!(Value::from(settings(&queue)), json!({ "concurrency": 3 }));
    }
}
