//! Queues, and pull requests in them.

use std::collections::BTreeMap;

use futures_util::Stream;
use serde::{Deserialize, Serialize};

use crate::paging::pages;
use crate::{Client, ClientError, Done, Failure, Reply};

/// A repository.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Repo {
    /// The git host, such as `github.com`.
    pub host: String,
    /// The owner.
    pub owner: String,
    /// The repository's own name.
    pub name: String,
}

/// The queue of a target branch.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueRef {
    /// The repository.
    pub repo: Repo,
    /// The target branch.
    pub target_branch: String,
}

/// The state that a queue should enter.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RequestedState {
    /// Test runs start and pull requests merge.
    Running,
    /// No test run starts and no pull request merges.
    Paused,
    /// Pull requests in the line finish; new ones wait.
    Draining,
}

/// A value of a setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Setting {
    /// A whole number.
    Whole(u32),
    /// On or off.
    Flag(bool),
    /// A word or a text.
    Text(String),
    /// Names.
    Names(Vec<String>),
    /// Rules for batches.
    Rules(Vec<BatchingRule>),
}

/// A rule that keeps targets out of shared batches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchingRule {
    /// Which targets; `*` matches any text.
    pub target_pattern: String,
    /// Always `isolate`.
    pub policy: String,
}

/// A change of a queue; an omitted field is unchanged.
#[derive(Clone, Debug, Default, Serialize)]
pub struct QueueChange {
    /// The state to go to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<RequestedState>,
    /// The reason of a pause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Settings by their names in the API.
    #[serde(flatten)]
    pub settings: BTreeMap<String, Setting>,
}

/// A priority: a number, or `urgent`, `high`, `medium` or `low`.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Priority {
    /// Lower is sooner.
    Number(u32),
    /// By name.
    Name(String),
}

/// A queue.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueStatus {
    /// Its state.
    pub state: String,
    /// The target branch.
    pub branch: String,
    /// The pull requests in it.
    #[serde(default)]
    pub enqueued_pull_requests: Vec<Reply<Entry>>,
    /// The freeze in force that applies to all pull requests.
    #[serde(default)]
    pub freeze: Option<Freeze>,
    /// The freezes in force that apply only to some.
    #[serde(default)]
    pub partial_freezes: Vec<PartialFreeze>,
}

/// A freeze of some pull requests.
#[derive(Clone, Debug, Deserialize)]
pub struct PartialFreeze {
    /// The labels and impacted targets that it applies to.
    pub scope: String,
    /// When it ends; `None` for a freeze without an end.
    pub until: Option<String>,
    /// Its reason.
    pub reason: Option<String>,
}

/// A freeze: only urgent pull requests merge.
#[derive(Clone, Debug, Deserialize)]
pub struct Freeze {
    /// When it ends; `None` for a freeze without an end.
    pub until: Option<String>,
    /// Its reason.
    pub reason: Option<String>,
}

/// Queues.
#[derive(Clone, Debug, Deserialize)]
pub struct QueueList {
    /// Ordered by repository and branch.
    pub queues: Vec<ListedQueue>,
}

/// A queue of a list.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedQueue {
    /// The repository.
    pub repo: Repo,
    /// The target branch.
    pub target_branch: String,
    /// Its state.
    pub state: String,
    /// Why it was paused, while it is.
    pub paused_reason: Option<String>,
    /// The freeze in force.
    #[serde(default)]
    pub freeze: Option<Freeze>,
    /// The number of pull requests in it.
    pub enqueued_pull_requests_count: u64,
    /// The number of test runs that have not ended.
    pub test_runs_count: u64,
}

/// A pull request in a queue.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Its number.
    pub pr_number: u64,
    /// Its title.
    pub pr_title: Option<String>,
    /// Its state.
    pub state: String,
    /// Its place in the line, if it is in it.
    pub position: Option<u64>,
    /// Why it has its state.
    pub reason: Option<String>,
    /// When its state last changed.
    pub state_changed_at: Option<String>,
    /// The base branch of the pull request.
    pub pr_base_branch: Option<String>,
    /// How it left the queue, if it did.
    pub exit: Option<Exit>,
}

/// Which pull requests of a queue are listed, also ones that have left it.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EntriesQuery {
    /// Only in this state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Only pull requests that left the queue at this time or later, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The most that are listed, 1 to 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub take: Option<u32>,
    /// `next_cursor` of the previous page; nothing for the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// A page of pull requests.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EntriesPage {
    /// The pull requests.
    pub pull_requests: Vec<Reply<Entry>>,
    /// The cursor of the next page; nothing on the last one.
    pub next_cursor: Option<String>,
}

/// A pull request's way through a queue.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Passage {
    /// Its number.
    pub pr_number: u32,
    /// Its author.
    #[serde(default)]
    pub pr_author: String,
    /// Its priority: 0 is urgent, 100 the default.
    pub priority_value: u32,
    /// The steps, newest first.
    #[serde(default)]
    pub timeline: Vec<PassageStep>,
}

/// A step of a pull request through a queue.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PassageStep {
    /// When it came to the state, in RFC 3339.
    pub timestamp: String,
    /// The state.
    pub state: String,
    tests_passed: Option<Because>,
    pending_failure: Option<Because>,
    failure: Option<Because>,
    merged: Option<Because>,
}

/// The reason of a step.
#[derive(Clone, Debug, Deserialize)]
struct Because {
    reason: String,
}

impl PassageStep {
    /// Why it came to the state; `None` for steps without a result.
    pub fn reason(&self) -> Option<&str> {
        let all = [&self.tests_passed, &self.pending_failure, &self.failure, &self.merged];
        all.into_iter().flatten().map(|it| it.reason.as_str()).next()
    }
}

/// How a pull request left a queue.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Exit {
    /// The commit on the target branch.
    pub sha: Option<String>,
    /// The tree that was tested.
    pub tested_tree: Option<String>,
    /// The tree that landed.
    pub landed_tree: Option<String>,
    /// What the landing consists of.
    pub proof: Option<Proof>,
}

/// What a landing consists of.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Proof {
    /// The target's head before the landing.
    pub base: String,
    /// The pull requests that landed together, in the order in which they were applied.
    pub changes: Vec<LandedChange>,
    /// How they became commits.
    pub merge_method: String,
    /// Whether the tested tree itself landed.
    pub exact: bool,
    /// How the server checked the composition.
    pub check: String,
    /// Why it was not checked.
    pub not_checked_because: Option<String>,
    /// Paths whose merged content only the git host knows.
    #[serde(default)]
    pub merged_by_host: Vec<String>,
}

/// A pull request of a landing.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LandedChange {
    /// Its number.
    pub pr_number: u32,
    /// The head that landed.
    pub head: String,
}

/// A request about a queue.
#[derive(Serialize)]
struct Of<'a, T> {
    #[serde(flatten)]
    queue: &'a QueueRef,
    #[serde(flatten)]
    what: T,
}

/// No fields besides the queue.
#[derive(Serialize)]
struct Nothing {}

#[derive(Serialize)]
struct New {
    #[serde(skip_serializing_if = "Option::is_none")]
    concurrency: Option<u32>,
}

#[derive(Serialize)]
struct Number {
    number: u32,
}

#[derive(Serialize)]
struct PullRequest {
    pr: Number,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<Priority>,
}

impl PullRequest {
    const fn numbered(number: u32) -> Self {
        Self { pr: Number { number }, priority: None }
    }
}

impl Client {
    /// Creates a queue; without `concurrency` with the default.
    pub async fn create_queue(
        &self,
        queue: &QueueRef,
        concurrency: Option<u32>,
    ) -> Result<Reply<Done>, ClientError> {
        self.call("createQueue", &Of { queue, what: New { concurrency } }).await
    }

    /// Deletes an empty queue.
    pub async fn delete_queue(&self, queue: &QueueRef) -> Result<Reply<Done>, ClientError> {
        self.call("deleteQueue", &Of { queue, what: Nothing {} }).await
    }

    /// Changes settings, the state, or both.
    pub async fn update_queue(
        &self,
        queue: &QueueRef,
        change: &QueueChange,
    ) -> Result<Reply<Done>, ClientError> {
        self.call("updateQueue", &Of { queue, what: change }).await
    }

    /// A queue with its pull requests.
    pub async fn queue(&self, queue: &QueueRef) -> Result<Reply<QueueStatus>, ClientError> {
        self.call("getQueue", &Of { queue, what: Nothing {} }).await
    }

    /// The queues that the token may see, of one repository or of all.
    pub async fn list_queues(&self, repo: Option<&Repo>) -> Result<Reply<QueueList>, ClientError> {
        #[derive(Serialize)]
        struct Body<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            repo: Option<&'a Repo>,
        }
        self.call("listQueues", &Body { repo }).await
    }

    /// A pull request that was submitted.
    pub async fn entry(&self, queue: &QueueRef, number: u32) -> Result<Reply<Entry>, ClientError> {
        let what = PullRequest::numbered(number);
        self.call("getSubmittedPullRequest", &Of { queue, what }).await
    }

    /// Pull requests of a queue, also ones that have left it.
    pub async fn entries(
        &self,
        queue: &QueueRef,
        query: &EntriesQuery,
    ) -> Result<Reply<EntriesPage>, ClientError> {
        self.call("listPullRequests", &Of { queue, what: query }).await
    }

    /// The same, page by page until there are no more.
    pub fn all_entries(
        &self,
        queue: &QueueRef,
        query: EntriesQuery,
    ) -> impl Stream<Item = Result<Reply<Entry>, ClientError>> + use<> {
        let (client, queue) = (self.clone(), queue.clone());
        pages(query.cursor.clone(), async move |cursor| {
            let query = EntriesQuery { cursor, ..query.clone() };
            let page = client.entries(&queue, &query).await?.value;
            Ok((page.pull_requests, page.next_cursor.map(Some)))
        })
    }

    /// The ways of 1 to 50 pull requests through a queue.
    pub async fn passages(
        &self,
        queue: &QueueRef,
        numbers: &[u64],
    ) -> Result<Vec<Passage>, ClientError> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Body {
            prs: Vec<serde_json::Value>,
            include_timeline: bool,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Found {
            pull_requests: Vec<Passage>,
        }
        let prs = numbers.iter().map(|number| serde_json::json!({ "number": number })).collect();
        let what = Body { prs, include_timeline: true };
        let reply: Reply<Found> =
            self.call("getSubmittedPullRequests", &Of { queue, what }).await?;
        Ok(reply.value.pull_requests)
    }

    /// Why a pull request failed, or what has failed so far.
    pub async fn explain_failure(
        &self,
        queue: &QueueRef,
        number: u32,
    ) -> Result<Reply<Failure>, ClientError> {
        let what = PullRequest::numbered(number);
        self.call("explainFailure", &Of { queue, what }).await
    }

    /// Submits a pull request, or changes the priority of one that is in the queue.
    pub async fn submit(
        &self,
        queue: &QueueRef,
        number: u32,
        priority: Option<Priority>,
    ) -> Result<Reply<Done>, ClientError> {
        let what = PullRequest { priority, ..PullRequest::numbered(number) };
        self.call("submitPullRequest", &Of { queue, what }).await
    }

    /// Takes a pull request out.
    pub async fn cancel(&self, queue: &QueueRef, number: u32) -> Result<Reply<Done>, ClientError> {
        let what = PullRequest::numbered(number);
        self.call("cancelPullRequest", &Of { queue, what }).await
    }

    /// Restarts the tests of a pull request.
    pub async fn restart(&self, queue: &QueueRef, number: u32) -> Result<Reply<Done>, ClientError> {
        let what = PullRequest::numbered(number);
        self.call("restartTestsOnPullRequest", &Of { queue, what }).await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_has_the_fields_of_the_api() {
        let repo = Repo { host: "git.test".into(), owner: "acme".into(), name: "calc".into() };
        let queue = QueueRef { repo, target_branch: "main".into() };
        let sent = |value: serde_json::Value| {
            let mut expected = json!({
                "repo": {"host": "git.test", "owner": "acme", "name": "calc"},
                "targetBranch": "main",
            });
            let fields = value.as_object().expect("fields").clone();
            expected.as_object_mut().expect("an object").extend(fields);
            expected
        };
        let settings = BTreeMap::from([("concurrency".to_owned(), Setting::Whole(5))]);
        let state = Some(RequestedState::Paused);
        let change = QueueChange { state, reason: None, settings };
        let change = serde_json::to_value(Of { queue: &queue, what: &change }).expect("JSON");
        assert_eq!(change, sent(json!({"state": "PAUSED", "concurrency": 5})));
        let what = PullRequest {
            priority: Some(Priority::Name("high".into())),
            ..PullRequest::numbered(7)
        };
        let submission = serde_json::to_value(Of { queue: &queue, what }).expect("JSON");
        assert_eq!(submission, sent(json!({"pr": {"number": 7}, "priority": "high"})));
        let bare = serde_json::to_value(Of { queue: &queue, what: Nothing {} }).expect("JSON");
        assert_eq!(bare, sent(json!({})));
    }
}
