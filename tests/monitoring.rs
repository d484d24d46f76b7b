//! Files for operators: alert rules, a dashboard, a unit and files for containers. They
//! are read by the programs that will read them, and name only metrics that there are.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/operations")
}

fn read(name: &str) -> String {
    std::fs::read_to_string(folder().join(name)).expect("the file is there")
}

fn yaml(name: &str) -> Value {
    serde_saphyr::from_str(&read(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Runs a program on these files; prints a note when it is not installed.
fn examine(program: &str, args: &[&str]) {
    let done = match Command::new(program).args(args).current_dir(folder()).output() {
        Ok(done) => done,
        Err(error) => {
            let words =
                format!("SKIPPED: {program} is not installed ({error}); tests/run says how");
            drop(writeln!(std::io::stderr(), "{words}"));
            return;
        }
    };
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{program} {args:?}\n{out}\n{err}");
}

#[test]
fn prometheus_accepts_the_rules_and_they_pass_their_tests() {
    examine("promtool", &["check", "rules", "alerts.yml"]);
    examine("promtool", &["test", "rules", "alerts_test.yml"]);
    examine("promtool", &["check", "config", "--syntax-only", "deploy/prometheus.yml"]);
}

#[test]
fn systemd_takes_the_units_and_finds_them_hardened() {
    // The agent's needs namespaces, mounts and their system calls.
    for (name, most) in [("signalbox.service", 20), ("signalbox-agent.service", 40)] {
        // It wants to see the program that is started; any program will do.
        let unit = read(&format!("deploy/{name}")).replace("/usr/local/bin/signalbox", "/bin/true");
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(name);
        std::fs::write(&path, unit).expect("written");
        let path = path.display().to_string();
        examine("systemd-analyze", &["verify", "--man=no", &path]);
        let threshold = format!("--threshold={most}");
        examine(
            "systemd-analyze",
            &["security", "--offline=true", &threshold, "--no-pager", &path],
        );
    }
}

#[test]
fn systemd_takes_the_drop_in_for_checks() {
    let unit = read("deploy/signalbox.service").replace("/usr/local/bin/signalbox", "/bin/true");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("signalbox.service");
    let drop_ins = folder.path().join("signalbox.service.d");
    std::fs::create_dir(&drop_ins).expect("made");
    std::fs::write(&path, unit).expect("written");
    std::fs::write(drop_ins.join("checks.conf"), read("deploy/checks.conf")).expect("written");
    examine("systemd-analyze", &["verify", "--man=no", &path.display().to_string()]);
}

/// Every name of a metric in an expression.
fn names(expression: &str) -> BTreeSet<String> {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let words = expression.split(|c| !part(c));
    let ours =
        |word: &&str| ["signalbox_", "mq_", "process_"].iter().any(|start| word.starts_with(start));
    words.filter(ours).map(ToOwned::to_owned).collect()
}

fn expressions(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields {
                match (name.as_str(), inner) {
                    ("expr" | "query" | "series", Value::String(text)) => found.push(text.clone()),
                    _ => expressions(inner, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| expressions(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn rules_and_dashboard_ask_for_metrics_that_there_are_and_for_all_of_the_servers() {
    let server = signalbox_metrics::server_metrics();
    let known: BTreeSet<String> = server
        .iter()
        .chain(&signalbox_metrics::queue_metrics())
        .flat_map(signalbox_metrics::MetricRow::samples)
        .collect();
    let dashboard: Value = serde_json::from_str(&read("grafana.json")).expect("JSON");
    let mut asked = Vec::new();
    for value in [&dashboard, &yaml("alerts.yml"), &yaml("alerts_test.yml")] {
        expressions(value, &mut asked);
    }
    let asked: BTreeSet<String> = asked.iter().flat_map(|it| names(it)).collect();
    let unknown: Vec<&String> = asked.difference(&known).collect();
    assert!(unknown.is_empty(), "there are no such metrics: {unknown:?}");
    let forgotten: Vec<&str> = server
        .iter()
        .filter(|row| !row.samples().iter().any(|name| asked.contains(name)))
        .map(|row| row.name.as_str())
        .filter(|name| *name != "signalbox_host_quota_reset_timestamp_seconds")
        .collect();
    assert!(forgotten.is_empty(), "no dashboard or alert uses {forgotten:?}");
    let mut ids = BTreeSet::new();
    for panel in dashboard["panels"].as_array().expect("panels") {
        assert!(ids.insert(panel["id"].as_u64()), "two panels have one id: {panel}");
    }
}

#[test]
fn every_alert_is_tested_and_has_advice() {
    let (alerts, cases) = (yaml("alerts.yml"), read("alerts_test.yml"));
    for rule in alerts["groups"][0]["rules"].as_array().expect("rules") {
        let name = rule["alert"].as_str().expect("a name");
        assert!(cases.contains(&format!("alertname: {name}\n")), "{name} is never seen to fire");
        for part in ["summary", "description"] {
            assert!(rule["annotations"][part].is_string(), "{name} has no {part}");
        }
        let severity = rule["labels"]["severity"].as_str().expect("a severity");
        assert!(["page", "ticket"].contains(&severity), "{name}: {severity}");
    }
}

/// There is no container engine here: the files are parsed, and the paths that they name must
/// exist.
#[test]
fn the_files_for_containers_name_what_there_is() {
    let compose = yaml("deploy/compose.yml");
    let server = &compose["services"]["signalbox"];
    let context = folder().join("deploy").join(server["build"]["context"].as_str().expect("one"));
    assert!(context.join("Cargo.toml").exists());
    assert!(context.join(server["build"]["dockerfile"].as_str().expect("one")).exists());
    let mounts =
        |service: &str| compose["services"][service]["volumes"].as_array().expect("mounts").clone();
    for mount in ["signalbox", "prometheus"].map(mounts).concat() {
        let from = mount.as_str().expect("text").split(':').next().expect("a source");
        if from.starts_with('.') {
            assert!(folder().join("deploy").join(from).exists(), "{from}");
        }
    }
    let ignored = std::fs::read_to_string(context.join(".dockerignore")).expect("a list");
    for folder in ["target", "docs/operations/deploy/secrets"] {
        assert!(ignored.lines().any(|line| line == folder), "{folder} is not sent to the engine");
    }
    let list = |value: &Value| -> Vec<String> {
        value
            .as_array()
            .expect("a list")
            .iter()
            .map(|it| it.as_str().expect("text").into())
            .collect()
    };
    for service in ["signalbox", "postgres"] {
        for secret in list(&compose["services"][service]["secrets"]) {
            assert!(compose["secrets"][&secret].is_object(), "{secret}");
        }
    }
    let file = read("deploy/Containerfile");
    let stage = file.rsplit("\nFROM ").next().expect("a stage");
    assert!(stage.contains("\nUSER 10001\n"), "the server is not root");
    assert!(file.contains("--locked"), "what is built is what was tested");
}
