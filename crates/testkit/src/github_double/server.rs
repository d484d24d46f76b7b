//! The double as a server, and what tests tell it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use actix_web::dev::ServerHandle;
use actix_web::http::StatusCode;
use actix_web::web::{Bytes, Data};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use signalbox_domain::time::Timestamp;

use super::access::Access;
use super::checks::{ACTIONS, Reported};
use super::events::{Carelessness, Listener, deliver};
use super::faults::{Fault, Planned, Trouble, meet};
use super::git::Git;
use super::routes::dispatch;
use super::state::{Asked, Note, Pull, Reply, State};

/// The calls that an installation may make in an hour.
const QUOTA: usize = 1_000_000;

/// A request that was made, and how it was answered.
#[derive(Clone, Debug)]
pub struct Logged {
    /// The method.
    pub method: String,
    /// The path, encoded as it came.
    pub path: String,
    /// The query, encoded as it came.
    pub query: String,
    /// The body; null without one.
    pub body: Value,
    /// The status of the answer.
    pub status: u16,
}

struct Shared {
    state: Arc<Mutex<State>>,
}

/// A running double with one repository.
pub struct GitHubDouble {
    state: Arc<Mutex<State>>,
    listener: Arc<Mutex<Option<Listener>>>,
    handle: ServerHandle,
    /// Where its API is.
    pub url: String,
}

impl Drop for GitHubDouble {
    fn drop(&mut self) {
        drop(self.handle.stop(false));
    }
}

impl GitHubDouble {
    /// A host with the repository `OWNER/NAME` in that folder, for the holder of `token`.
    pub fn start(folder: &Path, owner: &str, name: &str, token: &str) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let state = Arc::new(Mutex::new(State {
            owner: owner.to_owned(),
            name: name.to_owned(),
            git: Git::init(folder),
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
            ci: None,
            planned: Vec::new(),
            trouble: Trouble::default(),
            log: Vec::new(),
            tokens: BTreeSet::new(),
            personal: Some(("queue-bot".to_owned(), token.to_owned())),
            app: None,
            app_permissions: json!({}),
            events: VecDeque::new(),
            landed_trees: Vec::new(),
        }));
        let events = Arc::new(Mutex::new(None));
        let shared = Data::new(Shared { state: state.clone() });
        let (send, receive) = std::sync::mpsc::channel();
        let (told, to) = (state.clone(), events.clone());
        std::thread::spawn(move || {
            actix_web::rt::System::new().block_on(async move {
                let server = HttpServer::new(move || {
                    App::new().app_data(shared.clone()).default_service(web::to(answer))
                });
                let server = server.workers(2).disable_signals().listen(listener);
                let server = server.expect("it listens").run();
                send.send(server.handle()).expect("somebody waits");
                actix_web::rt::spawn(deliver(told, to));
                server.await.expect("it ends well");
            });
        });
        let handle = receive.recv().expect("a handle");
        Self { state, listener: events, handle, url }
    }

    /// Whether every event was sent, but for those that come late.
    pub fn has_told_all(&self) -> bool {
        self.state().events.is_empty()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes it known to an app with that public key (PKCS#1, DER), permissions and events.
    pub fn install_app(&self, id: u64, key: &[u8], permissions: &Value, events: &[&str]) {
        let mut state = self.state();
        state.app = Some((id, key.to_owned()));
        state.app_permissions = json!({"permissions": permissions, "events": events});
    }

    /// Revokes every installation token.
    pub fn revoke_tokens(&self) {
        self.state().tokens.clear();
    }

    /// Sends events there from now on, and not those of before.
    pub fn send_events(&self, url: &str, secret: &str, carelessness: Carelessness) {
        self.state().events.clear();
        let mut listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        *listener = Some(Listener { url: url.to_owned(), secret: secret.to_owned(), carelessness });
    }

    /// Says how checks on test branches end, from the names of the candidate's files.
    pub fn set_ci(
        &self,
        ci: impl Fn(&BTreeSet<String>) -> Vec<(&'static str, &'static str)> + Send + 'static,
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

    /// Somebody runs a suite again: what is reported in it from now on is a new attempt.
    pub fn rerun(&self, suite: u64) {
        *self.state().attempts.entry(suite).or_insert(1) += 1;
    }

    /// Somebody posts a commit status; an app under its slug and `[bot]`.
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

    /// Says how much of the repository we reach from now on.
    pub fn set_access(&self, access: Access) {
        self.state().access = access;
    }

    /// From now on only that personal token is accepted.
    pub fn set_token(&self, token: &str) {
        self.state().personal = Some(("queue-bot".to_owned(), token.to_owned()));
    }

    /// How often mergeability is null before it is computed.
    pub fn set_null_reads(&self, reads: u32) {
        self.state().null_reads = reads;
    }

    /// Requires statuses of a branch by a ruleset, and by classic protection.
    pub fn require(&self, branch: &str, by_ruleset: &[&'static str], classic: &[&'static str]) {
        let by_anybody =
            |list: &[&'static str]| list.iter().map(|it| (*it, None)).collect::<Vec<_>>();
        self.require_by(branch, &by_anybody(by_ruleset), &by_anybody(classic));
    }

    /// The same, each name with the app that must report it.
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

    /// Lets nobody move a branch but by merging a pull request.
    pub fn guard(&self, branch: &str) {
        self.state().guarded.insert(branch.to_owned());
    }

    /// Says what somebody may do.
    pub fn permit(&self, login: &str, permission: &str) {
        self.state().permissions.insert(login.to_owned(), permission.to_owned());
    }

    /// Adds a workflow run.
    pub fn add_workflow_run(&self, id: u64, run: Value) {
        self.state().workflow_runs.insert(id, run);
    }

    /// Plans a fault for the next `times` requests of that method (any, when empty) whose path
    /// contains that part.
    pub fn plan(&self, method: &str, path_part: &str, times: u32, fault: Fault) {
        let planned =
            Planned { method: method.to_owned(), path_part: path_part.to_owned(), times, fault };
        self.state().planned.push(planned);
    }

    /// From now on one request of so many meets the next of these faults, in turn.
    pub fn trouble(&self, one_in: u64, faults: &[Fault]) {
        self.state().trouble = Trouble { one_in, faults: faults.to_vec(), seen: 0 };
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

    /// Somebody closes a pull request.
    pub fn close(&self, number: u64) {
        self.state().close(number);
    }

    /// Marks a pull request as coming from the fork of somebody.
    pub fn set_fork(&self, number: u64, owner: &str) {
        if let Some(pull) = self.state().pulls.get_mut(&number) {
            pull.fork = Some(owner.to_owned());
        }
    }

    /// Somebody has pushed to a branch: what hangs on it follows.
    pub fn pushed(&self, branch: &str) {
        let mut state = self.state();
        let sha = state.git.branch(branch).expect("a branch");
        state.ref_moved(&format!("refs/heads/{branch}"), &sha);
    }

    /// Somebody writes a comment; returns its id.
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

    /// The labels of a pull request.
    pub fn labels(&self, number: u64) -> Vec<String> {
        let state = self.state();
        state.pulls.get(&number).map(|it| it.labels.iter().cloned().collect()).unwrap_or_default()
    }

    /// Somebody puts a label on a pull request.
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

    /// The titles of the draft pull requests for tests that were opened.
    pub fn drafts(&self) -> Vec<String> {
        let state = self.state();
        state.pulls.values().filter(|it| it.draft).map(|it| it.title.clone()).collect()
    }

    /// The trees that `main` has had, oldest first.
    pub fn landed_trees(&self) -> Vec<String> {
        self.state().landed_trees.clone()
    }

    /// The trees of all test branches that CI has passed.
    pub fn passed_trees(&self) -> BTreeSet<String> {
        let state = self.state();
        let passed = state.check_runs.iter().filter(|(_, runs)| {
            runs.iter().all(|run| run["conclusion"].as_str() == Some("success"))
        });
        passed.map(|(sha, _)| state.git.tree(sha)).collect()
    }

    /// Every request so far.
    pub fn log(&self) -> Vec<Logged> {
        self.state().log.clone()
    }

    /// A git command in the bare repository.
    pub fn git(&self, args: &[&str]) -> String {
        self.state().git.must(args)
    }
}

async fn answer(shared: Data<Shared>, request: HttpRequest, body: Bytes) -> HttpResponse {
    let now: Timestamp = time::OffsetDateTime::now_utc().into();
    let seconds = now.unix_micros().div_euclid(1_000_000);
    let header = |name: &str| {
        let value = request.headers().get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let (method, path) = (request.method().to_string(), request.path().to_owned());
    let query = request.query_string().to_owned();
    let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
    let (planned, trouble) = {
        let state = &mut *state;
        (&mut state.planned, &mut state.trouble)
    };
    let fault = meet(planned, trouble, &method, &path);
    let json: Value = serde_json::from_slice(&body).unwrap_or_default();
    let reset = (seconds + 900).to_string();
    let refused = match fault {
        Some(Fault::Status(status)) => Some((Reply::error(status, "planned"), Vec::new())),
        Some(Fault::Refusal(status, words)) => Some((Reply::error(status, words), Vec::new())),
        Some(Fault::Secondary(after)) => {
            let words = "You have exceeded a secondary rate limit. Please wait a few minutes.";
            Some((Reply::error(403, words), vec![("retry-after", after.to_string())]))
        }
        Some(Fault::QuotaUsedUp(after)) => {
            let headers = vec![
                ("x-ratelimit-remaining", "0".to_owned()),
                ("x-ratelimit-reset", (seconds + i64::from(after)).to_string()),
            ];
            Some((Reply::error(403, "API rate limit exceeded for installation ID 1."), headers))
        }
        Some(Fault::Broken) => Some((Reply::error(500, "never seen"), Vec::new())),
        Some(Fault::LostAnswer) | None => None,
    };
    let is_refused = refused.is_some();
    let access = state.access;
    let (mut reply, headers) = refused.unwrap_or_else(|| {
        let caller = match state.caller(&header("authorization"), seconds) {
            Ok(caller) => caller,
            Err(words) => return (Reply::error(401, &words), Vec::new()),
        };
        access.refuse(&method, &path).unwrap_or_else(|| {
            let body = json.clone();
            (dispatch(&mut state, &method, &path, &query, body, &caller, seconds), Vec::new())
        })
    });
    if fault == Some(Fault::LostAnswer) {
        reply = Reply::error(502, "Server Error");
    }
    let text = if reply.body.is_null() { String::new() } else { reply.body.to_string() };
    let etag = format!("W/\"{}\"", HEXLOWER.encode(&Sha256::digest(text.as_bytes())));
    let same = method == "GET" && reply.status == 200 && header("if-none-match") == etag;
    let status = if same { 304 } else { reply.status };
    state.log.push(Logged {
        method: method.clone(),
        path: path.clone(),
        query: query.clone(),
        body: json,
        status,
    });
    let mut http = HttpResponse::build(StatusCode::from_u16(status).expect("a status"));
    if !is_refused {
        let left = QUOTA - state.log.len();
        http.insert_header(("x-ratelimit-remaining", left.to_string()));
        http.insert_header(("x-ratelimit-reset", reset));
    }
    for (name, value) in headers {
        http.insert_header((name, value));
    }
    if method == "GET" && status < 400 {
        http.insert_header(("etag", etag));
    }
    if let Some((page, pages)) = reply.page.filter(|(page, pages)| page < pages) {
        let kept: Vec<&str> =
            query.split('&').filter(|it| !it.is_empty() && !it.starts_with("page=")).collect();
        let address = |page: usize| format!("<{}{path}?{}&page={page}>", state.api, kept.join("&"));
        let link = format!("{}; rel=\"next\", {}; rel=\"last\"", address(page + 1), address(pages));
        http.insert_header(("link", link));
    }
    drop(state);
    if fault == Some(Fault::Broken) {
        let broken =
            futures_util::stream::once(async { Err::<Bytes, _>(std::io::Error::other("planned")) });
        return http.streaming(broken);
    }
    if same {
        http.finish()
    } else {
        http.content_type("application/json; charset=utf-8").body(text)
    }
}
