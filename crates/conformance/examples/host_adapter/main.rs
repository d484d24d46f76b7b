//! A minimal git host on a folder of bare repositories: git host, checks runner and webhook
//! decoder. `tests/host_adapter.rs` runs the conformance suites on it.
//!
//! `cargo run -p signalbox-conformance --example host_adapter` builds a candidate, runs its checks and
//! lands it.
#![expect(clippy::print_stdout, reason = "an example prints")]

#[expect(dead_code, reason = "the test uses more of the host")]
mod folder_host;

use async_trait::async_trait;
use folder_host::{FolderChecks, FolderHost, FolderWebhooks, signature};
use signalbox_conformance::git_host::{build, land};
use signalbox_conformance::git_place::GitPlace;
use signalbox_domain::ids::{BranchName, OrgId, RepoId, RepoName, RunId};
use signalbox_domain::ports::{
    Built, CheckOutput, ChecksJob, ChecksRunner as _, ChecksSink, GitHost as _, LandAnswer,
    Repository, SinkClosed, WebhookDecoder as _,
};
use signalbox_domain::queue::{Change, CheckReport, MergeMethod, RunChecks};
use signalbox_domain::time::Timestamp;
use uuid::Uuid;

/// A sink that prints reports.
struct Printer;

#[async_trait]
impl ChecksSink for Printer {
    async fn report(&self, checks: Vec<CheckReport>) -> Result<(), SinkClosed> {
        for check in checks {
            println!("check {}: {:?} {:?}", check.name, check.status, check.conclusion);
        }
        Ok(())
    }

    async fn output(&self, output: CheckOutput) -> Result<(), SinkClosed> {
        print!("{}", output.text);
        Ok(())
    }

    async fn closed(&self) {
        std::future::pending::<()>().await;
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let place = GitPlace::new("acme/calc.git");
    place.bare(&["init", "-q", "--bare"]);
    place.commit(&[("checks/test", "echo 2 and 2 is $((2 + 2))\n")], "Add a check");
    let main = place.push("main");
    place.branch("topic", "main", &[("a.txt", "a\n")]);
    let head = place.push("topic");

    let host = std::sync::Arc::new(FolderHost::new(place.folder()));
    let repository = Repository {
        id: RepoId(Uuid::from_u128(1)),
        org: OrgId(Uuid::from_u128(2)),
        name: RepoName::new("folder.test", "acme", "calc")?,
        path: None,
        created_at: Timestamp::from_unix_seconds(0),
    };
    let branch = |name: &str| BranchName::new(name);
    let pr = host.open(&repository, &branch("topic")?, &branch("main")?);
    let change = Change {
        pr,
        head,
        title: "Add a file".to_owned(),
        body: String::new(),
        author: "ada".to_owned(),
    };
    let order = build(&main, vec![change], MergeMethod::Squash);
    let Built::Candidate { candidate, .. } = host.build_candidate(&repository, &order).await?
    else {
        return Err("the changes conflict".into());
    };
    println!("candidate {} with tree {}", candidate.sha, candidate.tree);
    let checks = RunChecks {
        run: RunId(Uuid::from_u128(3)),
        candidate: candidate.clone(),
        branch: order.branch.clone(),
        target: order.target.clone(),
        config_from: main,
        prs: vec![pr],
        again: Vec::new(),
        required: vec!["test".to_owned()],
    };
    let job = ChecksJob { repository: repository.clone(), checks };
    FolderChecks::new(host.clone()).run(&job, &Printer).await?;
    let hooks = FolderWebhooks::new("secret");
    let body = format!("push acme/calc topic {}", order.target_head);
    let header = |name: &str| match name {
        "x-delivery" => Some("1".to_owned()),
        "x-signature" => Some(signature(b"secret", body.as_bytes())),
        _ => None,
    };
    println!("hints of a delivery: {:?}", hooks.decode(&header, body.as_bytes())?.hints);
    match host.land(&repository, &land(&order, &candidate)).await? {
        LandAnswer::Landed(head, _) => println!("main is now at {}", head.sha),
        refused => println!("not landed: {refused:?}"),
    }
    Ok(())
}
