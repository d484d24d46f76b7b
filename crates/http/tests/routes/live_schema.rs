//! Replies as strict clients want them: every key that they know is there and not null, every word
//! is one that they know, in the case of their token, and nothing unknown slips in.

use std::collections::BTreeSet;

use actix_web::test::TestRequest;
use serde_json::{Value, json};
use signalbox_domain::queue::{
    Check, CheckConclusion, CheckStatus, EffectClass, Fact, Mergeability,
};
use signalbox_domain::time::{Span, Timestamp};
use signalbox_domain::token::EnumCase;

use crate::live_shapes::{PR_STATES, entry, listed, queue, results, run, settings, status};
use crate::schema::{Shape, check, shouted};
use crate::support::{Grant, Server, calc};

/// A client with a token of one case, and the states that it has seen.
struct Client<'a> {
    server: &'a Server,
    token: String,
    case: EnumCase,
    seen: BTreeSet<String>,
}

impl Client<'_> {
    /// Posts what must succeed, and holds the reply against its shape.
    async fn ask(&mut self, operation: &str, body: Value, shape: &Shape) -> Value {
        let reply = self.server.post_as(&self.token, operation, body).await;
        assert_eq!(reply.status, 200, "{operation}: {}", reply.body);
        let value = reply.json();
        self.hold(operation, &value, shape);
        value
    }

    fn hold(&mut self, operation: &str, value: &Value, shape: &Shape) {
        let mut complaints = Vec::new();
        check(value, shape, self.case, operation, &mut complaints);
        if self.case == EnumCase::Lower {
            complaints.extend(shouted(value, shape, operation));
        }
        assert!(complaints.is_empty(), "{}\n{value:#}", complaints.join("\n"));
    }

    async fn command(&mut self, operation: &str, body: Value) {
        self.ask(operation, body, &Shape::Object(Vec::new())).await;
    }

    /// Reads everything that there is to read.
    async fn look_around(&mut self, prs: &[u32]) {
        let page = Shape::Object(vec![
            ("pullRequests", Shape::list(Shape::Object(listed()))),
            ("nextCursor", Shape::optional(Shape::Uuid)),
        ]);
        self.ask("getQueue", json!({}), &queue()).await;
        self.ask("listPullRequests", json!({"take": 2}), &page).await;
        let since = self.server.api.clock.now().minus(Span::days(1)).to_string();
        self.ask("listMergeQueueTestingResults", json!({"since": since}), &results()).await;
        let runs = Shape::Object(vec![("testRuns", Shape::list(run()))]);
        self.ask("getMergeQueueTestingDetails", json!({}), &runs).await;
        let numbers: Vec<Value> = prs.iter().map(|pr| json!({"number": pr})).collect();
        let several = Shape::Object(vec![
            ("pullRequests", Shape::list(entry())),
            ("notFound", Shape::list(Shape::Count)),
        ]);
        let body = json!({"prs": numbers, "includeTimeline": true});
        self.ask("getSubmittedPullRequests", body, &several).await;
        for pr in prs {
            let body = json!({
                "pr": {"number": pr}, "includeTimeline": true, "includeEstimatedTimeToMerge": true
            });
            let found = self.ask("getSubmittedPullRequest", body, &entry()).await;
            self.seen.insert(found["state"].as_str().expect("text").to_lowercase());
            let run_id = [&found["testRunId"], &found["verifiedByTestRun"]];
            for id in run_id.into_iter().filter(|id| id.is_string()) {
                self.ask("getMergeQueueTestingDetails", json!({"testRunId": id}), &run()).await;
            }
        }
    }

    async fn submit(&mut self, file: &str) -> u32 {
        let pr = self.server.open(file).0;
        self.command("submitPullRequest", json!({"pr": {"number": pr}, "priority": "high"})).await;
        pr
    }

    /// Reports that the checks of a pull request's run have failed, while others are running.
    async fn fail_checks(&mut self, pr: u32) {
        let body = json!({"pr": {"number": pr}});
        let id = self.ask("getSubmittedPullRequest", body, &entry()).await["testRunId"].clone();
        let run = self.ask("getMergeQueueTestingDetails", json!({"testRunId": id}), &run()).await;
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let failed = Check {
            name: "test".to_owned(),
            status: CheckStatus::Completed,
            conclusion: Some(CheckConclusion::Failure),
            url: "https://checks.test/1".to_owned(),
            summary: None,
            at: self.server.api.clock.now(),
            excused: Vec::new(),
        };
        let fact = Fact::ChecksReported {
            run: signalbox_domain::ids::RunId(text(&id).parse().expect("a UUID")),
            sha: text(&run["testBranchSha"]).parse().expect("a commit"),
            checks: vec![failed],
            read: false,
        };
        let queues = self.server.stores.queue.queues.list(None, None).await.expect("queues");
        self.server.api.queues.absorb(queues[0].queue, fact).await.expect("absorbed");
    }
}

async fn replies_are_as_strict_clients_want_them(case: EnumCase) {
    let server = Server::without_queue().await;
    let token = server.grant(Grant { case, ..Grant::default() }).await;
    let mut client = Client { server: &server, token, case, seen: BTreeSet::new() };
    client.command("createQueue", json!({"mode": "single", "concurrency": 3})).await;
    server.settle().await;
    let not_ready = server.open("e");
    server.host.edit(&calc(), not_ready, |it| {
        it.mergeability = Mergeability::NotMergeable("needs a review".to_owned());
    });
    client.command("submitPullRequest", json!({"pr": {"number": not_ready.0}})).await;
    let mut prs = vec![not_ready.0];
    client.look_around(&prs).await;
    for file in ["b", "c", "d", "f"] {
        prs.push(client.submit(file).await);
    }
    let targets =
        json!({"pr": {"number": prs[1], "sha": "1f".repeat(20)}, "impactedTargets": ["//b"]});
    client.command("setImpactedTargets", targets).await;
    client.look_around(&prs).await;
    server.settle_but(&[EffectClass::Checks]).await;
    client.look_around(&prs).await;
    client.fail_checks(prs[2]).await;
    client.look_around(&prs).await;
    client.command("restartTestsOnPullRequest", json!({"pr": {"number": prs[1]}})).await;
    client.command("cancelPullRequest", json!({"pr": {"number": prs[4]}})).await;

    let body = json!({"state": "paused", "reason": "freeze", "mergeMethod": "rebase",
        "batchingRules": [{"targetPattern": "//db/*", "policy": "isolate"}]});
    client.ask("updateQueue", body, &Shape::Object(settings())).await;
    server.settle().await;
    client.look_around(&prs).await;
    client.ask("updateQueue", json!({"state": "running"}), &Shape::Object(settings())).await;
    prs.push(client.submit("bad").await);
    server.settle().await;
    client.look_around(&prs).await;
    client.submit("g").await;
    let body = json!({"mode": "parallel", "deleteRequiredStatuses": true});
    client.ask("updateQueue", body, &Shape::Object(settings())).await;
    client.look_around(&prs).await;

    for missing in [None, Some("the database".to_owned())] {
        *server.ready.0.lock().expect("not poisoned") = missing;
        let reply = server.call(TestRequest::get().uri("/v1/status")).await.json();
        client.hold("status", &reply, &status());
    }
    let unseen: Vec<_> = PR_STATES.iter().filter(|it| !client.seen.contains(**it)).collect();
    assert!(unseen.is_empty(), "no entry was ever {unseen:?}");
}

#[actix_web::test]
async fn in_upper_case() {
    replies_are_as_strict_clients_want_them(EnumCase::Upper).await;
}

#[actix_web::test]
async fn in_lower_case() {
    replies_are_as_strict_clients_want_them(EnumCase::Lower).await;
}

#[actix_web::test]
async fn an_empty_queue_is_deleted_with_an_empty_object() {
    let server = Server::new().await;
    assert_eq!(server.ok("deleteQueue", json!({})).await, json!({}));
}

#[test]
fn the_checker_finds_errors() {
    let good = json!({"state": "RUNNING", "at": "2026-09-17T10:16:02.000Z", "n": 1});
    let shape = Shape::Object(vec![
        ("state", Shape::Word(&["running"])),
        ("at", Shape::Time),
        ("n", Shape::Count),
    ]);
    let complaints = |value: &Value| {
        let mut complaints = Vec::new();
        check(value, &shape, EnumCase::Upper, "x", &mut complaints);
        complaints.len()
    };
    assert_eq!(complaints(&good), 0);
    for (key, wrong) in [
        ("state", json!("running")),
        ("state", json!("LOST")),
        ("state", Value::Null),
        ("at", json!("2026-09-17T10:16:02Z")),
        ("n", json!(1.0)),
        ("n", json!("1")),
        ("new", json!(true)),
    ] {
        let mut value = good.clone();
        value[key] = wrong;
        assert_eq!(complaints(&value), 1, "{value}");
    }
    let mut missing = good.clone();
    missing.as_object_mut().expect("an object").remove("n");
    assert_eq!(complaints(&missing), 1);
    assert_eq!(shouted(&json!({"new": {"deep": ["LOUD_WORD"]}}), &Shape::Anything, "x").len(), 1);
    assert!(Timestamp::parse("2026-09-17T10:16:02.000Z").is_some());
}
