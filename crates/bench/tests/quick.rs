//! A quick run prints its table and writes its figures.

use std::process::Command;

use tempfile::TempDir;

#[test]
fn a_quick_run_of_the_planner_prints_a_table_and_writes_figures() {
    let folder = TempDir::new().expect("a folder");
    let json = folder.path().join("figures/bench.json");
    let done = Command::new(env!("CARGO_BIN_EXE_signalbox-bench"))
        .args(["planner", "--quick", "--json"])
        .arg(&json)
        .output()
        .expect("it can be run");
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{errors}");
    let table = String::from_utf8_lossy(&done.stdout);
    for data in ["100 entries, sparse targets", "100 entries, dense targets", "SINGLE, 50 slots"] {
        let start = format!("| planner | {data}");
        assert!(table.lines().any(|line| line.starts_with(&start)), "{table}");
    }
    let figures: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&json).expect("a file")).expect("JSON");
    let rows = figures["rows"].as_array().expect("rows");
    let printed = table.lines().filter(|line| line.starts_with("| planner |")).count();
    assert_eq!(rows.len(), printed, "{figures}");
    assert!(rows.iter().all(|row| row["product"].as_f64().is_some_and(|it| it > 0.0)));
}

#[test]
fn a_run_is_compared_with_an_earlier_one() {
    let folder = TempDir::new().expect("a folder");
    let json = folder.path().join("bench.json");
    let run = |against: bool| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_signalbox-bench"));
        command.args(["targets", "--quick", "--json"]).arg(&json);
        if against {
            command.arg("--against").arg(&json);
        }
        command.output().expect("it can be run")
    };
    let none = run(true);
    assert!(!none.status.success());
    let errors = String::from_utf8_lossy(&none.stderr).into_owned();
    assert!(errors.contains("bench.json"), "{errors}");
    assert!(run(false).status.success());
    let table = String::from_utf8_lossy(&run(true).stdout).into_owned();
    let (rows, compared) = table.split_once("| operation | data | earlier |").expect("both");
    let rows = rows.lines().filter(|line| line.starts_with("| target intersection |")).count();
    let again = compared.lines().filter(|line| line.starts_with("| target intersection |"));
    assert!(rows > 0);
    assert_eq!(again.count(), rows, "{table}");
}

/// The floors read the tables of the product, so they must follow its schema.
#[test]
fn the_operations_on_databases_run_on_both() {
    let folder = TempDir::new().expect("a folder");
    let operations = ["submit", "servers", "get-queue", "token-check", "scrape", "flaky-lists"];
    let done = Command::new(env!("CARGO_BIN_EXE_signalbox-bench"))
        .args(operations)
        .args(["--quick", "--tests", "10000", "--results", "10000", "--json"])
        .arg(folder.path().join("bench.json"))
        .output()
        .expect("it can be run");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let table = String::from_utf8_lossy(&done.stdout);
    for row in ["submitPullRequest | PostgreSQL with fsync, ", "servers | 3 on PostgreSQL, "] {
        assert!(table.contains(row), "{row}: {table}");
    }
    for on in ["SQLite", "PostgreSQL"] {
        let names = ["submitPullRequest", "getQueue", "token check", "metrics scrape"];
        for name in names.into_iter().chain(["list-unhealthy-tests", "list-failing-tests"]) {
            let start = format!("| {name} | {on}, ");
            assert!(table.lines().any(|line| line.starts_with(&start)), "{start}: {table}");
        }
    }
}

#[test]
fn an_unknown_operation_is_refused_with_the_known_ones() {
    let done = Command::new(env!("CARGO_BIN_EXE_signalbox-bench")).arg("warp").output();
    let done = done.expect("it can be run");
    assert!(!done.status.success());
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(errors.contains("warp") && errors.contains("planner"), "{errors}");
}
