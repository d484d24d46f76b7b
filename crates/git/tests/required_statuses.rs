//! Which statuses a repository requires: its own file comes first, then the file of another merge
//! queue; errors in either are reported.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use signalbox_domain::ids::{BranchName, OrgId, RepoId, RepoName, Sha};
use signalbox_domain::ports::{GitHost, Repository};
use signalbox_domain::queue::HostStatuses;
use signalbox_domain::testing::ManualClock;
use signalbox_git::{HostConfig, PlainGitHost};
use signalbox_testkit::memory::MemoryDatabase;
use tempfile::TempDir;
use uuid::Uuid;

const CHECKS: &str = "[[checks]]\nname = \"test\"\nrun = [\"make\"]\n";
const OWN_LIST: &str = "[merge]\nrequired_statuses = [\"lint\"]\n";
const TRUNK: &str = "version: 0.1\nmerge:\n  required_statuses: [build, unit]\n";

fn git(folder: &Path, args: &[&str]) -> String {
    let done = Command::new("git")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-C"])
        .arg(folder)
        .args(args)
        .output()
        .expect("git can be run");
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).trim_end().to_owned()
}

/// The required statuses at a commit with these files.
async fn required(files: &[(&str, &[u8])]) -> HostStatuses {
    let folder = TempDir::new().expect("a folder");
    let (work, bare) = (folder.path().join("work"), folder.path().join("git/acme/calc.git"));
    for folder in [&work, &bare] {
        std::fs::create_dir_all(folder).expect("a folder");
    }
    git(&bare, &["init", "-q", "--bare"]);
    git(&work, &["init", "-q"]);
    for (name, content) in files {
        let path = work.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, content).expect("written");
    }
    git(&work, &["add", "-A"]);
    git(&work, &["commit", "-q", "--allow-empty", "-m", "first"]);
    git(&work, &["push", "-q", &bare.display().to_string(), "HEAD:refs/heads/main"]);
    let head = Sha::new(git(&work, &["rev-parse", "HEAD"])).expect("a commit");
    let clock = Arc::new(ManualClock::default());
    let repository = Repository {
        id: RepoId(Uuid::from_u128(1)),
        org: OrgId(Uuid::from_u128(2)),
        name: RepoName::new("git.local", "acme", "calc").expect("a name"),
        path: None,
        created_at: signalbox_domain::time::Timestamp::from_unix_seconds(0),
    };
    let root = Some(folder.path().join("git"));
    let config = HostConfig { root, public_url: "http://localhost".into() };
    let host = PlainGitHost::new(config, MemoryDatabase::new().stores().host.pull_requests, clock);
    let main = BranchName::new("main").expect("a branch");
    host.required_statuses(&repository, &main, &head).await.expect("an answer")
}

async fn names(own: Option<&str>, trunk: Option<&str>) -> Option<Vec<String>> {
    let own = own.map(|text| (".signalbox.toml", text.as_bytes()));
    let trunk = trunk.map(|text| (".trunk/trunk.yaml", text.as_bytes()));
    let files: Vec<_> = own.into_iter().chain(trunk).collect();
    let statuses = required(&files).await;
    assert_eq!(statuses.repository_error, None);
    statuses.repository
}

fn list(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn the_own_list_counts_first_then_the_one_brought_along_then_every_check() {
    let own_with_list = format!("{OWN_LIST}{CHECKS}");
    assert_eq!(names(Some(&own_with_list), Some(TRUNK)).await, Some(list(&["lint"])));
    assert_eq!(names(Some(CHECKS), Some(TRUNK)).await, Some(list(&["build", "unit"])));
    assert_eq!(names(None, Some(TRUNK)).await, Some(list(&["build", "unit"])));
    assert_eq!(names(Some(CHECKS), Some("version: 0.1\n")).await, Some(list(&["test"])));
    assert_eq!(names(None, Some("version: 0.1\n")).await, None);
    assert_eq!(names(None, None).await, None);
}

#[tokio::test]
async fn an_invalid_file_is_named_unless_another_one_applies() {
    let big = vec![b'#'; 256 * 1024 + 1];
    for (content, words) in [
        (&b"merge: {required_statuses: 7}"[..], "merge.required_statuses"),
        (b"merge: {required_statuses: [\xff]}", "not UTF-8"),
        (&big, "larger than 262144 bytes"),
    ] {
        let trunk = (".trunk/trunk.yaml", content);
        let statuses = required(&[(".signalbox.toml", CHECKS.as_bytes()), trunk]).await;
        let error = statuses.repository_error.expect("an error");
        assert!(error.starts_with(".trunk/trunk.yaml: ") && error.contains(words), "{error}");
        let statuses = required(&[(".signalbox.toml", OWN_LIST.as_bytes()), trunk]).await;
        assert_eq!((statuses.repository_error, statuses.repository), (None, Some(list(&["lint"]))));
    }
    let folder = required(&[(".trunk/trunk.yaml/file", b"")]).await;
    let error = folder.repository_error.expect("an error");
    assert_eq!(error, ".trunk/trunk.yaml: not a file");
}
