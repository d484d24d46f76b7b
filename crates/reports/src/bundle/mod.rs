//! Bundles: tar archives compressed by zstd, as the public uploader sends them.
//!
//! [`read`] takes any `Read` and calls a closure for each member, while it is there. Only
//! `meta.json` and protobuf messages are held in memory.

mod bounded;
mod byte_budget;
mod error;
pub mod internal;
pub mod limits;
pub mod meta;
mod proto;
mod wire;

use std::collections::HashSet;
use std::io::{self, Read};
use std::ops::ControlFlow;

use tar::{Archive, EntryType};

use byte_budget::{ByteBudget, Compressed, Unpacked};
pub use error::BundleError;
use internal::{InternalError, Report};
pub use limits::{BundleLimit, BundleLimits};
pub use meta::{Generation, InvalidMeta, Meta};

/// A member of a bundle. The unread rest of a `content` is skipped.
pub enum Member<'a> {
    /// `meta.json`, always the first.
    Meta(Box<Meta>),
    /// `internal.bin` (index none) or `internal/N`: a report in protobuf, or why it cannot be read.
    /// The XML files are the fallback.
    Internal {
        /// The N of `internal/N`.
        index: Option<u32>,
        /// The message.
        report: Result<Report, InternalError>,
    },
    /// `junit/N`: an XML file for [`crate::junit::read`].
    Junit {
        /// The N of `junit/N`.
        index: u32,
        /// Its bytes.
        content: &'a mut dyn Read,
    },
    /// `CODEOWNERS`.
    Codeowners(&'a mut dyn Read),
    /// `bazel_bep.json`: events of Bazel, JSON objects without separators.
    BazelEvents(&'a mut dyn Read),
}

/// The totals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BundleSummary {
    /// Members.
    pub members: u64,
    /// Bytes of the bundle.
    pub compressed: u64,
    /// Bytes of the archive in it.
    pub unpacked: u64,
    /// Whether `sink` asked to stop; then the rest was not checked.
    pub stopped: bool,
}

#[derive(Clone, Copy)]
enum Kind {
    Meta,
    Internal(Option<u32>),
    Junit(u32),
    Codeowners,
    BazelEvents,
}

impl Kind {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "meta.json" => Self::Meta,
            "internal.bin" => Self::Internal(None),
            "CODEOWNERS" => Self::Codeowners,
            "bazel_bep.json" => Self::BazelEvents,
            name => match name.split_once('/')? {
                ("junit", number) => Self::Junit(index(number)?),
                ("internal", number) => Self::Internal(Some(index(number)?)),
                _ => return None,
            },
        })
    }
}

/// A plain number: no sign, no zero in front, so that each has one name.
fn index(text: &str) -> Option<u32> {
    let plain = text.bytes().all(|it| it.is_ascii_digit());
    let plain = plain && (text == "0" || !text.starts_with('0'));
    plain.then(|| text.parse().ok()).flatten()
}

/// Reads a bundle and gives every member to `sink`, until that answers `Break`.
///
/// Everything after the last member is read too, so that a truncated bundle is detected. A bundle
/// that is refused partway has delivered the earlier members.
pub fn read(
    input: impl Read,
    limits: &BundleLimits,
    mut sink: impl FnMut(Member<'_>) -> ControlFlow<()>,
) -> Result<BundleSummary, BundleError> {
    let byte_budget = ByteBudget::new(limits);
    let meaning = |error| byte_budget.meaning(error);
    let input = Compressed { input, byte_budget: byte_budget.clone() };
    let mut unpacked = zstd::Decoder::new(input).map_err(meaning)?;
    unpacked.window_log_max(limits.window_log).map_err(meaning)?;
    let mut archive = Archive::new(Unpacked { input: unpacked, byte_budget: byte_budget.clone() });

    let mut summary = BundleSummary::default();
    let mut names = HashSet::new();
    // Raw: names of any length and other extensions would be read into memory first.
    for entry in archive.entries().map_err(meaning)?.raw(true) {
        let mut entry = entry.map_err(meaning)?;
        summary.members += 1;
        if summary.members > limits.members {
            let most = limits.members;
            return Err(BundleError::Limit { limit: BundleLimit::Members, most });
        }
        let path = entry.path_bytes().into_owned();
        let shown = || String::from_utf8_lossy(&path).escape_debug().take(100).collect();
        if entry.header().entry_type() != EntryType::Regular {
            return Err(BundleError::NotAFile { name: shown() });
        }
        let name = str::from_utf8(&path).ok();
        let Some((name, kind)) = name.and_then(|name| Some((name, Kind::of(name)?))) else {
            return Err(BundleError::Name { name: shown() });
        };
        if summary.members == 1 && !matches!(kind, Kind::Meta) {
            return Err(BundleError::MetaNotFirst { found: shown() });
        }
        if !names.insert(name.to_owned()) {
            return Err(BundleError::Duplicate { name: shown() });
        }
        let most = if matches!(kind, Kind::Meta) { limits.meta } else { limits.member };
        if entry.size() > most {
            return Err(BundleError::Limit { limit: BundleLimit::Member, most });
        }
        let size = entry.size();
        let answer = match kind {
            Kind::Meta => {
                let bytes = whole(&mut entry, size).map_err(meaning)?;
                sink(Member::Meta(Box::new(Meta::parse(&bytes)?)))
            }
            Kind::Internal(index) => {
                let report = if size > limits.internal {
                    let most = usize::try_from(limits.internal).unwrap_or(usize::MAX);
                    Err(InternalError::Limit { what: "bytes", most })
                } else {
                    Report::parse(whole(&mut entry, size).map_err(meaning)?)
                };
                sink(Member::Internal { index, report })
            }
            Kind::Junit(index) => sink(Member::Junit { index, content: &mut entry }),
            Kind::Codeowners => sink(Member::Codeowners(&mut entry)),
            Kind::BazelEvents => sink(Member::BazelEvents(&mut entry)),
        };
        byte_budget.breach()?;
        if answer.is_break() {
            summary.stopped = true;
            break;
        }
    }
    if summary.members == 0 {
        return Err(BundleError::MetaNotFirst { found: "nothing".to_owned() });
    }
    if !summary.stopped {
        io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(meaning)?;
    }
    summary.compressed = byte_budget.compressed();
    summary.unpacked = byte_budget.unpacked();
    Ok(summary)
}

/// A member in memory. Memory grows with the actual content, not with the size in the archive's
/// header.
fn whole(entry: &mut impl Read, size: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    entry.read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|read| read == size) {
        Ok(bytes)
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}
