//! What every forge promises.

use async_trait::async_trait;
use serde_json::json;
use signalbox_conformance::forge::ForgeWorld;
use signalbox_domain::ids::{BranchName, PrNumber, Sha};
use signalbox_domain::ports::{Forge, Permission, Repository, StatusState, WorkflowRun};

use crate::world::World;

struct People(World);

impl People {
    fn new() -> Self {
        let world = World::new();
        world.commit(&[("a.txt", "base\n")], "base");
        world.push("main");
        Self(world)
    }
}

fn number(pr: PrNumber) -> u64 {
    u64::from(pr.0)
}

#[async_trait]
impl ForgeWorld for People {
    fn forge(&self) -> &dyn Forge {
        self.0.host.as_ref()
    }

    fn repository(&self) -> &Repository {
        &self.0.repository
    }

    async fn open(&self, branch: &str) -> (PrNumber, Sha) {
        let change = self.0.open(branch, &[("b.txt", branch)]);
        (change.pr, change.head)
    }

    async fn push(&self, _pr: PrNumber, branch: &str) -> Sha {
        self.0.branch(branch, branch, &[("c.txt", "c\n")])
    }

    async fn test_branch(&self) -> BranchName {
        let name = "signalbox-merge/pr-1/x";
        self.0.branch(name, "main", &[("d.txt", "d\n")]);
        BranchName::new(name).expect("a branch")
    }

    fn permit(&self, login: &str, permission: Permission) {
        let word = match permission {
            Permission::Admin => "admin",
            Permission::Write => "write",
            Permission::Read => "read",
            Permission::None => "none",
        };
        self.0.double.permit(login, word);
    }

    fn comment(&self, pr: PrNumber, login: &str, body: &str) -> u64 {
        self.0.double.comment(number(pr), login, body)
    }

    fn label(&self, pr: PrNumber, label: &str) {
        self.0.double.label(number(pr), "eve", label);
    }

    fn start_workflow(&self, id: u64, run: &WorkflowRun) {
        let owner = if run.from_fork { "eve" } else { "acme" };
        let status = if run.live { "in_progress" } else { "completed" };
        let told = json!({
            "id": id, "status": status, "event": "pull_request", "head_sha": run.head.as_str(),
            "head_repository": {"full_name": format!("{owner}/calc")},
            "repository": {"full_name": "acme/calc"},
        });
        self.0.double.add_workflow_run(id, told);
    }

    fn comments(&self, pr: PrNumber) -> Vec<String> {
        self.0.double.comments(number(pr)).into_iter().map(|(_, body)| body).collect()
    }

    fn statuses(&self, sha: &Sha) -> Vec<StatusState> {
        let state = |word: &str| match word {
            "pending" => StatusState::Pending,
            "success" => StatusState::Success,
            "failure" => StatusState::Failure,
            other => panic!("{other} is not a state that is shown"),
        };
        let shown = self.0.double.statuses(sha.as_str());
        shown.into_iter().map(|(_, word)| state(&word)).collect()
    }

    fn reactions(&self, comment: u64) -> Vec<bool> {
        self.0.double.reactions(comment).into_iter().map(|content| content == "+1").collect()
    }

    fn is_open(&self, pr: PrNumber) -> bool {
        self.0.double.pull(number(pr)).0
    }

    fn drafts(&self) -> usize {
        self.0.double.drafts().len()
    }

    fn quoted(&self, text: &str) -> String {
        format!("> {text}")
    }
}

signalbox_conformance::forge_conformance!(async { People::new() });
