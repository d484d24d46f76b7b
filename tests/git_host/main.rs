//! The plain git host on real repositories: it keeps the promises of a git host, and runs checks.
#![expect(clippy::disallowed_methods, reason = "tests make ids and clocks of their own")]

mod agent;
mod checks;
mod checks_runner;
mod containers;
mod engine;
mod faults;
mod hostile_content;
mod locks;
mod proof;
mod sandbox;
mod snapshots;

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use signalbox_conformance::git_host::HostWorld;
use signalbox_conformance::git_place::GitPlace;
use signalbox_domain::ids::{BranchName, OrgId, OrgSlug, PrNumber, RepoId, RepoName, Sha};
use signalbox_domain::ports::{GitHost, HostError, Org, PullRequestStore, Repository};
use signalbox_domain::testing::ManualClock;
use signalbox_domain::time::Timestamp;
use signalbox_git::{HostConfig, OpenRequest, PlainGitHost};
use uuid::Uuid;

struct World {
    place: GitPlace,
    host: Arc<PlainGitHost>,
    repository: Repository,
    store: Arc<dyn PullRequestStore>,
}

impl Deref for World {
    type Target = GitPlace;

    fn deref(&self) -> &GitPlace {
        &self.place
    }
}

impl World {
    async fn new() -> Self {
        let place = GitPlace::new("git/acme/calc.git");
        let url = format!("sqlite://{}", place.folder().join("test.db").display());
        let database = signalbox_persistence::connect(&url).await.expect("a database");
        database.migrate().await.expect("migrated");
        let stores = database.stores();
        let slug = OrgSlug::new("acme").expect("a slug");
        let at = Timestamp::from_unix_seconds(0);
        let org = Org { id: OrgId(Uuid::new_v4()), slug, created_at: at };
        stores.account.orgs.create(&org).await.expect("an organization");
        let root = place.folder().join("git");
        let repository = Repository {
            id: RepoId(Uuid::new_v4()),
            org: org.id,
            name: RepoName::new("git.local", "acme", "calc").expect("a name"),
            path: None,
            created_at: at,
        };
        stores.account.repos.register(&repository, false).await.expect("a repository");
        let (clock, store) = (ManualClock::default(), stores.host.pull_requests);
        let host = Arc::new(plain_host(root, store.clone(), clock));
        place.bare(&["init", "-q", "--bare"]);
        Self { place, host, repository, store }
    }

    /// Another host on the same repository, at another time.
    fn host_at(&self, clock: ManualClock) -> PlainGitHost {
        plain_host(self.place.folder().join("git"), self.store.clone(), clock)
    }

    async fn try_open(&self, branch: &str) -> Result<PrNumber, HostError> {
        let name = |text: &str| BranchName::new(text).expect("a branch");
        let request = OpenRequest {
            branch: name(branch),
            target: name("main"),
            title: None,
            body: None,
            author: None,
        };
        self.host.open_pull_request(&self.repository, request).await.map(|it| it.number)
    }
}

fn plain_host(root: PathBuf, store: Arc<dyn PullRequestStore>, clock: ManualClock) -> PlainGitHost {
    let config = HostConfig { root: Some(root), public_url: "http://localhost".into() };
    PlainGitHost::new(config, store, Arc::new(clock))
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

    /// It polls on its own.
    fn pushed(&self, _branch: &str) {}

    async fn open(&self, branch: &str) -> PrNumber {
        self.try_open(branch).await.expect("opened")
    }

    async fn close(&self, pr: PrNumber) {
        self.host.close_pull_request(&self.repository, pr).await.expect("closed");
    }

    fn knows_conflicting_paths(&self) -> bool {
        true
    }

    fn report(&self, commit: &Sha, name: &str) {
        let text = format!("{name}: success");
        let note = ["notes", "--ref=signalbox-statuses", "add", "-m", &text, commit.as_str()];
        self.place.bare(&note);
    }
}

signalbox_conformance::git_host_conformance!(World::new());

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_that_is_not_there_is_named() {
    let world = World::new().await;
    let missing = world.try_open("no-such-branch").await;
    assert!(matches!(missing, Err(HostError::NotFound { .. })), "{missing:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_squash_names_all_of_its_authors() {
    signalbox_conformance::git_host::a_squash_names_all_of_its_authors(&World::new().await).await;
}
