//! `GET /v1/simulate`.

use actix_web::http::Method;
use actix_web::test::TestRequest;
use serde_json::{Value, json};
use signalbox_domain::ids::{BranchName, PrNumber};
use signalbox_domain::queue::{EffectClass, SettingsPatch};
use signalbox_domain::time::Span;
use signalbox_domain::token::Scope;
use signalbox_services::WhatIf;

use crate::support::{Grant, Server, calc};

const PLACE: &str = "/v1/simulate?repo=git.test/acme/calc&targetBranch=main";

/// A server whose queue has merged two pull requests and refused one.
async fn with_history() -> Server {
    let server = Server::new().await;
    for file in ["b", "bad", "c"] {
        server.submitted(file).await;
        tested(&server).await;
    }
    server
}

/// Tests that take ten minutes, and all that follows.
async fn tested(server: &Server) {
    server.settle_but(&[EffectClass::Checks]).await;
    server.clock.advance(Span::minutes(10));
    server.settle().await;
}

#[actix_web::test]
async fn the_present_and_the_changed_settings_are_simulated() {
    let server = with_history().await;
    let reply = server.get(&format!("{PLACE}&days=1&concurrency=7&pretestThreshold=0")).await;
    let reply = reply.json();
    assert_eq!((&reply["pullRequests"], &reply["seeds"]), (&json!(3), &json!(20)), "{reply}");
    assert_eq!(reply["recorded"]["cancelled"], 0);
    let combinations = reply["combinations"].as_array().expect("a list");
    let present: Vec<&Value> = combinations.iter().map(|it| &it["present"]).collect();
    assert_eq!(present, [true, false]);
    for it in combinations {
        let runs = &it["runsPerPullRequest"];
        let [mean, low, high] = ["mean", "low", "high"].map(|name| runs[name].as_f64());
        assert!(low <= mean && mean <= high && mean >= Some(1.0), "{it}");
        for name in ["medianByOracle", "p95ByOracle", "mergedPerHour"] {
            assert!(it[name]["mean"].as_f64() > Some(0.0), "{name}: {it}");
        }
    }
    let queue = server.ok("getQueue", json!({})).await;
    assert_ne!(queue["concurrency"], 7, "nothing is applied");
    let same = server.get(&format!("{PLACE}&concurrency={}", queue["concurrency"])).await.json();
    assert_eq!(same["combinations"].as_array().map(Vec::len), Some(1), "{same}");
}

#[actix_web::test]
async fn a_queue_without_tested_pull_requests_is_not_simulated() {
    let server = with_history().await;
    server.clock.advance(Span::days(3));
    let problem = server.get(&format!("{PLACE}&days=2")).await;
    let problem = problem.problem(409, "simulation_not_possible");
    let detail = "the history cannot be replayed: it has no merged or failed pull requests";
    assert_eq!(problem["detail"], detail);
    assert_eq!(server.get(&format!("{PLACE}&days=4")).await.json()["pullRequests"], 3);
    // Targets were never reported.
    let problem = server.get(&format!("{PLACE}&mode=PARALLEL")).await;
    let problem = problem.problem(409, "simulation_not_possible");
    assert!(
        problem["detail"].as_str().is_some_and(|it| it.contains("PARALLEL mode needs the targets"))
    );
}

#[actix_web::test]
async fn lanes_are_simulated_with_the_reported_targets() {
    let server = Server::new().await;
    server.ok("updateQueue", json!({"concurrency": 1})).await;
    let mut prs = Vec::new();
    for file in ["b", "c", "d"] {
        let pr = server.submitted(file).await;
        let targets = json!({"pr": {"number": pr}, "sha": server.entry(pr).await["prSha"], "impactedTargets": [file]});
        server.ok("setImpactedTargets", targets).await;
        prs.push(pr);
    }
    for pr in prs {
        tested(&server).await;
        assert_eq!(server.entry(pr).await["state"], "MERGED");
    }
    let reply = server.get(&format!("{PLACE}&mode=PARALLEL&concurrency=9")).await.json();
    let median = |at: usize| reply["combinations"][at]["medianMinutes"]["mean"].as_f64();
    let (single, parallel) = (median(0).expect("a number"), median(1).expect("a number"));
    assert!(parallel < single, "{reply}");
    // The last report is that of the past head.
    let again = server.submitted("bad").await;
    let targets = json!({"pr": {"number": again}, "sha": server.entry(again).await["prSha"], "impactedTargets": ["bad"]});
    server.ok("setImpactedTargets", targets).await;
    tested(&server).await;
    assert_eq!(server.entry(again).await["state"], "FAILED");
    server.host.push(&calc(), PrNumber(again), &[("bad", "3")]);
    server.ok("submitPullRequest", json!({"pr": {"number": again}})).await;
    let reply = server.get(&format!("{PLACE}&mode=PARALLEL")).await.json();
    assert_eq!(reply["pullRequests"], 4, "{reply}");
}

#[actix_web::test]
async fn each_stay_of_the_period_counts_and_the_cut_keeps_a_whole_period() {
    let server = with_history().await;
    server.clock.advance(Span::days(2));
    // It fails again; the first failure is two days old.
    server.ok("submitPullRequest", json!({"pr": {"number": 2}})).await;
    tested(&server).await;
    let count = |reply: Value| reply["pullRequests"].as_u64();
    assert_eq!(count(server.get(&format!("{PLACE}&days=3")).await.json()), Some(4));
    assert_eq!(count(server.get(&format!("{PLACE}&days=1")).await.json()), Some(1));
    let caller = server.caller().await;
    let (branch, change) = (BranchName::new("main").expect("a name"), SettingsPatch::default());
    let cut = |most| WhatIf::new(server.api.queues.clone()).at_most(most);
    // The two that were submitted last: without the first failure of one of them.
    let question = cut(2).question(&caller, &calc(), &branch, 3, change).await;
    let replay = question.expect("a place").answer().expect("a replay");
    assert_eq!(replay.study.pull_requests, 2);
}

#[actix_web::test]
async fn invalid_parameters_are_named() {
    let server = Server::new().await;
    for (query, pointers) in [
        ("", &["/repo", "/targetBranch"][..]),
        ("?repo=git.test/acme/calc", &["/targetBranch"]),
        ("?repo=acme/calc&targetBranch=a..b", &["/repo", "/targetBranch"]),
    ] {
        let reply = server.get(&format!("/v1/simulate{query}")).await;
        assert_eq!(reply.pointers(), pointers, "{query}");
    }
    for (query, pointer, rule) in [
        ("days=0", "/days", "must be a whole number from 1 to 30, but is \"0\""),
        ("days=31", "/days", "from 1 to 30"),
        ("days=", "/days", "from 1 to 30"),
        ("concurrency=0", "/concurrency", "must be a whole number from 1 to 1000"),
        ("concurrency=many", "/concurrency", "must be a whole number"),
        ("concurrency=1&concurrency=2", "/concurrency", "must be given once"),
        ("batch=maybe", "/batch", "must be true or false"),
        ("mode=TRIPLE", "/mode", "must be one of SINGLE, PARALLEL"),
        ("concurency=3", "/concurency", "is not a parameter: must be repo, targetBranch, days, or"),
        ("freezes=x", "/freezes", "is not a parameter"),
        ("authorLimit=3", "/authorLimit", "or a simulated setting"),
    ] {
        let reply = server.get(&format!("{PLACE}&{query}")).await;
        assert_eq!(reply.pointers(), [pointer], "{query}");
        assert!(reply.body.contains(&rule.replace('"', "\\\"")), "{}", reply.body);
    }
}

#[actix_web::test]
async fn it_is_a_read_of_the_queue() {
    let server = with_history().await;
    let call = |token: String| TestRequest::get().uri(PLACE).insert_header(("x-api-token", token));
    let reader = Grant { scopes: vec![Scope::QueueRead], ..Grant::default() };
    let reader = server.grant(reader).await;
    assert_eq!(server.call(call(reader.clone())).await.status, 200);
    let head = call(reader).method(Method::HEAD);
    let head = server.call(head).await;
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    let uploader = Grant { scopes: vec![Scope::TestsUpload], ..Grant::default() };
    let uploader = server.grant(uploader).await;
    server.call(call(uploader)).await.problem(403, "missing_scope");
    let branch = PLACE.replace("main", "dev");
    server.get(&branch).await.problem(404, "merge_queue_not_found");
    let repo = PLACE.replace("calc", "other");
    server.get(&repo).await.problem(404, "repository_not_found");
}
