//! The host's own examples of what it tells.

use std::sync::Arc;

use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value;
use sha2::Sha256;
use signalbox_domain::ports::{Hint, WebhookDecoder};
use signalbox_domain::testing::ManualClock;
use signalbox_github::{Credentials, GitHubHost};

use signalbox_testkit::github_double::fetched;

use crate::world::config;

fn signed(body: &[u8]) -> String {
    let mac = Hmac::<Sha256>::new_from_slice(b"secret").expect("any length");
    let bytes = mac.chain_update(body).finalize().into_bytes();
    format!("sha256={}", HEXLOWER.encode(&bytes))
}

#[test]
fn every_published_example_is_read_and_gives_what_it_should() {
    let Some(published) = fetched("webhooks.json") else { return };
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let token = Credentials::token("t").expect("a token");
    let config = config("https://api.github.com", token);
    let host = GitHubHost::new(config, Arc::new(ManualClock::default())).expect("a host");
    let (mut read, mut hinted) = (0, std::collections::BTreeMap::<String, u32>::new());
    for definition in published.as_array().expect("a list") {
        let event = definition["name"].as_str().expect("a name");
        for example in definition["examples"].as_array().expect("examples") {
            let body = example.to_string();
            let header = |name: &str| match name {
                "x-hub-signature-256" => Some(signed(body.as_bytes())),
                "x-github-delivery" => Some("d".to_owned()),
                "x-github-event" => Some(event.to_owned()),
                _ => None,
            };
            let heard = host.decode(&header, body.as_bytes());
            let heard = heard.unwrap_or_else(|error| panic!("{event}: {error}"));
            let named = example["repository"]["full_name"].as_str();
            let shown = heard.repository.as_ref().map(|(owner, name)| format!("{owner}/{name}"));
            assert_eq!(shown.as_deref(), named, "{event}");
            read += 1;
            if let Some(hint) = heard.hints.first() {
                *hinted.entry(event.to_owned()).or_default() += 1;
                check(event, example, hint);
            }
        }
    }
    assert!(read > 200, "{read} examples");
    for event in ["pull_request", "check_run", "check_suite", "status", "push", "issue_comment"] {
        // The published comments are all on issues.
        assert!(hinted.contains_key(event) || event == "issue_comment", "{event}: {hinted:?}");
    }
    let expected = [
        "pull_request",
        "pull_request_review",
        "pull_request_review_thread",
        "check_run",
        "check_suite",
        "workflow_run",
        "status",
        "push",
        "issue_comment",
    ];
    assert!(hinted.keys().all(|it| expected.contains(&it.as_str())), "{hinted:?}");
}

fn check(event: &str, example: &Value, hint: &Hint) {
    match hint {
        Hint::PullRequest(pr) | Hint::Labelled { pr, .. } | Hint::Unlabelled { pr, .. } => {
            let number = example["pull_request"]["number"].as_u64();
            assert_eq!(number, Some(u64::from(pr.0)), "{event}");
        }
        Hint::Checks(sha) => {
            let told = example[event]["head_sha"].as_str().or(example["sha"].as_str());
            assert_eq!(told, Some(sha.as_str()), "{event}");
        }
        Hint::Branch { name, .. } => {
            let full = format!("refs/heads/{name}");
            assert_eq!(example["ref"].as_str(), Some(full.as_str()));
        }
        Hint::Comment { id, .. } => assert_eq!(example["comment"]["id"].as_u64(), Some(*id)),
    }
}
