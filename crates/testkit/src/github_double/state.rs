//! The state of the double beside the repository.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Value, json};

use super::access::Access;
use super::limits::SecondaryLimits;
use crate::double::Git;

/// An answer: a status, a body, and the total number of items of a list, for paging.
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) body: Value,
    pub(super) page: Option<(usize, usize)>,
}

impl Reply {
    pub(super) const fn new(status: u16, body: Value) -> Self {
        Self { status, body, page: None }
    }

    pub(super) fn error(status: u16, message: &str) -> Self {
        Self::new(
            status,
            json!({ "message": message, "documentation_url": "https://docs.github.com/rest" }),
        )
    }

    pub(super) fn not_found() -> Self {
        Self::error(404, "Not Found")
    }
}

/// A request as the routes see it.
pub(super) struct Asked {
    pub(super) method: String,
    /// The path below `/repos/OWNER/NAME`, decoded, in parts.
    pub(super) parts: Vec<String>,
    pub(super) query: BTreeMap<String, String>,
    pub(super) body: Value,
    /// The login of the caller: the app's bot, or the user of the token.
    pub(super) login: String,
    pub(super) app: Option<u64>,
}

impl Asked {
    pub(super) fn text(&self, key: &str) -> &str {
        self.body[key].as_str().unwrap_or_default()
    }

    fn number(&self, key: &str, default: usize) -> usize {
        self.query.get(key).and_then(|it| it.parse().ok()).unwrap_or(default)
    }

    /// A page of a list; `wrap` puts it into an object.
    pub(super) fn page(&self, items: Vec<Value>, wrap: impl Fn(Value) -> Value) -> Reply {
        let (page, size) =
            (self.number("page", 1).max(1), self.number("per_page", 30).clamp(1, 100));
        let pages = items.len().div_ceil(size).max(1);
        let shown: Vec<Value> = items.into_iter().skip((page - 1) * size).take(size).collect();
        Reply { status: 200, body: wrap(json!(shown)), page: Some((page, pages)) }
    }
}

/// A pull request.
#[derive(Clone, Debug)]
pub(super) struct Pull {
    pub(super) title: String,
    pub(super) body: Option<String>,
    pub(super) author: String,
    pub(super) head_ref: String,
    pub(super) head: String,
    /// The owner of the fork that it comes from.
    pub(super) fork: Option<String>,
    pub(super) base: String,
    pub(super) open: bool,
    pub(super) merged: bool,
    pub(super) draft: bool,
    pub(super) blocked: bool,
    pub(super) labels: BTreeSet<String>,
    /// The two commits for which mergeability was computed.
    pub(super) computed: Option<(String, String)>,
    pub(super) nulls_left: u32,
}

/// A comment.
#[derive(Clone, Debug)]
pub(super) struct Note {
    pub(super) issue: u64,
    pub(super) author: String,
    pub(super) app: Option<u64>,
    pub(super) body: String,
    pub(super) created_at: String,
    pub(super) reactions: Vec<String>,
}

/// Computes the names and conclusions of a candidate's check runs from its files and the number of
/// the attempt.
pub(super) type Ci =
    Box<dyn Fn(&BTreeSet<String>, u64) -> Vec<(&'static str, &'static str)> + Send>;

/// How the host merges wrongly, as a large host did in April 2026.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrongMerge {
    /// With a wrong merge base: everything is as in the merged commit, so what the base has gained
    /// since is reverted.
    Base,
    /// Without one of the base's files.
    DropsAFile,
    /// Without what the last commit of the base has changed.
    RevertsAhead,
}

/// The state of the double.
pub(super) struct State {
    pub(super) owner: String,
    pub(super) name: String,
    /// `OWNER/NAME` before the repository was renamed. The API follows it, as clients do that
    /// follow its redirects.
    pub(super) former_name: Option<String>,
    /// Whether git gets only commits that a ref points at.
    pub(super) serves_only_refs: bool,
    pub(super) git: Git,
    pub(super) api: String,
    pub(super) last_number: u64,
    pub(super) last_id: u64,
    pub(super) pulls: BTreeMap<u64, Pull>,
    pub(super) notes: BTreeMap<u64, Note>,
    pub(super) check_runs: BTreeMap<String, Vec<Value>>,
    pub(super) statuses: BTreeMap<String, Vec<Value>>,
    /// The required statuses of a branch, each with the app that must report it.
    pub(super) rulesets: BTreeMap<String, Vec<(String, Option<u64>)>>,
    pub(super) classic: BTreeMap<String, Vec<(String, Option<u64>)>>,
    /// The latest attempt of each suite.
    pub(super) attempts: BTreeMap<u64, u64>,
    pub(super) access: Access,
    pub(super) guarded: BTreeSet<String>,
    pub(super) permissions: BTreeMap<String, String>,
    pub(super) workflow_runs: BTreeMap<u64, Value>,
    pub(super) null_reads: u32,
    /// How merges go wrong, if they do.
    pub(super) wrong_merge: Option<WrongMerge>,
    pub(super) ci: Option<Ci>,
    /// The logs of jobs, by the name of the job.
    pub(super) logs: BTreeMap<String, String>,
    /// The number of answered requests.
    pub(super) requests: usize,
    /// The limits beside the quota, if they are enforced.
    pub(super) limits: Option<SecondaryLimits>,
    pub(super) tokens: BTreeSet<String>,
    pub(super) personal: Option<(String, String)>,
    pub(super) app: Option<(u64, Vec<u8>)>,
    pub(super) app_permissions: Value,
    pub(super) events: VecDeque<(String, Value)>,
    pub(super) landed_trees: Vec<String>,
}

impl State {
    pub(super) fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    pub(super) fn full_name(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }

    /// Whether an `OWNER/NAME` is the one of the repository, or was.
    pub(super) fn is_name(&self, name: &str) -> bool {
        let is_same = |other: &str| other.eq_ignore_ascii_case(name);
        is_same(&self.full_name()) || self.former_name.as_deref().is_some_and(is_same)
    }

    pub(super) fn url(&self, rest: &str) -> String {
        format!("{}/repos/{}/{}{rest}", self.api, self.owner, self.name)
    }

    pub(super) fn repository(&self) -> Value {
        json!({
            "id": 1, "name": self.name, "full_name": self.full_name(),
            "owner": {"login": self.owner, "id": 1}, "private": false, "default_branch": "main",
            "archived": self.access == Access::Archived,
            "permissions": {"admin": false, "push": self.access == Access::Full, "pull": true},
        })
    }

    /// Emits a webhook event.
    pub(super) fn tell(&mut self, event: &str, mut payload: Value) {
        payload["repository"] = self.repository();
        if payload["sender"].is_null() {
            payload["sender"] = json!({"login": "eve", "id": 9});
        }
        self.events.push_back((event.to_owned(), payload));
    }
}
