//! Requests for lists: of pull requests, and of results of tests.

use serde::Deserialize;
use signalbox_domain::ids::PrNumber;
use signalbox_domain::ports::{EntryFilter, SubmissionPlace};
use signalbox_domain::queue::PrState;
use signalbox_domain::time::{Span, Timestamp, Window};
use utoipa::ToSchema;

use super::cursor::Cursor;
use super::field::{Errors, Field, object_form, shown};
use super::forms::{Count, Flag, List, Text, Time};
use super::place::{RepoBranch, RepoRef, Request, check_place};
use super::pull_request_requests::PrByNumber;
use super::shapes::BranchText;
use super::words::PrStateWord;
use crate::problem::Problem;

/// The most items of a page.
const MAX_TAKE: u32 = 100;
/// The default page size, in items.
const DEFAULT_TAKE: u32 = 50;
/// The most pull requests of one lookup.
const MAX_PRS: usize = 50;
/// The most days between the ends of a window of results.
const MAX_DAYS: u32 = 45;

fn check_take(errors: &mut Errors, take: Field<Count>) -> Option<u32> {
    let take = errors.optional("/take", take).map_or(DEFAULT_TAKE, |it| it.0);
    if !(1..=MAX_TAKE).contains(&take) {
        errors.add("/take", format!("must be a whole number from 1 to {MAX_TAKE}"));
        return None;
    }
    Some(take)
}

/// The times of a window; nothing is inside one that ends before it begins.
fn check_ends(
    errors: &mut Errors,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
) -> Option<(Option<Timestamp>, Option<Timestamp>)> {
    if since.zip(until).is_some_and(|(since, until)| until < since) {
        errors.add("/since", "must not be after until");
        return None;
    }
    Some((since, until))
}

/// A request for a queue's pull requests.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "repo": {"host": "github.com", "owner": "acme", "name": "calc"},
    "targetBranch": "main",
    "state": "FAILED",
    "since": "2026-09-17T00:00:00Z",
    "take": 20
}))]
pub(crate) struct ListRequest {
    /// The repository.
    #[schema(value_type = RepoRef, required)]
    repo: Field<RepoRef>,
    /// The branch that the merge queue targets.
    #[schema(value_type = BranchText, required)]
    target_branch: Field<Text>,
    /// Only pull requests in this state; default: any.
    #[schema(value_type = Option<PrStateWord>)]
    state: Field<Text>,
    /// Only pull requests that were merged, failed or cancelled at this time or later, even if
    /// they were submitted again since.
    #[schema(value_type = Option<String>, format = DateTime)]
    since: Field<Time>,
    /// Only pull requests that were merged, failed or cancelled at this time or earlier.
    #[schema(value_type = Option<String>, format = DateTime)]
    until: Field<Time>,
    /// `nextCursor` of the previous page; omitted for the first page.
    #[schema(value_type = Option<String>, pattern = r"^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8000-0000[0-9a-f]{8}$")]
    cursor: Field<Cursor>,
    /// The page size, in pull requests; default 50.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 100)]
    take: Field<Count>,
}

/// A request for pull requests.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) place: RepoBranch,
    pub(crate) filter: EntryFilter,
    pub(crate) after: Option<SubmissionPlace>,
    pub(crate) take: u32,
}

impl Request for ListRequest {
    type Checked = Listing;

    fn check(self, errors: &mut Errors) -> Option<Listing> {
        let place = check_place(self.repo, self.target_branch, errors);
        let state = errors.optional("/state", self.state).map(|Text(text)| {
            let wrong = || {
                let all: Vec<&str> = PrState::ALL.iter().map(|it| it.as_str()).collect();
                format!("must be one of {}, but is {}", all.join(", "), shown(&text))
            };
            errors.keep("/state", PrState::parse(&text).ok_or_else(wrong))
        });
        let since = errors.optional("/since", self.since).map(|it| it.0);
        let until = errors.optional("/until", self.until).map(|it| it.0);
        let ends = check_ends(errors, since, until);
        let after = errors.optional("/cursor", self.cursor).map(|it| it.0);
        let take = check_take(errors, self.take);
        let (since, until) = ends?;
        let bounded = since.is_some() || until.is_some();
        let concluded = bounded.then(|| Window::inclusive(since, until));
        let filter = EntryFilter { state: state.flatten(), concluded };
        Some(Listing { place: place?, filter, after, take: take? })
    }
}

/// A lookup of several submitted pull requests.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "repo": {"host": "github.com", "owner": "acme", "name": "calc"},
    "targetBranch": "main",
    "prs": [{"number": 41}, {"number": 42}]
}))]
pub(crate) struct EntriesRequest {
    /// The repository.
    #[schema(value_type = RepoRef, required)]
    repo: Field<RepoRef>,
    /// The branch that the merge queue targets.
    #[schema(value_type = BranchText, required)]
    target_branch: Field<Text>,
    /// The pull requests.
    #[schema(value_type = Vec<PrByNumber>, required, min_items = 1, max_items = 50)]
    prs: Field<List<PrByNumber>>,
    /// Whether each comes with its `timeline`.
    #[schema(value_type = Option<bool>)]
    include_timeline: Field<Flag>,
}

/// The pull requests of a lookup.
#[derive(Debug)]
pub(crate) struct LookUps {
    pub(crate) place: RepoBranch,
    pub(crate) prs: Vec<PrNumber>,
    pub(crate) timeline: bool,
}

impl Request for EntriesRequest {
    type Checked = LookUps;

    fn check(self, errors: &mut Errors) -> Option<LookUps> {
        let place = check_place(self.repo, self.target_branch, errors);
        let prs = errors.required("/prs", self.prs).and_then(|List(items)| {
            if items.is_empty() || items.len() > MAX_PRS {
                errors.add("/prs", format!("must have 1 to {MAX_PRS} items"));
                return None;
            }
            let numbers = items.into_iter().enumerate();
            let numbers =
                numbers.map(|(at, pr)| PrByNumber::check_at(&format!("/prs/{at}"), pr, errors));
            // All are checked before the first mistake counts.
            let numbers: Vec<Option<PrNumber>> = numbers.collect();
            numbers.into_iter().collect()
        });
        let timeline = errors.optional("/includeTimeline", self.include_timeline);
        let timeline = timeline.is_some_and(|it| it.0);
        Some(LookUps { place: place?, prs: prs?, timeline })
    }
}

/// A request for results of tests.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "repo": {"host": "github.com", "owner": "acme", "name": "calc"},
    "targetBranch": "main",
    "since": "2026-09-01T00:00:00Z",
    "until": "2026-09-30T23:59:59Z"
}))]
pub(crate) struct ResultsRequest {
    /// The repository.
    #[schema(value_type = RepoRef, required)]
    repo: Field<RepoRef>,
    /// The branch that the merge queue targets.
    #[schema(value_type = BranchText, required)]
    target_branch: Field<Text>,
    /// Only tests that ended at this time or later; at most 45 days before `until`.
    #[schema(value_type = String, format = DateTime, required)]
    since: Field<Time>,
    /// Only tests that ended at this time or earlier; default: now.
    #[schema(value_type = Option<String>, format = DateTime)]
    until: Field<Time>,
    /// The number of newest results to skip; default 0.
    #[schema(value_type = Option<u32>)]
    offset: Field<Count>,
    /// The page size, in results; default 50.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 100)]
    take: Field<Count>,
}

/// A request for results.
#[derive(Debug)]
pub(crate) struct Results {
    pub(crate) place: RepoBranch,
    since: Timestamp,
    until: Option<Timestamp>,
    pub(crate) offset: u32,
    pub(crate) take: u32,
}

impl Results {
    /// The requested window, when the current time is `now`.
    pub(crate) fn within(&self, now: Timestamp) -> Result<Window, Problem> {
        let until = self.until.unwrap_or(now);
        if until < self.since {
            return Err(Problem::invalid("/since", "must not be after until, or in the future"));
        }
        if until.since(self.since) > Span::days(MAX_DAYS) {
            let rule = format!("must be at most {MAX_DAYS} days before until");
            return Err(Problem::invalid("/since", rule));
        }
        Ok(Window::inclusive(Some(self.since), Some(until)))
    }
}

impl Request for ResultsRequest {
    type Checked = Results;

    fn check(self, errors: &mut Errors) -> Option<Results> {
        let place = check_place(self.repo, self.target_branch, errors);
        let since = errors.required("/since", self.since).map(|it| it.0);
        let until = errors.optional("/until", self.until).map(|it| it.0);
        let offset = errors.optional("/offset", self.offset).map_or(0, |it| it.0);
        let take = check_take(errors, self.take);
        Some(Results { place: place?, since: since?, until, offset, take: take? })
    }
}

object_form!(ListRequest, EntriesRequest, ResultsRequest);
