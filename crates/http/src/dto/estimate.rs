//! An estimate as clients see it.

use serde::Serialize;
use signalbox_domain::queue::{Estimate, PERCENTILE};
use signalbox_wording::estimate_sentence;
use utoipa::ToSchema;

/// What an estimate is based on.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BasisReply {
    /// How many earlier test runs, at most 100.
    runs: u32,
    /// Which of their durations counts as the usual one: 50 is the median.
    percentile: u8,
}

/// When a pull request will be merged if all goes well.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "seconds": 720, "basis": {"runs": 37, "percentile": 50}, "ahead": [41],
    "sentence": "about 12 minutes: 1 pull request is ahead, and 37 earlier test runs took 6 minutes (median)"
}))]
pub(crate) struct EstimateReply {
    /// From now; null when there is no telling, and `sentence` says why.
    #[schema(required)]
    seconds: Option<i64>,
    basis: BasisReply,
    /// The pull requests ahead in the line that it waits for, in line order.
    ahead: Vec<u32>,
    /// For people: the estimate with its basis, or why there is none.
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
