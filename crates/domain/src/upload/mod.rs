//! Uploads of test results: their metadata, and how their contents become runs of tests. Pure,
//! as [`crate::flaky`].

mod ci;
mod found;
mod mapping;
mod owner;
mod record;
mod source;
mod time;
mod warning;

pub use ci::{CiRun, clean_branch};
pub use found::{BundleMeta, FoundFile, FoundReport, FoundRun};
pub use mapping::{Mapped, MappingRules, kept_variant, map, upload_of};
pub use owner::BlobOwner;
pub use record::{Claims, ContentHash, Part, Received, UploadRecord, UploadState};
pub use source::ProvenSource;
pub use time::{RefusedTime, check_time, time_of_import, time_of_report};
pub use warning::{Severity, UploadWarning, WarningKind};
