//! Pull requests, required statuses, reports.

use std::sync::Mutex;

use async_trait::async_trait;
use signalbox_domain::ids::{BranchName, RunId, Sha};
use signalbox_domain::ids::{PrNumber, TreeId};
use signalbox_domain::ports::{
    CheckOutput, ChecksJob, ChecksRunner, ChecksSink, Forge, GitHost, PullRequestQuery, SinkClosed,
};
use signalbox_domain::queue::{
    Candidate, CheckReport, HostStatuses, Mergeability, PullRequestState, RunChecks,
};
use signalbox_github::GitHubChecks;
use uuid::Uuid;

use crate::world::World;

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_request_is_shown_as_the_host_has_it() {
    let world = World::new();
    world.commit(&[("a.txt", "base\n")], "base");
    world.push("main");
    let topic = world.open("topic", &[("a.txt", "b\n")]);
    let read = async |query: PullRequestQuery| {
        world.host.pull_request(&world.repository, &query).await.expect("an answer")
    };
    let number = || PullRequestQuery::Number(topic.pr);
    let seen = read(number()).await.expect("a pull request");
    assert_eq!(seen.mergeability, Mergeability::InProgress, "null is neither yes nor no");
    let seen = read(number()).await.expect("a pull request");
    assert_eq!(seen.mergeability, Mergeability::Mergeable);
    assert_eq!((seen.head, seen.state), (topic.head.clone(), PullRequestState::Open));
    assert_eq!((seen.title.as_str(), seen.author.as_str()), ("change topic", "ada"));
    let by_branch = read(PullRequestQuery::Branch("topic".into())).await;
    assert_eq!(by_branch.map(|it| it.number), Some(topic.pr));
    assert_eq!(read(PullRequestQuery::Branch("unknown".into())).await, None);
    assert_eq!(read(PullRequestQuery::Number(PrNumber(99))).await, None);
    world.branch("main", "main", &[("a.txt", "other\n")]);
    assert_eq!(read(number()).await.expect("it").mergeability, Mergeability::InProgress);
    let seen = read(number()).await.expect("a pull request");
    assert!(matches!(seen.mergeability, Mergeability::NotMergeable(_)), "{seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_required_comes_from_files_rulesets_and_protection() {
    let world = World::new();
    world.commit(&[("a.txt", "base\n")], "base");
    let main = world.push("main");
    let target = BranchName::new("main").expect("a branch");
    let read = async |at: &Sha| {
        world.host.required_statuses(&world.repository, &target, at).await.expect("an answer")
    };
    world.double.require("main", &["unit", "lint"], &["lint", "e2e"]);
    let names = |list: &[&str]| Some(list.iter().map(ToString::to_string).collect::<Vec<_>>());
    let wanted = HostStatuses {
        branch_protection: names(&["unit", "lint", "e2e"]),
        ..HostStatuses::default()
    };
    assert_eq!(read(&main).await, wanted);
    let calls = world.host.calls();
    assert_eq!(read(&main).await, wanted);
    assert_eq!(world.host.calls(), calls, "the host is not called again");
    let trunk = "merge:\n  required_statuses:\n    - from trunk\n";
    let with_trunk = world.branch("main", "main", &[(".trunk/trunk.yaml", trunk)]);
    assert_eq!(read(&with_trunk).await.repository, names(&["from trunk"]));
    let own = "[merge]\nrequired_statuses = [\"test\"]\n";
    let with_own = world.branch("main", "main", &[(".signalbox.toml", own)]);
    assert_eq!(read(&with_own).await.repository, names(&["test"]));
    let broken = world.branch("main", "main", &[(".signalbox.toml", "[merge")]);
    let error = read(&broken).await.repository_error.expect("it is broken");
    assert!(error.starts_with(".signalbox.toml: "), "{error}");
}

#[derive(Default)]
struct Sink(Mutex<Vec<CheckReport>>);

#[async_trait]
impl ChecksSink for Sink {
    async fn report(&self, checks: Vec<CheckReport>) -> Result<(), SinkClosed> {
        self.0.lock().expect("not poisoned").extend(checks);
        Ok(())
    }

    async fn output(&self, _: CheckOutput) -> Result<(), SinkClosed> {
        Ok(())
    }

    async fn closed(&self) {
        std::future::pending::<()>().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_are_followed_over_all_pages_until_they_have_ended() {
    let world = World::new();
    world.commit(&[("a.txt", "base\n")], "base");
    let sha = world.push("main");
    for number in 0..150 {
        let name = format!("shard {number}");
        world.double.report(sha.as_str(), &name, "completed", Some("success"));
    }
    let job = ChecksJob {
        repository: world.repository.clone(),
        checks: RunChecks {
            run: RunId(Uuid::new_v4()),
            candidate: Candidate {
                sha: sha.clone(),
                tree: TreeId::new("2".repeat(40)).expect("a tree"),
            },
            branch: BranchName::new("signalbox-merge/x").expect("a branch"),
            target: BranchName::new("main").expect("a branch"),
            config_from: sha.clone(),
            prs: vec![PrNumber(1)],
            again: Vec::new(),
            required: vec!["shard 149".into(), "last".into()],
        },
    };
    let sink = Sink::default();
    let runner = GitHubChecks::new(world.host.clone());
    let (host, double) = (world.host.clone(), &world.double);
    let told = async {
        // Until the first look has been reported, the last check is not there yet.
        while sink.0.lock().expect("not poisoned").len() < 150 {
            tokio::task::yield_now().await;
        }
        double.report(sha.as_str(), "last", "completed", Some("failure"));
        host.checks_hinted(&sha);
    };
    let (done, ()) = tokio::join!(runner.run(&job, &sink), told);
    done.expect("all have ended");
    let reports = sink.0.lock().expect("not poisoned");
    assert_eq!(reports.len(), 151, "each is reported once");
    assert!(reports.last().is_some_and(|it| it.name == "last"));
}
