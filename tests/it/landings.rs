//! Landed changes stay landed, do not land twice, and are reported when they are removed.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{On, System};

/// Puts a commit on `main` by hand, past the queue.
fn push_by_hand(system: &System, title: &str, files: &[(&str, &str)]) {
    fetch(system);
    system.write(files);
    system.commit(title);
    system.push("main");
}

/// Checks the newest `main` out.
fn fetch(system: &System) {
    let bare = system.path("bare.git").display().to_string();
    system.git("work", &["fetch", "-q", &bare, "main"]);
    system.git("work", &["checkout", "-q", "-B", "main", "FETCH_HEAD"]);
}

fn force(system: &System, to: &str) {
    let bare = system.path("bare.git").display().to_string();
    system.git("work", &["push", "-q", "-f", &bare, &format!("{to}:refs/heads/main")]);
}

#[tokio::test]
async fn changes_that_are_on_the_target_already_end_as_merged_without_a_commit() {
    for method in ["SQUASH", "MERGE_COMMIT", "REBASE"] {
        let system = System::new(On::Sqlite, "exit 0\n", 2).await;
        system.call("updateQueue", json!({ "mergeMethod": method })).await;
        let first = system.pull_request("first", &[("same.txt", "same\n")]);
        let second = system.pull_request("second", &[("same.txt", "same\n")]);
        push_by_hand(&system, "by hand", &[("same.txt", "same\n")]);
        system.submit(first).await;
        system.until_state(first, "MERGED").await;
        assert_eq!(system.entry(first).await["exit"]["reason"], "ALREADY_MERGED", "{method}");
        assert_eq!(system.history(), ["base", "by hand"], "{method}");
        let (status, _) =
            system.try_call("submitPullRequest", json!({ "pr": { "number": first } })).await;
        assert_eq!(status, 409, "it is merged");

        // A batch lands without the one that adds nothing.
        let third = system.pull_request("third", &[("third.txt", "3\n")]);
        let batch = json!({ "batch": true, "batchingMinSize": 2 });
        system.call("updateQueue", batch).await;
        system.submit(second).await;
        system.submit(third).await;
        system.until_state(third, "MERGED").await;
        system.until_state(second, "MERGED").await;
        assert_eq!(system.entry(second).await["exit"]["reason"], "ALREADY_MERGED", "{method}");
        assert_eq!(system.entry(third).await["exit"]["reason"], "MERGE_GRAPH_MERGE", "{method}");
        assert!(!system.history().iter().any(|title| title.contains("second")), "{method}");
    }
}

/// Two pull requests with the same change are tested together: the second adds nothing to the
/// first, and no commit lands for it.
#[tokio::test]
async fn an_empty_change_lands_without_a_commit() {
    let gate = tempfile::TempDir::new().expect("a folder");
    let open = gate.path().join("open");
    let check = format!("while [ ! -e '{}' ]; do sleep 0.05; done\n", open.display());
    let system = System::new(On::Sqlite, &check, 2).await;
    let first = system.pull_request("first", &[("same.txt", "same\n")]);
    let second = system.pull_request("second", &[("same.txt", "same\n")]);
    system.submit(first).await;
    system.submit(second).await;
    system.until_state(second, "TESTING").await;
    std::fs::write(&open, "").expect("opened");
    system.until_state(first, "MERGED").await;
    system.until_state(second, "MERGED").await;
    assert_eq!(system.entry(second).await["exit"]["reason"], "ALREADY_MERGED");
    assert_eq!(system.history(), ["base", "change first (#1)"]);
}

#[tokio::test]
async fn a_target_that_is_forced_back_over_a_landing_is_detected_and_reported() {
    for on in [On::Sqlite, On::Postgres] {
        let system = System::new(on, "exit 0\n", 1).await;
        let mut heads = vec![system.git("bare.git", &["rev-parse", "main"])];
        for (pr, name) in [(1, "first"), (2, "second"), (3, "third")] {
            assert_eq!(system.pull_request(name, &[(&format!("{name}.txt"), "x\n")]), pr);
            system.submit(pr).await;
            system.until_state(pr, "MERGED").await;
            heads.push(system.git("bare.git", &["rev-parse", "main"]));
        }
        fetch(&system);
        let since = async |system: &System, pr: u64| {
            system.entry(pr).await["exit"]["offTargetSince"].clone()
        };
        force(&system, &heads[1]);
        let missed = async |system: &System| since(system, 2).await != Value::Null;
        system.until("#2 is missed", missed).await;
        assert_ne!(since(&system, 3).await, Value::Null);
        assert_eq!(since(&system, 1).await, Value::Null, "the first one is still there");
        let entry = system
            .call(
                "getSubmittedPullRequest",
                json!({ "pr": { "number": 2 }, "includeTimeline": true }),
            )
            .await;
        let newest = entry["timeline"][0]["merged"]["reason"].clone();
        assert_eq!(newest, "REMOVED_FROM_TARGET_BRANCH", "{entry}");
        assert_eq!(entry["state"], "MERGED");
        let reason = entry["reason"].as_str().expect("words");
        assert!(reason.contains("no longer on the target branch since"), "{reason}");
        let kind = "pull_request.removed_from_target";
        let told = system.events(kind).await;
        assert_eq!(told.len(), 2, "{told:?}");
        // It does not come back automatically, and others continue.
        let fourth = system.pull_request("fourth", &[("fourth.txt", "4\n")]);
        system.submit(fourth).await;
        system.until_state(fourth, "MERGED").await;
        let history = ["base", "change first (#1)"];
        assert_eq!(system.history()[..2], history);
        assert!(!system.history().iter().any(|title| title.contains("second")));

        force(&system, &heads[3]);
        let found = async |system: &System| since(system, 3).await == Value::Null;
        system.until("#3 is found again", found).await;
        assert_eq!(since(&system, 2).await, Value::Null);
        let missed = async |system: &System| since(system, fourth).await != Value::Null;
        system.until("#4 is missed", missed).await;
        assert_eq!(system.events(kind).await.len(), 3);
    }
}

#[tokio::test]
async fn a_landing_is_shown_and_verified_by_commands() {
    for on in [On::Sqlite, On::Postgres] {
        let system = System::new(on, "exit 0\n", 1).await;
        let batch =
            json!({ "batch": true, "batchingMinSize": 2, "batchingMaxWaitTimeMinutes": 60 });
        system.call("updateQueue", batch).await;
        let first = system.pull_request("first", &[("first.txt", "1\n")]);
        let second = system.pull_request("second", &[("second.txt", "2\n")]);
        let temporary = TempDir::new().expect("a folder");
        let run = |args: &[&str]| {
            let mut command = system.command(&["proof"]);
            command.args(args).env("SIGNALBOX_TOKEN", system.token());
            command.env("TMPDIR", temporary.path());
            let done = command.env("SIGNALBOX_SERVER", system.url()).output().expect("run");
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            (done.status.code(), text(&done.stdout), text(&done.stderr))
        };
        let number = second.to_string();
        let from_server = ["--repo", "git.local/acme/calc"];
        system.submit(first).await;
        let (code, _, words) = run(&[&["show", "1"], &from_server[..]].concat());
        assert_eq!(code, Some(1));
        assert!(words.contains("no record of a landing: pull request 1 is"), "{words}");
        system.submit(second).await;
        system.until_state(second, "MERGED").await;

        let (code, shown, _) = run(&[&["show", &number], &from_server[..]].concat());
        assert_eq!(code, Some(0));
        assert!(shown.contains("with           #1 at") && shown.contains("recomputed"), "{shown}");
        let verify =
            [&["verify", number.as_str(), "--clone", "bare.git"], &from_server[..]].concat();
        let (code, steps, words) = run(&verify);
        assert_eq!((code, words.as_str()), (Some(0), ""), "{steps}");
        let left = std::fs::read_dir(temporary.path()).expect("the folder").count();
        assert_eq!(left, 0, "temporary files");
        assert!(steps.contains("ok    refs/heads/main contains"), "{steps}");
        let verdict = steps.lines().last().unwrap_or_default();
        assert!(verdict.contains("only the changes of #2, together with 1 other"), "{verdict}");
        assert!(verdict.ends_with("The tested tree landed."), "{verdict}");

        // From a file, without a server.
        let (_, record, _) = run(&[&["show", &number, "--json"], &from_server[..]].concat());
        std::fs::write(system.path("2.json"), &record).expect("written");
        let offline = ["verify", "--record", "2.json", "--clone", "bare.git"];
        assert_eq!(run(&offline), (Some(0), steps, String::new()));
        let event = system.events("pull_request.merged").await.pop().expect("an event");
        let event: Value = serde_json::from_str(&event.payload).expect("JSON");
        let entry: Value = serde_json::from_str(&record).expect("JSON");
        assert_eq!(event["landing"]["sha"], entry["exit"]["sha"]);
        assert_eq!(event["landing"]["base"], entry["exit"]["proof"]["base"]);
        assert_eq!(event["landing"]["changes"][0]["pr_number"], 1);
        assert_eq!(event["landing"]["check"], "RECOMPUTED");

        // Work that no pull request contains was put on the target.
        push_by_hand(&system, "by hand", &[("first.txt", "reverted\n")]);
        system.git("work", &["reset", "-q", "--soft", "HEAD~2"]);
        system.commit("squashed by hand");
        force(&system, "HEAD");
        let (code, steps, words) = run(&verify);
        assert_eq!(code, Some(1), "{steps}");
        assert!(steps.contains("FAIL  refs/heads/main contains"), "{steps}");
        assert!(words.contains("not verified: pull request 2, 1 of the statements"), "{words}");
    }
}
