//! `signalbox tests run` and `tests gate`: a CI job passes if only quarantined tests failed.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{On, System, program};

/// Writes a report in which the tests of `failing` fail; its exit code.
const TESTS: &str = r#"cases() {
    for name in flaky sound; do
        echo "<testcase name=\"$name\" classname=\"c\" file=\"a.rs\" line=\"3\">"
        case " $FAILING " in *" $name "*) echo '<failure message="wrong, 100%">trace</failure>' ;; esac
        echo '</testcase>'
    done
}
{ echo "<testsuite name=\"s\" tests=\"${ANNOUNCED:-2}\">"; cases; echo '</testsuite>'; } > junit.xml
[ -n "$WITHOUT_REPORT" ] && rm junit.xml
exit "$CODE"
"#;

/// A server with a quarantined test, and a folder in which a CI job runs.
struct Job {
    system: System,
    token: String,
}

/// How the command of the job ends, and what it prints.
struct Done {
    code: Option<i32>,
    output: String,
    errors: String,
}

impl Job {
    async fn new(on: On) -> Self {
        let system = System::new(on, "exit 0\n", 1).await;
        let enable = json!({"quarantineEnabled": true, "gateWhileOff": false});
        system.call("flaky-tests/update-settings", enable).await;
        let (_, token) = system.token_with(&["--org", "acme", "--scope", "tests:upload"]);
        let job = Self { system, token };
        std::fs::create_dir(job.system.path("job")).expect("a folder");
        std::fs::write(job.system.path("job/tests.sh"), TESTS).expect("written");
        // The first report makes the tests known, and a person decides about one.
        let done = job.run("", 0, &[]);
        assert_eq!(done.code, Some(0), "{}{}", done.output, done.errors);
        let read = async |system: &System| {
            let page = system
                .call("flaky-tests/list-uploads", json!({"page_query": {"page_size": 1}}))
                .await;
            page["uploads"][0]["state"] == "read"
        };
        job.system.until("the report is read", read).await;
        let test = signalbox_tests_id("flaky");
        let always = json!({"testId": test, "setting": "ALWAYS_QUARANTINE"});
        job.system.call("flaky-tests/override-quarantine", always).await;
        let known = async |_: &System| job.run("flaky", 1, &[]).code == Some(0);
        job.system.until("it is quarantined", known).await;
        job
    }

    fn variables(&self) -> BTreeMap<String, String> {
        let own = [
            ("SIGNALBOX_SERVER", self.system.url()),
            ("SIGNALBOX_ORG", "acme".to_owned()),
            ("SIGNALBOX_REPO", "git.local/acme/calc".to_owned()),
            ("SIGNALBOX_TOKEN", self.token.clone()),
        ];
        own.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Runs a program in the folder of the job, with these variables and no CI system's of this
    /// machine.
    fn command(&self, program: &Path, args: &[&str], variables: &[(&str, &str)]) -> Done {
        let done = Command::new(program)
            .args(args)
            .current_dir(self.system.path("job"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .envs(self.variables())
            .envs(variables.iter().copied())
            .output()
            .expect("run");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Done { code: done.status.code(), output: text(&done.stdout), errors: text(&done.stderr) }
    }

    /// Runs tests of which some fail, with that exit code.
    fn run(&self, failing: &str, code: i32, variables: &[(&str, &str)]) -> Done {
        let sha = "c".repeat(40);
        let args = ["tests", "run", "--junit", "*.xml", "--branch", "main", "--sha", &sha];
        let code = code.to_string();
        let all = [&[("FAILING", failing), ("CODE", code.as_str())], variables].concat();
        self.command(&program(), &[&args[..], &["--", "sh", "tests.sh"]].concat(), &all)
    }
}

/// The id of a test of the report.
fn signalbox_tests_id(name: &str) -> String {
    signalbox_domain::flaky::TestKey {
        org: "acme".into(),
        repo: "git.local/acme/calc".into(),
        parent: "s".into(),
        classname: "c".into(),
        file: "a.rs".into(),
        name: name.into(),
        ..Default::default()
    }
    .id()
    .to_string()
}

async fn only_quarantined_failures_are_excused(on: On) {
    let job = Job::new(on).await;
    let done = job.run("flaky", 3, &[]);
    assert_eq!(done.code, Some(0), "{}", done.errors);
    let lines: Vec<&str> = done.output.lines().collect();
    assert_eq!(lines[0], "quarantined s › c › flaky: wrong, 100%");
    let page = lines[1].trim().strip_prefix(&job.system.url()).expect("a link").to_owned();
    assert_eq!(lines[2], "signalbox: passed: 1 test of 2 tests failed, all of them quarantined");
    let token = [("x-api-token", job.system.token())];
    let page = job.system.send(reqwest::Method::GET, &page, &token, String::new()).await;
    assert!(page.status == 200 && page.text.contains("flaky"), "{}", page.text);

    let failed = |done: &Done, code: i32, why: &str| {
        assert_eq!(done.code, Some(code), "{why}: {}{}", done.output, done.errors);
        let last = done.output.lines().last().unwrap_or_default();
        assert!(last.starts_with("signalbox: failed: ") && last.contains(why), "{last}");
    };
    failed(&job.run("flaky sound", 3, &[]), 3, "1 failed test is not quarantined");
    failed(&job.run("", 1, &[]), 1, "no test of the reports failed");
    failed(&job.run("flaky", 124, &[]), 124, "exit code 124");
    failed(&job.run("flaky", 1, &[("ANNOUNCED", "9")]), 1, "has 2 of its 9 tests");
    failed(&job.run("flaky", 1, &[("WITHOUT_REPORT", "1")]), 1, "wrote no report");
    failed(
        &job.run("flaky", 1, &[("SIGNALBOX_TOKEN", "")]),
        1,
        "no API token: set SIGNALBOX_TOKEN",
    );
    let nowhere = [("SIGNALBOX_SERVER", "http://127.0.0.1:9")];
    failed(&job.run("flaky", 1, &nowhere), 1, "could not reach");
    assert_eq!(job.run("", 0, &nowhere).code, Some(0), "the server is not required");
    let sha = "c".repeat(40);
    let gate = ["tests", "gate", "--junit", "junit.xml", "--branch", "main", "--sha", &sha];
    let gate = |more: &[&str], variables: &[(&str, &str)]| {
        job.command(&program(), &[&gate[..], more].concat(), variables)
    };
    job.run("flaky", 1, &[]);
    assert_eq!(gate(&["--exit-code", "1"], &[]).code, Some(0));
    failed(&gate(&["--exit-code", "137"], &[]), 137, "exit code 137");
    let required = gate(&["--exit-code", "0", "--require-server"], &nowhere);
    failed(&required, 1, "could not reach");
    let unknown = ["tests", "run", "--junit", "*.xml", "--", "no-such-program"];
    failed(&job.command(&program(), &unknown, &[]), 127, "exit code 127");

    let disable = json!({"quarantineEnabled": false});
    job.system.call("flaky-tests/update-settings", disable).await;
    let off = async |_: &System| job.run("flaky", 1, &[]).output.contains("quarantine is off");
    job.system.until("quarantine is off", off).await;
}

#[tokio::test]
async fn only_quarantined_failures_are_excused_on_sqlite() {
    only_quarantined_failures_are_excused(On::Sqlite).await;
}

#[tokio::test]
async fn only_quarantined_failures_are_excused_on_postgres() {
    only_quarantined_failures_are_excused(On::Postgres).await;
}

fn document(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    std::fs::read_to_string(root.join("docs/how-to/gate").join(name)).expect("a file")
}

/// The steps of the composite action, run as GitHub runs them.
#[tokio::test]
async fn the_action_for_github_annotates_the_failed_tests() {
    let job = Job::new(On::Sqlite).await;
    let action: Value = serde_saphyr::from_str(&document("github/action.yml")).expect("YAML");
    let folder = job.system.path("job");
    let (path, summary) = (folder.join("path"), folder.join("summary.md"));
    let event = folder.join("event.json");
    let head = "d".repeat(40);
    let text = json!({"pull_request": {"head": {"sha": head}}}).to_string();
    std::fs::write(&event, text).expect("written");
    let shown = |path: &Path| path.display().to_string();
    let inputs = [
        ("command", "sh tests.sh".to_owned()),
        ("junit", "missing/*.xml\njunit.xml".to_owned()),
        ("org", "acme".to_owned()),
        ("server", job.system.url()),
        ("token", job.token.clone()),
        ("job", "unit (linux)".to_owned()),
        ("download", format!("file://{}", shown(&program()))),
    ];
    let steps = action["runs"]["steps"].as_array().expect("steps");
    let step = |number: usize, failing: &str, more_path: &str| {
        let step = &steps[number];
        let mut variables: Vec<(String, String)> = Vec::new();
        for (name, value) in step["env"].as_object().expect("variables") {
            let value = value.as_str().expect("text");
            let input = value.strip_prefix("${{ inputs.").and_then(|it| it.strip_suffix(" }}"));
            let input = input.expect("an input");
            assert!(action["inputs"][input].is_object(), "{input} is declared");
            let given = inputs.iter().find(|(name, _)| *name == input);
            variables.push((name.clone(), given.map(|it| it.1.clone()).unwrap_or_default()));
        }
        let own = std::env::var("PATH").unwrap_or_default();
        for (name, value) in [
            ("PATH", format!("{more_path}{own}")),
            ("GITHUB_ACTIONS", "true".into()),
            ("GITHUB_REPOSITORY", "acme/calc".into()),
            ("GITHUB_REF", "refs/pull/7/merge".into()),
            ("GITHUB_HEAD_REF", "fix".into()),
            ("GITHUB_SHA", "e".repeat(40)),
            ("GITHUB_EVENT_PATH", shown(&event)),
            ("GITHUB_STEP_SUMMARY", shown(&summary)),
            ("GITHUB_PATH", shown(&path)),
            ("RUNNER_TEMP", shown(&folder)),
            ("FAILING", failing.into()),
            ("CODE", "1".into()),
        ] {
            variables.push((name.to_owned(), value));
        }
        let script = step["run"].as_str().expect("a script");
        let variables: Vec<(&str, &str)> =
            variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        job.command(Path::new("bash"), &["-eo", "pipefail", "-c", script], &variables)
    };
    let installed = step(0, "", "");
    assert_eq!(installed.code, Some(0), "{}", installed.errors);
    let added = std::fs::read_to_string(&path).expect("a path");
    let added = format!("{}:", added.trim());
    // The repository of the action is on another host, where no test is known.
    let done = step(1, "flaky", &added);
    assert_eq!(done.code, Some(1), "{}{}", done.output, done.errors);
    let line = "::error file=a.rs,line=3,title=Failed%3A s › c › flaky::wrong, 100%25";
    assert!(done.output.lines().any(|it| it == line), "{}", done.output);
    let table = std::fs::read_to_string(&summary).expect("a summary");
    assert!(table.contains("| **failed** | wrong, 100% |"), "{table}");
    assert_eq!(step(1, "", &added).code, Some(1), "the exit code is that of the command");
}

/// The script of the component, run with GitLab's variables.
#[tokio::test]
async fn the_component_for_gitlab_links_the_failed_tests() {
    let job = Job::new(On::Sqlite).await;
    let text = document("gitlab.yml");
    let (_, component) = text.split_once("\n---\n").expect("two documents");
    let component: Value = serde_saphyr::from_str(component).expect("YAML");
    let own = &component[".signalbox-tests"];
    let script = own["script"].as_array().expect("a script").iter();
    let script: Vec<&str> = script.map(|line| line.as_str().expect("a line")).collect();
    let script = script.join("\n");
    let sha = "f".repeat(40);
    let run = |failing: &str| {
        let variables = [
            ("GITLAB_CI", "true"),
            ("CI_SERVER_HOST", "git.local"),
            ("CI_PROJECT_PATH", "acme/calc"),
            ("CI_COMMIT_REF_NAME", "fix"),
            ("CI_COMMIT_SHA", &sha),
            ("CI_JOB_NAME", "unit"),
            ("CI_MERGE_REQUEST_IID", "7"),
            ("COMMAND", "sh tests.sh"),
            ("JUNIT", own["variables"]["JUNIT"].as_str().expect("a pattern")),
            ("FAILING", failing),
            ("CODE", "1"),
        ];
        let program = program();
        let folder = program.parent().expect("a folder").display().to_string();
        let path = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
        let variables = [&variables[..], &[("PATH", path.as_str())]].concat();
        job.command(Path::new("sh"), &["-ec", &script], &variables)
    };
    let done = run("flaky");
    assert_eq!(done.code, Some(0), "{}{}", done.output, done.errors);
    let file = own["artifacts"]["reports"]["annotations"].as_str().expect("a file");
    let links = std::fs::read(job.system.path("job").join(file)).expect("a report");
    let links: Value = serde_json::from_slice(&links).expect("JSON");
    let link = &links["Failed tests"][0]["external_link"];
    assert_eq!(link["label"], "Quarantined: s › c › flaky", "{links}");
    assert!(link["url"].as_str().expect("a link").starts_with(&job.system.url()), "{links}");
    assert_eq!(run("sound").code, Some(1));
    let read = async |system: &System| {
        let query = json!({"page_query": {"page_size": 1}});
        let page = system.call("flaky-tests/list-uploads", query).await;
        let upload = &page["uploads"][0];
        upload["pr_number"] == 7 && upload["branch"] == "fix"
    };
    job.system.until("the upload names the merge request", read).await;
}
