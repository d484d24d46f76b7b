//! What can be tried on the host itself, and what to change when it does not work.

use signalbox_domain::ports::{Finding, HostError, Repository, Severity};

use crate::client::Refused;
use crate::host::GitHubHost;

/// The permissions that an app needs: name, level, what for.
const PERMISSIONS: [(&str, &str, &str); 6] = [
    ("contents", "write", "candidates cannot be built or merged"),
    ("pull_requests", "write", "pull requests cannot be read, closed or opened for tests"),
    ("statuses", "write", "statuses cannot be read or reported"),
    ("checks", "read", "check runs of candidates cannot be read"),
    ("issues", "write", "comments and labels cannot be written"),
    ("metadata", "read", "repositories cannot be found"),
];
/// The optional permissions.
const USEFUL: [(&str, &str, &str); 3] = [
    ("workflows", "write", "pull requests that change workflow files cannot be merged"),
    ("administration", "read", "required statuses of classic branch protection cannot be read"),
    (
        "actions",
        "write",
        "failed jobs cannot be run again or cancelled, and reports of impacted targets from forks \
         are refused",
    ),
];
/// The events that an app should subscribe to.
const EVENTS: [&str; 7] = [
    "pull_request",
    "pull_request_review",
    "issue_comment",
    "check_run",
    "check_suite",
    "status",
    "push",
];
/// How few calls left are worth a warning.
const FEW_CALLS: u64 = 500;

fn finding(id: &str, severity: Severity, sentence: String, fix: &str) -> Finding {
    Finding { id: id.to_owned(), severity, sentence, fix: fix.to_owned() }
}

/// Whether a granted level is enough.
fn covers(granted: &str, needed: &str) -> bool {
    let rank = |level: &str| match level {
        "admin" => 3,
        "write" => 2,
        "read" => 1,
        _ => 0,
    };
    rank(granted) >= rank(needed)
}

impl GitHubHost {
    pub(crate) async fn findings(&self, repositories: &[Repository]) -> Vec<Finding> {
        let mut found = match self.client.app_id() {
            Some(_) => self.app_findings().await,
            None => self.token_findings().await,
        };
        if self.webhook_secrets.is_empty() {
            found.push(finding(
                "webhook.secret",
                Severity::Warning,
                "no webhook secret is configured, so all state is polled".into(),
                "set webhook_secret_file, and configure the same secret on the host",
            ));
        }
        for repository in repositories {
            found.extend(self.repository_findings(repository).await);
        }
        if let Some(left) = self.client.remaining() {
            let severity = if left < FEW_CALLS { Severity::Warning } else { Severity::Fine };
            let fix = if left < FEW_CALLS {
                "wait, or find other clients that use the same token"
            } else {
                ""
            };
            found.push(finding("quota", severity, format!("{left} calls left"), fix));
        }
        found
    }

    async fn app_findings(&self) -> Vec<Finding> {
        let app = match self.client.get_own("app").await {
            Ok((app, _)) => app,
            Err(refused) => return vec![credentials(&refused)],
        };
        let slug = app["slug"].as_str().unwrap_or("the app").to_owned();
        let mut found = vec![finding(
            "credentials",
            Severity::Fine,
            format!("authenticated as app {slug}"),
            "",
        )];
        let granted = |name: &str| app["permissions"][name].as_str().unwrap_or("none").to_owned();
        let lists = [(PERMISSIONS.as_slice(), Severity::Problem), (&USEFUL, Severity::Warning)];
        for (list, severity) in lists {
            for (name, needed, consequence) in list {
                let has = granted(name);
                let id = format!("permission.{name}");
                found.push(if covers(&has, needed) {
                    finding(&id, Severity::Fine, format!("{name}: {has}"), "")
                } else {
                    let sentence = format!("{name} is {has}, not {needed}: {consequence}");
                    let fix = "change the app's permissions, then accept them in each installation";
                    finding(&id, severity, sentence, fix)
                });
            }
        }
        let events = app["events"].as_array().cloned().unwrap_or_default();
        for event in EVENTS {
            if !events.iter().any(|it| it.as_str() == Some(event)) {
                found.push(finding(
                    &format!("event.{event}"),
                    Severity::Warning,
                    format!("the app is not subscribed to {event}: such changes are noticed late"),
                    "subscribe to the event in the app's settings",
                ));
            }
        }
        found
    }

    async fn token_findings(&self) -> Vec<Finding> {
        match self.client.get_own("user").await {
            Ok((user, answer)) => {
                let login = user["login"].as_str().unwrap_or("unknown").to_owned();
                let mut found = vec![finding(
                    "credentials",
                    Severity::Fine,
                    format!("authenticated as {login}"),
                    "",
                )];
                // Fine-grained tokens report no scopes.
                let scopes = answer.scopes.unwrap_or_default();
                let has = |scope: &str| scopes.split(',').any(|it| it.trim() == scope);
                if !scopes.is_empty() && !has("repo") && !has("public_repo") {
                    found.push(finding(
                        "permission.repo",
                        Severity::Problem,
                        "the token lacks the scope repo".into(),
                        "create a token with the scope repo, or use a GitHub App",
                    ));
                }
                found
            }
            Err(refused) => vec![credentials(&refused)],
        }
    }

    async fn repository_findings(&self, repository: &Repository) -> Vec<Finding> {
        let name = format!("{}/{}", repository.name.owner, repository.name.name);
        let id = |what: &str| format!("{what}.{name}");
        let read: Result<serde_json::Value, Refused> = self.client.get(&repository.name, "").await;
        let seen = match read {
            Ok(seen) => seen,
            Err(refused) => {
                let sentence = format!("could not read {name}: {}", refused.words);
                let fix = "install the app in this repository, or grant the token access to it";
                return vec![finding(&id("repository"), Severity::Problem, sentence, fix)];
            }
        };
        let sentence = format!("{name} is readable");
        let mut found = vec![finding(&id("repository"), Severity::Fine, sentence, "")];
        for (key, fix) in [
            ("archived", "unarchive the repository, or delete its queues"),
            ("disabled", "find out on the host why the repository is disabled"),
        ] {
            if seen[key].as_bool() == Some(true) {
                let sentence = format!("{name} is {key}, so it is read-only");
                found.push(finding(&id(key), Severity::Problem, sentence, fix));
            }
        }
        if seen["permissions"]["push"].as_bool() == Some(false) {
            found.push(finding(
                &id("push"),
                Severity::Problem,
                format!("{name}: no permission to push"),
                "grant the app or the token write access to the repository's contents",
            ));
        }
        // A ref that cannot be: the host checks whether we may write before it looks at the commit.
        let branch = format!("{}doctor", crate::branches::TEMPORARY);
        let nothing = "0000000000000000000000000000000000000000";
        let tried = self.put_branch(&repository.name, &branch, nothing).await;
        found.push(match tried {
            Err(
                Refused { status: 403 | 404, words, .. }
                | Refused { error: HostError::AccessDenied { words }, .. },
            ) => finding(
                &id("refs"),
                Severity::Problem,
                format!("{name}: could not write refs: {words}"),
                "give the app or the token write access to contents, and exempt signalbox-temp/ \
                 and signalbox-merge/ from rulesets",
            ),
            Err(Refused {
                error:
                    error @ (HostError::Unavailable { .. }
                    | HostError::RateLimited { .. }
                    | HostError::CredentialRejected { .. }),
                ..
            }) => finding(
                &id("refs"),
                Severity::Warning,
                format!("{name}: could not test writing refs: {error}"),
                "try again",
            ),
            Ok(()) | Err(_) => {
                finding(&id("refs"), Severity::Fine, format!("{name}: refs are writable"), "")
            }
        });
        found
    }
}

fn credentials(refused: &Refused) -> Finding {
    finding(
        "credentials",
        Severity::Problem,
        format!("the host rejects the credentials: {}", refused.words),
        "check app_id and private_key_file, or token_file, and the server's clock",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_higher_level_covers_a_lower_one() {
        assert!(covers("write", "read") && covers("write", "write") && covers("admin", "write"));
        assert!(!covers("read", "write") && !covers("none", "read") && !covers("", "read"));
    }
}
