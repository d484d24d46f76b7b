//! The fake host passes the suites of the checks runner and of the forge. Its git host is not git
//! and is tested in `fake_host_rules.rs`.

use std::future::{Ready, ready};
use std::sync::Arc;

use async_trait::async_trait;
use signalbox_conformance::checks_runner::{ChecksWorld, Ending};
use signalbox_conformance::fake_host::{FakeForge, FakeHost};
use signalbox_conformance::forge::ForgeWorld;
use signalbox_domain::ids::{BranchName, OrgId, PrNumber, RepoId, RepoName, RunId, Sha};
use signalbox_domain::ports::{
    ChecksJob, ChecksRunner, Forge, GitHost as _, Permission, Repository, StatusState, WorkflowRun,
};
use signalbox_domain::queue::{Candidate, CheckConclusion, RunChecks};
use signalbox_domain::testing::ManualClock;
use signalbox_domain::time::Timestamp;
use uuid::Uuid;

struct World {
    host: FakeHost,
    forge: FakeForge,
    repository: Repository,
}

fn branch(name: &str) -> BranchName {
    BranchName::new(name).expect("a branch")
}

fn fresh() -> Ready<World> {
    let name = RepoName::parse("git.test/acme/calc").expect("a name");
    // A file with a check's name makes it fail.
    let host = FakeHost::judging_each(Arc::new(ManualClock::default()), |check, files| {
        if files.contains_key(check) { CheckConclusion::Failure } else { CheckConclusion::Success }
    });
    host.add_repository(&name, &[("a", "1")]);
    let repository = Repository {
        id: RepoId(Uuid::from_u128(1)),
        org: OrgId(Uuid::from_u128(2)),
        name,
        path: None,
        created_at: Timestamp::from_unix_seconds(0),
    };
    ready(World { host, forge: FakeForge::default(), repository })
}

#[async_trait]
impl ChecksWorld for World {
    fn runner(&self) -> &dyn ChecksRunner {
        &self.host
    }

    async fn job(&self, configured: &[(&str, Ending)], required: &[&str]) -> ChecksJob {
        let failing: Vec<(&str, &str)> = configured
            .iter()
            .filter(|(_, ending)| *ending == Ending::Failure)
            .map(|(name, _)| (*name, "fails"))
            .collect();
        self.host.set_checks_hang(configured.iter().any(|(_, ending)| *ending == Ending::Never));
        self.host.push_branch(&self.repository.name, "candidate", &failing);
        let head = self.host.head(&self.repository, &branch("candidate")).await;
        let head = head.expect("an answer").expect("a head");
        ChecksJob {
            repository: self.repository.clone(),
            checks: RunChecks {
                run: RunId(Uuid::from_u128(3)),
                candidate: Candidate { sha: head.sha.clone(), tree: head.tree },
                branch: branch("candidate"),
                target: branch("main"),
                config_from: head.sha,
                prs: vec![PrNumber(1)],
                again: Vec::new(),
                required: required.iter().map(ToString::to_string).collect(),
            },
        }
    }

    fn knows_what_is_configured(&self) -> bool {
        false
    }

    /// Checks are values here, without processes.
    async fn nothing_runs(&self) {}
}

signalbox_conformance::checks_runner_conformance!(fresh());

#[async_trait]
impl ForgeWorld for World {
    fn forge(&self) -> &dyn Forge {
        &self.forge
    }

    fn repository(&self) -> &Repository {
        &self.repository
    }

    async fn open(&self, branch: &str) -> (PrNumber, Sha) {
        let pr = self.host.open(&self.repository.name, "main", &[(branch, "1")]);
        (pr, self.host.shown(&self.repository.name, pr).head)
    }

    async fn push(&self, pr: PrNumber, _branch: &str) -> Sha {
        let head = self.host.push(&self.repository.name, pr, &[("b", "1")]);
        self.forge.set_newer_head(head.clone());
        head
    }

    async fn test_branch(&self) -> BranchName {
        branch("signalbox-merge/pr-1/x")
    }

    fn permit(&self, login: &str, permission: Permission) {
        self.forge.permit(login, permission);
    }

    fn comment(&self, pr: PrNumber, login: &str, body: &str) -> u64 {
        self.forge.write_comment(pr, login, body)
    }

    fn label(&self, pr: PrNumber, label: &str) {
        self.forge.label(pr, label);
    }

    fn start_workflow(&self, id: u64, run: &WorkflowRun) {
        self.forge.start_workflow(id, run.clone());
    }

    fn comments(&self, pr: PrNumber) -> Vec<String> {
        self.forge.comments_on(pr)
    }

    fn statuses(&self, sha: &Sha) -> Vec<StatusState> {
        self.forge.statuses_on(sha)
    }

    fn reactions(&self, comment: u64) -> Vec<bool> {
        self.forge.reactions_to(comment)
    }

    fn is_open(&self, pr: PrNumber) -> bool {
        self.forge.is_open(pr)
    }

    fn drafts(&self) -> usize {
        self.forge.shown("draft").len()
    }

    fn quoted(&self, text: &str) -> String {
        format!("> {text}")
    }
}

signalbox_conformance::forge_conformance!(fresh());
