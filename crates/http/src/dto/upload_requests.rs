//! Requests about uploads of test results. Unknown keys are ignored.

use serde::Deserialize;
use signalbox_domain::flaky::UploadId;
use signalbox_domain::ids::RepoName;
use signalbox_domain::time::Timestamp;
use utoipa::ToSchema;

use super::field::{Errors, Field, object_form};
use super::forms::{Count, Text};
use super::place::{RepoRef, Request, check_repo};

/// The most uploads of one page.
const MAX_PAGE: u32 = 100;

/// The announcement of a bundle, as the public uploader sends it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "repo": {"host": "github.com", "owner": "acme", "name": "calc"}, "orgUrlSlug": "acme"
}))]
pub(crate) struct AnnounceRequest {
    /// The repository.
    #[schema(value_type = RepoRef, required)]
    repo: Field<RepoRef>,
    /// The slug of the organization.
    #[schema(value_type = String, required)]
    org_url_slug: Field<Text>,
}

/// The announced upload.
#[derive(Debug)]
pub(crate) struct Announce {
    pub(crate) repo: RepoName,
    pub(crate) org_slug: String,
}

impl Request for AnnounceRequest {
    type Checked = Announce;

    fn check(self, errors: &mut Errors) -> Option<Announce> {
        let repo = errors.required("/repo", self.repo).and_then(|repo| check_repo(repo, errors));
        let org_slug = errors.required("/orgUrlSlug", self.org_url_slug);
        Some(Announce { repo: repo?, org_slug: org_slug?.0 })
    }
}

/// The page.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct UploadPageQuery {
    /// The page size, in uploads.
    #[schema(value_type = u32, minimum = 1, maximum = 100, required)]
    page_size: Field<Count>,
    /// The token of the previous page; omitted for the first.
    #[schema(value_type = Option<String>)]
    page_token: Field<Text>,
}

/// A request for uploads.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(example = json!({
    "repo": {"host": "github.com", "owner": "acme", "name": "calc"},
    "page_query": {"page_size": 20}
}))]
pub(crate) struct ListUploadsRequest {
    /// The repository.
    #[schema(value_type = RepoRef, required)]
    repo: Field<RepoRef>,
    /// The slug of the token's organization.
    #[schema(value_type = Option<String>)]
    org_url_slug: Field<Text>,
    /// The page.
    #[schema(value_type = UploadPageQuery, required)]
    page_query: Field<UploadPageQuery>,
}

/// A checked request for uploads.
#[derive(Debug)]
pub(crate) struct ListUploads {
    pub(crate) repo: RepoName,
    pub(crate) org_slug: Option<String>,
    pub(crate) after: Option<(Timestamp, UploadId)>,
    pub(crate) page_size: u32,
}

impl Request for ListUploadsRequest {
    type Checked = ListUploads;

    fn check(self, errors: &mut Errors) -> Option<ListUploads> {
        let repo = errors.required("/repo", self.repo).and_then(|repo| check_repo(repo, errors));
        let org_slug = errors.optional("/org_url_slug", self.org_url_slug).map(|it| it.0);
        let query = errors.required("/page_query", self.page_query)?;
        let size = errors.required("/page_query/page_size", query.page_size).map(|it| it.0);
        let size = size.and_then(|size| {
            let fits = (1..=MAX_PAGE).contains(&size).then_some(size);
            let wrong = || format!("must be from 1 to {MAX_PAGE}, but is {size}");
            errors.keep("/page_query/page_size", fits.ok_or_else(wrong))
        });
        let token = errors.optional("/page_query/page_token", query.page_token);
        let after = token.filter(|Text(token)| !token.is_empty()).map(|Text(token)| {
            let wrong = "must be the token of a previous page";
            errors.keep("/page_query/page_token", place(&token).ok_or(wrong))
        });
        let after = match after {
            None => None,
            Some(place) => Some(place?),
        };
        Some(ListUploads { repo: repo?, org_slug, after, page_size: size? })
    }
}

/// A position in a list, from its token.
fn place(token: &str) -> Option<(Timestamp, UploadId)> {
    let (at, id) = token.split_once('.')?;
    Some((Timestamp::from_unix_micros(at.parse().ok()?), UploadId(id.parse().ok()?)))
}

object_form!(AnnounceRequest, UploadPageQuery, ListUploadsRequest);
