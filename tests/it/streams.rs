//! One reader of events, two servers: the events that it gets when it changes from one to the other
//! while people submit and Terraform asks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Value, json};

use crate::harness::{On, Pieces, System};

const PRS: u64 = 6;

/// The ids and names of the complete events in the bytes so far.
fn heard(text: &str) -> Vec<(String, String)> {
    let whole = text.rsplit_once("\n\n").map_or("", |(whole, _)| whole);
    let field = |block: &str, name: &str| {
        block.lines().find_map(|line| line.strip_prefix(name)).map(|it| it.trim().to_owned())
    };
    whole.split("\n\n").filter_map(|it| field(it, "id:").zip(field(it, "event:"))).collect()
}

/// Reads until so many events have come, or until one is such as is waited for.
async fn read(
    stream: &mut Pieces,
    most: usize,
    last: impl Fn(&str) -> bool,
) -> Vec<(String, String)> {
    let mut text = String::new();
    loop {
        let events = heard(&text);
        if events.len() >= most || events.iter().any(|(_, name)| last(name)) {
            return events;
        }
        let piece = tokio::time::timeout(Duration::from_mins(1), stream.next()).await;
        let piece = piece.expect("in time").expect("no end").expect("a piece");
        text += &String::from_utf8_lossy(&piece);
    }
}

/// Polls the queue, as Terraform does. Returns how many replies it got.
fn polling(system: &System, stop: &Arc<AtomicBool>) -> tokio::task::JoinHandle<usize> {
    let (url, token) = (format!("{}/v1/getQueue", system.url()), system.token().to_owned());
    let stop = stop.clone();
    let body = json!({
        "repo": {"host": "git.local", "owner": "acme", "name": "calc"}, "targetBranch": "main"
    });
    tokio::spawn(async move {
        let client = reqwest::Client::builder().timeout(Duration::from_mins(1)).build();
        let (client, told) = (client.expect("a client"), AtomicUsize::new(0));
        while !stop.load(Ordering::SeqCst) {
            let reply = client.post(&url).header("x-api-token", &token).json(&body).send().await;
            let reply = reply.expect("a reply");
            assert_eq!(reply.status().as_u16(), 200);
            let queue: Value = reply.json().await.expect("JSON");
            assert_eq!(queue["branch"], "main", "{queue}");
            told.fetch_add(1, Ordering::SeqCst);
        }
        told.into_inner()
    })
}

/// Everything in the log, by id and name.
async fn log(system: &System) -> Vec<(String, String)> {
    let page = system.get("/v1/events?limit=500&after=0").await;
    let page: Value = serde_json::from_str(&page).expect("JSON");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let events = page["events"].as_array().expect("events").iter();
    events.map(|event| (text(&event["position"]), text(&event["type"]))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_changes_servers_gets_every_event_once_under_load() {
    let one = System::new(On::Postgres, "exit 0\n", 2).await;
    let two = one.another_server().await;
    let mut prs = Vec::new();
    for number in 1..=PRS {
        let branch = format!("change-{number}");
        prs.push(one.pull_request(&branch, &[(&format!("{branch}.txt"), "1\n")]));
    }
    let stop = Arc::new(AtomicBool::new(false));
    let polls = [polling(&one, &stop), polling(&two, &stop)];
    let mut stream = two.follow_from("/v1/events/stream?after=0", "").await;
    let submitting = async {
        for (number, pr) in prs.iter().enumerate() {
            let server = if number % 2 == 0 { &one } else { &two };
            server.submit(*pr).await;
        }
    };
    let reading = async {
        let mut all = read(&mut stream, 5, |_| false).await;
        drop(stream);
        let merged = |all: &[(String, String)]| {
            all.iter().filter(|(_, name)| name == "pull_request.merged").count()
        };
        let mut turn = 0;
        while merged(&all) < prs.len() {
            turn += 1;
            let server = if turn % 2 == 0 { &two } else { &one };
            let last = all.last().expect("an event").0.clone();
            let mut stream = server.follow_from("/v1/events/stream", &last).await;
            all.extend(read(&mut stream, 4, |name| name == "pull_request.merged").await);
        }
        (all, turn)
    };
    let ((), (all, turns)) = tokio::join!(submitting, reading);
    stop.store(true, Ordering::SeqCst);
    for poll in polls {
        assert!(poll.await.expect("every answer was good") > 0);
    }
    assert!(turns >= 3, "{turns} changes");
    assert_eq!(all, log(&one).await, "nothing missed, nothing twice, in the order of the log");
}
