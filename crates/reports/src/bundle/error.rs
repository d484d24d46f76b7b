//! Why a bundle was refused.

use std::io;

use thiserror::Error;

use super::limits::BundleLimit;
use super::meta::InvalidMeta;

/// Why reading stopped. The members before the place were delivered.
#[derive(Debug, Error)]
pub enum BundleError {
    /// The reader below failed.
    #[error("could not read the bundle")]
    Io(#[source] io::Error),
    /// More than a limit allows.
    #[error("the bundle has more {limit} than {most}")]
    Limit {
        /// What there is too much of.
        limit: BundleLimit,
        /// The limit's value.
        most: u64,
    },
    /// The bundle ends before its content does.
    #[error("the bundle is truncated")]
    Truncated,
    /// Neither zstd nor a tar archive, or damaged, or compressed with too large a window.
    #[error("the bundle is not a zstd-compressed tar archive: {rule}")]
    Corrupt {
        /// The error of the decoder.
        rule: String,
    },
    /// The first member is not `meta.json`.
    #[error("the first member is {found}, not meta.json")]
    MetaNotFirst {
        /// Its name, cut to 100 characters; `nothing` for an empty archive.
        found: String,
    },
    /// `meta.json` cannot be understood.
    #[error("meta.json is invalid: {0}")]
    Meta(#[from] InvalidMeta),
    /// A member that is not a regular file: a link, a folder, a device or an extension.
    #[error("member {name} is not a regular file")]
    NotAFile {
        /// Its name, cut to 100 characters.
        name: String,
    },
    /// A member that bundles do not have, such as one with an absolute path or with `..`.
    #[error("unexpected member {name}")]
    Name {
        /// Its name, cut to 100 characters.
        name: String,
    },
    /// Two members of one name.
    #[error("duplicate member {name}")]
    Duplicate {
        /// Its name.
        name: String,
    },
}
