//! Things are declared once: the number of files of the program that name a sample of each
//! thing is at most the number in its recipe in `docs/contributing`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Crates that only tests and measurements use.
const NOT_SHIPPED: [&str; 3] = ["conformance", "testkit", "bench"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace")
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        let stem = path.file_stem().and_then(|it| it.to_str()).unwrap_or_default();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|it| it == "rs") && !stem.ends_with("tests") {
            found.push(path);
        }
    }
}

/// The text without its test module, which is at the end of a file.
fn shipped(text: &str) -> &str {
    text.split_once("\n#[cfg(test)]").map_or(text, |(shipped, _)| shipped)
}

/// The source files of the program that name one of these words.
fn naming(words: &[&str]) -> BTreeSet<String> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(root().join("crates")).expect("the crates").flatten() {
        let name = entry.file_name();
        let source = entry.path().join("src");
        if NOT_SHIPPED.iter().all(|it| name != *it) && source.is_dir() {
            sources(&source, &mut files);
        }
    }
    let has_a_word = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).expect("a source file");
        words.iter().any(|word| shipped(&text).contains(word))
    };
    let found = files.into_iter().filter(has_a_word);
    found.map(|path| path.strip_prefix(root()).expect("inside").display().to_string()).collect()
}

fn at_most(most: usize, recipe: &str, words: &[&str]) {
    let found = naming(words);
    assert!(!found.is_empty(), "no file names {words:?}");
    assert!(found.len() <= most, "{words:?} in {} files: {found:#?}", found.len());
    let recipe = std::fs::read_to_string(root().join("docs/contributing").join(recipe));
    let says = if most == 1 { "one file".to_owned() } else { format!("at most {most} files") };
    assert!(recipe.expect("a recipe").contains(&says), "the recipe has {says:?}");
}

#[test]
fn a_queue_setting_is_named_in_few_files() {
    let recipe = "adding-a-queue-setting.md";
    at_most(6, recipe, &["pending_failure_depth", "pendingFailureDepth"]);
    at_most(6, recipe, &["not_ready_timeout_hours", "notReadyTimeoutHours"]);
    at_most(6, recipe, &["label_commands_enabled", "labelCommandsEnabled"]);
}

#[test]
fn a_setting_without_effect_is_named_in_its_declaration_only() {
    for words in [
        ["extension_enabled", "extensionEnabled"],
        ["test_branch_construction_mode", "testBranchConstructionMode"],
    ] {
        assert_eq!(
            naming(&words),
            BTreeSet::from(["crates/domain/src/queue/settings/table.rs".to_owned()])
        );
    }
}

#[test]
fn a_reason_is_named_in_few_files() {
    let recipe = "adding-a-wait-reason.md";
    at_most(3, recipe, &["ChecksSilent", "checks_silent"]);
    at_most(3, recipe, &["QueueSwitchingModes", "queue_switching_modes"]);
    at_most(3, recipe, &["NoRequiredStatuses", "START_TEST_RUN_NO_REQUIRED_STATUSES"]);
}

#[test]
fn a_small_store_is_named_in_few_files() {
    let recipe = "adding-a-store.md";
    at_most(
        8,
        recipe,
        &[
            "InboundDeliveryStore",
            "inbound_delivery_store",
            "heard_events",
            "self.inbound_deliveries",
        ],
    );
    at_most(8, recipe, &["SessionStore", "session_store", "stores.sessions", "account.sessions"]);
    at_most(8, recipe, &["JobStore", "job_store", "runtime.jobs", "self.jobs"]);
}

#[test]
fn a_flaky_monitor_is_named_in_few_files() {
    let recipe = "adding-a-flaky-monitor.md";
    at_most(6, recipe, &["FailureCount", "failure_count", "failureCount"]);
    at_most(6, recipe, &["FailureRate", "minimumSampleSize"]);
    at_most(6, recipe, &["PassOnRetry", "recoveryDays"]);
}

#[test]
fn a_webhook_event_is_named_in_few_files() {
    let recipe = "adding-a-webhook-event.md";
    at_most(3, recipe, &["RemovedFromTarget", "pull_request.removed_from_target"]);
    at_most(3, recipe, &["QueueConfigChanged", "queue.config_changed"]);
    at_most(3, recipe, &["QuarantiningSettingChanged", "quarantining_setting_changed"]);
    at_most(3, recipe, &["MonitorStatusChanged", "monitor_status_changed"]);
}

#[test]
fn an_endpoint_and_a_job_are_named_in_few_files() {
    let recipe = "adding-an-endpoint.md";
    at_most(5, recipe, &["restart_tests_on_pull_request", "restartTestsOnPullRequest"]);
    at_most(5, recipe, &["list_audit", "listAudit"]);
    at_most(1, "adding-a-job.md", &["old outputs"]);
}

#[test]
fn what_tests_name_is_not_counted() {
    assert_eq!(shipped("a\n#[cfg(test)]\nmod tests { b }"), "a");
    assert_eq!(shipped("a\nb"), "a\nb");
}
