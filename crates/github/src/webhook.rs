//! Deliveries: the signature over the bytes as they came, then what may have happened.

use data_encoding::HEXLOWER_PERMISSIVE;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value;
use sha2::Sha256;
use signalbox_domain::ids::{BranchName, PrNumber, Sha};
use signalbox_domain::ports::{DecodeError, Hint, HostEvent, WebhookDecoder};

use crate::host::GitHubHost;

/// The most bytes of a delivery's id.
const MAX_ID: usize = 100;
/// The header with the signature.
const SIGNATURE: &str = "x-hub-signature-256";

impl WebhookDecoder for GitHubHost {
    fn has_signature(&self, header: &dyn Fn(&str) -> Option<String>) -> bool {
        header(SIGNATURE).is_some_and(|text| given_mac(&text).is_some())
    }

    fn decode(
        &self,
        header: &dyn Fn(&str) -> Option<String>,
        body: &[u8],
    ) -> Result<HostEvent, DecodeError> {
        let signature = header(SIGNATURE).ok_or(DecodeError::WrongSignature)?;
        if !is_signed(&self.webhook_secrets, &signature, body) {
            return Err(DecodeError::WrongSignature);
        }
        let id = header("x-github-delivery").filter(|id| (1..=MAX_ID).contains(&id.len()));
        let id = id.ok_or(DecodeError::Malformed(
            "missing or invalid x-github-delivery: expected at most 100 bytes",
        ))?;
        let event = header("x-github-event");
        let event = event.ok_or(DecodeError::Malformed("missing x-github-event"))?;
        // Hosts can be configured to send a form instead; then the body is not JSON.
        let payload: Value = serde_json::from_slice(body).map_err(|_| {
            DecodeError::Malformed(
                "not JSON: set the content type of the webhook to application/json",
            )
        })?;
        let part = |key: &str| payload["repository"][key].as_str();
        let repository = part("full_name")
            .and_then(|name| name.split_once('/'))
            .map(|(owner, name)| (owner.to_owned(), name.to_owned()));
        let hints = hints(&event, &payload, &self.command_prefix);
        Ok(HostEvent { id, event, repository, hints })
    }
}

/// The 32 bytes of a signature; `None` if it has another form.
fn given_mac(signature: &str) -> Option<Vec<u8>> {
    let digits = signature.strip_prefix("sha256=")?;
    HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).ok().filter(|mac| mac.len() == 32)
}

/// Whether the signature was made with one of the secrets; the time does not reveal how much of it
/// is right.
fn is_signed(secrets: &[String], signature: &str, body: &[u8]) -> bool {
    let Some(given) = given_mac(signature) else { return false };
    secrets.iter().any(|secret| {
        Hmac::<Sha256>::new_from_slice(secret.as_bytes())
            .is_ok_and(|mac| mac.chain_update(body).verify_slice(&given).is_ok())
    })
}

/// The hints of an event. Irrelevant parts are omitted, so that they cost no call.
fn hints(event: &str, payload: &Value, prefix: &str) -> Vec<Hint> {
    let action = payload["action"].as_str().unwrap_or_default();
    let number = |value: &Value| value.as_u64()?.try_into().ok().map(PrNumber);
    let commit = |value: &Value| Sha::new(value.as_str()?).ok();
    let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
    let mut hints = Vec::new();
    match event {
        "pull_request" => {
            let Some(pr) = number(&payload["number"]) else { return hints };
            let label = text(&payload["label"]["name"]);
            let by = text(&payload["sender"]["login"]);
            match (action, label, by) {
                ("labeled", Some(label), Some(by)) => {
                    hints.push(Hint::Labelled { pr, label, by });
                }
                ("unlabeled", Some(label), Some(by)) => {
                    hints.push(Hint::Unlabelled { pr, label, by });
                }
                _ => hints.push(Hint::PullRequest(pr)),
            }
        }
        "pull_request_review" | "pull_request_review_thread" => {
            hints.extend(number(&payload["pull_request"]["number"]).map(Hint::PullRequest));
        }
        "issue_comment" => {
            let of_pull_request = payload["issue"]["pull_request"].is_object();
            let pr = number(&payload["issue"]["number"]);
            // Most comments are not commands, or were written by this server.
            let body = payload["comment"]["body"].as_str();
            let may_command = body.is_none_or(|body| body.contains(prefix));
            if let (true, true, "created", Some(pr), Some(id)) =
                (of_pull_request, may_command, action, pr, payload["comment"]["id"].as_u64())
            {
                hints.push(Hint::Comment { pr, id });
            }
        }
        "check_run" | "check_suite" | "workflow_run" => {
            hints.extend(commit(&payload[event]["head_sha"]).map(Hint::Checks));
        }
        "status" => hints.extend(commit(&payload["sha"]).map(Hint::Checks)),
        "push" => {
            let branch = payload["ref"].as_str().and_then(|it| it.strip_prefix("refs/heads/"));
            let name = branch.and_then(|name| BranchName::new(name).ok());
            hints.extend(name.map(|name| Hint::Branch { name, at: commit(&payload["after"]) }));
        }
        _ => {}
    }
    hints
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use signalbox_domain::testing::ManualClock;

    use super::*;
    use crate::{Credentials, GitHubConfig, Verify};

    fn host() -> GitHubHost {
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let config = GitHubConfig {
            host: "github.com".into(),
            api_url: "https://api.github.com".into(),
            credentials: Credentials::token("t").expect("a token"),
            credentials_file: None,
            webhook_secrets: vec!["old".into(), "It's a Secret to Everybody".into()],
            reread_after: signalbox_domain::time::Span::minutes(10),
            command_prefix: "/signalbox".into(),
            public_url: "https://queue.example".into(),
            verify: Verify::Diff,
            pace_writes: false,
        };
        GitHubHost::new(config, Arc::new(ManualClock::default())).expect("a host")
    }

    fn signature(secret: &str, body: &[u8]) -> String {
        let mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("any length");
        let bytes = mac.chain_update(body).finalize().into_bytes();
        format!("sha256={}", HEXLOWER_PERMISSIVE.encode(&bytes))
    }

    fn decode(signature: Option<&str>, event: &str, body: &[u8]) -> Result<HostEvent, DecodeError> {
        let header = |name: &str| match name {
            "x-hub-signature-256" => signature.map(ToOwned::to_owned),
            "x-github-delivery" => Some("d-1".to_owned()),
            "x-github-event" => Some(event.to_owned()),
            _ => None,
        };
        host().decode(&header, body)
    }

    #[test]
    fn the_host_s_own_example_of_a_signature_holds() {
        let secrets = ["It's a Secret to Everybody".to_owned()];
        let given = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        assert!(is_signed(&secrets, given, b"Hello, World!"));
    }

    #[test]
    fn the_form_of_a_signature_is_known_before_the_body() {
        let has =
            |text: &str| host().has_signature(&|name| (name == SIGNATURE).then(|| text.to_owned()));
        assert!(has(&signature("any secret", b"any body")));
        for wrong in ["", "sha256=", "sha256=00", "sha1=00", "00"] {
            assert!(!has(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn a_wrong_signature_is_refused() {
        let body = br#"{"zen":"x"}"#;
        let good = signature("It's a Secret to Everybody", body);
        assert!(decode(Some(&good), "ping", body).is_ok());
        assert!(decode(Some(&signature("old", body)), "ping", body).is_ok());
        let plain = good.replace("sha256=", "sha1=");
        let mut tampered = good.clone();
        tampered.pop();
        for wrong in [None, Some(""), Some("sha256="), Some(plain.as_str()), Some(&tampered)] {
            assert_eq!(decode(wrong, "ping", body), Err(DecodeError::WrongSignature));
        }
        let other = br#"{"zen":"y"}"#;
        assert_eq!(decode(Some(&good), "ping", other), Err(DecodeError::WrongSignature));
        let form = b"payload=%7B%7D";
        let signed = signature("old", form);
        assert!(matches!(decode(Some(&signed), "ping", form), Err(DecodeError::Malformed(_))));
    }

    #[test]
    fn events_become_hints() {
        let sha = "1f0c1b9d2f3f4e5a6b7c8d9e0f1a2b3c4d5e6f70";
        let commit = Sha::new(sha).expect("a commit");
        let one = |event: &str, payload: &Value| hints(event, payload, "/signalbox");
        let pr = PrNumber(7);
        let labelled = json!({"action": "labeled", "number": 7, "label": {"name": "go"},
            "sender": {"login": "ada"}});
        let wanted = Hint::Labelled { pr, label: "go".into(), by: "ada".into() };
        assert_eq!(one("pull_request", &labelled), [wanted]);
        let opened = json!({"action": "opened", "number": 7});
        assert_eq!(one("pull_request", &opened), [Hint::PullRequest(pr)]);
        let comment = json!({"action": "created", "issue": {"number": 7, "pull_request": {}},
            "comment": {"id": 5}});
        assert_eq!(one("issue_comment", &comment), [Hint::Comment { pr, id: 5 }]);
        let body = |body: &str| {
            let mut told = comment.clone();
            told["comment"]["body"] = json!(body);
            one("issue_comment", &told).len()
        };
        assert_eq!((body("well done"), body("go\n/signalbox merge")), (0, 1));
        let issue = json!({"action": "created", "issue": {"number": 7}, "comment": {"id": 5}});
        assert!(one("issue_comment", &issue).is_empty());
        let run = json!({"check_run": {"head_sha": sha}});
        assert_eq!(one("check_run", &run), [Hint::Checks(commit.clone())]);
        assert_eq!(one("status", &json!({"sha": sha})), [Hint::Checks(commit.clone())]);
        let push = json!({"ref": "refs/heads/main", "after": sha});
        let name = BranchName::new("main").expect("a branch");
        assert_eq!(one("push", &push), [Hint::Branch { name, at: Some(commit) }]);
        assert!(one("push", &json!({"ref": "refs/tags/v1"})).is_empty());
        assert!(one("star", &json!({"number": 7})).is_empty());
        for event in ["pull_request", "issue_comment", "check_run", "status", "push"] {
            assert!(one(event, &json!({"number": -1})).is_empty(), "{event}");
            assert!(one(event, &json!([])).is_empty(), "{event}");
        }
    }
}
