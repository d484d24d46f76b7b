//! Which events endpoints may ask for.

use serde_json::json;
use signalbox_domain::ports::EventCatalogue;

/// The public events.
const KINDS: [&str; 20] = [
    "pull_request.submitted",
    "pull_request.queued",
    "pull_request.testing",
    "pull_request.pending_failure",
    "pull_request.failed",
    "pull_request.canceled",
    "pull_request.merged",
    "pull_request_batch.submitted",
    "pull_request_batch.queued",
    "pull_request_batch.testing",
    "pull_request_batch.pending_failure",
    "pull_request_batch.failed",
    "pull_request_batch.canceled",
    "pull_request_batch.merged",
    "test_case.status_changed",
    "test_case.quarantining_setting_changed",
    "v2.test_case.status_changed",
    "test_case.monitor_status_changed",
    "queue.state_changed",
    "queue.config_changed",
];

/// The public events, with an example of each.
#[derive(Clone, Copy, Debug, Default)]
pub struct KnownEvents;

impl EventCatalogue for KnownEvents {
    fn kinds(&self) -> Vec<String> {
        KINDS.map(str::to_owned).to_vec()
    }

    fn example(&self, kind: &str) -> Option<String> {
        KINDS.contains(&kind).then(|| json!({ "type": kind }).to_string())
    }
}
