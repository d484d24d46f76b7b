//! The cursor of a list: the end of a page, encoded as a UUID, so that the server stores no
//! pages.

use signalbox_domain::ids::PrNumber;
use signalbox_domain::ports::SubmissionPlace;
use signalbox_domain::time::Timestamp;
use uuid::{Uuid, Variant};

use super::field::Form;

/// The bits for a time in microseconds, enough until the year 38,000.
const TIME_BITS: u32 = 60;

/// A cursor. Version 8 is the one whose content its maker chooses: 60 bits of time, and the pull
/// request's number in the last 32.
pub(crate) fn write(place: SubmissionPlace) -> Uuid {
    let micros = u64::try_from(place.submitted_at.unix_micros()).unwrap_or(0);
    let micros = micros & ((1 << TIME_BITS) - 1);
    let high = ((micros >> 12) << 16) | (8 << 12) | (micros & 0xfff);
    Uuid::from_u64_pair(high, (0b10 << 62) | u64::from(place.pr.0))
}

fn read(cursor: Uuid) -> Option<SubmissionPlace> {
    let (high, low) = cursor.as_u64_pair();
    let pr = u32::try_from(low & !(0b11 << 62)).ok()?;
    if cursor.get_version_num() != 8 || cursor.get_variant() != Variant::RFC4122 {
        return None;
    }
    let micros = ((high >> 16) << 12) | (high & 0xfff);
    let submitted_at = Timestamp::from_unix_micros(i64::try_from(micros).ok()?);
    Some(SubmissionPlace { submitted_at, pr: PrNumber(pr) })
}

/// A cursor as it was sent.
#[derive(Debug)]
pub(crate) struct Cursor(pub(crate) SubmissionPlace);

impl Form for Cursor {
    const RULE: &'static str = "must be the nextCursor of the previous page";

    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok().and_then(read).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use signalbox_testkit::fuzz::{committed, fuzz};

    use super::*;

    /// An accepted cursor is one that the server writes, with a time that it can have.
    #[test]
    fn fuzz_cursors() {
        let words =
            ["8", "-", "{", "urn:uuid:", "ffffffff", "00000000-0000-8000-8000-000000000000"];
        fuzz("list-cursor", &committed("list-place"), &words, |input| {
            let text = String::from_utf8_lossy(input);
            let Some(Cursor(place)) = Cursor::from_text(text.trim()) else { return };
            assert!((0..1 << TIME_BITS).contains(&place.submitted_at.unix_micros()));
            assert_eq!(text.trim().parse(), Ok(write(place)));
        });
    }

    #[test]
    fn a_cursor_comes_back_as_the_place_that_it_was_made_of() {
        for (micros, pr) in [(0, 0), (1_767_225_600_123_456, 42), ((1 << 60) - 1, u32::MAX)] {
            let submitted_at = Timestamp::from_unix_micros(micros);
            let place = SubmissionPlace { submitted_at, pr: PrNumber(pr) };
            let cursor = write(place);
            assert_eq!(read(cursor), Some(place), "{cursor}");
            assert_eq!((cursor.get_version_num(), cursor.get_variant()), (8, Variant::RFC4122));
        }
    }

    #[test]
    fn another_uuid_is_no_cursor() {
        for text in [
            "4f0e9c1e-8a55-5d0f-9b1c-2a35b0a6f0d2",
            "00000000-0000-8000-9000-000000000001",
            "00000000-0000-0000-0000-000000000000",
            "",
            "next",
        ] {
            assert!(Cursor::from_text(text).is_none(), "{text}");
        }
    }
}
