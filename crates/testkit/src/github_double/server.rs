//! The double as a server, with the controls of tests.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use signalbox_domain::ports::Clock;
use signalbox_domain::time::Timestamp;

use super::access::Access;
use super::checks::{ACTIONS, Reported};
use super::events::{Carelessness, Listener, deliver};
use super::limits::SecondaryLimits;
use super::routes::GitHubRoutes;
use super::state::{Asked, Note, Pull, State, WrongMerge};
use crate::double::{Fault, Git, Logged, Port, Server};

/// A running double with one repository.
pub struct GitHubDouble {
    state: Arc<Mutex<State>>,
    listener: Arc<Mutex<Option<Listener>>>,
    server: Server,
    /// The URL of its API.
    pub url: String,
}

impl GitHubDouble {
    /// Starts a host with the repository `OWNER/NAME` in a folder, which accepts the personal token
    /// `token`.
    pub fn start(folder: &Path, owner: &str, name: &str, token: &str) -> Self {
        let port = Port::free();
        let url = port.url.clone();
        let state = Arc::new(Mutex::new(State {
            owner: owner.to_owned(),
            name: name.to_owned(),
            former_name: None,
            serves_only_refs: false,
            git: Git::init(folder, ("GitHub", "noreply@github.example")),
            api: url.clone(),
            last_number: 0,
            last_id: 100,
            pulls: BTreeMap::new(),
            notes: BTreeMap::new(),
            check_runs: BTreeMap::new(),
            statuses: BTreeMap::new(),
            rulesets: BTreeMap::new(),
            classic: BTreeMap::new(),
            attempts: BTreeMap::new(),
            access: Access::Full,
            guarded: BTreeSet::new(),
            permissions: BTreeMap::new(),
            workflow_runs: BTreeMap::new(),
            null_reads: 1,
            wrong_merge: None,
            ci: None,
            logs: BTreeMap::new(),
            requests: 0,
            limits: None,
            tokens: BTreeSet::new(),
            personal: Some(("queue-bot".to_owned(), token.to_owned())),
            app: None,
            app_permissions: json!({}),
            events: VecDeque::new(),
            landed_trees: Vec::new(),
        }));
        let events = Arc::new(Mutex::new(None));
        let routes = Arc::new(GitHubRoutes(state.clone()));
        let (told, to) = (state.clone(), events.clone());
        let server = Server::start(port, routes, move || deliver(told, to));
        Self { state, listener: events, server, url }
    }

    /// Sets what the jobs of that name print.
    pub fn set_log(&self, job: &str, log: &str) {
        self.state().logs.insert(job.to_owned(), log.to_owned());
    }

    /// Enforces the published limits beside the quota, by this clock.
    pub fn limit_writes(&self, clock: Arc<dyn Clock>) {
        self.state().limits = Some(SecondaryLimits::new(clock));
    }

    /// How many calls exceeded these limits.
    pub fn exceeded_limits(&self) -> usize {
        self.state().limits.as_ref().map_or(0, SecondaryLimits::exceeded)
    }

    /// Whether every delivery was sent, except delayed ones.
    pub fn has_delivered_all(&self) -> bool {
        self.state().events.is_empty()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Installs an app with this public key (PKCS#1, DER), permissions and events.
    pub fn install_app(&self, id: u64, key: &[u8], permissions: &Value, events: &[&str]) {
        let mut state = self.state();
        state.app = Some((id, key.to_owned()));
        state.app_permissions = json!({"permissions": permissions, "events": events});
    }

    /// Revokes every installation token.
    pub fn revoke_tokens(&self) {
        self.state().tokens.clear();
    }

    /// Sends events from now on to a URL.
    pub fn send_events(&self, url: &str, secret: &str, carelessness: Carelessness) {
        self.state().events.clear();
        let mut listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        *listener = Some(Listener { url: url.to_owned(), secret: secret.to_owned(), carelessness });
    }

    /// Sets the conclusions of check runs on test branches, as a function of the names of the
    /// candidate's files.
    pub fn set_ci(
        &self,
        ci: impl Fn(&BTreeSet<String>) -> Vec<(&'static str, &'static str)> + Send + 'static,
    ) {
        self.set_ci_attempts(move |files, _| ci(files));
    }

    /// As [`Self::set_ci`], but the result may depend on the attempt, from 1.
    pub fn set_ci_attempts(
        &self,
        ci: impl Fn(&BTreeSet<String>, u64) -> Vec<(&'static str, &'static str)> + Send + 'static,
    ) {
        self.state().ci = Some(Box::new(ci));
    }

    /// Reports a check run on a commit.
    pub fn report(&self, sha: &str, name: &str, status: &str, conclusion: Option<&str>) {
        let reported = Reported { app: ACTIONS.0, suite: 1, name, status, conclusion };
        self.state().report(sha, &reported);
    }

    /// Reports a check run on a commit, by any app and in any suite. Returns its id.
    pub fn report_run(&self, sha: &str, reported: &Reported<'_>) -> u64 {
        self.state().report(sha, reported)
    }

    /// Reruns a suite: later reports belong to a new attempt.
    pub fn rerun(&self, suite: u64) {
        *self.state().attempts.entry(suite).or_insert(1) += 1;
    }

    /// Posts a commit status as a user, or as an app by its slug and `[bot]`.
    pub fn post_status(&self, sha: &str, login: &str, context: &str, status: &str) {
        let asked = Asked {
            method: "POST".to_owned(),
            parts: Vec::new(),
            query: BTreeMap::new(),
            body: json!({"context": context, "state": status}),
            login: login.to_owned(),
            app: None,
        };
        let reply = self.state().create_status(&asked, sha);
        assert_eq!(reply.status, 201, "{}", reply.body);
    }

    /// Sets the access to the repository.
    pub fn set_access(&self, access: Access) {
        self.state().access = access;
    }

    /// Whether git gets only commits that a ref points at.
    pub fn serve_only_refs(&self, only: bool) {
        self.state().serves_only_refs = only;
    }

    /// Renames the repository. The API follows the former name, git is redirected.
    pub fn rename(&self, name: &str) {
        let mut state = self.state();
        state.former_name = Some(state.full_name());
        name.clone_into(&mut state.name);
    }

    /// Sets the only accepted personal token.
    pub fn set_token(&self, token: &str) {
        self.state().personal = Some(("queue-bot".to_owned(), token.to_owned()));
    }

    /// Makes merges go wrong from now on, or right again.
    pub fn merge_wrongly(&self, how: Option<WrongMerge>) {
        self.state().wrong_merge = how;
    }

    /// Sets the number of reads with a null mergeability before it is computed.
    pub fn set_null_reads(&self, reads: u32) {
        self.state().null_reads = reads;
    }

    /// Sets the required statuses of a branch, by a ruleset and by classic protection.
    pub fn require(&self, branch: &str, by_ruleset: &[&'static str], classic: &[&'static str]) {
        let by_anybody =
            |list: &[&'static str]| list.iter().map(|it| (*it, None)).collect::<Vec<_>>();
        self.require_by(branch, &by_anybody(by_ruleset), &by_anybody(classic));
    }

    /// Sets the required statuses of a branch, each with the app that must report it.
    pub fn require_by(
        &self,
        branch: &str,
        by_ruleset: &[(&str, Option<u64>)],
        classic: &[(&str, Option<u64>)],
    ) {
        let owned = |list: &[(&str, Option<u64>)]| {
            list.iter().map(|(name, app)| ((*name).to_owned(), *app)).collect::<Vec<_>>()
        };
        let mut state = self.state();
        state.rulesets.insert(branch.to_owned(), owned(by_ruleset));
        if !classic.is_empty() {
            state.classic.insert(branch.to_owned(), owned(classic));
        }
    }

    /// Protects a branch: it only moves by merging a pull request.
    pub fn guard(&self, branch: &str) {
        self.state().guarded.insert(branch.to_owned());
    }

    /// Sets the permission of a user.
    pub fn permit(&self, login: &str, permission: &str) {
        self.state().permissions.insert(login.to_owned(), permission.to_owned());
    }

    /// Adds a workflow run.
    pub fn add_workflow_run(&self, id: u64, run: Value) {
        self.state().workflow_runs.insert(id, run);
    }

    /// Plans a fault for the next `times` requests with this method (any if empty) whose path
    /// contains `path_part`.
    pub fn plan(&self, method: &str, path_part: &str, times: u32, fault: Fault) {
        self.server.plan(method, path_part, times, fault);
    }

    /// From now on, one request in `one_in` meets the next of these faults, in turn.
    pub fn trouble(&self, one_in: u64, faults: &[Fault]) {
        self.server.trouble(one_in, faults);
    }

    /// Opens a pull request from a branch that was pushed into the repository.
    pub fn open(&self, branch: &str, base: &str, title: &str) -> u64 {
        let mut state = self.state();
        let head = state.git.branch(branch).expect("a pushed branch");
        let pull = Pull {
            title: title.to_owned(),
            body: None,
            author: "ada".to_owned(),
            head_ref: branch.to_owned(),
            head,
            fork: None,
            base: base.to_owned(),
            open: true,
            merged: false,
            draft: false,
            blocked: false,
            labels: BTreeSet::new(),
            computed: None,
            nulls_left: 0,
        };
        state.open(pull)
    }

    /// Closes a pull request.
    pub fn close(&self, number: u64) {
        self.state().close(number);
    }

    /// Changes the description of a pull request.
    pub fn describe(&self, number: u64, description: &str) {
        let mut state = self.state();
        if let Some(pull) = state.pulls.get_mut(&number) {
            pull.body = Some(description.to_owned());
        }
        state.emit_pull(number, "edited");
    }

    /// Makes a pull request come from a fork.
    pub fn set_fork(&self, number: u64, owner: &str) {
        if let Some(pull) = self.state().pulls.get_mut(&number) {
            pull.fork = Some(owner.to_owned());
        }
    }

    /// Handles a push to a branch in the bare repository.
    pub fn pushed(&self, branch: &str) {
        let mut state = self.state();
        let sha = state.git.branch(branch).expect("a branch");
        state.ref_moved(&format!("refs/heads/{branch}"), &sha);
    }

    /// Writes a comment as a user; returns its id.
    pub fn comment(&self, number: u64, login: &str, body: &str) -> u64 {
        let now: Timestamp = time::OffsetDateTime::now_utc().into();
        self.state().write_note(Note {
            issue: number,
            author: login.to_owned(),
            app: None,
            body: body.to_owned(),
            created_at: now.to_string(),
            reactions: Vec::new(),
        })
    }

    /// The bodies of the comments on a pull request with their authors, oldest first.
    pub fn comments(&self, number: u64) -> Vec<(String, String)> {
        let state = self.state();
        let found = state.notes.values().filter(|note| note.issue == number);
        found.map(|note| (note.author.clone(), note.body.clone())).collect()
    }

    /// The reactions on a comment.
    pub fn reactions(&self, comment: u64) -> Vec<String> {
        self.state().notes.get(&comment).map(|it| it.reactions.clone()).unwrap_or_default()
    }

    /// The statuses on a commit: context and state.
    pub fn statuses(&self, sha: &str) -> Vec<(String, String)> {
        let state = self.state();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let found = state.newest_statuses(sha);
        found.iter().map(|it| (text(&it["context"]), text(&it["state"]))).collect()
    }

    /// The newest statuses of a commit, as they are described.
    pub fn described_statuses(&self, sha: &str) -> Vec<String> {
        let state = self.state();
        let text = |value: &Value| value["description"].as_str().unwrap_or_default().to_owned();
        state.newest_statuses(sha).iter().map(text).collect()
    }

    /// The labels of a pull request.
    pub fn labels(&self, number: u64) -> Vec<String> {
        let state = self.state();
        state.pulls.get(&number).map(|it| it.labels.iter().cloned().collect()).unwrap_or_default()
    }

    /// Adds a label to a pull request as a user.
    pub fn label(&self, number: u64, login: &str, label: &str) {
        let mut state = self.state();
        if let Some(pull) = state.pulls.get_mut(&number) {
            pull.labels.insert(label.to_owned());
        }
        state.tell(
            "pull_request",
            json!({
                "action": "labeled", "number": number, "label": {"name": label},
                "sender": {"login": login},
            }),
        );
    }

    /// Whether a pull request is open, and whether it is merged.
    pub fn pull(&self, number: u64) -> (bool, bool) {
        self.state().pulls.get(&number).map(|it| (it.open, it.merged)).unwrap_or_default()
    }

    /// The titles of the draft pull requests of test branches.
    pub fn drafts(&self) -> Vec<String> {
        let state = self.state();
        state.pulls.values().filter(|it| it.draft).map(|it| it.title.clone()).collect()
    }

    /// All past trees of `main`, oldest first.
    pub fn landed_trees(&self) -> Vec<String> {
        self.state().landed_trees.clone()
    }

    /// The trees of all test branches that CI has passed.
    pub fn passed_trees(&self) -> BTreeSet<String> {
        let state = self.state();
        let passed = state.check_runs.iter().filter(|(_, runs)| {
            State::of_newest_attempts(runs).all(|run| run["conclusion"].as_str() == Some("success"))
        });
        passed.map(|(sha, _)| state.git.tree(sha)).collect()
    }

    /// All requests so far.
    pub fn log(&self) -> Vec<Logged> {
        self.server.log()
    }

    /// Runs git in the bare repository.
    pub fn git(&self, args: &[&str]) -> String {
        self.state().git.must(args)
    }
}
