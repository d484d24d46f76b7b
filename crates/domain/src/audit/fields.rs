//! The audited fields of queues, settings, tests, tokens and webhooks, as text.

use std::collections::BTreeMap;

use crate::flaky::{self, BranchPattern, BranchScope, Monitor, TestCase};
use crate::queue::{ChangeSource, Header, QueueState, SETTINGS};
use crate::token::Token;
use crate::webhook::Endpoint;

/// Values by field name, as the API names the fields.
pub type AuditFields = BTreeMap<String, String>;

fn fields<const N: usize>(list: [(&str, String); N]) -> AuditFields {
    list.into_iter().map(|(field, value)| (field.to_owned(), value)).collect()
}

fn list<'a>(items: impl IntoIterator<Item = &'a String>) -> String {
    items.into_iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// The fields of a queue: its state and settings.
pub fn of_queue(header: &Header) -> AuditFields {
    let mut fields = fields([("state", header.state.name().as_str().to_owned())]);
    for spec in SETTINGS {
        if let Some(text) = spec.text(&header.settings) {
            fields.insert(spec.name.to_owned(), text);
        }
    }
    if let QueueState::Paused { by, reason, switching_from: _ } = &header.state {
        fields.insert("pausedBy".into(), by.to_string());
        fields.insert("pausedReason".into(), reason.clone().unwrap_or_default());
    }
    if header.management.is_some() {
        fields.insert("managedBy".into(), ChangeSource::Terraform.as_str().to_owned());
    }
    fields
}

fn patterns(patterns: &[BranchPattern]) -> String {
    list(patterns.iter().map(|pattern| &pattern.0))
}

fn scope(scope: &BranchScope) -> String {
    let classes: Vec<&str> = scope.classes.iter().map(|class| class.as_str()).collect();
    format!("branches {}; classes {}", patterns(&scope.patterns), classes.join(", "))
}

fn monitor(it: &Monitor) -> String {
    let stale = it.stale_timeout_hours.map_or("never".to_owned(), |hours| format!("{hours} h"));
    let (name, kind, on) =
        (&it.name, it.rule.kind().as_str(), if it.enabled { "on" } else { "off" });
    let (scope, rule, action) = (scope(&it.scope), it.rule, &it.action);
    format!("{name} ({kind}, {on}): {rule:?}; {action:?}; {scope}; stale after {stale}")
}

/// The fields of a repository's flaky test settings.
pub fn of_flaky_settings(settings: &flaky::Settings) -> AuditFields {
    let guard = settings.guard;
    let mut fields = fields([
        ("quarantineEnabled", settings.quarantine.enabled.to_string()),
        ("autoQuarantine", settings.quarantine.auto.as_str().to_owned()),
        ("stableBranches", patterns(&settings.branches.stable)),
        ("mergeBranches", patterns(&settings.branches.merge)),
        ("infrastructureGuard", guard.enabled.to_string()),
        ("infrastructureFailedPercent", guard.failed_percent.to_string()),
        ("infrastructureMinTests", guard.min_tests.to_string()),
        ("countPublicUploads", settings.count_public_uploads.to_string()),
        ("gateWhileOff", settings.gate_while_off.to_string()),
    ]);
    if let Some(tests) = guard.same_failure_tests {
        fields.insert("infrastructureSameFailureTests".into(), tests.to_string());
    }
    for it in &settings.monitors {
        fields.insert(format!("monitors.{}", it.id), monitor(it));
    }
    fields
}

/// The fields of a test that users decide: flags, mutes, overrides, labels.
pub fn of_test(test: &TestCase) -> AuditFields {
    let quarantining = test.quarantining();
    let mut fields = fields([
        ("status", test.standing.value.as_str().to_owned()),
        ("quarantine", quarantining.setting.as_str().to_owned()),
        ("flagged", test.flag.is_some().to_string()),
    ]);
    if let Some(until) = quarantining.expires_at {
        fields.insert("quarantineExpiresAt".into(), until.to_string());
    }
    for (id, record) in &test.monitors {
        let Some(mute) = &record.mute else { continue };
        let until = mute.until.map_or("forever".to_owned(), |until| until.to_string());
        fields.insert(format!("monitors.{id}.mutedUntil"), until);
    }
    let labels: Vec<&str> = test.labels.keys().map(String::as_str).collect();
    fields.insert("labels".into(), labels.join(", "));
    fields
}

/// The fields of a token, without its text and its hash.
pub fn of_token(token: &Token) -> AuditFields {
    let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.as_str()).collect();
    let repos: Vec<String> = token.repos.iter().map(ToString::to_string).collect();
    let mut fields = fields([("name", token.name.clone()), ("scopes", scopes.join(", "))]);
    if !repos.is_empty() {
        fields.insert("repos".into(), repos.join(", "));
    }
    if let Some(at) = token.expires_at {
        fields.insert("expiresAt".into(), at.to_string());
    }
    if let Some(at) = token.revoked_at {
        fields.insert("revokedAt".into(), at.to_string());
    }
    fields
}

/// The fields of a webhook endpoint, without its secrets.
pub fn of_webhook(endpoint: &Endpoint) -> AuditFields {
    let it = &endpoint.settings;
    let mut fields = fields([
        ("url", it.url.clone()),
        ("description", it.description.clone()),
        ("events", list(&it.kinds)),
        ("enabled", endpoint.health.is_on().to_string()),
    ]);
    if let Some(off) = endpoint.health.off {
        fields.insert("offReason".into(), off.reason.as_str().to_owned());
    }
    let secrets = endpoint.secrets.iter().map(|secret| {
        let until = secret.until.map_or(String::new(), |until| format!(", good until {until}"));
        format!("made {}{until}", secret.created_at)
    });
    fields.insert("secrets".into(), secrets.collect::<Vec<_>>().join("; "));
    fields
}
