//! `signalbox queue history`: what a queue did, for a simulation.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use signalbox_client::{EntriesQuery, Passage, TryStreamExt as _};
use signalbox_domain::queue::{PrState, Priority, SETTINGS};
use signalbox_domain::time::Timestamp;
use signalbox_simulator::{PastPullRequest, PastSettings, PastStay, PastStep};
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
    past.sort_by_key(|stay: &PastStay| stay.queued_at);
    say_json(&json!(PastSettings { settings }));
    for stay in &past {
        say_json(&json!(PastPullRequest::of(stay)));
    }
    Ok(())
}

/// The settings in a description of a queue.
fn settings(queue: &Value) -> Map<String, Value> {
    let value = |name: &str| queue.get(name).filter(|value| !value.is_null()).cloned();
    let named = SETTINGS.iter().filter_map(|spec| Some((spec.name.to_owned(), value(spec.name)?)));
    named.collect()
}

/// The stays of a pull request in a queue that ended at a time or later.
fn stays(passage: &Passage, since: Timestamp) -> Vec<PastStay> {
    let steps = passage.timeline.iter().rev().filter_map(|step| {
        Some(PastStep {
            at: Timestamp::parse(&step.timestamp)?,
            state: PrState::parse(&step.state.to_uppercase())?,
            reason: step.reason().unwrap_or_default(),
        })
    });
    let priority = Some(Priority::number(passage.priority_value));
    let mut stays = PastStay::all(passage.pr_number, priority, steps, since);
    for stay in &mut stays {
        stay.author.clone_from(&passage.pr_author);
    }
    stays
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read_in_the_case_of_the_token() {
        for lower in [false, true] {
            let step = |at: &str, state: &str, named: &str, reason: &str| {
                let word = |word: &str| if lower { word.to_lowercase() } else { word.to_owned() };
                let mut step = json!({ "timestamp": at, "state": word(state) });
                if !named.is_empty() {
                    step[named] = json!({ "reason": word(reason) });
                }
                step
            };
            let timeline = [
                step("2026-09-17T10:30:00.000Z", "MERGED", "merged", "MERGE_GRAPH_MERGE"),
                step("2026-09-17T10:22:00.000Z", "TESTS_PASSED", "testsPassed", "TEST_RUN_PASSED"),
                step("2026-09-17T10:02:00.000Z", "TESTING", "", ""),
                step("2026-09-17T10:01:00.000Z", "PENDING", "", ""),
                step("2026-09-17T10:00:00.000Z", "NOT_READY", "", ""),
            ];
            let passage = json!({ "prNumber": 7, "prAuthor": "ada", "priorityValue": 10, "timeline": timeline });
            let passage: Passage = serde_json::from_value(passage).expect("a passage");
            let since = Timestamp::parse("2026-09-17T10:30:00Z").expect("a time");
            let found: Vec<_> = stays(&passage, since).iter().map(PastPullRequest::of).collect();
            let expected = json!([{
                "number": 7, "queuedAt": "2026-09-17T10:01:00.000Z",
                "endedAt": "2026-09-17T10:30:00.000Z", "outcome": "MERGED",
                "testMinutes": 20.0, "priority": 10, "author": "ada",
            }]);
            assert_eq!(json!(found), expected);
        }
    }

    #[test]
    fn the_settings_are_those_of_the_queue_without_its_state() {
        let queue = json!({ "state": "RUNNING", "concurrency": 3, "requiredStatuses": null, "branch": "main" });
        assert_eq!(Value::from(settings(&queue)), json!({ "concurrency": 3 }));
    }
}
