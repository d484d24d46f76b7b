//! Real traffic of two client libraries, as recorded: our adapter sends the same requests, gets the
//! same replies, and must interpret them correctly.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use actix_web::http::StatusCode;
use actix_web::web::{self, Data};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer};
use async_trait::async_trait;
use serde_json::{Value, json};
use signalbox_domain::ids::{BranchName, PrNumber, RunId, Sha, TreeId};
use signalbox_domain::ports::{
    CheckOutput, ChecksJob, ChecksRunner as _, ChecksSink, Forge, GitHost, HostError, Permission,
    PullRequestQuery, SinkClosed,
};
use signalbox_domain::queue::{
    Candidate, CheckReport, CheckStatus, Mergeability, PullRequestState, RunChecks,
};
use signalbox_github::{Credentials, GitHubChecks, GitHubHost};
use signalbox_testkit::github_double::fetched;
use uuid::Uuid;

use crate::{adapter, repository};

/// What is answered, by path; everything else is not found.
type Answers = BTreeMap<String, Value>;

/// A host that repeats what was recorded.
struct Replay {
    answers: Arc<Mutex<Answers>>,
    url: String,
}

async fn answer(answers: Data<Mutex<Answers>>, request: HttpRequest) -> HttpResponse {
    let answers = answers.lock().expect("a lock");
    let Some(recorded) = answers.get(&request.path().replace("%2F", "/")) else {
        return HttpResponse::NotFound().json(json!({"message": "Not Found"}));
    };
    let status = recorded["status"].as_u64().and_then(|it| u16::try_from(it).ok());
    let status = status.and_then(|it| StatusCode::from_u16(it).ok()).expect("a status");
    let mut reply = HttpResponse::build(status);
    for (name, value) in recorded["headers"].as_object().into_iter().flatten() {
        let is_told = name.starts_with("x-ratelimit") || name == "retry-after";
        if let Some(value) = value.as_str().filter(|_| is_told) {
            reply.insert_header((name.as_str(), value));
        }
    }
    reply.content_type("application/json").body(recorded["body"].to_string())
}

impl Replay {
    fn start() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let answers = Data::new(Mutex::new(Answers::new()));
        let kept = answers.clone().into_inner();
        std::thread::spawn(move || {
            actix_web::rt::System::new().block_on(async move {
                let make =
                    move || App::new().app_data(answers.clone()).default_service(web::to(answer));
                let server = HttpServer::new(make).workers(1).disable_signals();
                server.listen(listener).expect("it listens").run().await.expect("it ends well");
            });
        });
        Self { answers: kept, url }
    }

    /// Replies with exactly these answers. A new adapter: its caches are empty.
    fn tells(&self, answers: impl IntoIterator<Item = (String, Value)>) -> Arc<GitHubHost> {
        let mut answers: BTreeMap<String, Value> = answers.into_iter().collect();
        // What is not recorded is not there, in repositories that we may look at.
        let paths: Vec<String> = answers.keys().cloned().collect();
        for path in paths {
            let repository = path.split('/').take(4).collect::<Vec<_>>().join("/");
            let seen = json!({"status": 200, "headers": {}, "body": {}});
            answers.entry(repository).or_insert(seen);
        }
        *self.answers.lock().expect("a lock") = answers;
        adapter(&self.url, Credentials::token("t").expect("a token"))
    }
}

struct Exchange {
    owner: String,
    name: String,
    /// The path below the repository, in parts.
    rest: Vec<String>,
    path: String,
    recorded: Value,
}

/// The exchanges about repositories with that method and status.
fn exchanges(method: &str, wanted: impl Fn(u64) -> bool) -> Option<Vec<Exchange>> {
    let Value::Array(all) = fetched("recorded.json")? else { return None };
    let found = all.into_iter().filter_map(|recorded| {
        let fits = recorded["method"] == method && recorded["status"].as_u64().is_some_and(&wanted);
        let path = recorded["path"].as_str().filter(|_| fits)?.to_owned();
        let mut parts = path.trim_matches('/').split('/').map(ToOwned::to_owned);
        let (Some("repos"), Some(owner), Some(name)) =
            (parts.next().as_deref(), parts.next(), parts.next())
        else {
            return None;
        };
        Some(Exchange { owner, name, rest: parts.collect(), path, recorded })
    });
    Some(found.collect())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn same_pull(seen: &signalbox_domain::queue::PullRequest, body: &Value) {
    assert_eq!(seen.head.as_str(), text(&body["head"]["sha"]));
    assert_eq!(seen.base.as_str(), text(&body["base"]["ref"]));
    assert_eq!(seen.draft, body["draft"] == true);
    let state = match (text(&body["state"]), body["merged_at"].is_null()) {
        ("open", _) => PullRequestState::Open,
        (_, true) => PullRequestState::Closed,
        (_, false) => PullRequestState::Merged,
    };
    assert_eq!(seen.state, state);
    if state == PullRequestState::Open {
        let known = !body["mergeable"].is_null() && body["mergeable_state"] != "unknown";
        assert_eq!(seen.mergeability != Mergeability::InProgress, known, "{}", body["mergeable"]);
    }
}

/// Keeps what a runner reports, and wants no more after the first look.
#[derive(Default)]
struct Once(Mutex<Vec<CheckReport>>);

#[async_trait]
impl ChecksSink for Once {
    async fn report(&self, checks: Vec<CheckReport>) -> Result<(), SinkClosed> {
        self.0.lock().expect("a lock").extend(checks);
        Ok(())
    }

    async fn output(&self, _: CheckOutput) -> Result<(), SinkClosed> {
        Ok(())
    }

    async fn closed(&self) {}
}

async fn checks(host: Arc<GitHubHost>, exchange: &Exchange, sha: &str) -> Vec<CheckReport> {
    let sink = Once::default();
    let sha = Sha::new(sha).expect("a commit");
    let job = ChecksJob {
        repository: repository(&exchange.owner, &exchange.name),
        checks: RunChecks {
            run: RunId(Uuid::new_v4()),
            candidate: Candidate {
                tree: TreeId::new(sha.as_str()).expect("an id"),
                sha: sha.clone(),
            },
            branch: BranchName::new("b").expect("a branch"),
            target: BranchName::new("main").expect("a branch"),
            config_from: sha,
            prs: Vec::new(),
            again: Vec::new(),
            required: vec!["never reported".into()],
        },
    };
    GitHubChecks::new(host).run(&job, &sink).await.expect("they are read");
    sink.0.into_inner().expect("a lock")
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_answers_are_read_as_they_were_meant() {
    let Some(exchanges) = exchanges("GET", |status| status == 200) else { return };
    let replay = Replay::start();
    let mut read = BTreeMap::<&str, u32>::new();
    for exchange in &exchanges {
        let body = &exchange.recorded["body"];
        let host = replay.tells([(exchange.path.clone(), exchange.recorded.clone())]);
        let repository = repository(&exchange.owner, &exchange.name);
        let rest: Vec<&str> = exchange.rest.iter().map(String::as_str).collect();
        let number = |text: &str| text.parse().ok().map(PrNumber);
        let kind = match rest.as_slice() {
            ["pulls", id] if body.is_object() => {
                let query = PullRequestQuery::Number(number(id).expect("a number"));
                let seen = host.pull_request(&repository, &query).await.expect("an answer");
                same_pull(&seen.expect("it"), body);
                "a pull request"
            }
            ["branches", _, ..] if body["commit"].is_object() => {
                let name = BranchName::new(text(&body["name"])).expect("a name");
                let seen = host.head(&repository, &name).await.expect("an answer").expect("it");
                assert_eq!(seen.sha.as_str(), text(&body["commit"]["sha"]));
                assert_eq!(seen.tree.as_str(), text(&body["commit"]["commit"]["tree"]["sha"]));
                "a branch"
            }
            ["collaborators", login, "permission"] => {
                let seen = host.permission(&repository, login).await.expect("an answer");
                let wanted = match text(&body["permission"]) {
                    "admin" => Permission::Admin,
                    "write" => Permission::Write,
                    "read" => Permission::Read,
                    _ => Permission::None,
                };
                assert_eq!(seen, wanted);
                "a permission"
            }
            ["issues", "comments", id] => {
                let id = id.parse().expect("a number");
                let seen = host.comment(&repository, id).await.expect("an answer").expect("it");
                assert_eq!(seen.body, text(&body["body"]));
                assert_eq!(seen.author, text(&body["user"]["login"]));
                "a comment"
            }
            ["issues", id, "labels"] if body.is_array() => {
                let seen = host.labels(&repository, number(id).expect("a number")).await;
                let wanted: Vec<&str> =
                    body.as_array().into_iter().flatten().map(|it| text(&it["name"])).collect();
                assert_eq!(seen.expect("an answer"), wanted);
                "labels"
            }
            ["commits", sha, "check-runs"] if sha.len() == 40 => {
                let none = json!({"status": 200, "headers": {}, "body": []});
                let statuses = exchange.path.replace("/check-runs", "/statuses");
                let both = [(exchange.path.clone(), exchange.recorded.clone()), (statuses, none)];
                let seen = checks(replay.tells(both), exchange, sha).await;
                same_runs(&seen, &body["check_runs"]);
                "check runs"
            }
            ["commits", sha, "status"] if sha.len() == 40 => {
                // The statuses are read as a list, which has the author of each.
                let none = json!({"status": 200, "headers": {}, "body": {"check_runs": []}});
                let runs = exchange.path.replace("/status", "/check-runs");
                let listed = json!({"status": 200, "headers": {}, "body": body["statuses"]});
                let both = [(format!("{}es", exchange.path), listed), (runs, none)];
                let seen = checks(replay.tells(both), exchange, sha).await;
                for status in body["statuses"].as_array().into_iter().flatten() {
                    let seen = seen.iter().find(|it| it.name == text(&status["context"]));
                    let is_done = seen.is_some_and(|it| it.status == CheckStatus::Completed);
                    assert_eq!(is_done, status["state"] != "pending", "{status}");
                }
                "statuses"
            }
            [] => {
                let seen = host.locate(&repository).await.expect("an answer");
                assert_eq!(seen.as_deref(), body["full_name"].as_str());
                "a repository"
            }
            _ => continue,
        };
        *read.entry(kind).or_default() += 1;
    }
    println!("{read:?}");
    for kind in ["a pull request", "a branch", "a permission", "a comment", "check runs"] {
        assert!(read.contains_key(kind), "{kind}: {read:?}");
    }
}

fn same_runs(seen: &[CheckReport], runs: &Value) {
    let runs = runs.as_array().cloned().unwrap_or_default();
    for run in &runs {
        // Of several runs of one name the newest counts.
        let newest = |other: &Value| {
            other["name"] != run["name"] || other["id"].as_u64() <= run["id"].as_u64()
        };
        if !runs.iter().all(newest) {
            continue;
        }
        let report = seen.iter().find(|it| it.name == text(&run["name"])).expect("it is reported");
        let ended = run["status"] == "completed" && !run["conclusion"].is_null();
        assert_eq!(report.status == CheckStatus::Completed, ended, "{run}");
        let good = ["success", "neutral", "skipped"].contains(&text(&run["conclusion"]));
        let told =
            report.conclusion.is_some_and(signalbox_domain::queue::CheckConclusion::is_success);
        assert_eq!(told, ended && good, "{run}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_refusals_are_the_errors_that_they_should_be() {
    let replay = Replay::start();
    let mut read = BTreeMap::<u64, u32>::new();
    for method in ["GET", "POST", "PATCH", "PUT", "DELETE"] {
        let Some(exchanges) = exchanges(method, |status| status >= 400) else { return };
        for exchange in exchanges {
            let status = exchange.recorded["status"].as_u64().unwrap_or_default();
            let at = "/repos/acme/calc/branches/main".to_owned();
            let host = replay.tells([(at, exchange.recorded)]);
            let branch = BranchName::new("main").expect("a branch");
            let answer = host.head(&repository("acme", "calc"), &branch).await;
            let fits = match (status, &answer) {
                (404 | 410, Ok(None)) => true,
                (401 | 403 | 500..=599, Err(error)) => error.is_passing(),
                (409, Err(error)) => matches!(error, HostError::Conflict { .. }),
                (400 | 405 | 422, Err(error)) => matches!(error, HostError::Rejected { .. }),
                _ => false,
            };
            assert!(fits, "{status}: {answer:?}");
            *read.entry(status).or_default() += 1;
        }
    }
    println!("{read:?}");
    assert!(read.contains_key(&404) && read.contains_key(&422), "{read:?}");
}
