//! Settings, monitors, and what people decide about a test.

use serde_json::{Value, json};
use signalbox_domain::time::Span;

use crate::flaky_lists::{
    QUARANTINED, UNHEALTHY, key, make_flaky, monitor, query, report, report_main,
};
use crate::support::Server;

fn call(name: &str) -> String {
    format!("flaky-tests/{name}")
}

#[actix_web::test]
async fn settings_are_read_changed_and_remembered() {
    let server = Server::new().await;
    let start = server.ok(&call("get-settings"), json!({})).await;
    assert_eq!(
        (&start["quarantineEnabled"], &start["autoQuarantine"]),
        (&json!(false), &json!("off"))
    );
    assert_eq!(start["infrastructureFailedPercent"], 80);
    let change = json!({
        "quarantineEnabled": true, "autoQuarantine": "FLAKY_AND_BROKEN",
        "stableBranches": ["trunk"], "infrastructureMinTests": 50,
    });
    let changed = server.ok(&call("update-settings"), change).await;
    assert_eq!(changed["autoQuarantine"], "flaky_and_broken");
    assert_eq!(changed["stableBranches"], json!(["trunk"]));
    assert_eq!(changed["infrastructureMinTests"], 50);
    assert_eq!(changed["infrastructureFailedPercent"], 80, "omitted fields are unchanged");
    assert_eq!(server.ok(&call("get-settings"), json!({})).await, changed);
    let off = server.ok(&call("update-settings"), json!({"quarantineEnabled": false})).await;
    assert_eq!(off["autoQuarantine"], "off");
    let history = server.ok(&call("get-settings-history"), json!({})).await;
    assert_eq!(history["history"].as_array().map(Vec::len), Some(2));
    assert_eq!(history["history"][1]["settings"], changed);
    assert_eq!(history["history"][0]["by"], "ci");
    for (change, pointer) in [
        (json!({"autoQuarantine": "flaky"}), "/autoQuarantine"),
        (json!({"autoQuarantine": "some"}), "/autoQuarantine"),
        (json!({"stableBranches": []}), "/stableBranches"),
        (json!({"mergeBranches": ["a", 7]}), "/mergeBranches/1"),
        (json!({"infrastructureFailedPercent": 100}), "/infrastructureFailedPercent"),
    ] {
        let reply = server.post(&call("update-settings"), change).await;
        assert_eq!(reply.pointers(), [pointer]);
    }
}

#[actix_web::test]
async fn a_monitor_is_previewed_created_changed_and_deleted() {
    let server = Server::new().await;
    report(&server, 1, &[("adds", false), ("subtracts", true)]).await;
    report(&server, 2, &[("adds", false), ("subtracts", true)]).await;
    server.clock.advance(Span::minutes(5));
    let rule = json!({
        "type": "failure_count", "name": "twice", "failureCount": 2, "action": "broken",
        "branchClasses": ["pull_request"],
    });
    let preview = server.ok(&call("preview-monitor"), rule.clone()).await;
    assert_eq!((&preview["found"], &preview["lookedAt"]), (&json!(1), &json!(1)));
    assert_eq!(preview["tests"][0]["name"], "adds");
    assert_eq!(preview["tests"][0]["evidence"]["failures"], 2);
    let created = server.ok(&call("create-monitor"), rule).await;
    assert_eq!((&created["type"], &created["action"]), (&json!("failure_count"), &json!("broken")));
    assert_eq!(created["windowHours"], 24);
    report(&server, 3, &[("adds", false)]).await;
    let broken = query(json!({"status": "BROKEN"}));
    let listed = server.ok(UNHEALTHY, broken.clone()).await;
    assert_eq!(listed["tests"][0]["name"], "adds");
    let id = created["id"].clone();
    let change = json!({"monitorId": id, "failureCount": 3, "name": "thrice"});
    let changed = server.ok(&call("update-monitor"), change).await;
    assert_eq!((&changed["failureCount"], &changed["name"]), (&json!(3), &json!("thrice")));
    assert_eq!(server.ok(&call("delete-monitor"), json!({"monitorId": id})).await, json!({}));
    assert_eq!(server.ok(UNHEALTHY, broken).await["tests"], json!([]), "it resolves immediately");
    server
        .post(&call("delete-monitor"), json!({"monitorId": id}))
        .await
        .problem(404, "monitor_not_found");
    for (rule, pointer) in [
        (json!({"name": "x"}), "/type"),
        (json!({"type": "failure_rate", "name": "x"}), "/activationThreshold"),
        (json!({"type": "pass_on_retry", "name": "x", "recoveryDays": 16}), "/recoveryDays"),
        (json!({"type": "pass_on_retry"}), "/name"),
        (json!({"template": "none"}), "/template"),
    ] {
        assert_eq!(server.post(&call("create-monitor"), rule).await.pointers(), [pointer]);
    }
}

#[actix_web::test]
async fn people_flag_mute_and_override_and_all_of_it_is_remembered() {
    let server = Server::new().await;
    make_flaky(&server, 1, &["adds"]).await;
    report(&server, 1, &[("subtracts", true)]).await;
    let (adds, subtracts) = (key("adds").id().to_string(), key("subtracts").id().to_string());
    let flag = |flagged: bool| json!({"testId": subtracts, "flagged": flagged, "reason": "Monday"});
    server.ok(&call("flag-test"), flag(true)).await;
    server.post(&call("flag-test"), flag(true)).await.problem(409, "flag_unchanged");
    let flaky = query(json!({"status": "flaky"}));
    let count = async || server.ok(UNHEALTHY, flaky.clone()).await["page"]["total_rows"].clone();
    assert_eq!(count().await, 2);
    server.ok(&call("flag-test"), flag(false)).await;
    assert_eq!(count().await, 1);
    let monitor = monitor(&server).await;
    let mute =
        |test: &str, length: &str| json!({"testId": test, "monitorId": monitor, "length": length});
    server.ok(&call("mute-monitor"), mute(&adds, "4h")).await;
    assert_eq!(count().await, 0);
    server.ok(&call("mute-monitor"), mute(&adds, "none")).await;
    assert_eq!(count().await, 1);
    server.post(&call("mute-monitor"), mute(&adds, "none")).await.problem(409, "mute_unchanged");
    server.post(&call("mute-monitor"), mute(&subtracts, "1h")).await.problem(409, "mute_unchanged");
    assert_eq!(server.post(&call("mute-monitor"), mute(&adds, "2h")).await.pointers(), ["/length"]);
    server.ok(&call("update-settings"), json!({"quarantineEnabled": true})).await;
    let end = server.api.clock.now().plus(Span::hours(1)).to_string();
    let setting = |setting: &str, end: Option<&str>| json!({"testId": subtracts, "setting": setting, "expiresAt": end, "reason": "KAN-1"});
    server.ok(&call("override-quarantine"), setting("ALWAYS_QUARANTINE", Some(&end))).await;
    let listed = server.ok(QUARANTINED, query(json!({}))).await;
    assert_eq!(listed["quarantined_tests"][0]["quarantine_setting"], "ALWAYS_QUARANTINE");
    let never = setting("NEVER_QUARANTINE", Some(&end));
    let never = server.post(&call("override-quarantine"), never).await;
    assert_eq!(never.pointers(), ["/expiresAt"]);
    server.clock.advance(Span::hours(1));
    let listed = server.ok(QUARANTINED, query(json!({}))).await;
    assert_eq!(listed["quarantined_tests"], json!([]), "it expires");
    let history = server.ok(&call("get-test-history"), json!({"testId": subtracts})).await;
    let kinds: Vec<&Value> = history["history"]
        .as_array()
        .expect("steps")
        .iter()
        .flat_map(|step| step["decisions"].as_array().expect("decisions"))
        .map(|decision| &decision["kind"])
        .collect();
    let expected = ["quarantine_set", "unflagged", "status_changed", "flagged", "status_changed"];
    assert_eq!(kinds, expected.map(|kind| json!(kind)).iter().collect::<Vec<_>>());
    assert_eq!(history["history"][0]["decisions"][0]["reason"], "KAN-1");
    let long = json!({"testId": subtracts, "flagged": true, "reason": "x".repeat(257)});
    assert_eq!(server.post(&call("flag-test"), long).await.pointers(), ["/reason"]);
}

#[actix_web::test]
async fn a_renamed_test_is_found_under_both_names_and_a_vanished_one_retires() {
    let server = Server::new().await;
    make_flaky(&server, 1, &["adds", "subtracts"]).await;
    server.ok(&call("update-settings"), json!({"quarantineEnabled": true})).await;
    server.ok(&call("update-settings"), json!({"autoQuarantine": "flaky"})).await;
    report_main(&server, 2, &[("adds", true), ("subtracts", true), ("stays", true)]).await;
    for commit in 3..14 {
        server.clock.advance(Span::hours(3));
        report_main(&server, commit, &[("adds up", true), ("stays", true)]).await;
    }
    let [old, new, gone] = ["adds", "adds up", "subtracts"].map(|it| key(it).id().to_string());
    let listed = server.ok(QUARANTINED, query(json!({}))).await;
    let listed = listed["quarantined_tests"].as_array().expect("tests");
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["name"], "adds up");
    let details = async |id: &str| {
        let reply = server.ok(&call("get-test-details"), query(json!({"test_id": id}))).await;
        reply.get("test").cloned().unwrap_or(reply)
    };
    let before = details(&old).await;
    assert_eq!(before["status"]["value"], "healthy");
    assert_eq!(before["status"]["reason"], "retired");
    assert_eq!(before["retired"]["renamed_to"], new.as_str());
    assert_eq!(details(&new).await["renamed_from"], old.as_str());
    assert_eq!(details(&gone).await["retired"]["commits"], 10);
    let flag = json!({"testId": old, "flagged": true});
    let refused = server.post(&call("flag-test"), flag).await;
    refused.problem(409, "test_renamed");
    let history = server.ok(&call("get-test-history"), json!({"testId": new})).await;
    assert_eq!(history["history"][0]["decisions"][0]["kind"], "inherited");
}

#[actix_web::test]
async fn a_ci_run_gets_an_id() {
    let server = Server::new().await;
    let run = json!({
        "org_url_slug": "acme", "ci_job_name": "test", "run_start": "2026-01-01T00:00:00Z",
        "run_end": "2026-01-01T00:05:00Z", "branch": "main", "sha": "abc", "attempt": 1,
        "provider": "buildkite", "run_conclusion": "failure", "run_conclusion_cause": "test",
    });
    let reply = server.ok("flaky-ci/create-ci-run", run.clone()).await;
    assert!(reply["run_id"].as_str().is_some_and(|id| id.len() == 36));
    let mut backwards = run.clone();
    backwards["run_end"] = json!("2025-12-31T23:59:59Z");
    let pointers = server.post("flaky-ci/create-ci-run", backwards).await.pointers();
    assert_eq!(pointers, ["/run_end"]);
    let mut bad = run;
    (bad["provider"], bad["attempt"]) = (json!("abacus"), json!(-1));
    let pointers = server.post("flaky-ci/create-ci-run", bad).await.pointers();
    assert_eq!(pointers, ["/attempt", "/provider"]);
}

#[actix_web::test]
async fn events_are_kept_in_their_documented_shape() {
    let server = Server::new().await;
    make_flaky(&server, 1, &["adds"]).await;
    let id = key("adds").id().to_string();
    let setting = json!({"testId": id, "setting": "NEVER_QUARANTINE", "reason": "too good"});
    server.ok(&call("override-quarantine"), setting).await;
    let org = server.stores.account.orgs.list().await.expect("organizations")[0].id;
    let events = server.stores.webhook.event_log.after(org, 0, None, 100).await.expect("events");
    let events: Vec<_> = events.iter().filter(|it| it.kind.contains("test_case.")).collect();
    let payload = |at: usize| -> Value { serde_json::from_str(&events[at].payload).expect("JSON") };
    let monitor = payload(0);
    assert_eq!(monitor["type"], "test_case.monitor_status_changed");
    assert_eq!(monitor["monitor"]["type"], "pass_on_retry");
    assert_eq!(monitor["monitor"]["status"], "active");
    assert!(monitor["evidence"].is_object() && monitor["repository"]["id"].is_string());
    let status = payload(1);
    assert_eq!(status["type"], "test_case.status_changed");
    assert_eq!(status["status_change"]["previous_status"], "healthy");
    assert_eq!(status["status_change"]["current_status"]["value"], "flaky");
    assert_eq!(status["test_case"]["failure_rate_last_7d"], 0.5);
    assert_eq!(status["test_case"]["pull_requests_impacted_last_7d"], 1);
    assert_eq!(status["test_case"]["codeowners"], json!(["@acme/calc"]));
    let second = payload(2);
    assert_eq!(
        (&second["previous_status"], &second["new_status"]),
        (&json!("HEALTHY"), &json!("FLAKY"))
    );
    assert_eq!(second["triggered_by"]["monitor_type"], "pass_on_retry");
    assert_eq!(second["test_case"]["id"], id.as_str());
    assert!(second["test_case"].get("failure_rate_last_7d").is_none());
    let changed = payload(3);
    assert_eq!(changed["type"], "test_case.quarantining_setting_changed");
    let change = &changed["quarantine_setting_changed"];
    assert_eq!(change["actor"], json!({"full_name": "ci", "email": ""}));
    assert_eq!(change["previous_quarantining_setting"], "UNSPECIFIED");
    assert_eq!(change["updated_quarantining_setting"], "NEVER_QUARANTINE");
    assert_eq!(change["reason"], "too good");
}
