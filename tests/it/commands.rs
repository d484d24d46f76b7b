//! The output and the effects of commands.

use std::path::Path;
use std::process::{Command, Output};

use reqwest::Method;
use serde_json::{Value, json};
use signalbox_tests::not_tested;
use tempfile::TempDir;

use crate::harness::{On, System, program};

/// Runs the program in a folder, with these variables.
fn signalbox(folder: &Path, variables: &[(&str, &str)], args: &[&str]) -> Output {
    let mut command = Command::new(program());
    command.current_dir(folder).args(args).envs(variables.iter().copied());
    command.output().expect("it can be run")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The one line that a failed command prints.
fn complaint(done: &Output) -> String {
    refusal(done, 1)
}

/// The same for a cause with an exit code of its own.
fn refusal(done: &Output, code: i32) -> String {
    assert_eq!(done.status.code(), Some(code), "{done:?}");
    let words = text(&done.stderr);
    assert_eq!((words.lines().count(), text(&done.stdout).as_str()), (1, ""), "{words}");
    words.trim_end().to_owned()
}

fn succeeded(done: &Output) -> String {
    assert!(done.status.success(), "{done:?}");
    text(&done.stdout)
}

fn git(folder: &Path, args: &[&str]) {
    let done = Command::new("git")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"])
        .args(["-c", "init.defaultBranch=main", "-C"])
        .arg(folder)
        .args(args)
        .output()
        .expect("it can be run");
    assert!(done.status.success(), "{args:?}: {}", text(&done.stderr));
}

/// A folder with an empty database.
fn prepared() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    succeeded(&signalbox(folder.path(), &[], &["migrate", "up"]));
    folder
}

#[test]
fn a_mistake_is_one_line_and_wrong_usage_has_its_own_code() {
    let folder = prepared();
    let file = folder.path().join("signalbox.toml");
    std::fs::write(&file, "[server]\nlistne = \"x\"\n").expect("written");
    let check = ["check-config", "--config", "signalbox.toml"];
    assert_eq!(
        complaint(&signalbox(folder.path(), &[], &check)),
        "signalbox: signalbox.toml: server.listne: unknown key `listne`, did you mean `listen`?"
    );
    let usage = signalbox(folder.path(), &[], &["queue", "stauts"]);
    assert_eq!(usage.status.code(), Some(2), "{usage:?}");
    for span in ["soon", "0d"] {
        let token = ["token", "create", "--org", "acme", "--expires", span];
        assert!(refusal(&signalbox(folder.path(), &[], &token), 2).contains("90d"), "{span}");
    }
    let add = ["repo", "add", "git.local/acme/calc", "--org", "acme", "--path", "missing"];
    complaint(&signalbox(folder.path(), &[], &add));
    let list = ["org", "list"];
    assert_eq!(succeeded(&signalbox(folder.path(), &[], &list)), "no organizations found\n");
    let nowhere = ["queue", "status", "--server", "nowhere", "--repo", "git.local/acme/calc"];
    let words = refusal(&signalbox(folder.path(), &[("SIGNALBOX_TOKEN", "t")], &nowhere), 2);
    assert!(words.contains("invalid server URL \"nowhere\""), "{words}");
}

#[test]
fn a_mistake_in_the_table_of_a_host_is_named_with_its_path() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("signalbox.toml");
    let check = ["check-config", "--config", "signalbox.toml"];
    for (line, wanted) in [
        ("tokn_file = \"t\"", "tokn_file: unknown key `tokn_file`, did you mean `token_file`?"),
        ("app_id = 1", "private_key_file: required with app_id"),
        ("app_id = \"one\"", "app_id: invalid type: string \"one\", expected u64"),
    ] {
        let text = format!(
            "[[organizations]]\nslug = \"acme\"\n[[organizations.hosts]]\nkind = \"git\"\n\
             host = \"git.local\"\n[[organizations.hosts]]\nkind = \"github\"\n\
             host = \"github.com\"\n{line}\n"
        );
        std::fs::write(&file, text).expect("written");
        assert_eq!(
            complaint(&signalbox(folder.path(), &[], &check)),
            format!("signalbox: signalbox.toml: organizations[0].hosts[1].{wanted}")
        );
    }
}

#[test]
fn a_token_without_flags_is_limited_and_ends() {
    let folder = prepared();
    let run = |args: &[&str]| succeeded(&signalbox(folder.path(), &[], args));
    run(&["token", "create", "--org", "acme"]);
    let listed: Value = serde_json::from_str(&run(&["token", "list", "--json"])).expect("JSON");
    let usual = ["queue:read", "queue:submit", "tests:read", "tests:upload"];
    let mut scopes: Vec<String> = serde_json::from_value(listed["scopes"].clone()).expect("scopes");
    scopes.sort();
    assert_eq!(scopes, usual);
    assert!(listed["expires_at"].is_string(), "{listed}");
}

#[test]
fn lists_name_the_organization_of_each_item() {
    let folder = prepared();
    let run = |args: &[&str]| succeeded(&signalbox(folder.path(), &[], args));
    git(folder.path(), &["init", "-q", "--bare", "bare.git"]);
    for org in ["acme", "beta"] {
        let (flag, value) =
            if org == "acme" { ("--compat", "v1-live") } else { ("--enum-case", "lower") };
        run(&["token", "create", "--org", org, flag, value]);
        run(&["repo", "add", "git.local/acme/calc", "--org", org, "--path", "bare.git"]);
    }
    for list in ["token", "repo"] {
        assert_eq!(run(&[list, "list"]).lines().count(), 3);
        let shown = run(&[list, "list", "--org", "beta"]);
        assert!(shown.lines().count() == 2 && shown.contains("beta"), "{shown}");
        let one: Value =
            serde_json::from_str(&run(&[list, "list", "--org", "beta", "--json"])).expect("JSON");
        assert_eq!(one["org"], "beta");
        assert!(list == "repo" || one["enum_case"] == "lower", "{one}");
        assert!(list == "repo" || one["compat"] == "v1-live", "{one}");
        let unknown = [list, "list", "--org", "unknown"];
        assert!(refusal(&signalbox(folder.path(), &[], &unknown), 7).contains("unknown"));
    }
}

#[test]
fn the_configuration_in_force_is_shown_without_secrets_and_without_leaving_anything() {
    let folder = TempDir::new().expect("a folder");
    std::fs::write(folder.path().join("url"), "postgres://ada:se@cret@db/calc\n").expect("written");
    let variables = [("SIGNALBOX_DATABASE_URL_FILE", "url"), ("SIGNALBOX_LISTEN", "[::1]:1234")];
    let shown = signalbox(folder.path(), &variables, &["check-config", "--print-effective"]);
    let shown = succeeded(&shown);
    assert!(shown.contains("postgres://ada:…@db/calc") && !shown.contains("cret"), "{shown}");
    assert!(shown.contains("listen = \"[::1]:1234\""), "{shown}");
    let json = ["check-config", "--print-effective", "--json"];
    let json = succeeded(&signalbox(folder.path(), &variables, &json));
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["server"]["listen"], "[::1]:1234");
    assert!(!json.to_string().contains("cret"), "{json}");
    assert_eq!(
        succeeded(&signalbox(folder.path(), &[], &["check-config", "--json"])),
        "{\"valid\":true}\n"
    );
    succeeded(&signalbox(folder.path(), &[], &["check-config"]));
    assert!(!folder.path().join("signalbox-data").exists());
    let both = [("SIGNALBOX_DATABASE_URL", "sqlite://a.db"), variables[0]];
    let words = complaint(&signalbox(folder.path(), &both, &["check-config"]));
    assert!(words.contains("are both set"), "{words}");
}

#[test]
fn a_server_can_refuse_to_migrate() {
    let folder = TempDir::new().expect("a folder");
    let database = [("SIGNALBOX_DATABASE_URL", "sqlite://own.db")];
    let run = |args: &[&str]| signalbox(folder.path(), &database, args);
    let words = complaint(&run(&["serve", "--no-migrate", "--listen", "127.0.0.1:0"]));
    assert!(words.contains("signalbox migrate up"), "{words}");
    let status = || -> Value {
        serde_json::from_str(&succeeded(&run(&["migrate", "status", "--json"]))).expect("JSON")
    };
    assert_ne!(status()["pending"], serde_json::json!([]));
    succeeded(&run(&["migrate", "up"]));
    assert_eq!(status()["pending"], serde_json::json!([]));
}

#[test]
fn a_folder_that_is_no_bare_repository_is_refused() {
    let folder = prepared();
    git(folder.path(), &["init", "-q", "work"]);
    std::fs::create_dir(folder.path().join("empty")).expect("made");
    for path in ["work", "empty", "missing"] {
        let add = ["repo", "add", "git.local/acme/calc", "--org", "acme", "--path", path];
        let code = if path == "missing" { 1 } else { 7 };
        let words = refusal(&signalbox(folder.path(), &[], &add), code);
        assert!(words.contains(path), "{words}");
    }
    let list = ["repo", "list"];
    assert_eq!(succeeded(&signalbox(folder.path(), &[], &list)), "no repositories found\n");
}

/// Git runs the hook in the repository's folder, with the environment of the pushing user.
#[test]
fn the_hook_finds_the_database_wherever_its_url_came_from() {
    for (number, from) in ["environment", "file", "default"].into_iter().enumerate() {
        let folder = TempDir::new().expect("a folder");
        let (here, work) = (folder.path(), folder.path().join("work"));
        git(here, &["init", "-q", "--bare", "bare.git"]);
        git(here, &["init", "-q", "work"]);
        std::fs::write(work.join("file.txt"), "base\n").expect("written");
        git(&work, &["add", "-A"]);
        git(&work, &["commit", "-q", "-m", "base"]);
        git(&work, &["push", "-q", "../bare.git", "main"]);
        std::fs::write(here.join("c.toml"), "[database]\nurl = \"sqlite://from-file.db\"\n")
            .expect("written");
        let variables = [("SIGNALBOX_DATABASE_URL", "sqlite://from-environment.db")];
        let (variables, flags): (&[(&str, &str)], &[&str]) = match number {
            0 => (&variables, &[]),
            1 => (&[], &["--config", "c.toml"]),
            _ => (&[], &[]),
        };
        let run = |args: &[&str]| succeeded(&signalbox(here, variables, &[flags, args].concat()));
        run(&["migrate", "up"]);
        run(&["repo", "add", "git.local/acme/calc", "--org", "acme", "--path", "bare.git"]);
        std::fs::write(work.join("file.txt"), "pushed\n").expect("written");
        git(&work, &["commit", "-q", "-a", "-m", "pushed"]);
        git(&work, &["push", "-q", "-o", "topic=fix", "../bare.git", "HEAD:refs/for/main"]);
        let listed = run(&["pr", "list", "git.local/acme/calc", "--json"]);
        let listed: Value = serde_json::from_str(&listed).expect("one pull request");
        assert_eq!(listed["title"], "pushed", "database from the {from}");
    }
}

#[tokio::test]
async fn what_others_wrote_does_not_steer_the_terminal() {
    let system = System::new(On::Sqlite, "exit 0\n", 1).await;
    system.pull_request("first", &[("first.txt", "1\n")]);
    system.git("work", &["branch", "second", "first"]);
    system.push("second");
    let author = "\u{1b}[31mEve\u{202e}";
    let open = ["pr", "open", "git.local/acme/calc", "--branch", "second", "--author", author];
    system.run(&open);
    let list = system.run(&["pr", "list", "git.local/acme/calc"]);
    assert!(list.contains("Eve"), "{list}");
    assert!(!list.contains(['\u{1b}', '\u{202e}']), "{list:?}");
}

/// All users can read a hook.
#[test]
fn a_password_is_not_written_into_the_hook() {
    let folder = TempDir::new().expect("a folder");
    git(folder.path(), &["init", "-q", "--bare", "bare.git"]);
    let url = signalbox_testkit::postgres::Server::shared().create_database();
    let url = format!("{url}?password=hidden");
    let variables = [("SIGNALBOX_DATABASE_URL", url.as_str())];
    let add = ["repo", "add", "git.local/acme/calc", "--org", "acme", "--path", "bare.git"];
    let words = complaint(&signalbox(folder.path(), &variables, &add));
    assert!(words.contains("--no-hooks") && !words.contains("hidden"), "{words}");
    let hook = folder.path().join("bare.git/hooks/proc-receive");
    assert!(!hook.exists());
    std::fs::write(folder.path().join("c.toml"), format!("[database]\nurl = \"{url}\"\n"))
        .expect("written");
    let named = [["--config", "c.toml"].as_slice(), &add].concat();
    succeeded(&signalbox(folder.path(), &[], &named));
    let hook = std::fs::read_to_string(hook).expect("a hook");
    assert!(hook.contains("c.toml") && !hook.contains("hidden"), "{hook}");
}

#[test]
fn no_command_makes_a_database_in_the_default_folder() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("signalbox-data/signalbox.db");
    for args in [
        ["repo", "list"].as_slice(),
        &["org", "create", "acme"],
        &["token", "create", "--org", "acme"],
        &["migrate", "status"],
        &["audit", "list"],
        &["webhooks", "forget-key"],
        &["backup", "backup.tar.gz"],
    ] {
        let words = refusal(&signalbox(folder.path(), &[], args), 7);
        let canonical = folder.path().canonicalize().expect("a path");
        let path = canonical.join("signalbox-data/signalbox.db").display().to_string();
        for part in ["no database at ", &path, "--data-dir", "SIGNALBOX_DATA_DIR", "signalbox init"]
        {
            assert!(words.contains(part), "{args:?}: {words}");
        }
    }
    assert!(!file.exists());
    // Named, but only to be read.
    let named = [("SIGNALBOX_DATA_DIR", "named")];
    refusal(&signalbox(folder.path(), &named, &["repo", "list"]), 7);
    assert!(!folder.path().join("named").exists());
    let made = signalbox(folder.path(), &named, &["org", "create", "acme"]);
    assert_eq!(succeeded(&made), "acme\n");
    assert!(text(&made.stderr).contains("created a new database: "), "{made:?}");
    let again = signalbox(folder.path(), &named, &["org", "create", "beta"]);
    assert_eq!(text(&again.stderr), "");
}

/// What a real queue did, simulated: the settings and the times come from the server.
#[tokio::test]
async fn a_history_of_a_queue_is_simulated() {
    let check = "sleep 0.3; test ! -e broken.txt\n";
    let system = System::new(On::Sqlite, check, 2).await;
    for (name, file) in [("one", "one.txt"), ("two", "broken.txt"), ("three", "three.txt")] {
        let pr = system.pull_request(name, &[(file, "new\n")]);
        system.submit(pr).await;
        system.until_state(pr, if name == "two" { "FAILED" } else { "MERGED" }).await;
    }
    let url = system.url();
    let variables = [("SIGNALBOX_SERVER", url.as_str()), ("SIGNALBOX_TOKEN", system.token())];
    let folder = TempDir::new().expect("a folder");
    let recorded = |since: &str| {
        let args = ["queue", "history", "--repo", "git.local/acme/calc", "--since", since];
        succeeded(&signalbox(folder.path(), &variables, &args))
    };
    let history = recorded("1h");
    let lines: Vec<Value> =
        history.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines[0]["settings"]["concurrency"], 2, "{history}");
    let seen = |line: &Value| (line["number"].clone(), line["outcome"].clone());
    let seen: Vec<_> = lines[1..].iter().map(seen).collect();
    let of = |number: u64, outcome: &str| (number.into(), outcome.into());
    assert_eq!(seen, [of(1, "MERGED"), of(2, "FAILED"), of(3, "MERGED")]);
    for line in &lines[1..] {
        let minutes = line["testMinutes"].as_f64().expect("a test");
        assert!(minutes * 60.0 > 0.3, "{line}");
    }
    assert_eq!(recorded("2100-01-01T00:00:00Z").lines().count(), 1);
    std::fs::write(folder.path().join("history.jsonl"), &history).expect("written");
    let simulate =
        ["simulate", "--history", "history.jsonl", "--host-seconds", "0", "--batch-size", "1,2"];
    let table = succeeded(&signalbox(folder.path(), &[], &simulate));
    assert!(table.starts_with("3 pull requests from 20"), "{table}");
    assert!(
        table.contains("recorded\n") && table.contains("Simulated with the recorded settings"),
        "{table}"
    );
    // The server simulates the same history.
    let path = "/v1/simulate?repo=git.local/acme/calc&targetBranch=main&batch=true";
    let token = ("x-api-token", system.token());
    let reply = system.send(Method::GET, path, &[token], String::new()).await.json();
    assert_eq!((&reply["pullRequests"], &reply["recorded"]["cancelled"]), (&json!(3), &json!(0)));
    let both = reply["combinations"].as_array().expect("a list");
    assert_eq!(both.len(), 2, "{reply}");
    let exported = ["simulate", "--history", "history.jsonl", "--output", "json"];
    let exported = succeeded(&signalbox(folder.path(), &[], &exported));
    let exported: Value = serde_json::from_str(&exported).expect("JSON");
    // The file has its times in milliseconds.
    let near = |one: &Value, other: &Value| {
        let [one, other] = [one, other].map(|it| it["mean"].as_f64().expect("a number"));
        assert!((one - other).abs() < 0.01, "{one} and {other}");
    };
    near(&exported["combinations"][0]["medianMinutes"], &both[0]["medianMinutes"]);
    near(&exported["history"]["medianMinutes"], &reply["recorded"]["medianMinutes"]);
    let missing = ["simulate", "--history", "missing.jsonl"];
    assert!(complaint(&signalbox(folder.path(), &[], &missing)).contains("missing.jsonl"));
    let both = ["simulate", "--history", "history.jsonl", "--failing", "0.1"];
    assert_eq!(signalbox(folder.path(), &[], &both).status.code(), Some(2));
}

/// The conversion of what GitHub answers, by the program that the script gives to `gh`.
#[test]
fn pull_requests_of_github_become_a_history() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/how-to/simulate");
    let program = std::fs::read_to_string(folder.join("github-history.jq")).expect("the program");
    let at = |at: &str| format!("2026-09-{at}:00Z");
    let run = |began: &str, ended: &str, conclusion: &str| {
        let (began, ended) = (at(began), at(ended));
        json!({ "startedAt": began, "completedAt": ended, "conclusion": conclusion })
    };
    let tested = |runs: Value| {
        let rollup = json!({ "contexts": { "nodes": runs } });
        json!({ "commit": { "statusCheckRollup": rollup } })
    };
    let untested = json!({ "commit": { "statusCheckRollup": null } });
    let pull_request = |number: u32, approved: &[&str], commits: Value| {
        let reviews = approved.iter().map(|it| json!({ "submittedAt": at(it) }));
        json!({
            "number": number, "mergedAt": at("17T12:00"), "author": { "login": "ada" },
            "reviews": { "nodes": reviews.collect::<Vec<Value>>() }, "commits": { "nodes": commits },
        })
    };
    let (failed, passed) = ("FAILURE", "SUCCESS");
    let mut nodes = json!([
        // Only failures after the first approval count, and neither a run without an end nor a status.
        pull_request(
            12,
            &["17T09:00", "17T11:00"],
            json!([
                tested(json!([run("17T08:00", "17T08:20", failed)])),
                tested(json!([
                    run("17T09:30", "17T09:50", failed),
                    run("17T09:31", "17T10:00", passed)
                ])),
                // Cancelled by the next push.
                tested(json!([run("17T10:20", "17T10:21", "CANCELLED")])),
                untested,
                tested(json!([
                    run("17T10:30", "17T10:55", passed),
                    {},
                    { "startedAt": at("17T10:30"), "completedAt": null },
                    // After the merge.
                    run("17T12:10", "17T13:00", failed),
                ])),
            ])
        ),
        pull_request(13, &[], json!([untested])),
        // A job that ran again two weeks later.
        pull_request(
            14,
            &["17T11:30"],
            json!([tested(json!([
                run("02T11:00", "02T11:40", passed),
                run("17T11:00", "17T11:40", passed)
            ]))])
        ),
        null,
    ]);
    // The account was deleted.
    nodes[1]["author"] = Value::Null;
    let page = json!({ "data": { "search": { "nodes": nodes } } });
    let input = TempDir::new().expect("a folder");
    std::fs::write(input.path().join("page.json"), page.to_string()).expect("written");
    let done =
        Command::new("jq").args(["-c", &program]).arg(input.path().join("page.json")).output();
    let Ok(done) = done else {
        return not_tested("jq is not installed");
    };
    let lines = succeeded(&done);
    let read: Vec<Value> =
        lines.lines().map(|it| serde_json::from_str(it).expect("JSON")).collect();
    let stay = |number: u32, queued: &str, ended: &str, outcome: &str, minutes: Option<u32>| {
        let (queued, ended) = (at(queued), at(ended));
        let mut stay =
            json!({ "number": number, "queuedAt": queued, "endedAt": ended, "outcome": outcome });
        if let Some(minutes) = minutes {
            stay["testMinutes"] = minutes.into();
        }
        if number != 13 {
            stay["author"] = "ada".into();
        }
        stay
    };
    let expected = [
        stay(12, "17T09:30", "17T10:00", "FAILED", Some(30)),
        stay(12, "17T10:30", "17T12:00", "MERGED", Some(25)),
        stay(13, "17T12:00", "17T12:00", "MERGED", None),
        stay(14, "17T11:30", "17T12:00", "MERGED", None),
    ];
    assert_eq!(read, expected);
    std::fs::write(input.path().join("history.jsonl"), &lines).expect("written");
    let simulate = ["simulate", "--history", "history.jsonl", "--concurrency", "2,4"];
    let table = succeeded(&signalbox(input.path(), &[], &simulate));
    assert!(table.contains("has no settings"), "{table}");
}

#[test]
fn rules_for_impacted_targets_can_be_tried() {
    let folder = TempDir::new().expect("a folder");
    let file = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).expect("written");
    };
    file("rules", "api/** api web\n\n docs/** NONE\nCargo.lock ALL\n");
    file("wrong", "api/** api\napi/**\n");
    let tried = |rules: &str, paths: &str, options: &[&str]| {
        file("paths", paths);
        let paths = std::fs::File::open(folder.path().join("paths")).expect("opened");
        let mut command = Command::new(program());
        command.current_dir(folder.path()).stdin(paths);
        command.args(["queue", "targets", "--rules", rules]).args(options);
        command.output().expect("it can be run")
    };
    let shown = succeeded(&tried("rules", "api/a b.rs\ndocs/\u{1b}x\n", &[]));
    assert_eq!(shown, "api/a b.rs: api/** api web\ndocs/�x: docs/** NONE\nTargets: api web\n");
    let shown = succeeded(&tried("rules", "Makefile\0docs/x\0", &[]));
    let all = "All targets: no rule matches Makefile\n";
    assert_eq!(shown, format!("Makefile: no rule\ndocs/x: docs/** NONE\n{all}"));
    assert_eq!(succeeded(&tried("rules", "docs/x\n", &[])), "docs/x: docs/** NONE\nNo targets\n");
    let shown = succeeded(&tried("rules", "Cargo.lock\n", &["--json"]));
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    let expected = json!({
        "impactedTargets": "ALL",
        "whyAll": "Cargo.lock matches the rule Cargo.lock ALL",
        "paths": [{ "path": "Cargo.lock", "rules": ["Cargo.lock ALL"] }],
    });
    assert_eq!(shown, expected);
    let words = refusal(&tried("wrong", "a\n", &[]), 2);
    let rule =
        "invalid rule: \"api/**\" has no targets: add target names, ALL, or NONE after the pattern";
    assert_eq!(words, format!("signalbox: wrong: {rule}"));
    let words = complaint(&tried("missing", "a\n", &[]));
    assert!(words.starts_with("signalbox: missing: "), "{words}");
}
