//! What `docs/operations/install.md` tells an operator to run and to write, run and read.

use std::path::{Path, PathBuf};
use std::process::Command;

use signalbox_testkit::postgres::Server;

use crate::harness::{System, program};

fn operations() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/operations")
}

fn page() -> String {
    std::fs::read_to_string(operations().join("install.md")).expect("a page")
}

/// The first block of a language on the page.
pub(crate) fn block(language: &str) -> String {
    let page = page();
    let (_, rest) = page.split_once(&format!("```{language}\n")).expect("a block");
    rest.split_once("```").expect("its end").0.to_owned()
}

fn psql(url: &str, sql: &str) {
    // One statement after the other: a database is not created in a transaction.
    for statement in sql.split_inclusive(';').filter(|it| !it.trim().is_empty()) {
        let done = Command::new("psql").args(["-Xq", "-d", url, "-c", statement]).output();
        let done = done.expect("psql can be run");
        assert!(done.status.success(), "{statement}: {}", String::from_utf8_lossy(&done.stderr));
    }
}

/// The URL of the configuration on the page, with the socket of this server.
fn url(server: &Server) -> String {
    let config = block("toml");
    let line = config.lines().find_map(|line| line.strip_prefix("url = \"")).expect("a URL");
    let (folder, port) = server.socket();
    let socket = format!("host={}&port={port}", folder.display());
    line.trim_end_matches('"').replace("host=/run/postgresql", &socket)
}

async fn merges(mut system: System) {
    let pr = system.pull_request("change", &[("change.txt", "1\n")]);
    system.submit(pr).await;
    system.until_state(pr, "MERGED").await;
    let doctor = system.command(&["doctor"]).output().expect("run");
    assert!(doctor.status.success(), "{}", String::from_utf8_lossy(&doctor.stdout));
    let backup = system.path("backup.tar.gz").display().to_string();
    system.run(&["backup", &backup]);
    system.run(&["restore", "--verify", &backup]);
    system.terminate();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_role_of_the_handbook_has_the_rights_that_the_server_needs() {
    let server = Server::start();
    psql(&format!("{}/postgres", server.url()), &block("sql"));
    merges(System::on_database(url(&server), "exit 0\n", 1).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rights_in_the_database_of_another_role_are_enough() {
    let server = Server::start();
    let postgres = format!("{}/postgres", server.url());
    psql(&postgres, "CREATE ROLE signalbox LOGIN; CREATE DATABASE signalbox;");
    let page = page();
    let grants: Vec<&str> = page.split('`').filter(|it| it.starts_with("GRANT ")).collect();
    assert_eq!(grants.len(), 2);
    psql(&format!("{}/signalbox", server.url()), &grants.join(";"));
    merges(System::on_database(url(&server), "exit 0\n", 1).await).await;
}

#[test]
fn the_configurations_of_the_handbook_are_valid() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("signalbox.toml");
    std::fs::write(&file, block("toml")).expect("written");
    for file in [file, operations().join("deploy/signalbox.toml")] {
        let done = Command::new(program()).args(["check-config", "--config"]).arg(&file).output();
        let done = done.expect("run");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
}
