//! `signalbox queue history`: what a queue did, for a simulation.

use serde_json::{Map, Value, json};
use signalbox_client::{EntriesQuery, Passage, TryStreamExt as _};
use signalbox_domain::queue::{PrState, SETTINGS};
use signalbox_domain::time::Timestamp;
use signalbox_simulator::{Ending, PastPullRequest, PastSettings};
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
    let entries: Vec<_> = client.all_entries(&queue, query).try_collect().await?;
    let numbers: Vec<u64> = entries.iter().map(|entry| entry.value.pr_number).collect();
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
/// entered the line.
fn stays(passage: &Passage, since: Timestamp) -> Vec<(Timestamp, PastPullRequest)> {
    let mut found = Vec::new();
    let (mut queued_at, mut testing, mut test_minutes) = (None, None, None);
    for step in passage.timeline.iter().rev() {
        let (Some(at), Some(state)) =
            (Timestamp::parse(&step.timestamp), PrState::parse(&step.state))
        else {
            continue;
        };
        if let PrState::TestsPassed | PrState::PendingFailure | PrState::Failed = state
            && let Some(began) = testing
        {
            test_minutes = Some(at.since(began).to_std().as_secs_f64() / 60.0);
        }
        testing = (state == PrState::Testing).then_some(at);
        let outcome = match state {
            PrState::Merged => Ending::Merged,
            PrState::Failed => Ending::Failed,
            PrState::Cancelled => Ending::Cancelled,
            PrState::Pending => {
                queued_at.get_or_insert(at);
                continue;
            }
            PrState::NotReady
            | PrState::Testing
            | PrState::TestsPassed
            | PrState::PendingFailure => continue,
        };
        let test_minutes = test_minutes.take().filter(|minutes| *minutes > 0.0);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn passage(steps: &[(&str, &str)]) -> Passage {
        let steps = steps.iter().rev();
        let steps: Vec<Value> = steps
            .map(|(at, state)| {
                json!({ "timestamp": format!("2026-09-17T{at}:00.000Z"), "state": state })
            })
            .collect();
        let passage = json!({ "prNumber": 7, "priorityValue": 100, "timeline": steps });
        serde_json::from_value(passage).expect("a passage")
    }

    fn found(steps: &[(&str, &str)], since: &str) -> Vec<(String, Ending, Option<f64>)> {
        let since = Timestamp::parse(since).expect("a time");
        let found = stays(&passage(steps), since).into_iter();
        found.map(|(_, it)| (it.queued_at, it.outcome, it.test_minutes)).collect()
    }

    #[test]
    fn each_stay_has_its_last_complete_test() {
        let steps = [
            ("08:00", "NOT_READY"),
            ("08:30", "PENDING"),
            ("08:31", "TESTING"),
            ("08:40", "PENDING"),
            ("08:41", "TESTING"),
            ("09:11", "PENDING_FAILURE"),
            ("09:20", "FAILED"),
            ("10:00", "NOT_READY"),
            ("10:01", "PENDING"),
            ("10:02", "TESTING"),
            ("10:22", "TESTS_PASSED"),
            ("10:50", "MERGED"),
            ("11:00", "NOT_READY"),
            ("11:10", "CANCELLED"),
            ("11:20", "NOT_READY"),
            ("11:21", "PENDING"),
            ("11:30", "CANCELLED"),
            ("12:00", "NOT_READY"),
            ("12:01", "PENDING"),
        ];
        let first = ("2026-09-17T08:30:00.000Z".to_owned(), Ending::Failed, Some(30.0));
        let rest = [
            ("2026-09-17T10:01:00.000Z".to_owned(), Ending::Merged, Some(20.0)),
            ("2026-09-17T11:21:00.000Z".to_owned(), Ending::Cancelled, None),
        ];
        assert_eq!(found(&steps, "2026-09-17T00:00:00Z"), [&[first], &rest[..]].concat());
        assert_eq!(found(&steps, "2026-09-17T10:00:00Z"), rest);
    }

    #[test]
    fn the_settings_are_those_of_the_queue_without_its_state() {
        let queue = json!({ "state": "RUNNING", "concurrency": 3, "requiredStatuses": null, "branch": "main" });
        assert_eq!(Value::from(settings(&queue)), json!({ "concurrency": 3 }));
    }
}
