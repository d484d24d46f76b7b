//! The meaning of a response: from its status, headers and body to a result.

use reqwest::header::{HeaderMap, RETRY_AFTER};
use serde::Deserialize;
use signalbox_domain::ports::HostError;
use signalbox_domain::time::{Span, Timestamp};

/// How long to wait when the host limits calls without a time.
const DEFAULT_PAUSE_SECONDS: u32 = 60;
/// The longest that the host's words may be, in characters.
const MAX_WORDS: usize = 500;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Complaint {
    message: Option<String>,
    errors: serde_json::Value,
}

/// The text of the host's error: its message, and the errors of fields.
pub(super) fn words(body: &[u8]) -> String {
    let complaint: Complaint = serde_json::from_slice(body).unwrap_or_default();
    let mut words = complaint.message.unwrap_or_default();
    let errors = match &complaint.errors {
        serde_json::Value::Array(errors) => errors.as_slice(),
        serde_json::Value::String(_) => std::slice::from_ref(&complaint.errors),
        _ => &[],
    };
    for error in errors {
        let text = error.as_str().or_else(|| error["message"].as_str());
        let text = text.map(ToOwned::to_owned).or_else(|| {
            let part = |key: &str| error[key].as_str();
            Some(format!("{} {}", part("field")?, part("code")?))
        });
        if words.len() > 4 * MAX_WORDS {
            break;
        }
        if let Some(text) = text.filter(|text| !words.contains(text.as_str())) {
            words = if words.is_empty() { text } else { format!("{words}: {text}") };
        }
    }
    if words.is_empty() {
        words = String::from_utf8_lossy(body).into_owned();
    }
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().filter(|it| !it.is_control()).take(MAX_WORDS).collect()
}

/// The remaining calls, from the headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Quota {
    /// Calls that are left.
    pub(super) remaining: Option<u64>,
    /// When there are as many as before again.
    pub(super) reset: Option<Timestamp>,
}

impl Quota {
    pub(super) fn read(headers: &HeaderMap) -> Self {
        let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<i64>().ok();
        Self {
            remaining: number("x-ratelimit-remaining").and_then(|it| it.try_into().ok()),
            reset: number("x-ratelimit-reset").map(Timestamp::from_unix_seconds),
        }
    }

    /// Until when no call may be made, if the quota is used up.
    pub(super) fn used_up(&self, now: Timestamp) -> Option<Timestamp> {
        let reset = self.reset.filter(|reset| *reset > now)?;
        (self.remaining == Some(0)).then_some(reset)
    }
}

/// When to come back, if the answer asks for fewer calls.
pub(super) fn limited(
    status: u16,
    headers: &HeaderMap,
    words: &str,
    now: Timestamp,
) -> Option<Timestamp> {
    if !matches!(status, 403 | 429) {
        return None;
    }
    let after = headers.get(RETRY_AFTER).and_then(|it| it.to_str().ok()?.trim().parse().ok());
    if let Some(seconds) = after {
        return Some(now.plus(Span::seconds(seconds)));
    }
    if let Some(reset) = Quota::read(headers).used_up(now) {
        return Some(reset);
    }
    let lower = words.to_lowercase();
    let says_so = ["secondary rate limit", "rate limit exceeded", "abuse detection"];
    let limited = status == 429 || says_so.iter().any(|it| lower.contains(it));
    limited.then(|| now.plus(Span::seconds(DEFAULT_PAUSE_SECONDS)))
}

/// The error for a status. Missing permissions are not the fault of a change: they end when an
/// operator grants them.
pub(super) fn error(
    what: &str,
    is_read: bool,
    status: u16,
    headers: &HeaderMap,
    words: &str,
) -> HostError {
    let said = if words.is_empty() { format!("status {status}") } else { words.to_owned() };
    let lower = words.to_lowercase();
    match status {
        401 => HostError::CredentialRejected { words: format!("{what}: {said}") },
        403 if is_about_this(&lower) => HostError::Rejected { words: said },
        403 | 451 => {
            let single_sign_on = headers.contains_key("x-github-sso");
            let hint = if single_sign_on { " (authorize it for SAML single sign-on)" } else { "" };
            HostError::AccessDenied { words: format!("{what}: {said}{hint}") }
        }
        // The host reports "not found" for things that may not be written.
        404 if !is_read && matches!(lower.as_str(), "" | "not found") => {
            let words = format!("{what}: {said}: write access is missing");
            HostError::AccessDenied { words }
        }
        404 | 410 => HostError::NotFound { what: format!("{what}: {said}") },
        409 => HostError::Conflict { what: format!("{what}: {said}") },
        408 | 425 | 500.. => {
            HostError::Unavailable { words: format!("{what}: status {status}: {said}") }
        }
        _ => HostError::Rejected { words: said },
    }
}

/// Whether a refusal with 403 is about the request itself, not about the caller: a
/// conversation that is locked, a file that is too large, a change to workflows that the app may
/// not make. Other pull requests are none the worse for it.
fn is_about_this(lower: &str) -> bool {
    let about = ["is locked", "too large", "too_large", "create or update workflow"];
    about.iter().any(|part| lower.contains(part))
}

/// Whether a rule keeps us from a branch whatever is put on it, so that the app must be let past
/// it.
pub(crate) fn needs_bypass(words: &str) -> bool {
    let lower = words.to_lowercase();
    let rules = [
        "protected ref",
        "protected branch",
        "being restricted",
        "must be made through",
        "force-push",
        "verified signature",
        "not authorized to push",
        "not allowed to push",
        "required status check",
        "approving review",
        "merge queue",
        "merges are not allowed",
        "merge commits are not allowed",
    ];
    rules.iter().any(|part| lower.contains(part))
}

/// Whether the pull request does not meet a rule.
pub(crate) fn misses_of_pull_request(words: &str) -> bool {
    let lower = words.to_lowercase();
    let missed = ["required status check", "review", "conversation", "not mergeable"];
    missed.iter().any(|part| lower.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(list: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in list {
            headers.insert(*name, value.parse().expect("a value"));
        }
        headers
    }

    #[test]
    fn the_text_of_an_error_is_kept() {
        let body = br#"{"message":"Validation Failed","errors":[{"resource":"X","field":"head",
            "code":"invalid"},{"message":"No commits between main and x"}]}"#;
        let wanted = "Validation Failed: head invalid: No commits between main and x";
        assert_eq!(words(body), wanted);
        assert_eq!(words(b"<html>\n Bad gateway</html>"), "<html> Bad gateway</html>");
        assert_eq!(words(b""), "");
        assert_eq!(words(&vec![b'a'; 10_000]).len(), MAX_WORDS);
    }

    #[test]
    fn limits_have_the_time_to_retry() {
        let now = Timestamp::from_unix_seconds(1_000);
        let at = |seconds| Some(Timestamp::from_unix_seconds(seconds));
        let empty = headers(&[]);
        let later = headers(&[("retry-after", "30")]);
        let used = headers(&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1500")]);
        assert_eq!(limited(403, &later, "", now), at(1_030));
        assert_eq!(limited(429, &used, "", now), at(1_500));
        assert_eq!(limited(429, &empty, "", now), at(1_060));
        let secondary = "You have exceeded a secondary rate limit.";
        assert_eq!(limited(403, &empty, secondary, now), at(1_060));
        let forbidden = "Resource not accessible by integration";
        assert_eq!(limited(403, &empty, forbidden, now), None);
        assert_eq!(limited(500, &later, "", now), None);
    }

    fn of(is_read: bool, status: u16, words: &str) -> HostError {
        error("x", is_read, status, &headers(&[]), words)
    }

    #[test]
    fn every_status_has_its_error() {
        for (status, passing) in
            [(401, true), (403, true), (404, false), (405, false), (409, false), (422, false)]
        {
            assert_eq!(of(true, status, "no").is_passing(), passing, "{status}");
        }
        assert!((500..600).all(|status| of(true, status, "").is_passing()));
        assert!(matches!(of(true, 401, ""), HostError::CredentialRejected { .. }));
        assert!(matches!(of(true, 404, ""), HostError::NotFound { .. }));
        assert!(matches!(of(true, 409, ""), HostError::Conflict { .. }));
        assert!(matches!(of(true, 422, ""), HostError::Rejected { .. }));
    }

    #[test]
    fn missing_permissions_are_distinguished_from_invalid_requests() {
        for words in [
            "Resource not accessible by integration",
            "Resource not accessible by personal access token",
            "Repository was archived so is read-only.",
            "Must have admin rights to Repository.",
            "Although you appear to have the correct authorization credentials, the `acme` \
             organization has an IP allow list enabled, and your IP address is not permitted",
            "This installation has been suspended",
        ] {
            for is_read in [true, false] {
                let error = of(is_read, 403, words);
                let HostError::AccessDenied { words: said } = error else { panic!("{words}") };
                assert!(said.contains(words), "{said}");
            }
        }
        let sso = headers(&[("x-github-sso", "required; url=https://github.com/orgs/acme/sso")]);
        let words = "Resource protected by organization SAML enforcement.";
        let error = error("x", true, 403, &sso, words);
        assert!(error.to_string().contains("single sign-on"), "{error}");
        assert!(matches!(of(false, 404, "Not Found"), HostError::AccessDenied { .. }));
        assert!(matches!(of(false, 404, "Base does not exist"), HostError::NotFound { .. }));
        assert!(matches!(of(true, 404, "Not Found"), HostError::NotFound { .. }));
        for words in [
            "Unable to create comment because issue is locked.",
            "refusing to allow a GitHub App to create or update workflow \
             `.github/workflows/ci.yml` without `workflows` permission",
        ] {
            assert!(matches!(of(false, 403, words), HostError::Rejected { .. }), "{words}");
        }
    }

    #[test]
    fn branch_rules_are_distinguished_from_unmet_requirements() {
        let guarded = "Repository rule violations found Cannot update this protected ref.";
        assert!(needs_bypass(guarded) && !misses_of_pull_request(guarded));
        let missing = "Repository rule violations found Required status check \"x\" is expected.";
        assert!(needs_bypass(missing) && misses_of_pull_request(missing));
        assert!(!needs_bypass("Object does not exist"));
    }
}
