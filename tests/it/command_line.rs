//! The command line as scripts and people meet it: exit codes, output, interruptions.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{On, System, program};

const QUEUE: [&str; 2] = ["--repo", "git.local/acme/calc"];

fn signalbox(folder: &Path, variables: &[(&str, &str)], args: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.current_dir(folder).args(args).envs(variables.iter().copied());
    command
}

fn done(mut command: Command) -> Output {
    command.output().expect("it can be run")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A command fails with this exit code, and its error has these parts.
fn refused(done: &Output, code: i32, parts: &[&str]) {
    let words = text(&done.stderr);
    assert_eq!(done.status.code(), Some(code), "{words}");
    assert!(parts.iter().all(|part| words.contains(part)), "{parts:?} in {words}");
}

/// A command on the queue of this test.
fn on_queue(system: &System, args: &[&str]) -> Command {
    let mut command = system.command(args);
    command.env("SIGNALBOX_SERVER", system.url()).env("SIGNALBOX_TOKEN", system.token());
    command
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let folder = TempDir::new().expect("a folder");
    let full = || std::fs::File::options().write(true).open("/dev/full").expect("a full device");
    let mut version = signalbox(folder.path(), &[], &["version"]);
    version.stdout(full());
    refused(&done(version), 1, &["could not write the output", "No space left"]);
    let variables = [("SIGNALBOX_DATA_DIR", "data")];
    let mut token = signalbox(folder.path(), &variables, &["token", "create", "--org", "acme"]);
    token.stdout(full());
    refused(&done(token), 1, &["could not print the token", "signalbox token revoke "]);
}

#[tokio::test]
async fn causes_have_their_own_exit_codes_and_name_the_variable() {
    let system = System::new(On::Sqlite, "exit 0\n", 1).await;
    let run = |args: &[&str], variables: &[(&str, &str)]| {
        let mut command = on_queue(&system, &[args, &QUEUE].concat());
        command.envs(variables.iter().copied());
        done(command)
    };
    let status = ["queue", "status"];
    let token = "SIGNALBOX_TOKEN";
    let server = "SIGNALBOX_SERVER";
    refused(
        &run(&status, &[(token, "")]),
        2,
        &["no API token: set SIGNALBOX_TOKEN or give --token"],
    );
    refused(&run(&status, &[(token, "abc\n")]), 2, &["line break", token]);
    for url in ["127.0.0.1:8080", "", "nowhere"] {
        refused(&run(&status, &[(server, url)]), 2, &["invalid server URL", "https://", server]);
    }
    refused(&run(&status, &[(server, "http://127.0.0.1:1")]), 5, &["could not reach", server]);
    refused(&run(&status, &[(token, "sbx_unknown")]), 6, &["401", token]);
    let (_, reader) = system.token_with(&["--org", "acme", "--scope", "queue:read"]);
    refused(&run(&["queue", "cancel", "1"], &[(token, &reader)]), 6, &["403"]);
    refused(&run(&["queue", "show", "99"], &[]), 7, &["404"]);
    refused(&run(&["queue", "create"], &[]), 8, &["409"]);
    assert_eq!(run(&status, &[]).status.code(), Some(0));
    let busy = server_with(&["503 Service Unavailable\r\nRetry-After: 600"]);
    refused(&run(&status, &[(server, &busy.0)]), 9, &["503"]);
}

#[test]
fn values_that_are_no_values_are_wrong_usage() {
    let folder = TempDir::new().expect("a folder");
    let variables = [("SIGNALBOX_TOKEN", "t"), ("SIGNALBOX_DATA_DIR", "data")];
    let run = |args: &[&str]| done(signalbox(folder.path(), &variables, args));
    for args in [
        ["queue", "status", "--repo", "x"].as_slice(),
        &["audit", "list", "--repo", "x"],
        &["pr", "list", "x"],
    ] {
        refused(&run(args), 2, &["HOST/OWNER/NAME"]);
    }
    refused(&run(&["queue", "set", "foo=1", "--repo", "a/b/c"]), 2, &["foo: not a setting"]);
    refused(&run(&["audit", "list", "--since", "foo"]), 2, &["\"foo\"", "RFC 3339"]);
    refused(&run(&["token", "create", "--org", "acme", "--scope", "foo"]), 2, &["unknown scope"]);
    let import = ["tests", "import", "x.xml", "--repo", "a/b/c", "--since", "foo"];
    refused(&run(&import), 2, &["\"foo\"", "90d"]);
    refused(&run(&["pr", "list"]), 2, &["--repo HOST/OWNER/NAME", "SIGNALBOX_REPO"]);
}

#[tokio::test]
async fn one_flag_and_one_variable_name_the_repository() {
    let system = System::new(On::Sqlite, "exit 0\n", 1).await;
    let first = system.pull_request("first", &[("first.txt", "1\n")]);
    let variable = |args: &[&str]| {
        let mut command = on_queue(&system, args);
        command.env("SIGNALBOX_REPO", "git.local/acme/calc").env("SIGNALBOX_ORG", "acme");
        let done = done(command);
        assert!(done.status.success(), "{args:?}: {done:?}");
        text(&done.stdout)
    };
    for args in [
        ["pr", "list"].as_slice(),
        &["pr", "list", "--repo", "git.local/acme/calc"],
        &["pr", "list", "git.local/acme/calc"],
    ] {
        assert!(variable(args).contains("change first"), "{args:?}");
    }
    assert!(variable(&["queue", "status"]).contains("main: "));
    assert_eq!(variable(&["tests", "unhealthy"]), "no flaky or broken tests found\n");
    assert_eq!(variable(&["tests", "unhealthy", "--output", "json"]), "");
    assert!(variable(&["audit", "list"]).contains("queue.created"));
    let close = ["pr", "close", "git.local/acme/calc", &first.to_string()];
    let old = system.run(&close);
    let other = system.pull_request("other", &[("other.txt", "1\n")]).to_string();
    assert_eq!(old, format!("pull request {first} is closed"));
    let closed: Value =
        serde_json::from_str(&variable(&["pr", "close", &other, "--json"])).expect("JSON");
    assert_eq!(closed["state"], "closed");
}

#[tokio::test]
async fn json_has_the_values_as_they_are_and_tables_have_one_line_for_each() {
    let system = System::new(On::Sqlite, "exit 0\n", 1).await;
    system.pull_request("first", &[("first.txt", "1\n")]);
    system.git("work", &["branch", "second", "first"]);
    system.push("second");
    let author = "E\u{202e}ve";
    let title = "a title";
    let open = ["pr", "open", "--branch", "second", "--author", author, "--title", title];
    system.run(&[&open, &QUEUE[..]].concat());
    let list = |form: &str| {
        let list = [&["pr", "list", "--output", form], &QUEUE[..]].concat();
        system.run(&list)
    };
    let json = list("json");
    assert!(!json.contains('\u{202e}'), "{json:?}");
    let values: Vec<Value> =
        json.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let second = values.iter().find(|it| it["number"] == 2).expect("the second one");
    assert_eq!((&second["author"], &second["title"]), (&author.into(), &title.into()));
    let table = list("table");
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 3, "{table}");
    assert!(lines[0].starts_with("NUMBER  STATE  BASE  AUTHOR"), "{table}");
    let authors = [lines[0].find("AUTHOR"), lines[1].find('E'), lines[2].find("Ada")];
    assert!(authors[0].is_some() && authors.iter().all(|it| *it == authors[0]), "{table}");
}

/// Reads the first line of a command, and closes its output.
fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    let output = child.stdout.take().expect("its output");
    BufReader::new(output).read_line(&mut line).expect("a line");
    line
}

#[tokio::test]
async fn commands_that_follow_end_with_their_reader() {
    let system = System::new(On::Sqlite, "exit 0\n", 1).await;
    let pr = system.pull_request("first", &[("first.txt", "1\n")]);
    let pause = ["queue", "pause", "--reason", "lunch"];
    assert!(done(on_queue(&system, &[&pause, &QUEUE[..]].concat())).status.success());
    system.submit(pr).await;
    let tail = ["events", "tail", "--after", "0"].as_slice();
    let watch = [&["queue", "watch"], &QUEUE[..]].concat();
    for args in [tail, &watch] {
        let mut child = on_queue(&system, args).stdout(Stdio::piped()).spawn().expect("started");
        let line = first_line(&mut child);
        assert!(!line.is_empty(), "{args:?}");
        // No event and no change comes after this.
        let ended = tokio::task::spawn_blocking(move || child.wait().expect("it ended"));
        let ended = tokio::time::timeout(std::time::Duration::from_secs(30), ended).await;
        assert!(ended.expect("it ends").expect("a status").success(), "{args:?}");
    }
}

#[tokio::test]
async fn a_restart_of_the_server_does_not_end_a_tail() {
    let mut system = System::new(On::Sqlite, "exit 0\n", 1).await;
    let first = system.pull_request("first", &[("first.txt", "1\n")]);
    let second = system.pull_request("second", &[("second.txt", "1\n")]);
    let file = std::fs::File::create(system.path("tail.txt")).expect("a file");
    let args = ["events", "tail", "--after", "0", "--json", "--type", "pull_request.submitted"];
    let mut tail = on_queue(&system, &args).stdout(file).spawn().expect("started");
    let heard = |system: &System| -> Vec<Value> {
        let text = std::fs::read_to_string(system.path("tail.txt")).expect("its output");
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    system.submit(first).await;
    system.until("the first event", async |system: &System| heard(system).len() == 1).await;
    system.kill();
    system.start().await;
    system.submit(second).await;
    system.until("the second event", async |system: &System| heard(system).len() == 2).await;
    tail.kill().expect("killed");
    tail.wait().expect("gone");
    let events = heard(&system);
    let numbers: Vec<_> = events.iter().map(|it| it["payload"]["pr_number"].as_u64()).collect();
    assert_eq!(numbers, [Some(first), Some(second)]);
    assert!(events.iter().all(|it| it["type"] == "pull_request.submitted"), "{events:?}");
    assert!(events.iter().all(|it| it["timestamp"].as_str().is_some()), "{events:?}");
}

/// A server that answers each request with the next head, and an upload's receipt. Returns its
/// address and the number of files in each request.
fn server_with(heads: &'static [&'static str]) -> (String, std::thread::JoinHandle<Vec<usize>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("an address");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let serve = move || {
        let mut files = Vec::new();
        for head in heads {
            let (mut connection, _) = listener.accept().expect("a connection");
            let mut reader = BufReader::new(connection.try_clone().expect("the same"));
            let mut length = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).expect("a line");
                let line = line.trim_end().to_lowercase();
                if let Some(number) = line.strip_prefix("content-length: ") {
                    length = number.parse().expect("a number");
                }
                if line.is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).expect("a body");
            files.push(text(&body).matches("filename=").count());
            let body = r#"{"status_url": "/v1/flaky-tests/uploads/1", "detail": "busy"}"#;
            let length = body.len();
            let rest = format!("Content-Length: {length}\r\nConnection: close\r\n\r\n{body}");
            connection.write_all(format!("HTTP/1.1 {head}\r\n{rest}").as_bytes()).expect("sent");
        }
        files
    };
    (url, std::thread::spawn(serve))
}

#[test]
fn an_upload_to_a_busy_server_is_repeated_and_many_files_are_several_uploads() {
    const BUSY: &str = "503 Service Unavailable\r\nRetry-After: 0";
    const TAKEN: &str = "202 Accepted";
    let folder = TempDir::new().expect("a folder");
    for number in 0..1_001 {
        let file = folder.path().join(format!("{number}.xml"));
        std::fs::write(file, "<testsuites/>").expect("written");
    }
    let (url, served) = server_with(&[BUSY, TAKEN, TAKEN]);
    let variables = [("SIGNALBOX_TOKEN", "t"), ("SIGNALBOX_SERVER", url.as_str())];
    let upload = ["tests", "upload", "--branch", "main", "--sha", "1f0c", "--junit", "*.xml"];
    let done = done(signalbox(folder.path(), &variables, &[&upload, &QUEUE[..]].concat()));
    assert!(done.status.success(), "{done:?}");
    assert_eq!(served.join().expect("files"), [1_000, 1_000, 1]);
    let words = text(&done.stdout);
    assert!(words.starts_with("1000 files accepted: http://"), "{words}");
    assert!(words.lines().count() == 2 && words.contains("\n1 file accepted: "), "{words}");
}

#[tokio::test]
async fn an_interrupted_backup_leaves_nothing() {
    let system = System::new(On::Postgres, "exit 0\n", 1).await;
    // A dump that never ends.
    let programs = system.path("programs");
    std::fs::create_dir(&programs).expect("a folder");
    let script = "#!/bin/sh\ntouch begun\nexec sleep 600\n";
    std::fs::write(programs.join("pg_dump"), script).expect("written");
    let mut mode = Command::new("chmod");
    assert!(
        done({
            mode.arg("+x").arg(programs.join("pg_dump"));
            mode
        })
        .status
        .success()
    );
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").expect("a path"));
    let mut backup = system.command(&["backup", "backup.tar.gz"]);
    let child = backup.env("PATH", path).stderr(Stdio::piped()).spawn().expect("started");
    system.until("the dump has begun", async |it: &System| it.path("begun").exists()).await;
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().expect("sent").success());
    refused(&child.wait_with_output().expect("it ended"), 1, &["interrupted"]);
    let names = std::fs::read_dir(system.path(".")).expect("a folder").flatten();
    let names: Vec<String> =
        names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert!(!names.iter().any(|name| name.contains("backup")), "{names:?}");
}

#[test]
fn completions_and_manual_pages_are_made_from_the_command_line() {
    let folder = TempDir::new().expect("a folder");
    let run = |args: &[&str]| {
        let done = done(signalbox(folder.path(), &[], args));
        assert!(done.status.success(), "{done:?}");
        text(&done.stdout)
    };
    for shell in ["bash", "zsh", "fish"] {
        let script = run(&["completions", shell]);
        assert!(script.contains("until-empty") && script.contains("quarantine"), "{shell}");
    }
    std::fs::write(folder.path().join("bash"), run(&["completions", "bash"])).expect("written");
    let mut bash = Command::new("bash");
    bash.arg("-n").arg(folder.path().join("bash"));
    assert!(done(bash).status.success());
    assert!(run(&["man"]).starts_with(".ie"), "a page");
    assert_eq!(run(&["man", "man1"]), "");
    let page = std::fs::read_to_string(folder.path().join("man1/signalbox-queue-set.1"));
    assert!(page.expect("a page").contains("concurrency"));
    // Only git calls it.
    assert!(!folder.path().join("man1/signalbox-hook.1").exists());
}
