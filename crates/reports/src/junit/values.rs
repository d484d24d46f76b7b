//! Durations and timestamps as test frameworks write them.

use std::borrow::Cow;
use std::time::Duration;

use time::{Date, Month, OffsetDateTime, PrimitiveDateTime, Time, UtcOffset};

/// Longer durations are ignored as invalid: a thousand million seconds, about 31 years.
pub const LONGEST: Duration = Duration::from_secs(1_000_000_000);

/// Reads seconds such as `0.25`, `1,234.5` or `1.7e-05`.
///
/// With both separators the last one is the decimal one. Commas alone separate thousands when every
/// group but the first has three digits and the first is one to three digits without a leading
/// zero (`1,234`); otherwise a single comma is a decimal one (`0,125`). Anything else, negative
/// values and values above [`LONGEST`] are no duration.
pub fn duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    // Keeps words such as `inf` and `nan` out.
    if !text.starts_with(|it: char| it.is_ascii_digit() || it == '.' || it == ',' || it == '+') {
        return None;
    }
    let seconds: f64 = plain_decimal(text)?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok().filter(|it| *it <= LONGEST)
}

fn plain_decimal(text: &str) -> Option<Cow<'_, str>> {
    let Some(last_comma) = text.rfind(',') else { return Some(Cow::Borrowed(text)) };
    let (whole, decimals) = match text.rfind('.') {
        Some(dot) if dot > last_comma => (text.get(..dot)?, text.get(dot + 1..)?),
        Some(dot) => {
            let points_group = text.get(..last_comma)?.split('.').skip(1).all(|it| it.len() == 3);
            if !points_group || text.matches(',').count() > 1 || dot == 0 {
                return None;
            }
            let whole = text.get(..last_comma)?.replace('.', "");
            return Some(Cow::Owned(format!("{whole}.{}", text.get(last_comma + 1..)?)));
        }
        None => (text, ""),
    };
    if is_grouped(whole) {
        return Some(Cow::Owned(format!("{}.{decimals}0", whole.replace(',', ""))));
    }
    let decimal_comma = decimals.is_empty() && whole.matches(',').count() == 1;
    decimal_comma.then(|| Cow::Owned(whole.replace(',', ".")))
}

fn is_grouped(whole: &str) -> bool {
    let mut groups = whole.split(',');
    let first = groups.next().unwrap_or_default();
    let digits = |it: &str| it.bytes().all(|byte| byte.is_ascii_digit());
    (1..=3).contains(&first.len())
        && digits(first)
        && !first.starts_with('0')
        && groups.all(|it| it.len() == 3 && digits(it))
}

/// Reads a date with or without a time of day, with or without a zone (none means UTC), such as
/// `2024-04-19T08:20:31.569834`, `2024-12-02T20:06:10.512+00:00`, `2021-03-07T10:36:56 UTC` or
/// `2024-04-19`. The answer is in UTC. Parts of a nanosecond are dropped.
pub fn timestamp(text: &str) -> Option<OffsetDateTime> {
    let text = text.trim();
    let date = date(text.get(..10)?)?;
    let rest = text.get(10..)?;
    let (time, offset) = if rest.is_empty() {
        (Time::MIDNIGHT, UtcOffset::UTC)
    } else {
        let rest = rest.strip_prefix(['T', 't', ' '])?;
        let zone = rest.find(|it: char| !it.is_ascii_digit() && it != ':' && it != '.');
        let (clock, zone) = rest.split_at_checked(zone.unwrap_or(rest.len()))?;
        (time_of_day(clock)?, offset(zone.trim_start())?)
    };
    PrimitiveDateTime::new(date, time).assume_offset(offset).checked_to_offset(UtcOffset::UTC)
}

fn date(text: &str) -> Option<Date> {
    let mut parts = text.split('-');
    let year = number(parts.next()?, 4)?;
    let month = Month::try_from(u8::try_from(number(parts.next()?, 2)?).ok()?).ok()?;
    let day = u8::try_from(number(parts.next()?, 2)?).ok()?;
    Date::from_calendar_date(i32::from(year), month, day).ok().filter(|_| parts.next().is_none())
}

fn time_of_day(text: &str) -> Option<Time> {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = clock.split(':');
    let mut part = |needed: bool| match parts.next() {
        Some(it) => u8::try_from(number(it, 2)?).ok(),
        None => (!needed).then_some(0),
    };
    let (hour, minute, second) = (part(true)?, part(true)?, part(false)?);
    if parts.next().is_some() || !fraction.bytes().all(|it| it.is_ascii_digit()) {
        return None;
    }
    let nanos = fraction.bytes().chain(std::iter::repeat(b'0')).take(9);
    let nanos = nanos.fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0'));
    Time::from_hms_nano(hour, minute, second, nanos).ok()
}

fn offset(text: &str) -> Option<UtcOffset> {
    if text.is_empty() || ["z", "utc", "gmt"].iter().any(|it| text.eq_ignore_ascii_case(it)) {
        return Some(UtcOffset::UTC);
    }
    let sign = match text.chars().next()? {
        '+' => 1,
        '-' => -1,
        _ => return None,
    };
    let digits = text.get(1..)?.replacen(':', "", 1);
    let hours = i8::try_from(number(digits.get(..2)?, 2)?).ok()?;
    let minutes = match digits.get(2..)? {
        "" => 0,
        minutes => i8::try_from(number(minutes, 2)?).ok()?,
    };
    UtcOffset::from_hms(sign * hours, sign * minutes, 0).ok()
}

/// A number of exactly so many digits, four at most.
fn number(text: &str, digits: usize) -> Option<u16> {
    let plain = text.len() == digits && text.bytes().all(|it| it.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use time::macros::datetime;

    use super::*;

    #[test]
    fn durations_in_every_style() {
        let seconds = |text| duration(text).map(|it| it.as_secs_f64());
        for (text, expected) in [
            ("0.25", 0.25),
            (" 3 ", 3.0),
            (".5", 0.5),
            ("1,234.5", 1234.5),
            ("12,345,678.25", 12_345_678.25),
            ("1,234", 1234.0),
            ("1.234,5", 1234.5),
            ("0,125", 0.125),
            ("12,5", 12.5),
            ("1.7e-05", 1.7e-05),
        ] {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
        for text in ["", "-1", "inf", "NaN", "<<computed>>", "1e300", "1,2,3", "1.2.3", "3s"] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }

    #[test]
    fn timestamps_in_every_style() {
        let plain = datetime!(2024-04-19 08:20:31 UTC);
        for (text, expected) in [
            ("2024-04-19T08:20:31", plain),
            ("2024-04-19 08:20:31", plain),
            ("2024-04-19T08:20:31Z", plain),
            ("2024-04-19T08:20:31 UTC", plain),
            ("2024-04-19T10:20:31+02:00", plain),
            ("2024-04-19T10:20:31+0200", plain),
            ("2024-04-19T03:50:31.000-04:30", plain),
            ("2024-04-19T08:20", datetime!(2024-04-19 08:20 UTC)),
            ("2024-04-19", datetime!(2024-04-19 00:00 UTC)),
            ("2024-04-19T08:20:31.569834", datetime!(2024-04-19 08:20:31.569834 UTC)),
            ("2024-04-19T08:20:31.1234567899Z", datetime!(2024-04-19 08:20:31.123456789 UTC)),
        ] {
            assert_eq!(timestamp(text), Some(expected), "{text}");
        }
        for text in ["", "2024", "2024-13-01", "2024-02-30", "2024-04-19T25:00:00", "19/04/2024"] {
            assert_eq!(timestamp(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[0-9 .,:TZ+eé-]{0,40}") {
            duration(&text);
            timestamp(&text);
        }

        #[test]
        fn thousands_separators_change_nothing(millis in 0_u64..1_000_000_000_000) {
            let (whole, part) = (millis / 1000, millis % 1000);
            let mut grouped = String::new();
            for (at, digit) in whole.to_string().chars().rev().enumerate() {
                if at > 0 && at % 3 == 0 {
                    grouped.insert(0, ',');
                }
                grouped.insert(0, digit);
            }
            let plain = duration(&format!("{whole}.{part:03}"));
            prop_assert!(plain.is_some());
            prop_assert_eq!(duration(&format!("{grouped}.{part:03}")), plain);
        }
    }
}
