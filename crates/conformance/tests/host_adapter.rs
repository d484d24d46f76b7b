//! The example of a host adapter passes the suites of its ports.

#[path = "../examples/host_adapter/folder_host/mod.rs"]
mod folder_host;

use std::sync::Arc;

use async_trait::async_trait;
use folder_host::{FolderChecks, FolderHost, FolderWebhooks, signature};
use signalbox_conformance::checks_runner::{ChecksWorld, Ending};
use signalbox_conformance::git_host::HostWorld;
use signalbox_conformance::git_place::GitPlace;
use signalbox_conformance::webhook_decoder::{DecoderWorld, Delivery};
use signalbox_domain::ids::{BranchName, OrgId, PrNumber, RepoId, RepoName, RunId, Sha, TreeId};
use signalbox_domain::ports::{ChecksJob, ChecksRunner, GitHost, Hint, Repository, WebhookDecoder};
use signalbox_domain::queue::{Candidate, CheckConclusion, CheckReport, CheckStatus, RunChecks};
use signalbox_domain::time::Timestamp;
use uuid::Uuid;

struct World {
    place: GitPlace,
    host: Arc<FolderHost>,
    checks: FolderChecks,
    repository: Repository,
}

fn branch(name: &str) -> BranchName {
    BranchName::new(name).expect("a branch")
}

impl World {
    fn new() -> Self {
        let place = GitPlace::new("acme/calc.git");
        place.bare(&["init", "-q", "--bare"]);
        let host = Arc::new(FolderHost::new(place.folder()));
        let repository = Repository {
            id: RepoId(Uuid::from_u128(1)),
            org: OrgId(Uuid::from_u128(2)),
            name: RepoName::new("folder.test", "acme", "calc").expect("a name"),
            path: None,
            created_at: Timestamp::from_unix_seconds(0),
        };
        Self { place, checks: FolderChecks::new(host.clone()), host, repository }
    }
}

#[async_trait]
impl HostWorld for World {
    fn place(&self) -> &GitPlace {
        &self.place
    }

    fn host(&self) -> &dyn GitHost {
        self.host.as_ref()
    }

    fn repository(&self) -> &Repository {
        &self.repository
    }

    /// The host reads its repository itself.
    fn pushed(&self, _branch: &str) {}

    async fn open(&self, from: &str) -> PrNumber {
        self.host.open(&self.repository, &branch(from), &branch("main"))
    }

    async fn close(&self, pr: PrNumber) {
        self.host.close(&self.repository, pr);
    }

    fn knows_conflicting_paths(&self) -> bool {
        true
    }

    fn report(&self, commit: &Sha, name: &str) {
        let report = CheckReport {
            name: name.to_owned(),
            status: CheckStatus::Completed,
            conclusion: Some(CheckConclusion::Success),
            url: String::new(),
            summary: None,
            at: Timestamp::from_unix_seconds(0),
            excused: Vec::new(),
        };
        self.host.report(commit, report);
    }
}

signalbox_conformance::git_host_conformance!(async { World::new() });

#[async_trait]
impl ChecksWorld for World {
    fn runner(&self) -> &dyn ChecksRunner {
        &self.checks
    }

    async fn job(&self, configured: &[(&str, Ending)], required: &[&str]) -> ChecksJob {
        for (name, ending) in configured {
            let script = match ending {
                Ending::Success => "exit 0".to_owned(),
                Ending::Failure => "exit 1".to_owned(),
                // A child of the script holds the file open for as long as it lives.
                Ending::Never => {
                    let lock = self.place.folder().join("lock").display().to_string();
                    format!("flock {lock} sleep 300; exit 0")
                }
            };
            self.place.commit(&[(&format!("checks/{name}"), &script)], name);
        }
        let head = self.place.push("main");
        let tree = TreeId::new(self.place.tree(&head)).expect("a tree");
        ChecksJob {
            repository: self.repository.clone(),
            checks: RunChecks {
                run: RunId(Uuid::from_u128(3)),
                candidate: Candidate { sha: head.clone(), tree },
                branch: branch("signalbox-merge/pr-1/x"),
                target: branch("main"),
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

    /// The lock of a check that never ends can be taken once its process has exited.
    async fn nothing_runs(&self) {
        let lock = self.place.folder().join("lock").display().to_string();
        let mut taken = tokio::process::Command::new("flock");
        let taken = taken.args(["--timeout", "60", &lock, "true"]).status().await;
        assert!(taken.expect("flock can be run").success(), "a check is still running");
    }
}

signalbox_conformance::checks_runner_conformance!(async { World::new() });

const SECRET: &[u8] = b"secret";

struct Hooks(FolderWebhooks);

fn send(id: &str, line: &str) -> Delivery {
    let mut delivery = Delivery {
        headers: vec![("x-delivery".to_owned(), id.to_owned())],
        body: line.as_bytes().to_vec(),
    };
    put_signature(&mut delivery, SECRET);
    delivery
}

fn put_signature(delivery: &mut Delivery, secret: &[u8]) {
    let signed = signature(secret, &delivery.body);
    delivery.headers.retain(|(name, _)| name != "x-signature");
    delivery.headers.push(("x-signature".to_owned(), signed));
}

impl DecoderWorld for Hooks {
    fn decoder(&self) -> &dyn WebhookDecoder {
        &self.0
    }

    /// The hooks report branches only.
    fn delivery(&self, id: &str, hint: &Hint) -> Option<Delivery> {
        let Hint::Branch { name, at: Some(at) } = hint else { return None };
        Some(send(id, &format!("push acme/calc {name} {at}")))
    }

    fn irrelevant(&self, id: &str) -> Delivery {
        send(id, "ping acme/calc")
    }

    fn sign(&self, delivery: &mut Delivery) {
        put_signature(delivery, SECRET);
    }

    fn sign_as_stranger(&self, delivery: &mut Delivery) {
        put_signature(delivery, b"another secret");
    }
}

signalbox_conformance::webhook_decoder_conformance!(Hooks(FolderWebhooks::new(SECRET)));
