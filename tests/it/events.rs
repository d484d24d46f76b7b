//! Events leave the house: over the log and the stream, on both databases, across servers, and
//! after a kill.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use serde_json::Value;

use crate::harness::{On, System};

const CHECK: &str = "for file in *.txt; do grep -q bad \"$file\" && exit 1; done\nexit 0\n";

/// Everything in the log, each payload checked against its schema.
async fn log(system: &System) -> Vec<Value> {
    let (mut seen, mut after) = (Vec::new(), "0".to_owned());
    loop {
        let page = system.get(&format!("/v1/events?limit=3&after={after}")).await;
        let page: Value = serde_json::from_str(&page).expect("JSON");
        let events = page["events"].as_array().expect("events");
        for event in events {
            let name = event["type"].as_str().expect("a name");
            let known = signalbox_webhooks::catalog::find(name).expect("it is in the catalog");
            let options = jsonschema::options().should_validate_formats(true);
            let validator = options.build(&known.schema()).expect("a schema");
            let errors: Vec<String> =
                validator.iter_errors(&event["payload"]).map(|it| it.to_string()).collect();
            assert!(errors.is_empty(), "{event:#}\n{errors:#?}");
            seen.push(event.clone());
        }
        page["next"].as_str().expect("a position").clone_into(&mut after);
        if events.is_empty() && page["next"] == page["newest"] {
            return seen;
        }
    }
}

fn names(events: &[Value], pr: u64) -> Vec<&str> {
    let of_pr = events.iter().filter(|it| it["payload"]["pr_number"] == pr);
    of_pr.filter_map(|it| it["type"].as_str()).collect()
}

async fn every_event_is_listed_once_through_a_kill(on: On) {
    let mut system = System::new(on, CHECK, 2).await;
    let good = system.pull_request("good", &[("good.txt", "good\n")]);
    let bad = system.pull_request("bad", &[("bad.txt", "bad\n")]);
    system.submit(good).await;
    system.submit(bad).await;
    system.kill();
    system.start().await;
    system.until_state(good, "MERGED").await;
    system.until_state(bad, "FAILED").await;
    let events = log(&system).await;
    let ids: BTreeSet<&str> = events.iter().filter_map(|it| it["id"].as_str()).collect();
    assert_eq!(ids.len(), events.len());
    for (pr, end) in [(good, "pull_request.merged"), (bad, "pull_request.failed")] {
        let told = names(&events, pr);
        assert_eq!(told[..2], ["pull_request.submitted", "pull_request.queued"], "{told:?}");
        assert!(told.contains(&"pull_request.testing"), "{told:?}");
        assert_eq!(told.last(), Some(&end), "{told:?}");
        assert_eq!(told.iter().filter(|it| **it == end).count(), 1);
    }
}

#[tokio::test]
async fn every_event_is_listed_once_through_a_kill_on_sqlite() {
    every_event_is_listed_once_through_a_kill(On::Sqlite).await;
}

#[tokio::test]
async fn every_event_is_listed_once_through_a_kill_on_postgres() {
    every_event_is_listed_once_through_a_kill(On::Postgres).await;
}

/// A stream at one server gets the events of another server within two seconds.
#[tokio::test]
async fn a_stream_at_one_server_has_events_of_another() {
    let system = System::new(On::Postgres, CHECK, 1).await;
    let other = system.another_server().await;
    let mut stream = other.follow("/v1/events/stream").await;
    let pr = system.pull_request("good", &[("good.txt", "good\n")]);
    system.submit(pr).await;
    let begun = Instant::now();
    let mut text = String::new();
    let mut first = None;
    while !text.contains("event: pull_request.merged") {
        let chunk = tokio::time::timeout(Duration::from_mins(1), stream.next()).await;
        let chunk = chunk.expect("in time").expect("no end").expect("a piece");
        text += &String::from_utf8_lossy(&chunk);
        if first.is_none() && text.contains("event: pull_request.submitted") {
            first = Some(begun.elapsed());
        }
    }
    let first = first.expect("it was submitted");
    assert!(first < Duration::from_secs(2), "{first:?}");
    let told: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    let known = log(&system).await;
    assert_eq!(told, known.iter().filter_map(|it| it["type"].as_str()).collect::<Vec<_>>());
}

/// A server with an open stream ends as quickly as any other.
#[tokio::test]
async fn an_open_stream_does_not_delay_the_shutdown() {
    let mut system = System::new(On::Sqlite, CHECK, 1).await;
    let mut stream = system.follow("/v1/events/stream").await;
    assert!(stream.next().await.is_some());
    let (code, took) = system.terminate();
    assert_eq!(code, Some(0));
    assert!(took < Duration::from_secs(5), "{took:?}");
    while let Some(Ok(_)) = stream.next().await {}
}
