//! No pull request fails for faults that are not its own, reports of other apps do not
//! count, and the host shows the right state.

use serde_json::json;
use signalbox_domain::queue::Change;
use signalbox_testkit::github_double::{Access, Carelessness, Fault, Reported};

use crate::system::System;

/// The app that runs workflows.
const ACTIONS: u64 = 15_368;

async fn system() -> System {
    System::new(Carelessness::default(), json!({ "concurrency": 4 })).await
}

fn number(change: &Change) -> u64 {
    u64::from(change.pr.0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_that_a_person_posts_does_not_land_anything() {
    let system = system().await;
    let double = &system.world.double;
    double.require_by("main", &[("test", Some(ACTIONS))], &[]);
    // CI takes its time.
    double.set_ci(|_| Vec::new());
    let change = system.world.open("one", &[("b.txt", "b\n")]);
    system.submit(&change).await;
    let sha = system.candidate(&change).await;
    double.post_status(&sha, "eve", "test", "success");
    let reads = || {
        let of_statuses = format!("/commits/{sha}/statuses");
        double.log().iter().filter(|it| it.path.ends_with(&of_statuses)).count()
    };
    let before = reads();
    system.until("the status was read", async |_: &System| reads() > before).await;
    assert_eq!(system.state(&change).await, "TESTING", "reports of other apps do not count");
    double.report_run(&sha, &Reported::begun("test"));
    double.rerun(1);
    double.report_run(&sha, &Reported::ended("test", "success"));
    let tested = system.world.bare(&["rev-parse", &format!("{sha}^{{tree}}")]);
    system.until_state(&change, "MERGED").await;
    let landed = double.landed_trees();
    assert_eq!(landed.last().map(|it| it.trim()), Some(tested.trim()), "only the tested commit");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_red_run_of_the_same_name_does_not_land() {
    let system = system().await;
    let double = &system.world.double;
    double.set_ci(|_| Vec::new());
    let change = system.world.open("one", &[("b.txt", "b\n")]);
    system.submit(&change).await;
    let sha = system.candidate(&change).await;
    double.report_run(&sha, &Reported { suite: 2, ..Reported::ended("test", "failure") });
    double.report_run(&sha, &Reported { suite: 3, ..Reported::ended("test", "success") });
    system.until_state(&change, "FAILED").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_denies_access_fails_no_pull_request() {
    let system = system().await;
    let (world, double) = (&system.world, &system.world.double);
    let changes: Vec<Change> = ["a", "b", "c"]
        .iter()
        .map(|name| world.open(name, &[(&format!("{name}.txt"), "x\n")]))
        .collect();
    double.set_access(Access::ReadOnly);
    for change in &changes {
        system.submit(change).await;
    }
    system.until_waits(&changes[0], "host_access_denied").await;
    double.set_access(Access::Hidden);
    // Hints about a pull request that is no longer visible are ignored.
    double.label(number(&changes[1]), "ada", "anything");
    double.set_access(Access::Archived);
    system
        .until("the wait reason names the host", async |it: &System| {
            let told = it.server_log();
            told.contains("the host denies access") && told.contains("archived")
        })
        .await;
    for change in &changes {
        let state = system.state(change).await;
        assert!(
            ["NOT_READY", "PENDING", "TESTING"].contains(&state.as_str()),
            "{}: {state}",
            change.pr
        );
    }
    double.set_access(Access::Full);
    for change in &changes {
        system.until_state(change, "MERGED").await;
        let shown = || double.statuses(change.head.as_str());
        let is_told = async |_: &System| {
            shown().contains(&("signalbox/main".to_owned(), "success".to_owned()))
        };
        system.until("what people see comes right", is_told).await;
    }
    system.only_tested_trees_have_landed();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_replaced_without_a_restart() {
    let system = system().await;
    let double = &system.world.double;
    let change = system.world.open("one", &[("b.txt", "b\n")]);
    double.set_ci(|_| Vec::new());
    system.submit(&change).await;
    let sha = system.candidate(&change).await;
    double.set_token("ghp_second");
    double.report_run(&sha, &Reported::ended("test", "success"));
    system.until_waits(&change, "host_credential_rejected").await;
    system.write_token("ghp_second");
    system.until_state(&change, "MERGED").await;
    assert!(!system.server_log().contains("ghp_"), "the log has no token");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_people_see_is_shown_once_and_for_as_long_as_it_takes() {
    let mut system = system().await;
    let change = system.world.open("one", &[("b.txt", "b\n")]);
    // Closing it, and reporting its end, fails at first.
    system.world.double.plan("PATCH", "/pulls/", 2, Fault::LostAnswer);
    system.world.double.plan("PATCH", "/pulls/", 1, Fault::Status(502));
    system.submit(&change).await;
    system.until_state(&change, "MERGED").await;
    system.restart().await;
    let is_shown = async |it: &System| {
        let double = &it.world.double;
        let comments = double.comments(number(&change));
        double.pull(number(&change)) == (false, false)
            && comments.iter().any(|(_, body)| body.contains("is the tested tree"))
    };
    system.until("its end is shown", is_shown).await;
    for name in ["two", "three", "four"] {
        system.restart().await;
        let listed = system.world.double.log().len();
        let busy = async |it: &System| it.world.double.log().len() > listed;
        // The server looks at the host again after its start; nothing is posted before or after.
        let again = system.world.open(name, &[("c.txt", "c\n")]);
        system.submit(&again).await;
        system.until("it is at work", busy).await;
        system.world.double.close(number(&again));
        system.until_state(&again, "CANCELLED").await;
    }
    let log = system.world.double.log();
    let statuses = format!("/statuses/{}", change.head);
    let posts = log.iter().filter(|it| {
        it.method == "POST" && it.path.ends_with(&statuses) && it.body["state"] == "success"
    });
    assert_eq!(posts.count(), 1, "an identical status is not posted again");
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_in_code_and_quotes_do_nothing() {
    let system = system().await;
    let double = &system.world.double;
    double.permit("ada", "write");
    let change = system.world.open("one", &[("b.txt", "b\n")]);
    let shown =
        ["```\n/signalbox merge\n```", "> said\n/signalbox merge", "<!--\n/signalbox merge\n-->"];
    let ids: Vec<u64> =
        shown.iter().map(|body| double.comment(number(&change), "ada", body)).collect();
    let asked = double.comment(number(&change), "ada", "go\n\n/signalbox merge");
    system.until_state(&change, "MERGED").await;
    assert_eq!(double.reactions(asked), ["+1"]);
    assert!(ids.iter().all(|id| double.reactions(*id).is_empty()), "there was no command");
}
