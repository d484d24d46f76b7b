//! An estimate as clients see it.

use serde::Serialize;
use signalbox_domain::queue::{Estimate, PERCENTILE};
use signalbox_wording::estimate_sentence;
use utoipa::ToSchema;

/// The basis of an estimate.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BasisReply {
    /// How many earlier test runs were used, at most 100.
    runs: u32,
    /// Which percentile of their durations is used: 50 is the median.
    percentile: u8,
}

/// The estimated time until a pull request merges, if all tests pass.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "seconds": 720, "basis": {"runs": 37, "percentile": 50}, "ahead": [41],
    "sentence": "about 12 minutes: 1 pull request is ahead, and 37 earlier test runs took 6 minutes (median)"
}))]
pub(crate) struct EstimateReply {
    /// Seconds from now; null without an estimate: `sentence` then has the reason.
    #[schema(required)]
    seconds: Option<i64>,
    basis: BasisReply,
    /// The pull requests ahead in the line that it waits for, in line order.
    ahead: Vec<u32>,
    /// The estimate with its basis as a sentence, or why there is none.
    sentence: String,
}

impl EstimateReply {
    pub(super) fn of(estimate: &Estimate) -> Self {
        Self {
            seconds: estimate.time.map(|time| time.millis() / 1_000),
            basis: BasisReply { runs: estimate.runs, percentile: PERCENTILE },
            ahead: estimate.ahead.iter().map(|pr| pr.0).collect(),
            sentence: estimate_sentence(estimate),
        }
    }
}
