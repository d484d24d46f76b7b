//! Public client libraries drive our double: what they make of its answers is what the repository
//! behind it says.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use signalbox_conformance::git_place::GitPlace;
use signalbox_testkit::github_double::{GitHubDouble, fetched_path};

use crate::script;

const TOKEN: &str = "ghp_for_tests_only";

/// Lets a script of that interpreter work in a repository with a branch `topic`, and checks what
/// it saw.
fn drives(interpreter: &str, name: &str, library: &str, mark: &str) {
    if fetched_path(&format!("others/{library}")).is_none() {
        return;
    }
    let folder = fetched_path("others").expect("a folder");
    let _installed = rustls::crypto::ring::default_provider().install_default();
    // Not held against the description of the host: what they send is theirs.
    let place = GitPlace::new("bare.git");
    let double = GitHubDouble::start(&place.bare_folder(), "acme", "calc", TOKEN);
    place.commit(&[("a.txt", "base\n")], "base");
    let main = place.push("main");
    place.branch("topic", "main", &[("b.txt", "b\n")]);
    place.push("topic");
    let run = Command::new(interpreter)
        .arg(script(name))
        .args([folder.as_path(), Path::new(&double.url), Path::new(TOKEN)])
        .output()
        .expect("the interpreter");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let seen: Value = serde_json::from_slice(&run.stdout).expect("JSON");
    let landed = place.bare(&["rev-parse", "main"]);
    assert_eq!(place.bare(&["show", "main:b.txt"]), "b", "it has landed");
    let wanted = json!({
        "repository": "acme/calc", "main": main.as_str(), "listed": [1],
        "statuses": [format!("by-{mark}: success")], "comments": ["two"], "labels": ["queued"],
        "bench": true, "compared": ["ahead", 1, ["b.txt"]], "gone": 404, "wrong_head": 409,
        "landed": landed, "merged": true,
    });
    for (key, value) in wanted.as_object().expect("an object") {
        assert_eq!(&seen[key], value, "{key}: {seen}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn octokit_drives_the_double() {
    drives("node", "octokit.mjs", "node_modules/@octokit/rest", "octokit");
}

#[tokio::test(flavor = "multi_thread")]
async fn pygithub_drives_the_double() {
    drives("python3", "pygithub.py", "python/github", "pygithub");
}
