//! `signalbox init`, and what it prints.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{On, System, program};

fn init(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(program());
    command.current_dir(folder).arg("init").args(args);
    command.env("SIGNALBOX_SANDBOX__UNSAFE_LOCAL", "true");
    command.output().expect("it can be run")
}

fn printed(done: &Output) -> (String, String) {
    assert!(done.status.success(), "{done:?}");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&done.stdout), text(&done.stderr))
}

fn refused(done: &Output) -> String {
    assert!(done.status.code().is_some_and(|code| code > 0), "{done:?}");
    String::from_utf8_lossy(&done.stderr).into_owned()
}

fn git(folder: &Path, args: &[&str]) -> String {
    let done = Command::new("git")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"])
        .args(["-c", "init.defaultBranch=trunk", "-C"])
        .arg(folder)
        .args(args)
        .output()
        .expect("it can be run");
    assert!(done.status.success(), "{args:?}: {done:?}");
    String::from_utf8_lossy(&done.stdout).trim_end().to_owned()
}

#[test]
fn a_second_init_changes_nothing() {
    let folder = TempDir::new().expect("a folder");
    let here = folder.path();
    let (words, _) = printed(&init(here, &["calc.git", "--org", "acme"]));
    for part in [
        "created the bare repository ",
        "git.local/acme/calc",
        "export SIGNALBOX_TOKEN=sbx_",
        "\n  signalbox serve\n",
        "HEAD:refs/for/main -o topic=first -o submit\n",
        "\n  signalbox queue status --repo git.local/acme/calc\n",
    ] {
        assert!(words.contains(part), "{part}: {words}");
    }
    let bare = here.join("calc.git");
    let before = git(&bare, &["rev-parse", "main"]);
    assert_eq!(git(&bare, &["ls-tree", "--name-only", "main"]), ".signalbox.toml");
    let (words, _) = printed(&init(here, &["calc.git", "--org", "acme"]));
    assert!(words.contains("found the bare repository "), "{words}");
    assert!(words.contains("still valid") && !words.contains("sbx_"), "{words}");
    assert_eq!(git(&bare, &["rev-parse", "main"]), before);
    let again = printed(&init(here, &["--path", "calc.git", "--org", "acme", "--json"])).0;
    let again: Value = serde_json::from_str(&again).expect("JSON");
    assert_eq!((&again["token"], &again["branch"]), (&Value::Null, &"main".into()));
}

#[test]
fn a_repository_with_commits_is_used_as_it_is() {
    let folder = TempDir::new().expect("a folder");
    let here = folder.path();
    git(here, &["init", "-q", "work"]);
    std::fs::write(here.join("work/file.txt"), "1\n").expect("written");
    git(&here.join("work"), &["add", "-A"]);
    git(&here.join("work"), &["commit", "-q", "-m", "base"]);
    let words = refused(&init(here, &["work"]));
    assert!(words.contains("git clone --bare "), "{words}");
    let words = refused(&init(here, &["--path", "missing.git"]));
    assert!(words.contains("missing.git is not a bare git repository"), "{words}");
    git(here, &["clone", "-q", "--bare", "work", "calc.git"]);
    let words = refused(&init(here, &["--path", "calc.git", "--branch", "main"]));
    assert!(words.contains("no branch `main`") && words.contains("trunk"), "{words}");
    assert!(!here.join("signalbox-data").exists());
    let (words, warnings) = printed(&init(here, &["--path", "calc.git"]));
    assert!(words.contains("HEAD:refs/for/trunk "), "{words}");
    assert!(words.contains("--repo git.local/local/calc --branch trunk\n"), "{words}");
    assert!(warnings.contains("`trunk` has no .signalbox.toml"), "{warnings}");
    assert_eq!(git(&here.join("calc.git"), &["log", "--format=%s", "trunk"]), "base");
    git(here, &["clone", "-q", "--bare", "work", "other.git"]);
    let name = ["--path", "other.git", "--repo", "git.local/local/calc"];
    let words = refused(&init(here, &name));
    assert!(words.contains("is registered for ") && words.contains("--name"), "{words}");
}

async fn the_printed_commands_merge_a_pull_request(on: On) {
    let system = System::new(on, "exit 0\n", 1).await;
    let made = system.run(&["init", "first.git", "--org", "acme", "--json"]);
    let made: Value = serde_json::from_str(&made).expect("JSON");
    let bare = made["path"].as_str().expect("a path").to_owned();
    git(&system.path("."), &["clone", "-q", &bare, "clone"]);
    let clone = system.path("clone");
    std::fs::write(clone.join("file.txt"), "1\n").expect("written");
    git(&clone, &["add", "-A"]);
    git(&clone, &["commit", "-q", "-m", "First"]);
    git(&clone, &["push", "-q", &bare, "HEAD:refs/for/main", "-o", "topic=first", "-o", "submit"]);
    let landed = async |system: &System| {
        let listed = system.git("first.git", &["ls-tree", "--name-only", "main"]);
        listed.lines().any(|name| name == "file.txt")
    };
    system.until("the pull request is merged", landed).await;
    let token = made["token"].as_str().expect("a token");
    let (url, repo) = (system.url(), "git.local/acme/first");
    let args = ["queue", "show", "1", "--server", &url, "--token", token, "--repo", repo];
    assert!(system.run(&args).contains("Merged"));
    let list = system.run(&["queue", "list", "--server", &url, "--token", token]);
    let row: Vec<&str> = list.lines().last().expect("a row").split_whitespace().collect();
    assert_eq!(row, ["git.local/acme/first", "main", "Running", "0", "0"]);
    let other = ["queue", "status", "--server", &url, "--token", token, "--repo"];
    let other = system.command(&[&other[..], &["git.local/acme/calc"]].concat()).output();
    assert!(!other.expect("it can be run").status.success());
}

#[tokio::test]
async fn the_printed_commands_merge_a_pull_request_on_sqlite() {
    the_printed_commands_merge_a_pull_request(On::Sqlite).await;
}

#[tokio::test]
async fn the_printed_commands_merge_a_pull_request_on_postgres() {
    the_printed_commands_merge_a_pull_request(On::Postgres).await;
}
