//! What every checks runner promises, of the one that runs checks on this machine.

use std::time::Duration;

use async_trait::async_trait;
use signalbox_conformance::checks_runner::{ChecksWorld, Ending};
use signalbox_domain::ids::{BranchName, PrNumber, RunId, TreeId};
use signalbox_domain::ports::{ChecksJob, ChecksRunner};
use signalbox_domain::queue::{Candidate, RunChecks};
use signalbox_git::LocalChecksRunner;
use uuid::Uuid;

use crate::World;
use crate::checks::{Reports, runner};

struct Machine {
    world: World,
    runner: LocalChecksRunner,
}

impl Machine {
    async fn new() -> Self {
        let world = World::new().await;
        let runner = runner(&world, &Reports::default());
        Self { world, runner }
    }
}

#[async_trait]
impl ChecksWorld for Machine {
    fn runner(&self) -> &dyn ChecksRunner {
        &self.runner
    }

    async fn job(&self, configured: &[(&str, Ending)], required: &[&str]) -> ChecksJob {
        let mut config = String::new();
        for (name, ending) in configured {
            let script = match ending {
                Ending::Success => "exit 0",
                Ending::Failure => "exit 1",
                Ending::Never => "sleep 300",
            };
            let check =
                format!("[[checks]]\nname = \"{name}\"\nrun = [\"sh\", \"-c\", \"{script}\"]\n");
            config.push_str(&check);
        }
        self.world.commit(&[(".signalbox.toml", &config)], "base");
        let head = self.world.push("main");
        let tree = TreeId::new(self.world.tree(&head)).expect("a tree");
        ChecksJob {
            repository: self.world.repository.clone(),
            checks: RunChecks {
                run: RunId(Uuid::new_v4()),
                candidate: Candidate { sha: head.clone(), tree },
                branch: BranchName::new("signalbox-merge/pr-1/x").expect("a branch"),
                target: BranchName::new("main").expect("a branch"),
                config_from: head,
                prs: vec![PrNumber(1)],
                again: Vec::new(),
                required: required.iter().map(ToString::to_string).collect(),
            },
        }
    }

    fn knows_what_is_configured(&self) -> bool {
        true
    }

    /// Every process of a check has the folder of its job in its environment.
    async fn nothing_runs(&self) {
        let folder = self.world.folder().join("checks").display().to_string();
        let runs = || {
            let processes = std::fs::read_dir("/proc").expect("the processes").flatten();
            let environments = processes.map(|it| std::fs::read(it.path().join("environ")));
            environments.flatten().any(|bytes| String::from_utf8_lossy(&bytes).contains(&folder))
        };
        while runs() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

signalbox_conformance::checks_runner_conformance!(Machine::new());
