//! Lists as clients see them: pull requests, and results of tests.

use serde::Serialize;
use signalbox_domain::queue::TestingResult;
use signalbox_services::{EntryPage, ResultsPage};
use utoipa::ToSchema;

use super::words::{BisectionPartWord, ConclusionWord, OutcomeWord};
use super::{EntryReply, ListedEntry, Words, cursor};

/// A page of a queue's pull requests.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListReply {
    /// Most recently submitted first.
    pull_requests: Vec<ListedEntry>,
    /// The token of the next page; omitted on the last one.
    #[schema(format = Uuid)]
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl ListReply {
    pub(crate) fn of(page: &EntryPage, words: Words) -> Self {
        let listed = |it: &signalbox_services::EntrySnapshot| {
            ListedEntry::of(&it.entry, it.state, it.waits.as_ref(), it.position, words)
        };
        Self {
            pull_requests: page.entries.iter().map(listed).collect(),
            next_cursor: page.next.map(|place| cursor::write(place).to_string()),
        }
    }
}

/// Several pull requests in a queue.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EntriesReply {
    /// In the order of the request, each once.
    pub(crate) pull_requests: Vec<EntryReply>,
    /// The requested pull requests that were never submitted to the queue.
    pub(crate) not_found: Vec<u32>,
}

/// The result of one test of a pull request.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResultReply {
    pr_number: u32,
    /// The test run, when it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    test_run_id: Option<String>,
    #[schema(value_type = OutcomeWord)]
    outcome: String,
    /// When it ended.
    #[schema(example = "2026-09-17T10:16:02.000Z")]
    ended_at: String,
    /// How long it took, in whole seconds.
    #[schema(multiple_of = 1000)]
    testing_duration_ms: i64,
    /// How the pull request's stay in the queue ended; omitted until then.
    #[schema(value_type = Option<ConclusionWord>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    cycle_conclusion: Option<String>,
    /// Its part in a bisection; omitted if none.
    #[schema(value_type = Option<BisectionPartWord>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    bisection: Option<String>,
}

impl ResultReply {
    fn of(result: &TestingResult, words: Words) -> Self {
        Self {
            pr_number: result.pr.0,
            test_run_id: result.run.map(|run| run.to_string()),
            outcome: words.word(result.outcome.as_str()),
            ended_at: result.ended_at.to_string(),
            testing_duration_ms: result.took.millis() / 1_000 * 1_000,
            cycle_conclusion: result.conclusion.map(|state| words.word(state.as_str())),
            bisection: result.bisection.map(|part| words.word(part.as_str())),
        }
    }
}

/// A page of results of tests.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResultsReply {
    /// The newest first.
    testing_results: Vec<ResultReply>,
    /// The number of results on all pages.
    total_items: u64,
}

impl ResultsReply {
    pub(crate) fn of(page: &ResultsPage, words: Words) -> Self {
        Self {
            testing_results: page.results.iter().map(|it| ResultReply::of(it, words)).collect(),
            total_items: page.total,
        }
    }
}
