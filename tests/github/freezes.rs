//! Freezes by label: labels come from the host, and statuses name the freeze.

use serde_json::json;
use signalbox_testkit::github_double::Carelessness;

use crate::system::System;

#[tokio::test(flavor = "multi_thread")]
async fn a_freeze_by_label_follows_the_labels_on_the_host() {
    let system = System::new(Carelessness::default(), json!({ "concurrency": 4 })).await;
    let rule = "2026-01-01T00:00/..[UTC]{label:mobile} release train";
    system.call("updateQueue", json!({ "freezes": [rule] })).await;
    let double = &system.world.double;
    double.set_ci(|_| Vec::new());
    let held = system.world.open("one", &[("b.txt", "b\n")]);
    system.submit(&held).await;
    system.until_state(&held, "TESTING").await;
    double.label(u64::from(held.pr.0), "ada", "Mobile");
    system.until_waits(&held, "frozen").await;
    assert_eq!(system.state(&held).await, "NOT_READY");
    let is_named = async |_: &System| {
        let shown = double.described_statuses(held.head.as_str());
        shown.iter().any(|it| it.contains("a freeze applies to it: release train"))
    };
    system.until("the status names the freeze", is_named).await;
    system.call("updateQueue", json!({ "freezes": [] })).await;
    system.until_state(&held, "TESTING").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_of_a_pull_request_that_passes_during_a_freeze_names_the_freeze() {
    let system = System::new(Carelessness::default(), json!({ "concurrency": 4 })).await;
    let freezes = json!({ "freezes": ["2026-01-01T00:00/..[UTC] audit"] });
    system.call("updateQueue", freezes).await;
    let double = &system.world.double;
    let change = system.world.open("one", &[("b.txt", "b\n")]);
    system.submit(&change).await;
    system.until_waits(&change, "frozen").await;
    let shown = || double.described_statuses(change.head.as_str());
    let is_named =
        async |_: &System| shown().iter().any(|it| it.contains("a freeze applies to it: audit"));
    system.until("the status names the freeze", is_named).await;
    system.call("updateQueue", json!({ "freezes": [] })).await;
    system.until_state(&change, "MERGED").await;
}
