//! Dependencies: GitHub shows a pull request whose changes landed in a new commit as closed, and reports
//! changes of pull requests that are in no queue.

use serde_json::json;
use signalbox_domain::queue::Change;
use signalbox_testkit::github_double::Carelessness;

use crate::system::System;

fn number(change: &Change) -> u64 {
    u64::from(change.pr.0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dependency_that_landed_by_a_squash_has_merged() {
    let system = System::new(Carelessness::default(), json!({})).await;
    let double = &system.world.double;
    let [first, second] =
        ["first", "second"].map(|name| system.world.open(name, &[(&format!("{name}.txt"), "x\n")]));
    system.submit(&first).await;
    system.until_state(&first, "MERGED").await;
    let is_closed = async |_: &System| double.pull(number(&first)) == (false, false);
    system.until("it is closed", is_closed).await;
    double.describe(number(&second), &format!("Depends-On: #{}", first.pr));
    system.submit(&second).await;
    system.until_state(&second, "MERGED").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_a_dependency_in_no_queue_are_followed() {
    let system = System::new(Carelessness::default(), json!({})).await;
    let double = &system.world.double;
    let [first, second] =
        ["first", "second"].map(|name| system.world.open(name, &[(&format!("{name}.txt"), "x\n")]));
    double.describe(number(&second), &format!("Depends-On: #{}", first.pr));
    system.submit(&second).await;
    system.until_waits(&second, "dependencies").await;
    double.close(number(&first));
    system.until_waits(&second, "dependency_closed").await;
    double.describe(number(&second), "");
    system.until_state(&second, "MERGED").await;
}
