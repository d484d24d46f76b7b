//! What every checks runner promises, of the one that follows the host's CI.

use async_trait::async_trait;
use signalbox_conformance::checks_runner::{ChecksWorld, Ending};
use signalbox_domain::ids::{BranchName, PrNumber, RunId, TreeId};
use signalbox_domain::ports::{ChecksJob, ChecksRunner};
use signalbox_domain::queue::{Candidate, RunChecks};
use signalbox_github::GitHubChecks;
use uuid::Uuid;

use crate::world::World;

struct Followed {
    world: World,
    runner: GitHubChecks,
}

impl Followed {
    fn new() -> Self {
        let world = World::new();
        world.commit(&[("a.txt", "base\n")], "base");
        world.push("main");
        let runner = GitHubChecks::new(world.host.clone());
        Self { world, runner }
    }
}

#[async_trait]
impl ChecksWorld for Followed {
    fn runner(&self) -> &dyn ChecksRunner {
        &self.runner
    }

    /// The host's CI is as far as it comes before the runner looks.
    async fn job(&self, configured: &[(&str, Ending)], required: &[&str]) -> ChecksJob {
        let main = self.world.push("main");
        let sha = self.world.branch("candidate", "main", &[("b.txt", "b\n")]);
        for (name, ending) in configured {
            let (status, conclusion) = match ending {
                Ending::Success => ("completed", Some("success")),
                Ending::Failure => ("completed", Some("failure")),
                Ending::Never => ("in_progress", None),
            };
            self.world.double.report(sha.as_str(), name, status, conclusion);
        }
        let tree = TreeId::new(self.world.tree(&sha)).expect("a tree");
        ChecksJob {
            repository: self.world.repository.clone(),
            checks: RunChecks {
                run: RunId(Uuid::new_v4()),
                candidate: Candidate { sha, tree },
                branch: BranchName::new("signalbox-merge/pr-1/x").expect("a branch"),
                target: BranchName::new("main").expect("a branch"),
                config_from: main,
                prs: vec![PrNumber(1)],
                again: Vec::new(),
                required: required.iter().map(ToString::to_string).collect(),
            },
        }
    }

    fn knows_what_is_configured(&self) -> bool {
        false
    }

    /// Nothing is run here.
    async fn nothing_runs(&self) {}
}

signalbox_conformance::checks_runner_conformance!(async { Followed::new() });
