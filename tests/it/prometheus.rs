//! Prometheus itself scrapes a server, with the configuration of the documentation.

use std::io::Write;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use signalbox_tests::free_port;

use crate::harness::{On, System};

/// The configuration that the documentation shows.
fn documented() -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/operations/metrics.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let (_, rest) = page.split_once("```yaml\n").expect("a configuration");
    rest.split_once("```").expect("its end").0.to_owned()
}

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// The values of an expression, by one of their labels.
async fn asked(address: &str, query: &str, label: &str) -> Vec<(String, String)> {
    let url = reqwest::Url::parse_with_params(
        &format!("http://{address}/api/v1/query"),
        [("query", query)],
    );
    let Ok(reply) = reqwest::get(url.expect("an address")).await else { return Vec::new() };
    let Ok(reply) = reply.json::<Value>().await else { return Vec::new() };
    let found = reply["data"]["result"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut found: Vec<(String, String)> =
        found.iter().map(|it| (text(&it["metric"][label]), text(&it["value"][1]))).collect();
    found.sort();
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn prometheus_scrapes_both_pages() {
    if Command::new("prometheus").arg("--version").output().is_err() {
        let words = "SKIPPED: prometheus is not installed; tests/run says how";
        drop(writeln!(std::io::stderr(), "{words}"));
        return;
    }
    let own = format!("127.0.0.1:{}", free_port());
    let environment = [("SIGNALBOX_SERVER__METRICS_LISTEN", own.as_str())];
    let system = System::with_environment(On::Sqlite, "exit 0\n", 1, &environment).await;
    let pr = system.pull_request("first", &[("first.txt", "1\n")]);
    system.submit(pr).await;
    system.until_state(pr, "MERGED").await;
    let (_, token) = system.token_with(&["--org", "acme", "--scope", "queue:read"]);
    let file = system.path("signalbox.token");
    std::fs::write(&file, token).expect("written");
    let api = system.url().trim_start_matches("http://").to_owned();
    let mut config = documented();
    for (documented, here) in [
        ("127.0.0.1:9464", own.as_str()),
        ("127.0.0.1:8080", api.as_str()),
        ("/etc/prometheus/signalbox.token", file.to_str().expect("a path")),
        ("scrape_interval: 60s", "scrape_interval: 1s"),
    ] {
        assert!(config.contains(documented), "{documented}\n{config}");
        config = config.replace(documented, here);
    }
    let config = format!("global: {{ scrape_interval: 1s }}\n{config}");
    std::fs::write(system.path("prometheus.yml"), config).expect("written");
    let address = format!("127.0.0.1:{}", free_port());
    let log = std::fs::File::create(system.path("prometheus.log")).expect("a log");
    let child = Command::new("prometheus")
        .current_dir(system.path("."))
        .args(["--config.file=prometheus.yml", "--storage.tsdb.path=tsdb"])
        .arg(format!("--web.listen-address={address}"))
        .stdout(Stdio::null())
        .stderr(log)
        .spawn();
    let _running = Running(child.expect("it can be run"));
    let pair = |label: &str, value: &str| (label.to_owned(), value.to_owned());
    let up = vec![pair("signalbox", "1"), pair("signalbox-queues", "1")];
    let both = async |_: &System| asked(&address, "up", "job").await == up;
    system.until("both are up", both).await;
    let requests = "signalbox_requests_total{operation=\"submitPullRequest\"}";
    assert_eq!(asked(&address, requests, "status").await, [pair("200", "1")]);
    let merged = "mq_pr_conclusions_1h_total{queue_type=\"main\",conclusion=\"merged\"}";
    assert_eq!(asked(&address, merged, "repo").await, [pair("acme/calc", "1")]);
    let errors = "sum by (job) (scrape_samples_scraped) > 20";
    assert_eq!(asked(&address, errors, "job").await.len(), 2, "samples of both");
}
