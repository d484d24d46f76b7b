//! A day of traffic on a host with faults: what lands was tested, no pull request is lost, and the
//! calls are counted.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use signalbox_domain::queue::Change;
use signalbox_testkit::github_double::{Carelessness, Fault, Logged};

use crate::system::System;

/// What goes wrong on the host, in turn: one call in forty.
const TROUBLE: [Fault; 7] = [
    Fault::Status(502),
    Fault::LostAnswer,
    Fault::Secondary(1),
    Fault::Broken,
    Fault::LostAnswer,
    Fault::Status(503),
    Fault::QuotaUsedUp(2),
];

/// How a pull request is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Merged,
    /// Its own tests fail.
    Failed,
    /// It is closed, or pushed to, while it waits.
    Cancelled,
    /// It changes the same file as its twin: one of the two is merged.
    OneOfTwo,
}

fn end(number: usize) -> End {
    match number % 20 {
        3 | 11 => End::Failed,
        8 => End::Cancelled,
        14 | 15 => End::OneOfTwo,
        _ => End::Merged,
    }
}

/// How many pull requests there are: `SIGNALBOX_GITHUB_PRS`, or 24.
fn count() -> usize {
    std::env::var("SIGNALBOX_GITHUB_PRS").ok().and_then(|it| it.parse().ok()).unwrap_or(24)
}

/// The calls by their kind, and how many of them cost quota.
fn by_kind(log: &[Logged]) -> BTreeMap<String, (u32, u32)> {
    let mut kinds = BTreeMap::new();
    for call in log {
        let is_name = |part: &str| part.len() > 30 || part.chars().any(|it| it.is_ascii_digit());
        let parts = call.path.split('/').skip(4).map(|it| if is_name(it) { "…" } else { it });
        let kind = format!("{} /{}", call.method, parts.collect::<Vec<_>>().join("/"));
        let (all, paid): &mut (u32, u32) = kinds.entry(kind).or_default();
        *all += 1;
        *paid += u32::from(call.status != 304);
    }
    kinds
}

/// Opens pull requests and submits them, a few at a time, and waits for what becomes of each.
async fn traffic(system: &System, count: usize) -> Vec<(Change, End)> {
    let (world, double) = (&system.world, &system.world.double);
    let mut changes: Vec<(Change, End)> = Vec::new();
    for first in (0..count).step_by(20) {
        let wave = first..count.min(first + 20);
        for number in wave.clone() {
            let ending = end(number);
            let name = match ending {
                End::Failed => format!("bad{number}"),
                End::OneOfTwo => format!("good{}", number / 2 * 2),
                End::Merged | End::Cancelled => format!("good{number}"),
            };
            world.git(&["checkout", "-q", "main"]);
            let text = format!("{number}\n");
            let change = world.open(&format!("topic{number}"), &[(&format!("{name}.txt"), &text)]);
            changes.push((change, ending));
        }
        // The events of their opening have arrived before they are submitted.
        system.until("all events are sent", async |_: &System| double.has_delivered_all()).await;
        for (change, ending) in &changes[wave.clone()] {
            // The host may be failing now.
            system
                .until("it is taken", async |it: &System| {
                    let body = json!({ "pr": { "number": change.pr.0 } });
                    it.try_call("submitPullRequest", body).await.0 == 200
                })
                .await;
            if *ending == End::Cancelled {
                double.close(u64::from(change.pr.0));
            }
        }
        for (change, ending) in &changes[wave] {
            let wanted: &[&str] = match ending {
                End::Merged => &["MERGED"],
                End::Failed => &["FAILED"],
                End::Cancelled => &["CANCELLED"],
                // The other one was ahead of it, or has landed already.
                End::OneOfTwo => &["MERGED", "FAILED", "NOT_READY"],
            };
            let what = format!("#{} is {wanted:?}", change.pr);
            system
                .until(&what, async |it: &System| wanted.contains(&it.state(change).await.as_str()))
                .await;
        }
    }
    changes
}

/// Only the expected pull requests have landed, and every tree of the target was tested. Returns
/// how many were merged.
async fn check(system: &System, changes: &[(Change, End)]) -> usize {
    for pair in
        changes.iter().filter(|it| it.1 == End::OneOfTwo).collect::<Vec<_>>().chunks_exact(2)
    {
        system
            .until("one of two is merged", async |it: &System| {
                let mut merged = 0;
                for (change, _) in pair {
                    merged += u32::from(it.state(change).await == "MERGED");
                }
                merged == 1
            })
            .await;
    }
    system.only_tested_trees_have_landed();
    let listed = system.world.bare(&["ls-tree", "-r", "--name-only", "main"]);
    let files: BTreeSet<&str> = listed.lines().collect();
    let merged: Vec<String> = (0..changes.len())
        .filter(|number| {
            end(*number) == End::Merged || (end(*number) == End::OneOfTwo && number % 2 == 0)
        })
        .map(|number| format!("good{number}.txt"))
        .collect();
    let wanted: BTreeSet<&str> = merged.iter().map(String::as_str).chain(["a.txt"]).collect();
    assert_eq!(files, wanted);
    merged.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn with_faults_main_is_always_a_tested_tree_and_no_pull_request_is_lost() {
    let careless = Carelessness { lose: 9, double: 5, delay: 4 };
    let system = System::new(careless, json!({ "concurrency": 8 })).await;
    system.world.double.trouble(40, &TROUBLE);
    let changes = traffic(&system, count()).await;
    let merged = check(&system, &changes).await;
    let log = system.world.double.log();
    let paid = log.iter().filter(|it| it.status != 304).count();
    println!("{} calls, {paid} of them of the quota, for {merged} merged", log.len());
}

/// The goal is 29, four of them for the check of the composition; the failed and cancelled ones count
/// too.
#[tokio::test(flavor = "multi_thread")]
async fn a_merged_pull_request_costs_few_calls() {
    let system = System::new(Carelessness::default(), json!({ "concurrency": 8 })).await;
    let before = system.world.double.log().len();
    let changes = traffic(&system, count()).await;
    let merged = check(&system, &changes).await;
    let log = system.world.double.log().split_off(before);
    let paid = log.iter().filter(|it| it.status != 304).count();
    println!("{} calls, {paid} of them of the quota, for {merged} merged", log.len());
    for (kind, (all, paid)) in by_kind(&log) {
        println!("{all:6} {paid:6}  {kind}");
    }
    assert!(paid <= 29 * merged, "{paid} calls for {merged} merged");
}

/// The calls of the quota for each merged pull request of a line that is full before the first one is
/// tested, and all calls by their kind.
async fn calls_in_a_line_of(count: usize) -> (f64, BTreeMap<String, (u32, u32)>) {
    let system = System::new(Carelessness::default(), json!({ "concurrency": 8 })).await;
    system.call("updateQueue", json!({ "state": "PAUSED" })).await;
    let (world, double) = (&system.world, &system.world.double);
    let mut changes = Vec::new();
    for number in 0..count {
        world.git(&["checkout", "-q", "main"]);
        let name = format!("good{number}.txt");
        changes.push(world.open(&format!("topic{number}"), &[(&name, "x\n")]));
    }
    system.until("all events are sent", async |_: &System| double.has_delivered_all()).await;
    for change in &changes {
        system.submit(change).await;
    }
    let before = double.log().len();
    system.call("updateQueue", json!({ "state": "RUNNING" })).await;
    for change in &changes {
        system.until_state(change, "MERGED").await;
    }
    system.only_tested_trees_have_landed();
    let log = double.log().split_off(before);
    let paid = log.iter().filter(|it| it.status != 304).count();
    let number = |it: usize| f64::from(u32::try_from(it).expect("small"));
    (number(paid) / number(count), by_kind(&log))
}

/// One line is five times as long as the other: `SIGNALBOX_GITHUB_PRS`, or 30. In a longer one the status
/// and the comment are written twice, for the place in the line and for the end, and pull requests whose
/// mergeability the host computes again after each landing are read, ten at a time.
#[tokio::test(flavor = "multi_thread")]
async fn a_merged_pull_request_costs_few_calls_in_a_long_line() {
    let length = if count() == 24 { 30 } else { count() };
    for length in [length / 5, length] {
        let (calls, kinds) = calls_in_a_line_of(length).await;
        println!("{calls:.1} calls for each of {length} in one line");
        for (kind, (all, paid)) in kinds {
            println!("{all:6} {paid:6}  {kind}");
        }
        assert!(calls <= 25.0, "{calls:.1} calls for each of {length}");
    }
}
