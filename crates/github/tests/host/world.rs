//! A double, an adapter that talks to it, and a place to make commits.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use signalbox_domain::ids::{OrgId, RepoId, RepoName};
use signalbox_domain::ports::{Built, GitHost, LandAnswer, Repository};
use signalbox_domain::queue::{BuildCandidate, Candidate, Land};
use signalbox_domain::testing::ManualClock;
use signalbox_domain::time::{Span, Timestamp};
use signalbox_git::{Limits, Mirrors};
use signalbox_github::{Credentials, GitHubConfig, GitHubHost, Verify};
use signalbox_testkit::github_double::{GitHubDouble, Workplace};
use uuid::Uuid;

pub(crate) const TOKEN: &str = "ghp_for_tests_only";

pub(crate) struct World {
    place: Workplace,
    pub(crate) host: Arc<GitHubHost>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) repository: Repository,
}

impl Drop for World {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert!(self.temporary().lines().count() <= 1, "a bench is used again");
        }
    }
}

impl Deref for World {
    type Target = Workplace;

    fn deref(&self) -> &Workplace {
        &self.place
    }
}

pub(crate) fn config(url: &str, credentials: Credentials) -> GitHubConfig {
    GitHubConfig {
        host: "github.com".into(),
        api_url: url.into(),
        credentials,
        credentials_file: None,
        webhook_secrets: vec!["secret".into()],
        reread_after: Span::minutes(10),
        command_prefix: "/signalbox".into(),
        public_url: "https://queue.example".into(),
        verify: Verify::Diff,
        pace_writes: false,
    }
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(Credentials::token(TOKEN).expect("a token"), |_| {})
    }

    pub(crate) fn with(credentials: Credentials, prepare: impl FnOnce(&GitHubDouble)) -> Self {
        Self::connected(credentials, |config| config, prepare, |host, _| host)
    }

    /// A world whose adapter paces its writes.
    pub(crate) fn paced() -> Self {
        let credentials = Credentials::token(TOKEN).expect("a token");
        let paced = |config| GitHubConfig { pace_writes: true, ..config };
        Self::connected(credentials, paced, |_| {}, |host, _| host)
    }

    /// A world whose candidates are computed again in a mirror with these limits.
    pub(crate) fn recomputing(credentials: Credentials, limits: Limits) -> Self {
        Self::recomputing_with(credentials, limits, |_| {})
    }

    pub(crate) fn recomputing_with(
        credentials: Credentials,
        limits: Limits,
        prepare: impl FnOnce(&GitHubDouble),
    ) -> Self {
        let recomputer = Arc::new(Mirrors::new(limits));
        let local = |config| GitHubConfig { verify: Verify::Local, ..config };
        Self::connected(credentials, local, prepare, |host, folder| {
            host.recomputing(recomputer, folder.join("mirrors"))
        })
    }

    /// The mirror of the repository.
    pub(crate) fn mirror(&self) -> PathBuf {
        self.folder().join("mirrors/acme/calc.git")
    }

    fn connected(
        credentials: Credentials,
        adjust: impl FnOnce(GitHubConfig) -> GitHubConfig,
        prepare: impl FnOnce(&GitHubDouble),
        complete: impl FnOnce(GitHubHost, &Path) -> GitHubHost,
    ) -> Self {
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let place = Workplace::new(TOKEN);
        prepare(&place.double);
        let clock = Arc::new(ManualClock::at(time_now()));
        let config = adjust(config(&place.double.url, credentials));
        let host = GitHubHost::new(config, clock.clone()).expect("a host");
        let host = complete(host, place.folder());
        let repository = Repository {
            id: RepoId(Uuid::new_v4()),
            org: OrgId(Uuid::new_v4()),
            name: RepoName::new("github.com", "acme", "calc").expect("a name"),
            path: None,
            created_at: Timestamp::from_unix_seconds(0),
        };
        Self { place, host: Arc::new(host), clock, repository }
    }

    pub(crate) async fn build(&self, build: &BuildCandidate) -> Built {
        self.host.build_candidate(&self.repository, build).await.expect("an answer")
    }

    pub(crate) async fn candidate(&self, build: &BuildCandidate) -> Candidate {
        match self.build(build).await {
            Built::Candidate { candidate, .. } => candidate,
            other @ (Built::Conflict { .. } | Built::MergedBefore { .. } | Built::Mismatch(_)) => {
                panic!("{other:?}")
            }
        }
    }

    pub(crate) async fn land(&self, order: &Land) -> LandAnswer {
        self.host.land(&self.repository, order).await.expect("an answer")
    }

    /// The temporary branches that are on the host.
    pub(crate) fn temporary(&self) -> String {
        self.bare(&["for-each-ref", "--format=%(refname)", "refs/heads/signalbox-temp"])
    }
}

pub(crate) fn time_now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seconds = since.expect("after 1970").as_secs();
    Timestamp::from_unix_seconds(i64::try_from(seconds).expect("small"))
}
