//! Dependencies between pull requests: with pushes, commands and pages, on both databases.

use serde_json::{Value, json};

use crate::harness::{On, System};

async fn waits(system: &System, pr: u64) -> (String, Value) {
    let reason = system.entry(pr).await["waitReason"].clone();
    (reason["kind"].as_str().unwrap_or_default().to_owned(), reason["on"].clone())
}

async fn a_pull_request_merges_after_its_dependencies(on: On) {
    let system = System::new(on, "exit 0\n", 2).await;
    let api = system.described("api", "The API.");
    let page = system.described("page", &format!("The page.\n\nDepends-On: #{api}"));
    system.submit(page).await;
    system.until("it waits", async |it: &System| waits(it, page).await.0 == "dependencies").await;
    assert_eq!(waits(&system, page).await.1, json!([format!("#{api}")]));
    system.submit(api).await;
    system.until_state(page, "MERGED").await;
    assert_eq!(system.state(api).await, "MERGED");
    let history = system.history();
    let place = |title: &str| history.iter().position(|it| it.contains(title)).expect("landed");
    assert!(place("api") < place("page"), "{history:?}");
}

#[tokio::test]
async fn a_pull_request_merges_after_its_dependencies_on_sqlite() {
    a_pull_request_merges_after_its_dependencies(On::Sqlite).await;
}

#[tokio::test]
async fn a_pull_request_merges_after_its_dependencies_on_postgres() {
    a_pull_request_merges_after_its_dependencies(On::Postgres).await;
}

#[tokio::test]
async fn a_dependency_that_is_closed_or_merged_without_the_queue_is_noticed() {
    let system = System::new(On::Sqlite, "exit 0\n", 1).await;
    let first = system.described("first", "");
    let second = system.described("second", &format!("Depends-On: #{first}"));
    system.submit(second).await;
    let number = first.to_string();
    system.run(&["pr", "close", "git.local/acme/calc", &number]);
    system
        .until("closed", async |it: &System| waits(it, second).await.0 == "dependency_closed")
        .await;
    let third = system.described("third", "Depends-On: #99");
    system.submit(third).await;
    system
        .until("not found", async |it: &System| waits(it, third).await.0 == "dependency_unknown")
        .await;
    let fourth = system.described("fourth", "");
    let fifth = system.described("fifth", &format!("Depends-On: #{fourth}"));
    system.submit(fifth).await;
    system.until("it waits", async |it: &System| waits(it, fifth).await.0 == "dependencies").await;
    system.push("fourth:main");
    system.until_state(fifth, "MERGED").await;
}

#[tokio::test]
async fn a_cycle_is_refused_with_its_names() {
    let system = System::new(On::Sqlite, "exit 0\n", 1).await;
    let one = system.described("one", "Depends-On: #2");
    let two = system.described("two", "Depends-On: #1");
    system.submit(one).await;
    let body = json!({ "pr": { "number": two } });
    let (status, reply) = system.try_call("submitPullRequest", body).await;
    assert_eq!((status, reply["code"].as_str()), (409, Some("dependency_cycle")), "{reply}");
    let detail = reply["detail"].as_str().expect("a text");
    assert_eq!(detail, "pull request 2 depends on itself: #2 → #1 → #2");
}
