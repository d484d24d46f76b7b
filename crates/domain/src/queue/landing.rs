//! The active landing of a queue.

use crate::ids::RunId;
use crate::time::Timestamp;

/// A landing that was sent to the host and has not been answered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Landing {
    /// The run whose candidate lands.
    pub run: RunId,
    /// All runs whose groups land with it, in line order; the last is `run`.
    pub runs: Vec<RunId>,
    /// When the landing was started.
    pub since: Timestamp,
    /// Whether the tested tree itself must land.
    #[cfg_attr(feature = "serde", serde(default = "super::yes"))]
    pub exact: bool,
}
