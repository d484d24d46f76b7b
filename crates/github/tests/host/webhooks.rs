//! Deliveries: what every decoder promises, and the host's own examples.

use std::sync::Arc;

use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;
use signalbox_conformance::webhook_decoder::{DecoderWorld, Delivery};
use signalbox_domain::ids::PrNumber;
use signalbox_domain::ports::{Hint, WebhookDecoder};
use signalbox_domain::testing::ManualClock;
use signalbox_github::{Credentials, GitHubHost};

use signalbox_testkit::github_double::fetched;

use crate::world::config;

fn signed(body: &[u8]) -> String {
    signed_with(b"secret", body)
}

fn signed_with(secret: &[u8], body: &[u8]) -> String {
    let mac = Hmac::<Sha256>::new_from_slice(secret).expect("any length");
    let bytes = mac.chain_update(body).finalize().into_bytes();
    format!("sha256={}", HEXLOWER.encode(&bytes))
}

fn host() -> GitHubHost {
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let token = Credentials::token("t").expect("a token");
    let config = config("https://api.github.com", token);
    GitHubHost::new(config, Arc::new(ManualClock::default())).expect("a host")
}

/// A host that sends to this adapter.
struct Sender(GitHubHost);

impl Sender {
    fn send(&self, id: &str, event: &str, mut payload: Value) -> Delivery {
        payload["repository"] = json!({ "full_name": "acme/calc" });
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let headers = vec![header("x-github-delivery", id), header("x-github-event", event)];
        let mut delivery = Delivery { headers, body: payload.to_string().into_bytes() };
        self.sign(&mut delivery);
        delivery
    }
}

fn put_signature(delivery: &mut Delivery, secret: &[u8]) {
    let signature = signed_with(secret, &delivery.body);
    delivery.headers.retain(|(name, _)| name != "x-hub-signature-256");
    delivery.headers.push(("x-hub-signature-256".to_owned(), signature));
}

impl DecoderWorld for Sender {
    fn decoder(&self) -> &dyn WebhookDecoder {
        &self.0
    }

    fn delivery(&self, id: &str, hint: &Hint) -> Option<Delivery> {
        let labels = |action: &str, pr: PrNumber, label: &str, by: &str| {
            json!({
                "action": action, "number": pr.0,
                "label": {"name": label}, "sender": {"login": by},
            })
        };
        let (event, payload) = match hint {
            Hint::PullRequest(pr) => {
                ("pull_request", json!({"action": "synchronize", "number": pr.0}))
            }
            Hint::Branch { name, at } => {
                let after = at.as_ref().map(ToString::to_string);
                ("push", json!({"ref": format!("refs/heads/{name}"), "after": after}))
            }
            Hint::Checks(sha) => ("check_run", json!({"check_run": {"head_sha": sha.as_str()}})),
            Hint::Comment { pr, id } => (
                "issue_comment",
                json!({
                    "action": "created", "issue": {"number": pr.0, "pull_request": {}},
                    "comment": {"id": id, "body": "/signalbox merge"},
                }),
            ),
            Hint::Labelled { pr, label, by } => ("pull_request", labels("labeled", *pr, label, by)),
            Hint::Unlabelled { pr, label, by } => {
                ("pull_request", labels("unlabeled", *pr, label, by))
            }
        };
        Some(self.send(id, event, payload))
    }

    fn irrelevant(&self, id: &str) -> Delivery {
        self.send(id, "star", json!({"action": "created"}))
    }

    fn sign(&self, delivery: &mut Delivery) {
        put_signature(delivery, b"secret");
    }

    fn sign_as_stranger(&self, delivery: &mut Delivery) {
        put_signature(delivery, b"another secret");
    }
}

signalbox_conformance::webhook_decoder_conformance!(Sender(host()));

#[test]
fn every_published_example_is_read_and_gives_what_it_should() {
    let Some(published) = fetched("webhooks.json") else { return };
    let host = host();
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

/// A delivery with a valid signature and any content is decoded or refused.
#[test]
fn fuzz_signed_deliveries() {
    let corpus = signalbox_testkit::fuzz::committed("github-event");
    assert!(corpus.len() > 4, "an event of each kind");
    let (host, words) = (host(), ["null", "-1", "1e400", "\"\\ud800\"", "refs/heads/", "[", "{"]);
    let events =
        ["pull_request", "issue_comment", "push", "check_run", "check_suite", "status", "ping"];
    signalbox_testkit::fuzz::fuzz("github-event", &corpus, &words, |body| {
        for event in events {
            let header = |name: &str| match name {
                "x-hub-signature-256" => Some(signed(body)),
                "x-github-event" => Some(event.to_owned()),
                "x-github-delivery" => Some("1".to_owned()),
                _ => None,
            };
            if let Ok(decoded) = host.decode(&header, body) {
                assert!(decoded.id.len() <= 100 && decoded.hints.len() < 1_000);
            }
        }
    });
}
