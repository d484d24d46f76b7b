//! Flaky tests.

use futures_util::Stream;
use serde::{Deserialize, Serialize};

use crate::paging::{next, pages};
use crate::{Client, ClientError, Done, Reply, Repo};

/// The tests of a page.
const PAGE_SIZE: u32 = 100;

/// The status of the tests that are listed.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum UnhealthyStatus {
    /// They pass and fail on the same code.
    Flaky,
    /// They fail consistently.
    Broken,
}

/// The quarantine override of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum QuarantineSetting {
    /// Quarantined whatever its status.
    #[serde(rename = "ALWAYS_QUARANTINE")]
    Always,
    /// Never quarantined.
    #[serde(rename = "NEVER_QUARANTINE")]
    Never,
    /// Follow the settings of the repository.
    #[serde(rename = "UNSPECIFIED")]
    Follow,
}

/// A decision about the quarantine of a test.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QuarantineDecision {
    /// The repository.
    pub repo: Repo,
    /// The id of the test.
    pub test_id: String,
    /// The override.
    pub setting: QuarantineSetting,
    /// When [`QuarantineSetting::Always`] ends, by RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A person's flag on a test.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TestFlag {
    /// The repository.
    pub repo: Repo,
    /// The id of the test.
    pub test_id: String,
    /// `true` sets the flag, `false` removes it.
    pub flagged: bool,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A test that is flaky or broken.
#[derive(Clone, Debug, Deserialize)]
pub struct UnhealthyTest {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its variant; empty when it has none.
    #[serde(default)]
    pub variant: String,
    /// Its status.
    pub status: CurrentStatus,
    /// Whether it is quarantined.
    pub quarantined: bool,
}

/// A status.
#[derive(Clone, Debug, Deserialize)]
pub struct CurrentStatus {
    /// Its word.
    pub value: String,
}

/// A test that is quarantined.
#[derive(Clone, Debug, Deserialize)]
pub struct QuarantinedTest {
    /// Its id.
    pub test_case_id: String,
    /// Its name.
    pub name: String,
    /// Its variant; empty when it has none.
    #[serde(default)]
    pub variant: String,
    /// The word of its status.
    pub status: String,
}

/// A page of tests that are flaky or broken.
#[derive(Clone, Debug, Deserialize)]
pub struct UnhealthyTests {
    /// The tests.
    pub tests: Vec<Reply<UnhealthyTest>>,
    /// Where the next page is.
    pub page: PageInfo,
}

/// A page of tests that are quarantined.
#[derive(Clone, Debug, Deserialize)]
pub struct QuarantinedTests {
    /// The tests.
    pub quarantined_tests: Vec<Reply<QuarantinedTest>>,
    /// Where the next page is.
    pub page: PageInfo,
}

/// A test about which a client asks.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AskedTest {
    /// Its id, as the client computes it.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The name of the outermost suite.
    pub parent_name: String,
    /// Its class.
    pub class_name: String,
    /// Its file.
    pub file: String,
    /// Its variant.
    pub variant: String,
}

/// Which tests are quarantined.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QuarantineAnswer {
    /// Whether quarantine was turned off for the repository.
    pub is_disabled: bool,
    /// The quarantined ones of the requested ids.
    pub test_ids: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct QuarantineQuery<'a> {
    repo: &'a Repo,
    org_url_slug: &'a str,
    remote_urls: [&'a str; 0],
    test_identifiers: &'a [AskedTest],
}

/// Where pages are.
#[derive(Clone, Debug, Deserialize)]
pub struct PageInfo {
    /// The token of the next page; empty on the last one.
    #[serde(default)]
    pub next_page_token: String,
}

#[derive(Serialize)]
struct ListQuery<'a> {
    repo: &'a Repo,
    org_url_slug: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<UnhealthyStatus>,
    page_query: PageQuery<'a>,
}

#[derive(Serialize)]
struct PageQuery<'a> {
    page_size: u32,
    page_token: &'a str,
}

impl<'a> ListQuery<'a> {
    const fn new(
        repo: &'a Repo,
        org_url_slug: &'a str,
        status: Option<UnhealthyStatus>,
        page_token: &'a str,
    ) -> Self {
        let page_query = PageQuery { page_size: PAGE_SIZE, page_token };
        Self { repo, org_url_slug, status, page_query }
    }
}

impl Client {
    /// A page of the tests with that status. The first page has an empty token.
    pub async fn unhealthy_tests(
        &self,
        repo: &Repo,
        org: &str,
        status: UnhealthyStatus,
        page_token: &str,
    ) -> Result<Reply<UnhealthyTests>, ClientError> {
        let query = ListQuery::new(repo, org, Some(status), page_token);
        self.call("flaky-tests/list-unhealthy-tests", &query).await
    }

    /// All tests with that status, page by page.
    pub fn all_unhealthy_tests(
        &self,
        repo: &Repo,
        org: &str,
        status: UnhealthyStatus,
    ) -> impl Stream<Item = Result<Reply<UnhealthyTest>, ClientError>> + use<> {
        let (client, repo, org) = (self.clone(), repo.clone(), org.to_owned());
        pages(String::new(), async move |token| {
            let page = client.unhealthy_tests(&repo, &org, status, &token).await?.value;
            Ok((page.tests, next(page.page.next_page_token)))
        })
    }

    /// All quarantined tests, page by page.
    pub fn all_quarantined_tests(
        &self,
        repo: &Repo,
        org: &str,
    ) -> impl Stream<Item = Result<Reply<QuarantinedTest>, ClientError>> + use<> {
        let (client, repo, org) = (self.clone(), repo.clone(), org.to_owned());
        pages(String::new(), async move |token| {
            let page = client.quarantined_tests(&repo, &org, &token).await?.value;
            Ok((page.quarantined_tests, next(page.page.next_page_token)))
        })
    }

    /// A page of the quarantined tests. The first page has an empty token.
    pub async fn quarantined_tests(
        &self,
        repo: &Repo,
        org: &str,
        page_token: &str,
    ) -> Result<Reply<QuarantinedTests>, ClientError> {
        let query = ListQuery::new(repo, org, None, page_token);
        self.call("flaky-tests/list-quarantined-tests", &query).await
    }

    /// Which of these tests are quarantined.
    pub async fn quarantined_of(
        &self,
        repo: &Repo,
        org: &str,
        tests: &[AskedTest],
    ) -> Result<QuarantineAnswer, ClientError> {
        let query =
            QuarantineQuery { repo, org_url_slug: org, remote_urls: [], test_identifiers: tests };
        self.call("metrics/getQuarantineConfig", &query).await
    }

    /// Decides about the quarantine of a test.
    pub async fn override_quarantine(
        &self,
        decision: &QuarantineDecision,
    ) -> Result<Reply<Done>, ClientError> {
        self.call("flaky-tests/override-quarantine", decision).await
    }

    /// Flags a test as flaky, or takes the flag back.
    pub async fn flag_test(&self, flag: &TestFlag) -> Result<Reply<Done>, ClientError> {
        self.call("flaky-tests/flag-test", flag).await
    }
}
