//! A quarantined test that fails in the queue does not block it; one that is not quarantined does.

use serde_json::{Value, json};

use crate::harness::{On, System};

/// Reports two tests: the files `flaky` and `sound` of the change have their results.
const CHECK: &str = r#"case_of() {
    echo "<testcase name=\"$1\" classname=\"c\" file=\"a.sh\" time=\"1\">"
    case "$(cat "$1" 2>/dev/null)" in
        fails) echo '<failure message="wrong">trace</failure>' ;;
        once) echo '<flakyFailure message="wrong"/>' ;;
    esac
    echo '</testcase>'
}
{ echo '<testsuite name="s">'; case_of flaky; case_of sound; echo '</testsuite>'; } > report.xml
[ -e broken ] && echo '<testsuite' > report.xml
! grep -q fails flaky sound 2>/dev/null
"#;
const CONFIG: &str = "[[checks]]\nname = \"test\"\nrun = [\"sh\", \"check.sh\"]\n\
                      reports = [\"report.xml\"]\n";

async fn system(on: On) -> System {
    let system = System::new(on, "exit 0\n", 1).await;
    let files = [(".signalbox.toml", CONFIG), ("check.sh", CHECK)];
    land(&system, "start", &files).await;
    system
}

async fn submitted(system: &System, branch: &str, files: &[(&str, &str)]) -> u64 {
    // Each branch starts where the target is now.
    let bare = system.path("bare.git").display().to_string();
    system.git("work", &["fetch", "-q", &bare, "main"]);
    system.git("work", &["reset", "-q", "--hard", "FETCH_HEAD"]);
    let pr = system.pull_request(branch, files);
    system.submit(pr).await;
    pr
}

async fn land(system: &System, branch: &str, files: &[(&str, &str)]) -> u64 {
    let pr = submitted(system, branch, files).await;
    system.until_state(pr, "MERGED").await;
    pr
}

async fn uploads(system: &System) -> Vec<Value> {
    let query = json!({"page_query": {"page_size": 100}});
    let page = system.call("flaky-tests/list-uploads", query).await;
    page["uploads"].as_array().expect("uploads").clone()
}

async fn quarantined(system: &System) -> Vec<String> {
    let query = json!({"org_url_slug": "acme", "page_query": {"page_size": 100}});
    let page = system.call("flaky-tests/list-quarantined-tests", query).await;
    let tests = page["quarantined_tests"].as_array().expect("tests").clone();
    tests.iter().map(|test| test["name"].as_str().expect("a name").to_owned()).collect()
}

/// The check of the run that was uploaded last, and the tests that failed in it.
async fn told(system: &System, count: usize) -> (Value, Vec<Value>) {
    until_uploads(system, count).await;
    let uploads = uploads(system).await;
    let job = uploads[0]["job_name"].as_str().expect("a job");
    let run = json!({"testRunId": job.rsplit(' ').next().expect("an id")});
    let details = system.call("getMergeQueueTestingDetails", run.clone()).await;
    let failures = system.call("flaky-tests/list-failures-of-test-run", run).await;
    let check = details["checkSuites"][0]["checkRuns"][0].clone();
    (check, failures["tests"].as_array().expect("tests").clone())
}

async fn until_uploads(system: &System, count: usize) {
    let all_read = async |system: &System| {
        let uploads = uploads(system).await;
        let done = uploads.iter().all(|it| it["state"] == "read" || it["state"] == "failed");
        uploads.len() == count && done
    };
    system.until("every upload is read", all_read).await;
}

async fn a_quarantined_test_does_not_block_the_queue(on: On) {
    let system = system(on).await;
    // Without quarantine a failure is a failure.
    let pr = submitted(&system, "plain", &[("flaky", "fails\n")]).await;
    system.until_state(pr, "FAILED").await;
    // The test fails and passes on one commit: it is flaky, and from now on quarantined.
    let enable = json!({"quarantineEnabled": true, "autoQuarantine": "flaky"});
    system.call("flaky-tests/update-settings", enable).await;
    land(&system, "retried", &[("flaky", "once\n")]).await;
    system.until("it is quarantined", async |system| quarantined(system).await == ["flaky"]).await;
    land(&system, "excused", &[("flaky", "fails\n")]).await;
    let (check, failures) = told(&system, 3).await;
    assert_eq!(check["conclusion"], "SUCCESS", "{check}");
    let summary = check["summary"].as_str().expect("a summary");
    assert!(
        summary.contains("only quarantined tests failed: flaky (flaky by monitor Pass on retry)"),
        "{summary}"
    );
    let failure = &failures[0];
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert_eq!((&failure["name"], &failure["excused"]), (&json!("flaky"), &json!(true)));
    assert_eq!((&failure["known_flaky"], &failure["message"]), (&json!(true), &json!("wrong")));
    // A failure beside it counts, and so does a report that cannot be read.
    let pr = submitted(&system, "both", &[("sound", "fails\n")]).await;
    system.until_state(pr, "FAILED").await;
    let details = system.entry(pr).await["exit"]["details"].to_string();
    assert!(details.contains("tests failed: sound"), "{details}");
    let (_, failures) = told(&system, 4).await;
    let flags: Vec<_> = failures.iter().map(|it| (&it["name"], &it["known_flaky"])).collect();
    assert!(flags.contains(&(&json!("flaky"), &json!(true))), "{flags:?}");
    assert!(flags.contains(&(&json!("sound"), &json!(false))), "{flags:?}");
    assert!(failures.iter().all(|it| it["excused"] == false), "{failures:?}");
    let pr = submitted(&system, "cut-off", &[("broken", "1\n")]).await;
    system.until_state(pr, "FAILED").await;
    // Switched off, nothing is excused any more.
    let disable = json!({"quarantineEnabled": false});
    system.call("flaky-tests/update-settings", disable).await;
    let pr = submitted(&system, "off", &[("other", "1\n")]).await;
    system.until_state(pr, "FAILED").await;
}

#[tokio::test]
async fn a_quarantined_test_does_not_block_the_queue_on_sqlite() {
    a_quarantined_test_does_not_block_the_queue(On::Sqlite).await;
}

#[tokio::test]
async fn a_quarantined_test_does_not_block_the_queue_on_postgres() {
    a_quarantined_test_does_not_block_the_queue(On::Postgres).await;
}

/// A check that fails with a message of a failing machine runs again, but not if a test failed.
async fn a_failing_machine_is_found_by_its_message(on: On) {
    let system = System::new(on, "exit 0\n", 1).await;
    let (ailing, tried) = (system.path("ailing"), system.path("tried"));
    let check = format!(
        "echo >> '{tried}'\n\
         if [ -e '{ailing}' ]; then\n\
         rm '{ailing}'; printf 'cc: \\033[31mNo space left\\033[0m on device\\n'; exit 1\n\
         fi\n\
         [ -e sound ] && echo 'No space left on device'\n\
         {CHECK}",
        tried = tried.display(),
        ailing = ailing.display(),
    );
    let count = || std::fs::read_to_string(&tried).expect("a file").lines().count();
    let fail = || std::fs::write(&ailing, "").expect("written");
    let files = [(".signalbox.toml", CONFIG), ("check.sh", check.as_str())];
    land(&system, "start", &files).await;
    fail();
    let pr = submitted(&system, "unlucky", &[("a", "x\n")]).await;
    system.until_state(pr, "FAILED").await;
    let messages = json!({"infrastructureMessages": ["No space left on device"]});
    system.call("updateQueue", messages).await;
    let before = count();
    fail();
    land(&system, "lucky", &[("b", "x\n")]).await;
    assert_eq!(count() - before, 2);
    let before = count();
    let pr = submitted(&system, "failed-test", &[("sound", "fails\n")]).await;
    system.until_state(pr, "FAILED").await;
    assert_eq!(count() - before, 1, "a new failure never runs again");
}

#[tokio::test]
async fn a_failing_machine_is_found_by_its_message_on_sqlite() {
    a_failing_machine_is_found_by_its_message(On::Sqlite).await;
}

#[tokio::test]
async fn a_failing_machine_is_found_by_its_message_on_postgres() {
    a_failing_machine_is_found_by_its_message(On::Postgres).await;
}
