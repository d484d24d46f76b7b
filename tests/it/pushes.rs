//! Pushes to the target: reported by a hook immediately, and read again before a pull request fails
//! because of the target's content. Pushes to `refs/for/…`: their options and their answers.

use signalbox_domain::ports::Loaded;

use crate::harness::{On, System};

const GOOD: &str = "[[checks]]\nname = \"test\"\nrun = [\"sh\", \"check.sh\"]\n";

fn hook(system: &System, name: &str) -> std::path::PathBuf {
    system.path("bare.git/hooks").join(name)
}

/// Pushes a configuration to `main`, wherever that is by now.
fn configure(system: &System, text: &str) {
    let bare = system.path("bare.git").display().to_string();
    system.git("work", &["pull", "-q", &bare, "main"]);
    system.write(&[(".signalbox.toml", text)]);
    system.commit("configure");
    system.push("main");
}

#[tokio::test]
async fn a_pull_request_is_not_failed_by_the_old_state_of_the_target() {
    let system = System::new(On::Sqlite, "exit 0\n", 1).await;
    // Without the hook the server polls every two seconds.
    std::fs::remove_file(hook(&system, "post-receive")).expect("removed");
    let prs = ["one", "two", "three", "four"];
    let prs = prs.map(|name| system.pull_request(name, &[(&format!("{name}.txt"), "x\n")]));
    for (bad, failed, fixed) in
        [("nonsense", prs[0], prs[1]), ("[merge]\nrequired_statuses = []\n", prs[2], prs[3])]
    {
        configure(&system, bad);
        system.submit(failed).await;
        system.until_state(failed, "FAILED").await;
        configure(&system, GOOD);
        system.submit(fixed).await;
        system.until_state(fixed, "MERGED").await;
    }
}

#[tokio::test]
async fn a_pull_request_is_not_failed_by_a_conflict_that_the_last_push_has_resolved() {
    let system = System::new(On::Sqlite, "exit 0\n", 1).await;
    std::fs::remove_file(hook(&system, "post-receive")).expect("removed");
    let pr = system.pull_request("topic", &[("file.txt", "topic\n")]);
    let other = system.pull_request("other", &[("file.txt", "other\n")]);
    system.write(&[("file.txt", "main\n")]);
    system.commit("in its way");
    system.push("main");
    system.submit(other).await;
    system.until_state(other, "FAILED").await;
    assert_eq!(system.entry(other).await["exit"]["reason"], "START_TEST_RUN_MERGE_CONFLICT");
    system.write(&[("file.txt", "base\n")]);
    system.commit("out of its way");
    system.push("main");
    system.submit(pr).await;
    system.until_state(pr, "MERGED").await;
    assert_eq!(system.on_main("file.txt"), "topic");
}

/// Where the queue knows the target to be.
async fn known_head(system: &System) -> String {
    let database = signalbox_persistence::connect(system.database()).await.expect("a database");
    let queues = database.stores().queue.queues;
    let queue = queues.list(None, None).await.expect("a list").remove(0).queue;
    let loaded = queues.load(queue, None).await.expect("a read").expect("it is there");
    let Loaded::Fresh(state, _) = loaded else { panic!("nothing was known") };
    state.header.target.head.as_ref().map(ToString::to_string).unwrap_or_default()
}

async fn the_hook_reports_a_push_also_while_no_server_runs(on: On) {
    let mut system = System::new(on, "exit 0\n", 1).await;
    let pr = system.pull_request("topic", &[("topic.txt", "x\n")]);
    system.submit(pr).await;
    system.until_state(pr, "MERGED").await;
    system.kill();
    system.git("work", &["pull", "-q", &system.path("bare.git").display().to_string(), "main"]);
    system.write(&[("file.txt", "pushed\n")]);
    system.commit("pushed by hand");
    system.push("main");
    let pushed = system.git("bare.git", &["rev-parse", "main"]);
    assert_eq!(known_head(&system).await, pushed);
}

#[tokio::test]
async fn the_hook_reports_a_push_also_while_no_server_runs_on_sqlite() {
    the_hook_reports_a_push_also_while_no_server_runs(On::Sqlite).await;
}

#[tokio::test]
async fn the_hook_reports_a_push_also_while_no_server_runs_on_postgres() {
    the_hook_reports_a_push_also_while_no_server_runs(On::Postgres).await;
}

#[tokio::test]
async fn a_hook_of_the_operator_is_kept_and_may_call_ours() {
    let system = System::new(On::Sqlite, "exit 0\n", 1).await;
    let bare = system.path("bare.git").display().to_string();
    let add = ["repo", "add", "git.local/acme/calc", "--org", "acme", "--path", &bare];
    let own = "#!/bin/sh\necho a push arrived\n";
    std::fs::write(hook(&system, "post-receive"), own).expect("written");
    let done = system.command(&add).output().expect("run");
    assert!(done.status.success(), "{done:?}");
    let words = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(words.contains("was not changed") && words.contains("hook post-receive"), "{words}");
    let kept = std::fs::read_to_string(hook(&system, "post-receive")).expect("a hook");
    assert_eq!(kept, own);
    let doctor = || {
        let done = system.command(&["doctor"]).output().expect("run");
        String::from_utf8_lossy(&done.stdout).into_owned()
    };
    let text = doctor();
    assert!(text.contains("warn repositories: git.local/acme/calc: pushes are noticed"), "{text}");
    let chained = format!("{own}exec signalbox hook post-receive\n");
    std::fs::write(hook(&system, "post-receive"), chained).expect("written");
    let text = doctor();
    assert!(text.contains("ok   repositories: 1 readable"), "{text}");
}

/// Pushes the head of `work` to `refs/for/…`; returns whether it succeeded, and what git printed.
fn push_for(system: &System, refname: &str, options: &[&str]) -> (bool, String) {
    let bare = system.path("bare.git");
    let mut command = std::process::Command::new("git");
    command.arg("-C").arg(system.path("work")).arg("push").arg(bare);
    command.arg(format!("HEAD:refs/for/{refname}")).env("REMOTE_USER", "ada");
    command.args(options.iter().flat_map(|option| ["-o", option]));
    let done = command.output().expect("it can be run");
    (done.status.success(), String::from_utf8_lossy(&done.stderr).into_owned())
}

/// Commits a change on a new branch of `work`.
fn change(system: &System, name: &str) {
    system.git("work", &["checkout", "-q", "-B", name, "main"]);
    system.write(&[(&format!("{name}.txt"), "1\n")]);
    system.commit(name);
}

async fn a_push_answers_with_the_pull_request_and_submits_it(on: On) {
    let system = System::new(on, "exit 0\n", 1).await;
    change(&system, "fix");
    let (done, words) = push_for(&system, "main", &["topic=fix", "title=Fix it"]);
    assert!(done, "{words}");
    for line in [
        "remote: pull request 1 opened: Fix it",
        "/acme/queue/pr?repo=git.local%2Facme%2Fcalc&branch=main&pr=1",
        "signalbox queue submit 1 --repo git.local/acme/calc",
        "-o submit",
    ] {
        assert!(words.contains(line), "{line}: {words}");
    }
    system.write(&[("fix.txt", "2\n")]);
    system.commit("more");
    let (done, words) = push_for(&system, "main", &["topic=fix", "submit"]);
    assert!(done && words.contains("remote: pull request 1 updated: Fix it"), "{words}");
    assert!(words.contains("submitted to the merge queue of `main`"), "{words}");
    assert!(!words.contains("queue submit"), "{words}");
    system.until_state(1, "MERGED").await;
    assert_eq!(system.on_main("fix.txt"), "2");
}

#[tokio::test]
async fn a_push_answers_with_the_pull_request_and_submits_it_on_sqlite() {
    a_push_answers_with_the_pull_request_and_submits_it(On::Sqlite).await;
}

#[tokio::test]
async fn a_push_answers_with_the_pull_request_and_submits_it_on_postgres() {
    a_push_answers_with_the_pull_request_and_submits_it(On::Postgres).await;
}

#[tokio::test]
async fn an_unknown_push_option_opens_no_pull_request() {
    let system = System::new(On::Sqlite, "exit 0\n", 1).await;
    change(&system, "fix");
    for wrong in ["sumbit", "titel=Fix it", "submit=yes", "topic"] {
        let (done, words) = push_for(&system, "main/fix", &[wrong]);
        assert!(!done && words.contains(wrong) && words.contains("title=TEXT"), "{words}");
    }
    assert_eq!(system.run(&["pr", "list", "git.local/acme/calc"]), "no pull requests found");
}

#[tokio::test]
async fn a_push_says_why_it_could_not_submit() {
    let system = System::new(On::Sqlite, "exit 0\n", 1).await;
    system.git("work", &["checkout", "-q", "-b", "release", "main"]);
    system.push("release");
    change(&system, "fix");
    let (done, words) = push_for(&system, "release/fix", &["submit"]);
    assert!(done && words.contains("pull request 1 opened: fix"), "{words}");
    assert!(words.contains("not submitted: `release` has no merge queue"), "{words}");
    let create = "signalbox queue create --repo git.local/acme/calc --branch release";
    assert!(words.contains(create), "{words}");
}
