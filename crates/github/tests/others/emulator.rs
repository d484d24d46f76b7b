//! Our adapter works on an emulator of the host that others wrote. What it lacks is not tried here:
//! commit statuses, merges of branches, rulesets, trees of branches' heads, mergeability that is
//! not known yet.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use reqwest::Method;
use serde_json::{Value, json};
use signalbox_domain::ids::{BranchName, PrNumber, Sha};
use signalbox_domain::ports::{
    Announcement, Forge, GitHost, Permission, PullRequestQuery, Repository, TestPullRequest,
};
use signalbox_domain::queue::{Mergeability, PullRequestState};
use signalbox_github::{Credentials, GitHubHost};
use signalbox_testkit::github_double::fetched_path;

use crate::{adapter, repository, script};

/// A running emulator; it ends when its input does.
struct Emulator {
    program: Child,
    url: String,
    host: Arc<GitHubHost>,
    repository: Repository,
}

impl Drop for Emulator {
    fn drop(&mut self) {
        drop(self.program.kill());
        drop(self.program.wait());
    }
}

impl Emulator {
    fn start() -> Option<Self> {
        fetched_path("others/node_modules/emulate")?;
        let mut program = Command::new("node")
            .arg(script("emulator.mjs"))
            .arg(fetched_path("others")?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("node");
        let mut lines = BufReader::new(program.stdout.take().expect("its output")).lines();
        let said: Value = lines
            .by_ref()
            .map(|line| line.expect("a line"))
            .find_map(|line| serde_json::from_str(&line).ok())
            .expect("where it is");
        let text = |key: &str| said[key].as_str().expect("a text").to_owned();
        let credentials = Credentials::app(12_345, text("key").as_bytes()).expect("a key");
        let host = adapter(&text("url"), credentials);
        let repository = repository("acme", "calc");
        Some(Self { program, url: text("url"), host, repository })
    }

    /// A user with a token sends a request.
    async fn person(&self, method: Method, path: &str, body: Value) -> Value {
        let url = format!("{}/repos/acme/calc{path}", self.url);
        let http = reqwest::Client::new();
        let request = http.request(method, url).bearer_auth("ghp_for_tests_only").json(&body);
        let reply = request.header("user-agent", "a test").send().await.expect("a reply");
        let status = reply.status();
        let reply = reply.text().await.expect("a body");
        assert!(status.is_success(), "{path}: {status} {reply}");
        serde_json::from_str(&reply).unwrap_or_default()
    }

    async fn branch(&self, name: &str, file: &str) -> String {
        let main = self.person(Method::GET, "/git/ref/heads/main", json!({})).await;
        let at = &main["object"]["sha"];
        let made = json!({ "ref": format!("refs/heads/{name}"), "sha": at });
        self.person(Method::POST, "/git/refs", made).await;
        let content = json!({ "message": "x", "content": "eAo=", "branch": name });
        let made = self.person(Method::PUT, &format!("/contents/{file}"), content).await;
        made["commit"]["sha"].as_str().expect("a commit").to_owned()
    }

    async fn open(&self, branch: &str) -> PrNumber {
        let wanted = json!({ "title": "A change", "head": branch, "base": "main" });
        let made = self.person(Method::POST, "/pulls", wanted).await;
        PrNumber(u32::try_from(made["number"].as_u64().expect("a number")).expect("small"))
    }
}

fn branch(name: &str) -> BranchName {
    BranchName::new(name).expect("a branch")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_reads_shows_and_tidies_up() {
    let Some(emulator) = Emulator::start() else { return };
    let (host, repository) = (&emulator.host, &emulator.repository);
    assert_eq!(host.locate(repository).await.expect("an answer").as_deref(), Some("acme/calc"));
    let head = emulator.branch("topic", "b.txt").await;
    let pr = emulator.open("topic").await;
    for query in [PullRequestQuery::Number(pr), PullRequestQuery::Branch("topic".into())] {
        let seen = host.pull_request(repository, &query).await.expect("an answer").expect("it");
        assert_eq!((seen.number, seen.head.as_str()), (pr, head.as_str()));
        assert_eq!((seen.base.as_str(), seen.state), ("main", PullRequestState::Open));
        assert_eq!(seen.mergeability, Mergeability::Mergeable);
    }
    let missing = PullRequestQuery::Number(PrNumber(99));
    assert_eq!(host.pull_request(repository, &missing).await.expect("an answer"), None);

    let main = emulator.person(Method::GET, "/git/ref/heads/main", json!({})).await;
    let main = Sha::new(main["object"]["sha"].as_str().expect("a text")).expect("a commit");
    assert_eq!(host.head(repository, &branch("nowhere")).await.expect("an answer"), None);
    let required = host.required_statuses(repository, &branch("main"), &main).await;
    assert_eq!(required.expect("an answer").branch_protection, None);
    let rules = json!({
        "required_status_checks": { "strict": false, "contexts": ["test", "lint"] },
        "enforce_admins": false, "required_pull_request_reviews": null, "restrictions": null,
    });
    emulator.person(Method::PUT, "/branches/main/protection", rules).await;

    let show = |text: &str| Announcement {
        pr,
        queue: branch("main"),
        status: None,
        comment: Some(text.to_owned()),
        labels: Some((vec!["queued".into()], vec!["failed".into()])),
    };
    for text in ["it waits", "it is tested"] {
        host.announce(repository, &show(text)).await.expect("shown");
    }
    let comments = format!("/issues/{pr}/comments");
    let comments = emulator.person(Method::GET, &comments, json!({})).await;
    let comments = comments.as_array().expect("a list");
    assert_eq!(comments.len(), 1, "one comment, edited: {comments:?}");
    assert!(comments[0]["body"].as_str().is_some_and(|it| it.ends_with("it is tested")));
    assert_eq!(host.labels(repository, pr).await.expect("labels"), ["queued"]);
    assert_eq!(host.permission(repository, "acme").await.expect("one"), Permission::Admin);

    emulator.branch("signalbox-merge/pr-1/x", "c.txt").await;
    let draft = TestPullRequest {
        branch: branch("signalbox-merge/pr-1/x"),
        target: branch("main"),
        title: "For tests".into(),
        body: "No merging".into(),
    };
    for _ in 0..2 {
        host.open_test_pull_request(repository, &draft).await.expect("opened, or there");
    }
    let found = host.test_branches(repository).await.expect("branches");
    let names: Vec<&str> = found.iter().map(|it| it.branch.as_str()).collect();
    assert_eq!(names, ["signalbox-merge/pr-1/x"]);
    let elsewhere = Sha::new("1".repeat(40)).expect("a commit");
    let delete = async |at| host.delete_branch(repository, &found[0].branch, at).await;
    delete(Some(&elsewhere)).await.expect("nothing is done");
    assert_eq!(host.test_branches(repository).await.expect("branches").len(), 1);
    delete(Some(&found[0].sha)).await.expect("deleted");
    assert!(host.test_branches(repository).await.expect("branches").is_empty());
    delete(None).await.expect("it is gone");
}
