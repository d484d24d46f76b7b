//! The values of metrics, and their text.

use signalbox_domain::ids::{BranchName, OrgId, QueueId, RunId};
use signalbox_domain::ports::{Backlog, Failing, FailingEffect, Observed, Observer, QueueRef};
use signalbox_domain::queue::{Decision, Effect};
use signalbox_domain::time::{Span, Timestamp};
use uuid::Uuid;

use crate::{PrometheusObserver, Sample};

fn queue() -> QueueRef {
    QueueRef { org: OrgId(Uuid::from_u128(1)), id: QueueId(Uuid::from_u128(2)) }
}

fn observer() -> PrometheusObserver {
    PrometheusObserver::new("1.2.3", Timestamp::from_unix_seconds(1_767_225_600))
}

fn has(page: &str, line: &str) {
    assert!(page.lines().any(|it| it == line), "no line {line:?} in\n{page}");
}

#[test]
fn requests_steps_and_effects_are_counted_and_timed() {
    let observer = observer();
    let took = Span::seconds(2);
    for _ in 0..2 {
        observer.observe(&Observed::Request { operation: "getQueue", status: 200, took });
    }
    observer.observe(&Observed::Step { queue: queue(), input: "submit", decisions: &[], took });
    observer.observe(&Observed::CommitConflict { queue: queue() });
    let (effect, outcome) = ("land", "retried");
    observer.observe(&Observed::EffectRun { queue: queue(), effect, outcome, took });

    let page = observer.encode(&Sample::default());
    has(&page, r#"signalbox_build_info{version="1.2.3"} 1"#);
    has(&page, "process_start_time_seconds 1767225600.0");
    has(&page, r#"signalbox_requests_total{operation="getQueue",status="200"} 2"#);
    has(&page, r#"signalbox_request_duration_seconds_sum{operation="getQueue"} 4.0"#);
    has(&page, r#"signalbox_planner_steps_total{input="submit"} 1"#);
    has(&page, "signalbox_planner_step_duration_seconds_count 1");
    has(&page, "signalbox_commit_conflicts_total 1");
    has(&page, r#"signalbox_effects_total{effect="land",outcome="retried"} 1"#);
    has(&page, r#"signalbox_effect_duration_seconds_count{effect="land"} 1"#);
    has(&page, "signalbox_landed_tree_differs_total 0");
    assert!(page.ends_with("# EOF\n"));
}

#[test]
fn hosts_uploads_and_webhooks_are_counted_and_timed() {
    let observer = observer();
    let (host, took) = ("github.com", Span::seconds(1));
    observer.observe(&Observed::HostCall { host, call: "land", outcome: "ok", took });
    let resets_at = Timestamp::from_unix_seconds(1_767_229_200);
    observer.observe(&Observed::HostQuota {
        host,
        resource: "core",
        limit: 5_000,
        remaining: 17,
        resets_at,
    });
    observer.observe(&Observed::Upload { outcome: "read", took });
    observer.observe(&Observed::WebhookDelivery { outcome: "delivered", took });
    let page = observer.encode(&Sample::default());
    for line in [
        r#"signalbox_host_calls_total{host="github.com",call="land",outcome="ok"} 1"#,
        r#"signalbox_host_call_duration_seconds_count{host="github.com",call="land"} 1"#,
        r#"signalbox_host_quota_limit{host="github.com",resource="core"} 5000"#,
        r#"signalbox_host_quota_remaining{host="github.com",resource="core"} 17"#,
        r#"signalbox_uploads_total{outcome="read"} 1"#,
        r#"signalbox_webhook_deliveries_total{outcome="delivered"} 1"#,
        "signalbox_webhook_delivery_duration_seconds_sum 1.0",
    ] {
        has(&page, line);
    }
}

#[test]
fn a_database_that_does_not_answer_leaves_no_old_numbers() {
    let observer = observer();
    let at = Timestamp::from_unix_seconds(1_000);
    let backlog = Backlog { due: 3, oldest: Some(at.minus(Span::seconds(90))) };
    let mut sample = Sample {
        at,
        backlogs: vec![("host", Some(backlog)), ("checks", Some(Backlog::default()))],
        failing: Some(Failing { count: 2, longest: vec![failing(at.minus(Span::seconds(75)))] }),
        connections: (3, 1),
        max_connections: 16,
        waiting: 2,
        uses: 7,
        in_flight: vec![("read", 4)],
        webhooks_on: false,
    };
    let page = observer.encode(&sample);
    for line in [
        r#"signalbox_backlog{work="host"} 3"#,
        r#"signalbox_backlog_oldest_age_seconds{work="host"} 90.0"#,
        r#"signalbox_backlog_oldest_age_seconds{work="checks"} 0.0"#,
        "signalbox_effects_failing{} 2",
        "signalbox_effects_failing_oldest_age_seconds{} 75.0",
        "signalbox_database_up 1",
        r#"signalbox_database_connections{state="used"} 3"#,
        "signalbox_database_connections_max 16",
        "signalbox_database_connection_waiters 2",
        "signalbox_database_uses_total 7",
        r#"signalbox_requests_in_flight{share="read"} 4"#,
        "signalbox_webhooks_on 0",
    ] {
        has(&page, line);
    }
    sample.backlogs[0].1 = None;
    let page = observer.encode(&sample);
    has(&page, "signalbox_database_up 0");
    assert!(!page.contains(r#"work="host""#), "{page}");
    sample.failing = Some(Failing::default());
    let page = observer.encode(&sample);
    has(&page, "signalbox_effects_failing{} 0");
    has(&page, "signalbox_effects_failing_oldest_age_seconds{} 0.0");
    sample.failing = None;
    let page = observer.encode(&sample);
    assert!(!page.lines().any(|line| line.starts_with("signalbox_effects_failing")), "{page}");
}

fn failing(since: Timestamp) -> FailingEffect {
    let effect = Effect::InspectTarget { branch: BranchName::new("main").expect("a branch") };
    let error = "no answer".to_owned();
    FailingEffect { queue: queue(), number: 1, effect, since, attempts: 7, error }
}

#[test]
fn a_landed_tree_that_was_not_tested_is_counted() {
    let observer = observer();
    let decisions = [Decision::LandedTreeDiffers {
        run: RunId(Uuid::nil()),
        tested: "a".repeat(40),
        landed: "b".repeat(40),
    }];
    let took = Span::ZERO;
    observer.observe(&Observed::Step {
        queue: queue(),
        input: "landed",
        decisions: &decisions,
        took,
    });
    has(&observer.encode(&Sample::default()), "signalbox_landed_tree_differs_total 1");
}
