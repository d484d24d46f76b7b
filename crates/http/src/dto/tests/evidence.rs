//! What monitors saw.

use serde_json::{Value, json};
use signalbox_domain::flaky::Reading;

/// What a monitor saw.
pub(super) fn evidence_value(reading: &Reading) -> Value {
    match reading {
        Reading::PassOnRetry(reading) => json!({
            "summary": Reading::PassOnRetry(reading.clone()).to_string(),
            "last_disagreement_at": reading.last.as_ref().map(|it| it.at.to_string()),
            "runs": reading.runs,
        }),
        Reading::FailureRate(reading) => json!({
            "summary": Reading::FailureRate(*reading).to_string(),
            "runs": reading.runs,
            "failures": reading.failures,
        }),
        Reading::FailureCount(reading) => json!({
            "summary": Reading::FailureCount(*reading).to_string(),
            "failures": reading.failures,
            "last_failure_at": reading.last_failure_at.map(|at| at.to_string()),
        }),
    }
}
