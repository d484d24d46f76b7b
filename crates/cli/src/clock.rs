//! The time of this machine.

use std::time::{SystemTime, UNIX_EPOCH};

use signalbox_domain::time::{Span, Timestamp};

use crate::CliError;

#[expect(clippy::disallowed_methods, reason = "a client has no clock port")]
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_unix_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// Reads `90d`, `12h` or a time.
pub(crate) fn since(text: &str, now: Timestamp) -> Result<Timestamp, CliError> {
    let number = |unit: char| text.strip_suffix(unit).and_then(|number| number.parse().ok());
    let ago = number('d').map(Span::days).or_else(|| number('h').map(Span::hours));
    let ago = ago.map(|span| now.minus(span));
    let wrong = || CliError::Since { text: text.to_owned() };
    ago.or_else(|| Timestamp::parse(text)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_is_a_duration_or_a_time() {
        let now = Timestamp::from_unix_seconds(1_767_225_600);
        let read = |text: &str| since(text, now).ok();
        assert_eq!(read("90d"), Some(now.minus(Span::days(90))));
        assert_eq!(read("12h"), Some(now.minus(Span::hours(12))));
        assert_eq!(read("2026-01-01T00:00:00Z"), Some(now));
        for wrong in ["", "d", "90", "-1d", "tomorrow", "1.5h"] {
            let error = since(wrong, now).expect_err(wrong).to_string();
            assert!(error.starts_with(&format!("invalid time {wrong:?}: expected")), "{error}");
        }
    }
}
