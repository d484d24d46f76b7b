//! The limits of a bundle, and their names in errors.

use std::fmt;

/// Bytes of the bundle as it comes.
pub const COMPRESSED: u64 = 256 * 1024 * 1024;
/// Bytes of all it holds, the archive's own included.
pub const UNPACKED: u64 = 2 * 1024 * 1024 * 1024;
/// How many times larger the content may be than the bundle.
pub const RATIO: u64 = 200;
/// Content that is too small to be held against the ratio, in bytes.
pub const RATIO_FREE: u64 = 16 * 1024 * 1024;
/// Members of the archive.
pub const MEMBERS: u64 = 10_000;
/// Bytes of `meta.json`. It repeats the messages of all failures.
pub const META: u64 = 32 * 1024 * 1024;
/// Bytes of one protobuf message. A larger one is not read; the bundle still is.
pub const INTERNAL: u64 = 64 * 1024 * 1024;
/// Bytes of one other member.
pub const MEMBER: u64 = 1024 * 1024 * 1024;
/// The compressor's window, as a power of two of bytes: 8 MiB. The uploader's level needs 4 MiB.
pub const WINDOW_LOG: u32 = 23;

/// The limits of one reading. [`BundleLimits::default`] has the constants of this module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BundleLimits {
    /// See [`COMPRESSED`].
    pub compressed: u64,
    /// See [`UNPACKED`].
    pub unpacked: u64,
    /// See [`RATIO`].
    pub ratio: u64,
    /// See [`RATIO_FREE`].
    pub ratio_free: u64,
    /// See [`MEMBERS`].
    pub members: u64,
    /// See [`META`].
    pub meta: u64,
    /// See [`INTERNAL`].
    pub internal: u64,
    /// See [`MEMBER`].
    pub member: u64,
    /// See [`WINDOW_LOG`]; from 10 to 31.
    pub window_log: u32,
}

impl Default for BundleLimits {
    fn default() -> Self {
        Self {
            compressed: COMPRESSED,
            unpacked: UNPACKED,
            ratio: RATIO,
            ratio_free: RATIO_FREE,
            members: MEMBERS,
            meta: META,
            internal: INTERNAL,
            member: MEMBER,
            window_log: WINDOW_LOG,
        }
    }
}

/// What there was too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BundleLimit {
    /// Bytes of the bundle as it comes.
    Compressed,
    /// Bytes of its content.
    Unpacked,
    /// Bytes of content per byte of the bundle.
    Ratio,
    /// Members.
    Members,
    /// Bytes of one member.
    Member,
}

impl fmt::Display for BundleLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Compressed => "compressed bytes",
            Self::Unpacked => "unpacked bytes",
            Self::Ratio => "unpacked bytes per compressed byte",
            Self::Members => "members",
            Self::Member => "bytes of a member",
        })
    }
}
