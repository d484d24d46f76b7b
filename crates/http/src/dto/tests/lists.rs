//! Requests that read tests.

use serde::Deserialize;
use signalbox_domain::flaky::{TestId, TestStatus};
use signalbox_domain::ids::RepoName;
use signalbox_domain::time::Span;
use signalbox_services::ListKind;
use utoipa::ToSchema;

use super::super::field::{Errors, Field, object_form, shown};
use super::super::forms::{Count, Text};
use super::super::place::{RepoRef, Request, check_repository};
use super::super::words::UnhealthyWord;
use super::{NamedOrg, id, slug, time};

/// The longest window of a list of failing tests, in hours.
const MAX_RANGE_HOURS: u32 = 7 * 24;
/// The most tests on a page.
const MAX_PAGE: u32 = 100;

/// A page of a list.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(example = json!({"page_size": 100, "page_token": ""}))]
pub(crate) struct PageQuery {
    /// The most tests on a page.
    #[schema(value_type = u32, required, minimum = 1, maximum = 100)]
    page_size: Field<Count>,
    /// The token of the previous reply; empty or omitted for the first page.
    #[schema(value_type = Option<String>)]
    page_token: Field<Text>,
}

/// A request for a list.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) repo: RepoName,
    pub(crate) org: NamedOrg,
    pub(crate) kind: ListKind,
    pub(crate) page_size: u32,
    pub(crate) page_token: Option<String>,
}

fn listing(
    errors: &mut Errors,
    repo: Field<RepoRef>,
    org: Field<Text>,
    kind: Option<ListKind>,
    page: Field<PageQuery>,
) -> Option<Listing> {
    let repo = check_repository(repo, errors);
    let org = slug(errors, org);
    let page = errors.required("/page_query", page).and_then(|page| {
        let size = errors.required("/page_query/page_size", page.page_size).and_then(|size| {
            let rule = || format!("must be a whole number from 1 to {MAX_PAGE}");
            let good = (1..=MAX_PAGE).contains(&size.0).then_some(size.0).ok_or_else(rule);
            errors.keep("/page_query/page_size", good)
        });
        let token = errors.optional("/page_query/page_token", page.page_token).map(|it| it.0);
        Some((size?, token))
    });
    let (page_size, page_token) = page?;
    Some(Listing { repo: repo?, org: org?, kind: kind?, page_size, page_token })
}

/// Tests that failed within a time.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(example = json!({
    "repo": {"host": "github.com", "owner": "acme", "name": "calc"}, "org_url_slug": "acme",
    "start_time": "2026-01-01T00:00:00Z", "end_time": "2026-01-08T00:00:00Z",
    "page_query": {"page_size": 100, "page_token": ""}
}))]
pub(crate) struct FailingRequest {
    /// The repository.
    #[schema(value_type = RepoRef, required)]
    repo: Field<RepoRef>,
    /// The slug of the token's organization.
    #[schema(value_type = String, required)]
    org_url_slug: Field<Text>,
    /// The start of the window, inclusive.
    #[schema(value_type = String, required, format = DateTime)]
    start_time: Field<Text>,
    /// The end of the window, exclusive; at most 7 days later.
    #[schema(value_type = String, required, format = DateTime)]
    end_time: Field<Text>,
    /// The page.
    #[schema(value_type = PageQuery, required)]
    page_query: Field<PageQuery>,
}

impl Request for FailingRequest {
    type Checked = Listing;

    fn check(self, errors: &mut Errors) -> Option<Listing> {
        let from = time(errors, "/start_time", self.start_time);
        let until = time(errors, "/end_time", self.end_time);
        let kind = from.zip(until).and_then(|(from, until)| {
            let fine = if until < from {
                Err("must not be before start_time")
            } else if until.since(from) > Span::hours(MAX_RANGE_HOURS) {
                Err("must be within 7 days of start_time")
            } else {
                Ok(ListKind::Failing { from, until })
            };
            errors.keep("/end_time", fine)
        });
        listing(errors, self.repo, self.org_url_slug, kind, self.page_query)
    }
}

/// Tests of a status.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(example = json!({
    "repo": {"host": "github.com", "owner": "acme", "name": "calc"}, "org_url_slug": "acme",
    "status": "FLAKY", "page_query": {"page_size": 100, "page_token": ""}
}))]
pub(crate) struct UnhealthyRequest {
    /// The repository.
    #[schema(value_type = RepoRef, required)]
    repo: Field<RepoRef>,
    /// The slug of the token's organization.
    #[schema(value_type = String, required)]
    org_url_slug: Field<Text>,
    /// `FLAKY` or `BROKEN`, in any case.
    #[schema(value_type = UnhealthyWord, required)]
    status: Field<Text>,
    /// The page.
    #[schema(value_type = PageQuery, required)]
    page_query: Field<PageQuery>,
}

impl Request for UnhealthyRequest {
    type Checked = Listing;

    fn check(self, errors: &mut Errors) -> Option<Listing> {
        let kind = errors.required("/status", self.status).and_then(|Text(text)| {
            let status = TestStatus::parse(&text).filter(|it| *it != TestStatus::Healthy);
            let wrong = || format!("must be FLAKY or BROKEN, but is {}", shown(&text));
            errors.keep("/status", status.ok_or_else(wrong)).map(ListKind::Unhealthy)
        });
        listing(errors, self.repo, self.org_url_slug, kind, self.page_query)
    }
}

/// Tests that are quarantined.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(example = json!({
    "repo": {"host": "github.com", "owner": "acme", "name": "calc"}, "org_url_slug": "acme",
    "page_query": {"page_size": 100, "page_token": ""}
}))]
pub(crate) struct QuarantinedRequest {
    /// The repository.
    #[schema(value_type = RepoRef, required)]
    repo: Field<RepoRef>,
    /// The slug of the token's organization.
    #[schema(value_type = String, required)]
    org_url_slug: Field<Text>,
    /// The page.
    #[schema(value_type = PageQuery, required)]
    page_query: Field<PageQuery>,
}

impl Request for QuarantinedRequest {
    type Checked = Listing;

    fn check(self, errors: &mut Errors) -> Option<Listing> {
        let kind = Some(ListKind::Quarantined);
        listing(errors, self.repo, self.org_url_slug, kind, self.page_query)
    }
}

/// One test.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(example = json!({
    "repo": {"host": "github.com", "owner": "acme", "name": "calc"}, "org_url_slug": "acme",
    "test_id": "06cb6db5-f807-5198-b072-af67a0636f8a"
}))]
pub(crate) struct DetailsRequest {
    /// The repository.
    #[schema(value_type = RepoRef, required)]
    repo: Field<RepoRef>,
    /// The slug of the token's organization.
    #[schema(value_type = String, required)]
    org_url_slug: Field<Text>,
    /// The test.
    #[schema(value_type = String, required, format = Uuid)]
    test_id: Field<Text>,
}

impl Request for DetailsRequest {
    type Checked = (RepoName, NamedOrg, TestId);

    fn check(self, errors: &mut Errors) -> Option<Self::Checked> {
        let repo = check_repository(self.repo, errors);
        let org = slug(errors, self.org_url_slug);
        let test = id(errors, "/test_id", self.test_id);
        Some((repo?, org?, TestId(test?)))
    }
}

/// A repository.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(example = json!({"repo": {"host": "github.com", "owner": "acme", "name": "calc"}}))]
pub(crate) struct RepositoryRequest {
    /// The repository.
    #[schema(value_type = RepoRef, required)]
    repo: Field<RepoRef>,
}

impl Request for RepositoryRequest {
    type Checked = RepoName;

    fn check(self, errors: &mut Errors) -> Option<RepoName> {
        check_repository(self.repo, errors)
    }
}

object_form!(
    PageQuery,
    FailingRequest,
    UnhealthyRequest,
    QuarantinedRequest,
    DetailsRequest,
    RepositoryRequest,
);
