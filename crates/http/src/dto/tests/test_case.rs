//! A test case in its three forms, and the replies that contain it.

use std::fmt::Write;

use serde::Serialize;
use signalbox_domain::flaky::Retirement;
use signalbox_domain::ids::RepoName;
use signalbox_domain::ports::TestSnapshot;
use utoipa::ToSchema;

use super::quarantined::QuarantinedTest;
use crate::paging::PageReply;

/// The addresses of pages of tests and tickets.
#[derive(Clone, Debug, Default)]
pub struct TestLinks {
    /// The address of this server, without a slash at the end.
    pub public_url: String,
    /// The address of a ticket, with `{id}` in it.
    pub ticket_url: Option<String>,
}

impl TestLinks {
    /// The page of a test.
    pub(crate) fn test(&self, snapshot: &TestSnapshot) -> String {
        let key = &snapshot.record.test.key;
        let RepoName { owner, name, .. } = &snapshot.repo;
        format!(
            "{}/{}/flaky-tests/test/{}?repo={}",
            self.public_url,
            encoded(&key.org),
            snapshot.record.test.id,
            encoded(&format!("{owner}/{name}"))
        )
    }

    /// The page of the test's ticket. Where tickets have no pages, the test's own, which shows the
    /// id; the id is its fragment.
    fn ticket_of(&self, snapshot: &TestSnapshot) -> Option<String> {
        let id = snapshot.record.ticket.as_ref()?;
        let own = || format!("{}#{}", self.test(snapshot), encoded(id));
        Some(self.ticket(id).unwrap_or_else(own))
    }

    /// The page of a ticket: by the pattern, or the id itself when it is an address.
    pub(crate) fn ticket(&self, id: &str) -> Option<String> {
        let url = |text: &str| text.starts_with("https://") || text.starts_with("http://");
        if url(id) {
            return Some(id.to_owned());
        }
        self.ticket_url.as_ref().map(|pattern| pattern.replace("{id}", &encoded(id)))
    }
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

/// The page of a repository on its host.
fn repository_url(repo: &RepoName) -> String {
    format!("https://{}/{}/{}", repo.host, repo.owner, repo.name)
}

pub(super) fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// An address.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Link {
    /// The address.
    html_url: String,
}

/// The status of a test.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TestStatusReply {
    /// `healthy`, `flaky` or `broken`.
    value: &'static str,
    /// The reason and the evidence.
    reason: String,
    /// When the status last changed.
    timestamp: String,
}

impl TestStatusReply {
    pub(super) fn of(snapshot: &TestSnapshot) -> Self {
        let standing = &snapshot.record.test.standing;
        Self {
            value: standing.value.as_str(),
            reason: standing.reason_text(),
            timestamp: standing.since.to_string(),
        }
    }
}

/// The retirement of a test that stable branches no longer contain.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RetiredReply {
    /// When it retired.
    at: String,
    /// The first run on a stable branch that would have contained it and did not.
    missing_since: String,
    /// The number of commits without it since.
    commits: u32,
    /// The id of the test that it was renamed to.
    #[serde(skip_serializing_if = "Option::is_none")]
    renamed_to: Option<String>,
}

impl RetiredReply {
    fn of(retirement: &Retirement) -> Self {
        Self {
            at: retirement.at.to_string(),
            missing_since: retirement.missing_since.to_string(),
            commits: retirement.commits,
            renamed_to: retirement.renamed_to.map(|id| id.to_string()),
        }
    }
}

/// Equal failures.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FailureSummary {
    /// The message; what differs from failure to failure is masked.
    summary: String,
    /// The number of occurrences.
    occurrence_count: u32,
    /// The time of the last occurrence.
    last_occurrence: String,
}

/// A test.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TestCaseReply {
    /// Its id.
    id: String,
    /// Its repository.
    repository: Link,
    /// Its page.
    html_url: String,
    /// Its name.
    name: String,
    /// Its variant; empty when it has none.
    variant: String,
    /// Its status.
    status: TestStatusReply,
    /// Its retirement; only of a test that stable branches no longer contain.
    #[serde(skip_serializing_if = "Option::is_none")]
    retired: Option<RetiredReply>,
    /// The id of the test that was renamed to this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    renamed_from: Option<String>,
    /// Its failures, most frequent first.
    most_common_failures: Vec<FailureSummary>,
    /// The share of runs that failed within 7 days, 0 to 1.
    failure_rate_last_7d: f64,
    /// The share of runs that failed within 24 hours, 0 to 1.
    failure_rate_last_24h: f64,
    /// Its file.
    #[serde(skip_serializing_if = "Option::is_none")]
    file_path: Option<String>,
    /// The outermost suite.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
    /// Its class.
    #[serde(skip_serializing_if = "Option::is_none")]
    classname: Option<String>,
    /// The owners of its code.
    codeowners: Vec<String>,
    /// Pull requests in which it failed within 7 days.
    pull_requests_impacted_last_7d: usize,
    /// Whether its next failure counts as passed.
    quarantined: bool,
    /// Its ticket.
    #[serde(skip_serializing_if = "Option::is_none")]
    ticket: Option<Link>,
}

impl TestCaseReply {
    pub(crate) fn of(snapshot: &TestSnapshot, links: &TestLinks) -> Self {
        let (record, numbers) = (&snapshot.record, &snapshot.numbers);
        let key = &record.test.key;
        let failures = numbers.failures.iter().map(|failure| FailureSummary {
            summary: failure.summary.clone(),
            occurrence_count: failure.occurrence_count,
            last_occurrence: failure.last_occurrence.to_string(),
        });
        Self {
            id: record.test.id.to_string(),
            repository: Link { html_url: repository_url(&snapshot.repo) },
            html_url: links.test(snapshot),
            name: key.name.clone(),
            variant: key.variant.clone(),
            status: TestStatusReply::of(snapshot),
            retired: snapshot.record.test.retired.as_ref().map(RetiredReply::of),
            renamed_from: snapshot.record.test.renamed_from.map(|id| id.to_string()),
            most_common_failures: failures.collect(),
            failure_rate_last_7d: numbers.failure_rate_7d(),
            failure_rate_last_24h: numbers.failure_rate_24h(),
            file_path: some(&key.file),
            parent: some(&key.parent),
            classname: some(&key.classname),
            codeowners: record.owners.clone(),
            pull_requests_impacted_last_7d: numbers.pull_requests_7d.len(),
            quarantined: snapshot.quarantined,
            ticket: links.ticket_of(snapshot).map(|html_url| Link { html_url }),
        }
    }
}

/// A test in the list of unhealthy ones.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UnhealthyTest {
    /// Its id.
    id: String,
    /// Its repository.
    repository: Link,
    /// Its page.
    html_url: String,
    /// Its name.
    name: String,
    /// Its variant; empty when it has none.
    variant: String,
    /// Its status.
    status: TestStatusReply,
    /// Its file.
    #[serde(skip_serializing_if = "Option::is_none")]
    file_path: Option<String>,
    /// The outermost suite.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
    /// Its class.
    #[serde(skip_serializing_if = "Option::is_none")]
    classname: Option<String>,
    /// The owners of its code.
    codeowners: Vec<String>,
    /// Pull requests in which it failed within 7 days.
    pull_requests_impacted_last_7d: usize,
    /// Whether its next failure counts as passed.
    quarantined: bool,
    /// Its ticket.
    #[serde(skip_serializing_if = "Option::is_none")]
    ticket: Option<Link>,
}

impl UnhealthyTest {
    pub(crate) fn of(snapshot: &TestSnapshot, links: &TestLinks) -> Self {
        let whole = TestCaseReply::of(snapshot, links);
        Self {
            id: whole.id,
            repository: whole.repository,
            html_url: whole.html_url,
            name: whole.name,
            variant: whole.variant,
            status: whole.status,
            file_path: whole.file_path,
            parent: whole.parent,
            classname: whole.classname,
            codeowners: whole.codeowners,
            pull_requests_impacted_last_7d: whole.pull_requests_impacted_last_7d,
            quarantined: whole.quarantined,
            ticket: whole.ticket,
        }
    }
}

macro_rules! replies {
    ($($(#[$doc:meta])* $name:ident { $field:ident: $kind:ty };)+) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Serialize, ToSchema)]
            pub(crate) struct $name {
                /// The tests.
                pub(crate) $field: Vec<$kind>,
                /// The page, and tokens of other pages.
                pub(crate) page: PageReply,
            }
        )+
    };
}

replies! {
    /// A page of tests that failed within a time.
    FailingReply { tests: TestCaseReply };
    /// A page of unhealthy tests.
    UnhealthyReply { tests: UnhealthyTest };
    /// A page of quarantined tests.
    QuarantinedReply { quarantined_tests: QuarantinedTest };
}

impl UnhealthyReply {
    pub(crate) fn tests(tests: &[TestSnapshot], links: &TestLinks) -> Vec<UnhealthyTest> {
        tests.iter().map(|test| UnhealthyTest::of(test, links)).collect()
    }
}

impl QuarantinedReply {
    pub(crate) fn tests(tests: &[TestSnapshot]) -> Vec<QuarantinedTest> {
        tests.iter().map(QuarantinedTest::of).collect()
    }
}

/// A test.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TestReply {
    /// The test.
    pub(crate) test: TestCaseReply,
}
