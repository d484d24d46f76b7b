//! A test case in the two shapes in which events carry it.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::Serialize;
use signalbox_domain::flaky::{Event, Judgement};
use signalbox_domain::ids::RepoName;
use signalbox_domain::ports::TestSnapshot;

use super::shapes::{Id, Link, Share, Status, Time, Url};

/// Where pages of tests and tickets are.
#[derive(Clone, Debug, Default)]
pub struct Links {
    /// The address of this server, without a slash at the end.
    pub public_url: String,
    /// The address of a ticket, with `{id}` in it.
    pub ticket_url: Option<String>,
}

/// A status with its reason.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct CurrentStatus {
    value: Status,
    reason: String,
    timestamp: Time,
}

impl From<&Judgement> for CurrentStatus {
    fn from(standing: &Judgement) -> Self {
        Self {
            value: Status(standing.value.as_str()),
            reason: standing.reason_text(),
            timestamp: standing.since.into(),
        }
    }
}

/// A failure that a test often has.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct CommonFailure {
    summary: String,
    occurrence_count: u32,
    last_occurrence: Time,
}

/// The whole test, as lists of the API show it, with the deprecated `test_suite`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct WholeTest {
    id: Id,
    repository: Link,
    html_url: Url,
    name: String,
    variant: String,
    status: CurrentStatus,
    most_common_failures: Vec<CommonFailure>,
    failure_rate_last_7d: Share,
    failure_rate_last_24h: Share,
    codeowners: Vec<String>,
    pull_requests_impacted_last_7d: usize,
    quarantined: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    test_suite: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    classname: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ticket: Option<Link>,
}

impl WholeTest {
    pub(super) fn of(links: &Links, snapshot: &TestSnapshot, event: &Event) -> Self {
        let (record, numbers) = (&snapshot.record, &snapshot.numbers);
        let (key, standing) = (&record.test.key, &record.test.standing);
        let failures = numbers.failures.iter().map(|failure| CommonFailure {
            summary: failure.summary.clone(),
            occurrence_count: failure.occurrence_count,
            last_occurrence: failure.last_occurrence.into(),
        });
        let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        // Where tickets have no pages, the test's own shows the id.
        let ticket = record.ticket.as_ref().map(|id| {
            let url = links.ticket(id);
            let url = url.unwrap_or_else(|| format!("{}#{}", links.test(snapshot), encoded(id)));
            Link { html_url: Url(url) }
        });
        Self {
            id: Id(record.test.id.to_string()),
            repository: Link { html_url: repository_url(&snapshot.repo) },
            html_url: Url(links.test(snapshot)),
            name: key.name.clone(),
            variant: key.variant.clone(),
            status: CurrentStatus::from(standing),
            most_common_failures: failures.collect(),
            failure_rate_last_7d: Share(numbers.failure_rate_7d()),
            failure_rate_last_24h: Share(numbers.failure_rate_24h()),
            codeowners: record.owners.clone(),
            pull_requests_impacted_last_7d: numbers.pull_requests_7d.len(),
            quarantined: event.quarantined,
            file_path: some(&key.file),
            parent: some(&key.parent),
            test_suite: some(&key.parent),
            classname: some(&key.classname),
            ticket,
        }
    }
}

/// The slim test of the newer events.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct SlimTest {
    id: Id,
    name: String,
    classname: String,
    file_path: String,
    html_url: Url,
    codeowners: Vec<String>,
    quarantined: bool,
    variant: String,
}

impl SlimTest {
    pub(super) fn of(links: &Links, snapshot: &TestSnapshot, event: &Event) -> Self {
        let (record, key) = (&snapshot.record, &snapshot.record.test.key);
        Self {
            id: Id(record.test.id.to_string()),
            name: key.name.clone(),
            classname: key.classname.clone(),
            file_path: key.file.clone(),
            html_url: Url(links.test(snapshot)),
            codeowners: record.owners.clone(),
            quarantined: event.quarantined,
            variant: key.variant.clone(),
        }
    }
}

impl Links {
    /// The page of a test.
    fn test(&self, snapshot: &TestSnapshot) -> String {
        let RepoName { owner, name, .. } = &snapshot.repo;
        format!(
            "{}/{}/flaky-tests/test/{}?repo={}",
            self.public_url,
            encoded(&snapshot.record.test.key.org),
            snapshot.record.test.id,
            encoded(&format!("{owner}/{name}"))
        )
    }

    /// The page of a ticket: by the pattern, or the id itself when it is an address.
    fn ticket(&self, id: &str) -> Option<String> {
        if id.starts_with("https://") || id.starts_with("http://") {
            return Some(id.to_owned());
        }
        self.ticket_url.as_ref().map(|pattern| pattern.replace("{id}", &encoded(id)))
    }
}

/// The page of a repository on its host.
pub(super) fn repository_url(repo: &RepoName) -> Url {
    Url(format!("https://{}/{}/{}", repo.host, repo.owner, repo.name))
}

/// A text as a part of an address.
fn encoded(text: &str) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            write!(encoded, "%{byte:02X}").ok();
        }
        encoded
    })
}
