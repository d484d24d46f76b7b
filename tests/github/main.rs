//! The whole server on the double: requests and comments go in, tested trees come out.

mod day;
mod dependencies;
mod evidence;
mod fairness;
mod freezes;
mod system;
mod targets;

use serde_json::json;
use signalbox_domain::ids::Sha;
use signalbox_domain::queue::Change;
use signalbox_testkit::github_double::{Carelessness, WrongMerge};

use system::{JSON, System};

#[tokio::test(flavor = "multi_thread")]
async fn five_pull_requests_are_queued_by_requests_and_by_a_comment() {
    let system = System::new(
        Carelessness { double: 2, ..Carelessness::default() },
        json!({ "concurrency": 4 }),
    )
    .await;
    let (world, double) = (&system.world, &system.world.double);
    double.permit("ada", "write");
    double.permit("bob", "read");
    let first = world.open("first", &[("a.txt", "first\n")]);
    let second = world.open("second", &[("b.txt", "b\n")]);
    let third = world.open("third", &[("c.txt", "c\n")]);
    let conflict = world.open("conflict", &[("a.txt", "conflict\n")]);
    let bad = world.open("bad", &[("bad.txt", "x\n")]);
    let stranger = world.open("stranger", &[("d.txt", "d\n")]);
    for change in [&first, &second] {
        system.submit(change).await;
    }
    let number = |change: &Change| u64::from(change.pr.0);
    let asked = double.comment(number(&third), "ada", "go\n/signalbox merge --priority high");
    let refused = double.comment(number(&stranger), "bob", "/signalbox merge");
    for change in [&bad, &conflict] {
        system.submit(change).await;
    }
    for change in [&first, &second, &third] {
        system.until_state(change, "MERGED").await;
    }
    system.until_state(&bad, "FAILED").await;
    // It could be merged when it was submitted; now it waits for its author, or has failed.
    system
        .until("the conflict is noticed", async |it: &System| {
            ["FAILED", "NOT_READY"].contains(&it.state(&conflict).await.as_str())
        })
        .await;
    assert_eq!(system.state(&stranger).await, "", "readers may not command");
    assert_eq!(double.reactions(asked), ["+1"], "delivered twice, done once");
    assert_eq!(double.reactions(refused), ["-1"]);
    system.only_tested_trees_have_landed();
    let files = world.bare(&["ls-tree", "-r", "--name-only", "main"]);
    assert_eq!(files, "a.txt\nb.txt\nc.txt");
    assert_eq!(world.bare(&["show", "main:a.txt"]), "first");

    system
        .until("the pull requests show it", async |it: &System| {
            let double = &it.world.double;
            let comments = double.comments(number(&first));
            comments.iter().any(|(_, body)| body.contains("Merged: the target branch contains it"))
                && double.statuses(bad.head.as_str()).iter().any(|(_, state)| state == "failure")
        })
        .await;
    let ours = double.comments(number(&first));
    assert_eq!(ours.len(), 1, "one comment, edited: {ours:?}");
    assert!(ours[0].1.contains("is the tested tree"), "{ours:?}");
    let shown = double.statuses(first.head.as_str());
    assert!(shown.contains(&("signalbox/main".to_owned(), "success".to_owned())), "{shown:?}");
    assert_eq!(double.pull(number(&first)), (false, false), "a squashed one is closed");
    system
        .until("test branches are gone", async |it: &System| {
            let listed = ["for-each-ref", "--format=%(refname)", "refs/heads/"];
            !it.world.bare(&listed).contains("signalbox-merge/")
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn candidates_are_computed_again_with_git_on_the_server() {
    let local = "verify = \"local\"\n";
    let system = System::with(Carelessness::default(), json!({}), local).await;
    let first = system.world.open("first", &[("a.txt", "first\n")]);
    let second = system.world.open("second", &[("b.txt", "b\n")]);
    for change in [&first, &second] {
        system.submit(change).await;
    }
    for change in [&first, &second] {
        system.until_state(change, "MERGED").await;
        let entry = system.entry(change).await;
        assert_eq!(entry["exit"]["proof"]["check"], "RECOMPUTED", "{entry}");
    }
    let mirror = system.data("checks/acme-github.com/mirrors/acme/calc.git");
    assert!(mirror.join("objects").is_dir(), "{}", mirror.display());
    // A host that merges wrongly pauses the queue, with the tree that was expected.
    system.world.double.merge_wrongly(Some(WrongMerge::Base));
    let third = system.world.open("third", &[("c.txt", "c\n")]);
    system.submit(&third).await;
    system
        .until("the queue is paused", async |it: &System| {
            it.call("getQueue", json!({})).await["state"] == "PAUSED"
        })
        .await;
    system.only_tested_trees_have_landed();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_reports_its_targets_once_and_only_for_its_own_commit() {
    let system = System::new(Carelessness::default(), json!({})).await;
    let (world, double) = (&system.world, &system.world.double);
    let topic = world.open("topic", &[("b.txt", "b\n")]);
    double.set_fork(u64::from(topic.pr.0), "eve");
    let run = |id: u64, status: &str, sha: &Sha| {
        json!({"id": id, "status": status, "event": "pull_request", "head_sha": sha.as_str(),
            "head_repository": {"full_name": "eve/calc"},
            "repository": {"full_name": "acme/calc"}})
    };
    let main = Sha::new(world.bare(&["rev-parse", "main"])).expect("a commit");
    double.add_workflow_run(1, run(1, "in_progress", &topic.head));
    double.add_workflow_run(2, run(2, "completed", &topic.head));
    double.add_workflow_run(3, run(3, "in_progress", &main));
    let report = async |run: &str, sha: &Sha| {
        let body = json!({
            "repo": {"host": "github.com", "owner": "acme", "name": "calc"},
            "targetBranch": "main",
            "pr": {"number": topic.pr.0.to_string(), "sha": sha.as_str()},
            "impactedTargets": ["//a"],
        });
        let headers = [("x-api-token", ""), ("x-forked-workflow-run-id", run)];
        system.send("/v1/setImpactedTargets", &headers, JSON, body.to_string()).await.0
    };
    assert_eq!(report("2", &topic.head).await, 401, "the run has ended");
    assert_eq!(report("3", &topic.head).await, 401, "the run is for another commit");
    assert_eq!(report("3", &main).await, 401, "the commit is not the pull request's");
    assert_eq!(report("9", &topic.head).await, 401, "there is no such run");
    assert_eq!(report("x", &topic.head).await, 401, "that is no run");
    assert_eq!(report("1", &topic.head).await, 200);
    assert_eq!(report("1", &topic.head).await, 401, "a run vouches once");
    // Each look-up is a call of the host, and each address has its share of these.
    let looked_up = || double.log().iter().filter(|it| it.path.contains("/actions/runs/")).count();
    for _ in looked_up()..10 {
        assert_eq!(report("9", &topic.head).await, 401);
    }
    assert_eq!((report("9", &topic.head).await, looked_up()), (503, 10));
}

#[tokio::test(flavor = "multi_thread")]
async fn unsigned_events_are_refused_and_hosts_must_be_known() {
    let system = System::new(Carelessness::default(), json!({})).await;
    let body = json!({"zen": "x"}).to_string();
    let headers = [("x-github-event", "ping"), ("x-github-delivery", "d")];
    assert_eq!(system.send("/hooks/github.com", &headers, JSON, body.clone()).await.0, 403);
    assert_eq!(system.send("/hooks/nowhere.example", &headers, JSON, body).await.0, 404);
}
