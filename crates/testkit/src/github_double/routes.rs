//! Routing of requests.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use data_encoding::HEXLOWER;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::auth::Caller;
use super::smart_http::refusal;
use super::state::{Asked, Reply, State};
use crate::double::{Answer, Fault, RawAnswer, Request, Routes};

/// The hourly rate limit of an installation.
const QUOTA: usize = 1_000_000;

/// Where logs are stored: on another host, by its name.
pub(super) const LOGS: &str = "/stored-logs/";

/// The routes of GitHub's REST API.
pub(super) struct GitHubRoutes(pub(super) Arc<Mutex<State>>);

impl GitHubRoutes {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Routes for GitHubRoutes {
    fn answer_raw(&self, request: &Request, fault: Option<Fault>) -> Option<RawAnswer> {
        // Git runs without the lock: it answers several requests at the same time.
        if let Some(job) = request.path.strip_prefix(LOGS) {
            return Some(self.state().stored_log(job, request));
        }
        let found = self.state().git_request(request)?;
        Some(match (fault, found) {
            (Some(Fault::Status(status) | Fault::Refusal(status, _)), _) => refusal(status, ""),
            (Some(_), _) => refusal(500, ""),
            (None, Err(refused)) => refused,
            (None, Ok(git)) => git.answer(request),
        })
    }

    fn answer(&self, request: &Request) -> Answer {
        let mut state = self.state();
        let (method, path) = (&request.method, &request.path);
        let exceeds = state.limits.as_mut().is_some_and(|limits| limits.count(method, path));
        if exceeds {
            drop(state);
            return self.refuse(request, Fault::Secondary(60));
        }
        state.requests += 1;
        let (reply, headers) = match state.caller(request.header("authorization"), request.seconds)
        {
            Ok(caller) => {
                let refused = state.access.refuse(&request.method, &request.path);
                refused.unwrap_or_else(|| (dispatch(&mut state, request, &caller), Vec::new()))
            }
            Err(words) => (Reply::error(401, &words), Vec::new()),
        };
        let mut answer = answer_of(&reply);
        let left = QUOTA - state.requests;
        answer.headers.push(("x-ratelimit-remaining", left.to_string()));
        answer.headers.push(("x-ratelimit-reset", (request.seconds + 900).to_string()));
        answer.headers.extend(headers);
        if answer.status == 302 {
            let address = reply.body["location"].as_str().unwrap_or_default();
            answer.headers.push(("location", address.to_owned()));
        }
        let etag = etag(answer.text.as_deref().unwrap_or_default());
        let is_read = request.method == "GET";
        if is_read && answer.status == 200 && request.header("if-none-match") == etag {
            (answer.status, answer.text) = (304, None);
        }
        if is_read && answer.status < 400 {
            answer.headers.push(("etag", etag));
        }
        if let Some((page, pages)) = reply.page.filter(|(page, pages)| page < pages) {
            let Request { path, query, .. } = request;
            let kept: Vec<&str> =
                query.split('&').filter(|it| !it.is_empty() && !it.starts_with("page=")).collect();
            let address =
                |page: usize| format!("<{}{path}?{}&page={page}>", state.api, kept.join("&"));
            let (next, last) = (address(page + 1), address(pages));
            let link = format!("{next}; rel=\"next\", {last}; rel=\"last\"");
            answer.headers.push(("link", link));
        }
        answer
    }

    fn refuse(&self, request: &Request, fault: Fault) -> Answer {
        self.state().requests += 1;
        let (reply, headers) = match fault {
            Fault::Status(status) => (Reply::error(status, "planned"), Vec::new()),
            Fault::Refusal(status, words) => (Reply::error(status, words), Vec::new()),
            Fault::Secondary(after) => {
                let words = "You have exceeded a secondary rate limit. Please wait a few minutes.";
                (Reply::error(403, words), vec![("retry-after", after.to_string())])
            }
            Fault::QuotaUsedUp(after) => {
                let headers = vec![
                    ("x-ratelimit-remaining", "0".to_owned()),
                    ("x-ratelimit-reset", (request.seconds + i64::from(after)).to_string()),
                ];
                let words = "API rate limit exceeded for installation ID 1.";
                (Reply::error(403, words), headers)
            }
            Fault::Broken => (Reply::error(500, "never seen"), Vec::new()),
            Fault::LostAnswer => (Reply::error(502, "Server Error"), Vec::new()),
        };
        Answer { headers, ..answer_of(&reply) }
    }
}

fn answer_of(reply: &Reply) -> Answer {
    let text = if reply.body.is_null() { String::new() } else { reply.body.to_string() };
    Answer { status: reply.status, headers: Vec::new(), text: Some(text) }
}

fn etag(text: &str) -> String {
    format!("W/\"{}\"", HEXLOWER.encode(&Sha256::digest(text.as_bytes())))
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let hex = tail.get(..2).and_then(|it| std::str::from_utf8(it).ok());
        let byte = hex.and_then(|it| u8::from_str_radix(it, 16).ok());
        if let (b'%', Some(byte)) = (first, byte) {
            bytes.push(byte);
            rest = tail.get(2..).unwrap_or_default();
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn dispatch(state: &mut State, request: &Request, caller: &Caller) -> Reply {
    let parts: Vec<String> = request.path.trim_matches('/').split('/').map(decoded).collect();
    let words: Vec<&str> = parts.iter().map(String::as_str).collect();
    let of_repository = |words: &[&str]| {
        words.len() >= 3
            && words[0] == "repos"
            && state.is_name(&format!("{}/{}", words[1], words[2]))
    };
    match (caller, words.as_slice()) {
        (Caller::App(id), ["app"]) => return state.own_app(*id),
        (Caller::App(_), ["app", "installations", "1", "access_tokens"]) => {
            return state.installation_token(request.seconds);
        }
        (Caller::App(_), ["repos", _, _, "installation"]) if of_repository(&words) => {
            return Reply::new(200, json!({"id": 1}));
        }
        (Caller::App(_), _) => {
            return Reply::error(403, "A JSON web token cannot be used here");
        }
        (Caller::Person(login), ["user"]) => {
            return Reply::new(200, json!({"login": login, "id": 2}));
        }
        (Caller::Person(_) | Caller::Installation(_), ["apps", slug]) => {
            return state.app_of_slug(slug);
        }
        (_, words) if !of_repository(words) => return Reply::not_found(),
        (Caller::Person(_) | Caller::Installation(_), _) => {}
    }
    let pairs = request.query.split('&').filter_map(|it| it.split_once('='));
    let (login, app) = match caller {
        Caller::Person(login) => (login.clone(), None),
        Caller::App(id) | Caller::Installation(id) => ("signalbox-test[bot]".to_owned(), Some(*id)),
    };
    let asked = Asked {
        method: request.method.clone(),
        parts: parts[3..].to_vec(),
        query: pairs.map(|(key, value)| (decoded(key), decoded(value))).collect(),
        body: request.json.clone(),
        login,
        app,
    };
    route(state, &asked)
}

fn route(state: &mut State, asked: &Asked) -> Reply {
    let words: Vec<&str> = asked.parts.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<u64>().unwrap_or_default();
    match (asked.method.as_str(), words.as_slice()) {
        ("GET", []) => Reply::new(200, state.repository()),
        ("GET", ["branches", name]) => state.branch(name),
        ("GET", ["branches", name, "protection", "required_status_checks"]) => {
            state.classic_checks(name)
        }
        ("GET", ["rules", "branches", name]) => state.rules(asked, name),
        ("GET", ["git", "ref", name @ ..]) => state.get_ref(&name.join("/")),
        ("GET", ["git", "matching-refs", name @ ..]) => state.matching_refs(asked, &name.join("/")),
        ("POST", ["git", "refs"]) => state.create_ref(asked),
        ("PATCH", ["git", "refs", name @ ..]) => state.update_ref(asked, &name.join("/")),
        ("DELETE", ["git", "refs", name @ ..]) => state.delete_ref(&name.join("/")),
        ("GET", ["git", "trees", sha]) => state.get_tree(asked, sha),
        ("GET", ["git", "commits", sha]) => state.get_commit(sha),
        ("POST", ["git", "commits"]) => state.create_commit(asked),
        ("POST", ["merges"]) => state.merge(asked),
        ("GET", ["compare", range]) => state.compare(asked, range),
        ("GET", ["contents", path @ ..]) => state.contents(asked, &path.join("/")),
        ("GET", ["pulls"]) => state.list_pulls(asked),
        ("POST", ["pulls"]) => state.create_pull(asked),
        ("GET", ["pulls", id]) => state.get_pull(number(id)),
        ("PATCH", ["pulls", id]) => state.update_pull(asked, number(id)),
        ("PUT", ["pulls", id, "merge"]) => state.merge_pull(asked, number(id)),
        ("GET", ["commits", sha]) => state.one_commit(asked, sha),
        ("GET", ["commits", sha, "check-runs"]) => state.list_check_runs(asked, sha),
        ("GET", ["commits", sha, "status"]) => state.combined_status(asked, sha),
        ("GET", ["commits", sha, "statuses"]) => state.list_statuses(asked, sha),
        ("POST", ["statuses", sha]) => state.create_status(asked, sha),
        ("GET", ["issues", id, "comments"]) => state.list_notes(asked, number(id)),
        ("POST", ["issues", id, "comments"]) => state.create_note(asked, number(id)),
        ("GET", ["issues", "comments"]) => state.all_notes(asked),
        (_, ["issues", "comments", id, ..]) => {
            let rest = asked.parts.get(3..).unwrap_or_default();
            state.one_note(asked, number(id), rest)
        }
        (_, ["issues", id, "labels"]) => state.labels(asked, number(id), None),
        ("DELETE", ["issues", id, "labels", name]) => state.labels(asked, number(id), Some(name)),
        ("GET", ["collaborators", login, "permission"]) => state.permission(login),
        ("GET", ["actions", "runs"]) => state.list_workflow_runs(asked),
        ("POST", ["actions", "runs", id, "rerun-failed-jobs"]) => {
            state.rerun_failed_jobs(number(id))
        }
        ("POST", ["actions", "runs", id, "cancel"]) => state.cancel_workflow_run(number(id)),
        ("GET", ["actions", "jobs", id, "logs"]) => state.job_log(number(id)),
        ("GET", ["actions", "runs", id, "jobs"]) => state.jobs(asked, id),
        ("GET", ["actions", "runs", id]) => state.workflow_run(id),
        _ => Reply::not_found(),
    }
}
