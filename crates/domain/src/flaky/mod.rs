//! Flaky tests: the rules by which results are judged. Pure, as [`crate::queue`].

mod quarantine;

pub use quarantine::{
    AutoQuarantine, QuarantineOverride, QuarantineSettings, TestStatus, is_quarantined,
};
