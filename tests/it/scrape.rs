//! The pages for Prometheus, read by its own parsers.

use std::io::Write;
use std::process::{Command, Stdio};

use signalbox_tests::free_port;

use crate::harness::{On, System};

const READ: &str = r#"
import sys
kind = sys.argv[1]
if kind == "openmetrics":
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
else:
    from prometheus_client.parser import text_string_to_metric_families as parse
families = list(parse(sys.stdin.read()))
print(len(families), sum(len(family.samples) for family in families))
"#;

/// How many families and samples the reference parser finds; `None` when it is not installed.
fn parsed(kind: &str, page: &str) -> Option<(usize, usize)> {
    let knows = |program: &&str| {
        let known =
            Command::new(program).args(["-c", "import prometheus_client.openmetrics"]).output();
        known.is_ok_and(|done| done.status.success())
    };
    let Some(program) = ["python3", "/usr/bin/python3"].into_iter().find(knows) else {
        let words = "SKIPPED: python3 with prometheus_client is not installed; tests/run says how";
        drop(writeln!(std::io::stderr(), "{words}"));
        return None;
    };
    let mut python = Command::new(program)
        .args(["-c", READ, kind])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("python3 can be run");
    let mut input = python.stdin.take().expect("its input");
    input.write_all(page.as_bytes()).expect("written");
    drop(input);
    let done = python.wait_with_output().expect("its end");
    assert!(done.status.success(), "{}\n{page}", String::from_utf8_lossy(&done.stderr));
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let mut numbers = text.split_whitespace().map(|it| it.parse().expect("a number"));
    Some((numbers.next().expect("families"), numbers.next().expect("samples")))
}

async fn both_pages_are_read_by_the_reference_parsers(on: On) {
    let listen = format!("127.0.0.1:{}", free_port());
    let environment = [("SIGNALBOX_SERVER__METRICS_LISTEN", listen.as_str())];
    let system = System::with_environment(on, "exit 0\n", 1, &environment).await;
    let pr = system.pull_request("first", &[("first.txt", "1\n")]);
    system.submit(pr).await;
    system.until_state(pr, "MERGED").await;

    let reply = reqwest::get(format!("http://{listen}/metrics")).await.expect("a reply");
    let kind = reply.headers()["content-type"].to_str().expect("text").to_owned();
    assert!(kind.starts_with("application/openmetrics-text"), "{kind}");
    let page = reply.text().await.expect("a page");
    for line in [
        "signalbox_database_up 1",
        "signalbox_landed_tree_differs_total 0",
        "signalbox_requests_total{operation=\"submitPullRequest\",status=\"200\"} 1",
        "signalbox_effects_total{effect=\"land\",outcome=\"done\"} 1",
        "signalbox_host_calls_total{host=\"other\",call=\"land\",outcome=\"ok\"} 1",
        "signalbox_backlog{work=\"host\"}",
        "signalbox_backlog{work=\"checks\"}",
        "signalbox_backlog{work=\"uploads\"}",
        "signalbox_database_connections_max",
        "process_start_time_seconds",
    ] {
        assert!(page.lines().any(|it| it.starts_with(line)), "{line}\n{page}");
    }
    if let Some((families, samples)) = parsed("openmetrics", &page) {
        assert!(families >= 20 && samples > 100, "{families} {samples}");
    }
    let queues = system.get("/v1/getMergeQueueMetrics").await;
    if let Some((families, samples)) = parsed("text", &queues) {
        assert!(families == 9 && samples > 50, "{families} {samples}");
    }
    let unknown = reqwest::get(format!("http://{listen}/v1/status")).await.expect("a reply");
    assert_eq!(unknown.status().as_u16(), 404, "nothing else is there");
}

#[tokio::test]
async fn both_pages_are_read_by_the_reference_parsers_on_sqlite() {
    both_pages_are_read_by_the_reference_parsers(On::Sqlite).await;
}

#[tokio::test]
async fn both_pages_are_read_by_the_reference_parsers_on_postgres() {
    both_pages_are_read_by_the_reference_parsers(On::Postgres).await;
}
