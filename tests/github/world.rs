//! A double, an adapter that talks to it, and a place to make commits.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use signalbox_domain::ids::{BranchName, OrgId, PrNumber, RepoId, RepoName, RunId, Sha};
use signalbox_domain::ports::{Built, GitHost, LandAnswer, Repository};
use signalbox_domain::queue::{BuildCandidate, Candidate, Change, Land, MergeMethod};
use signalbox_domain::testing::ManualClock;
use signalbox_domain::time::Timestamp;
use signalbox_github::{Credentials, GitHubConfig, GitHubHost};
use signalbox_testkit::github_double::GitHubDouble;
use tempfile::TempDir;
use uuid::Uuid;

use crate::contract;

pub(crate) const TOKEN: &str = "ghp_for_tests_only";

pub(crate) struct World {
    folder: TempDir,
    pub(crate) double: GitHubDouble,
    pub(crate) host: Arc<GitHubHost>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) repository: Repository,
}

fn git_in(folder: &Path, args: &[&str]) -> Output {
    Command::new("git")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"])
        .args(["-c", "init.defaultBranch=main", "-C"])
        .arg(folder)
        .args(args)
        .output()
        .expect("git can be run")
}

pub(crate) fn config(url: &str, credentials: Credentials) -> GitHubConfig {
    GitHubConfig {
        host: "github.com".into(),
        api_url: url.into(),
        credentials,
        webhook_secrets: vec!["secret".into()],
        command_prefix: "/signalbox".into(),
        public_url: "https://queue.example".into(),
    }
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(Credentials::token(TOKEN).expect("a token"), |_| {})
    }

    pub(crate) fn with(credentials: Credentials, prepare: impl FnOnce(&GitHubDouble)) -> Self {
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let folder = TempDir::new().expect("a folder");
        let bare = folder.path().join("bare.git");
        let double = GitHubDouble::start(&bare, "acme", "calc", TOKEN);
        prepare(&double);
        let clock = Arc::new(ManualClock::at(time_now()));
        let host = GitHubHost::new(config(&double.url, credentials), clock.clone());
        let repository = Repository {
            id: RepoId(Uuid::new_v4()),
            org: OrgId(Uuid::new_v4()),
            name: RepoName::new("github.com", "acme", "calc").expect("a name"),
            path: None,
            created_at: Timestamp::from_unix_seconds(0),
        };
        let host = Arc::new(host.expect("a host"));
        let world = Self { folder, double, host, clock, repository };
        std::fs::create_dir(world.work()).expect("a folder");
        world.git(&["init", "-q"]);
        world
    }

    fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        let done = git_in(&self.work(), args);
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim_end().to_owned()
    }

    pub(crate) fn bare(&self, args: &[&str]) -> String {
        let done = git_in(&self.folder.path().join("bare.git"), args);
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim_end().to_owned()
    }

    pub(crate) fn commit(&self, files: &[(&str, &str)], title: &str) {
        for (name, text) in files {
            let path = self.work().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", title]);
    }

    pub(crate) fn push(&self, branch: &str) -> Sha {
        let bare = self.folder.path().join("bare.git").display().to_string();
        self.git(&["push", "-q", "-f", &bare, branch]);
        self.double.pushed(branch);
        Sha::new(self.git(&["rev-parse", branch])).expect("a commit")
    }

    /// A branch on `from` with one commit; pushed.
    pub(crate) fn branch(&self, name: &str, from: &str, files: &[(&str, &str)]) -> Sha {
        self.git(&["checkout", "-q", "-B", name, from]);
        self.commit(files, &format!("change {name}"));
        self.push(name)
    }

    /// A pull request from a new branch.
    pub(crate) fn open(&self, name: &str, files: &[(&str, &str)]) -> Change {
        let head = self.branch(name, "main", files);
        let number = self.double.open(name, "main", &format!("change {name}"));
        change(u32::try_from(number).expect("small"), &head)
    }

    pub(crate) async fn build(&self, build: &BuildCandidate) -> Built {
        self.host.build_candidate(&self.repository, build).await.expect("an answer")
    }

    pub(crate) async fn candidate(&self, build: &BuildCandidate) -> Candidate {
        match self.build(build).await {
            Built::Candidate { candidate, .. } => candidate,
            conflict @ Built::Conflict { .. } => panic!("{conflict:?}"),
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

impl Drop for World {
    /// Whatever a test was about: every request must be one that the host's description allows.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            contract::check(&self.double.log());
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the double checks the times in tokens")]
pub(crate) fn time_now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seconds = since.expect("after 1970").as_secs();
    Timestamp::from_unix_seconds(i64::try_from(seconds).expect("small"))
}

pub(crate) fn change(pr: u32, head: &Sha) -> Change {
    Change {
        pr: PrNumber(pr),
        head: head.clone(),
        title: format!("change {pr}"),
        body: String::new(),
        author: "ada".into(),
    }
}

pub(crate) fn build(head: &Sha, changes: Vec<Change>, method: MergeMethod) -> BuildCandidate {
    let run = RunId(Uuid::new_v4());
    BuildCandidate {
        run,
        target: BranchName::new("main").expect("a branch"),
        target_head: head.clone(),
        base: head.clone(),
        before: Vec::new(),
        direct: false,
        ahead: Vec::new(),
        changes,
        method,
        branch: BranchName::new(format!("signalbox-merge/pr-1/{run}")).expect("a branch"),
    }
}

pub(crate) fn land(build: &BuildCandidate, candidate: &Candidate) -> Land {
    Land {
        run: build.run,
        target: build.target.clone(),
        expected: build.target_head.clone(),
        candidate: candidate.clone(),
        exact: true,
        changes: build.changes.clone(),
        method: build.method,
    }
}
