//! Uploads of test results: their metadata, and how their contents become runs of tests. Pure,
//! as [`crate::flaky`].

mod ci;
mod found;
mod mapping;
mod record;
mod warning;

pub use ci::{CiRun, clean_branch};
pub use found::{BundleMeta, FoundFile, FoundReport, FoundRun};
pub use mapping::{Mapped, kept_variant, map, upload_of};
pub use record::{Claims, ContentHash, Part, Received, UploadRecord, UploadState};
pub use warning::{Severity, UploadWarning, WarningKind};
