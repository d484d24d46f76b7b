//! Impacted targets by rules: the changed paths of pull requests come from comparisons of commits.

use serde_json::json;
use signalbox_domain::queue::Change;
use signalbox_testkit::github_double::Carelessness;

use crate::system::System;

#[tokio::test(flavor = "multi_thread")]
async fn targets_are_computed_from_compared_commits() {
    let system = System::new(Carelessness::default(), json!({ "mode": "PARALLEL" })).await;
    let rules = json!({ "concurrency": 3, "impactedTargetRules": ["api/** api", "web/** web"] });
    system.call("updateQueue", rules).await;
    system.world.double.set_ci(|_| Vec::new());
    let open = |name: &str, folder: &str, files: usize| -> Change {
        let files: Vec<String> = (0..files).map(|at| format!("{folder}/{name}-{at}")).collect();
        let files: Vec<(&str, &str)> = files.iter().map(|path| (path.as_str(), "x\n")).collect();
        system.world.open(name, &files)
    };
    for (change, targets) in [
        (open("one", "api", 1), "api"),
        (open("some", "web", 299), "web"),
        (open("many", "web", 300), "ALL"),
    ] {
        system.submit(&change).await;
        system.until_state(&change, "TESTING").await;
        assert_eq!(system.targets(&change).await, json!([targets]));
    }
}
