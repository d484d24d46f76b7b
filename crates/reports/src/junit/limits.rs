//! The limits of a JUnit file, and their names in errors.

use std::fmt;

/// Nested elements, the root included. Real files stay below 15.
pub const DEPTH: u64 = 64;
/// Attributes of one element. Real files stay below 20.
pub const ATTRIBUTES: u64 = 256;
/// Bytes of one attribute's value as written. Whole failure texts stand in `message` at times.
pub const ATTRIBUTE_BYTES: u64 = 256 * 1024;
/// Bytes of one tag, with all its attributes.
pub const TAG_BYTES: u64 = 1024 * 1024;
/// Bytes of one element's name.
pub const NAME_BYTES: u64 = 256;
/// `<testcase>` elements of one file.
pub const CASES: u64 = 1_000_000;
/// Attempts in one `<testcase>` element, including the last one.
pub const REPEATS: u64 = 256;
/// Bytes kept of a failure's message, of its type and of its text each. The rest is dropped.
pub const DETAIL_BYTES: usize = 8_000;
/// Bytes kept of a name, class, file or id after trimming. Part of a test's identity: the public
/// uploader cuts at the same length.
pub const FIELD_BYTES: usize = 8_000;
/// Properties kept of one case. The rest is dropped.
pub const PROPERTIES: usize = 64;

/// The limits of one reading. [`Limits::default`] has the constants of this module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// See [`DEPTH`].
    pub depth: u64,
    /// See [`ATTRIBUTES`].
    pub attributes: u64,
    /// See [`ATTRIBUTE_BYTES`].
    pub attribute_bytes: u64,
    /// See [`TAG_BYTES`].
    pub tag_bytes: u64,
    /// See [`CASES`].
    pub cases: u64,
    /// See [`REPEATS`].
    pub repeats: u64,
    /// See [`DETAIL_BYTES`].
    pub detail_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            depth: DEPTH,
            attributes: ATTRIBUTES,
            attribute_bytes: ATTRIBUTE_BYTES,
            tag_bytes: TAG_BYTES,
            cases: CASES,
            repeats: REPEATS,
            detail_bytes: DETAIL_BYTES,
        }
    }
}

/// What there was too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// Nested elements.
    Depth,
    /// Attributes of one element.
    Attributes,
    /// Bytes of one attribute's value.
    AttributeBytes,
    /// Bytes of one tag or processing instruction.
    TagBytes,
    /// Bytes of an element's name.
    NameBytes,
    /// `<testcase>` elements.
    Cases,
    /// Attempts of one `<testcase>` element.
    Repeats,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Depth => "nested elements",
            Self::Attributes => "attributes of an element",
            Self::AttributeBytes => "bytes of an attribute",
            Self::TagBytes => "bytes of a tag",
            Self::NameBytes => "bytes of an element's name",
            Self::Cases => "test cases",
            Self::Repeats => "attempts of a test case",
        })
    }
}
