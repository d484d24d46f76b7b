//! Masking: what differs from failure to failure for no reason is replaced by what kind of thing it
//! is, so that equal failures read equal.

/// The text with quoted values, times, ids, addresses, paths, durations and numbers replaced, and
/// every run of blanks as one. Time grows with the length of the text, whatever is in it.
pub fn mask(text: &str) -> String {
    let lines = text.lines().map(mask_line).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ")
}

/// Examines the start of a text, given the character before it, and returns how many bytes to
/// replace.
type Matcher = fn(&str, Option<char>) -> Option<usize>;

/// What is masked, and with what. The first that fits wins.
const MATCHERS: [(Matcher, &str); 9] = [
    (color, ""),
    (quoted, "<quoted>"),
    (time_of_day, "<time>"),
    (uuid, "<uuid>"),
    (url, "<url>"),
    (token, "<token>"),
    (path, "<path>"),
    (duration, "<duration>"),
    (number, "<num>"),
];

fn mask_line(line: &str) -> String {
    let mut masked = String::with_capacity(line.len());
    let (mut rest, mut before) = (line.trim(), None);
    while let Some(c) = rest.chars().next() {
        let found =
            MATCHERS.iter().find_map(|(matcher, with)| Some((matcher(rest, before)?, *with)));
        let length = found.map_or(c.len_utf8(), |(length, _)| length);
        let (taken, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
        match found {
            Some((_, with)) => masked.push_str(with),
            None if c.is_whitespace() || c.is_control() => {
                if !masked.ends_with(' ') {
                    masked.push(' ');
                }
            }
            None => masked.push(c),
        }
        before = taken.chars().next_back();
        rest = after;
    }
    masked.trim().into()
}

/// Whether a word may begin after that character.
fn begins_word(before: Option<char>) -> bool {
    before.is_none_or(|c| !c.is_alphanumeric() && c != '_')
}

/// Whether a word that ends before that text ends there.
fn ends_word(rest: &str) -> bool {
    rest.chars().next().is_none_or(|c| !c.is_alphanumeric() && c != '_')
}

/// The most characters that are replaced together. It bounds the cost of a hostile text.
const MAX_RUN: usize = 512;

/// How many bytes at the start of a text are characters of that kind.
fn run(text: &str, kind: impl Fn(char) -> bool) -> usize {
    let looked_at = text.char_indices().take(MAX_RUN);
    looked_at.take_while(|(_, c)| kind(*c)).last().map_or(0, |(at, c)| at + c.len_utf8())
}

fn after(text: &str, at: usize) -> &str {
    text.get(at..).unwrap_or("")
}

fn up_to(text: &str, at: usize) -> &str {
    text.get(..at).unwrap_or("")
}

/// A color or another sign for terminals.
fn color(text: &str, _before: Option<char>) -> Option<usize> {
    let rest = text.strip_prefix("\u{1b}[")?;
    let length = run(rest, |c| c.is_ascii_digit() || c == ';');
    after(rest, length).starts_with(|c: char| c.is_ascii_alphabetic()).then_some(length + 3)
}

/// A value between two equal quotes.
fn quoted(text: &str, before: Option<char>) -> Option<usize> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'))?;
    let rest = after(text, 1);
    let end = run(rest, |c| c != quote);
    after(rest, end).starts_with(quote).then_some(())?;
    (begins_word(before) && ends_word(after(rest, end + 1))).then_some(end + 2)
}

/// Reads a shape: `d` is a digit, everything else is itself.
fn shaped(text: &str, shape: &str) -> Option<usize> {
    let mut chars = text.chars();
    let fits = shape.chars().all(|sign| {
        chars.next().is_some_and(|c| if sign == 'd' { c.is_ascii_digit() } else { c == sign })
    });
    fits.then_some(shape.len())
}

/// A date, a time of day, or both, with fraction and offset.
fn time_of_day(text: &str, before: Option<char>) -> Option<usize> {
    if !begins_word(before) {
        return None;
    }
    let date = shaped(text, "dddd-dd-dd").or_else(|| shaped(text, "dddd/dd/dd")).unwrap_or(0);
    let gap = usize::from(date > 0 && after(text, date).starts_with(['T', ' ', 't']));
    let clock_at = after(text, date + gap);
    let clock = shaped(clock_at, "dd:dd:dd").or_else(|| shaped(clock_at, "dd:dd"));
    let Some(clock) = clock else {
        return (date > 0 && ends_word(after(text, date))).then_some(date);
    };
    let mut end = date + gap + clock;
    let fraction = after(text, end);
    if fraction.starts_with(['.', ',']) {
        let digits = run(after(fraction, 1), |c| c.is_ascii_digit());
        end += if digits > 0 { digits + 1 } else { 0 };
    }
    let offset = after(text, end);
    let signed = offset.strip_prefix(['+', '-']);
    end += match signed.and_then(|it| shaped(it, "dd:dd").or_else(|| shaped(it, "dddd"))) {
        Some(length) => length + 1,
        None => usize::from(offset.starts_with(['Z', 'z'])),
    };
    ends_word(after(text, end)).then_some(end)
}

fn uuid(text: &str, before: Option<char>) -> Option<usize> {
    let groups = [8, 4, 4, 4, 12];
    let mut at = 0;
    for (number, length) in groups.into_iter().enumerate() {
        if number > 0 {
            at += after(text, at).starts_with('-').then_some(1)?;
        }
        if run(after(text, at), |c| c.is_ascii_hexdigit()) != length {
            return None;
        }
        at += length;
    }
    (begins_word(before) && ends_word(after(text, at))).then_some(at)
}

fn url(text: &str, before: Option<char>) -> Option<usize> {
    let scheme = run(text, |c| c.is_ascii_alphanumeric() || matches!(c, '+' | '.' | '-'));
    let rest = after(text, scheme).strip_prefix("://")?;
    let length =
        run(rest, |c| !c.is_whitespace() && !matches!(c, '"' | '\'' | '<' | '>' | ')' | ','));
    (scheme > 0 && length > 0 && begins_word(before)).then_some(scheme + 3 + length)
}

/// An address, a hash, or another long word that no person would write.
fn token(text: &str, before: Option<char>) -> Option<usize> {
    if !begins_word(before) {
        return None;
    }
    if let Some(rest) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        let length = run(rest, |c| c.is_ascii_hexdigit());
        return (length > 0 && ends_word(after(rest, length))).then_some(length + 2);
    }
    let length = run(text, |c| c.is_ascii_alphanumeric() || matches!(c, '+' | '='));
    let word = up_to(text, length);
    let count = |kind: fn(&char) -> bool| word.chars().filter(kind).count();
    let digits = count(char::is_ascii_digit);
    let hex = length >= 7 && word.chars().all(|c| c.is_ascii_hexdigit()) && digits < length;
    let mixed = length >= 24 && count(char::is_ascii_lowercase) > 2;
    let random = mixed && count(char::is_ascii_uppercase) > 2 && digits > 2;
    ((hex && digits > 0 || random) && ends_word(after(text, length))).then_some(length)
}

/// A path of files, with the line and column behind it.
fn path(text: &str, before: Option<char>) -> Option<usize> {
    let part =
        |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '@' | '~' | '+' | '$');
    let drive = shaped_drive(text).unwrap_or(0);
    let length = drive + run(after(text, drive), |c| part(c) || matches!(c, '/' | '\\'));
    let word = up_to(text, length);
    let mut parts = word.split(['/', '\\']).filter(|it| !it.is_empty());
    let named = parts.clone().any(|it| it.chars().any(char::is_alphabetic));
    let several = parts.nth(1).is_some() || word.starts_with(['/', '~']);
    if !begins_word(before) || !named || !several || !word.contains(['/', '\\']) {
        return None;
    }
    let mut end = up_to(text, length).trim_end_matches('.').len();
    for _ in 0..2 {
        let digits = after(text, end).strip_prefix(':').map(|it| run(it, |c| c.is_ascii_digit()));
        end += digits.filter(|it| *it > 0).map_or(0, |it| it + 1);
    }
    Some(end)
}

/// `C:` before a backslash or slash.
fn shaped_drive(text: &str) -> Option<usize> {
    let mut chars = text.chars();
    let letter = chars.next().is_some_and(|c| c.is_ascii_alphabetic());
    let fits = letter && chars.next() == Some(':') && matches!(chars.next(), Some('/' | '\\'));
    fits.then_some(2)
}

const UNITS: [&str; 18] = [
    "nanoseconds",
    "microseconds",
    "milliseconds",
    "millis",
    "seconds",
    "second",
    "secs",
    "sec",
    "minutes",
    "minute",
    "mins",
    "min",
    "hours",
    "hour",
    "ns",
    "us",
    "µs",
    "ms",
];

/// A number with a unit of time.
fn duration(text: &str, before: Option<char>) -> Option<usize> {
    let digits = number(text, before).filter(|_| begins_word(before))?;
    let rest = after(text, digits);
    let gap = usize::from(rest.starts_with(' '));
    let unit_at = after(rest, gap);
    let short = if gap == 0 { ["s", "m", "h"].as_slice() } else { ["s"].as_slice() };
    let mut units = UNITS.iter().chain(short);
    let unit = units.find(|unit| unit_at.strip_prefix(**unit).is_some_and(ends_word))?;
    Some(digits + gap + unit.len())
}

/// A number, with sign, fraction and exponent; also the digits inside a word.
fn number(text: &str, before: Option<char>) -> Option<usize> {
    let signed = text.starts_with(['-', '+'])
        && before
            .is_none_or(|c| c.is_whitespace() || matches!(c, '(' | '[' | '=' | ',' | ':' | '<'));
    let mut end = usize::from(signed);
    let digits = |at: usize| run(after(text, at), |c| c.is_ascii_digit());
    if digits(end) == 0 {
        return None;
    }
    end += digits(end);
    while after(text, end).starts_with(['.', ',']) && digits(end + 1) > 0 {
        end += 1 + digits(end + 1);
    }
    if after(text, end).starts_with(['e', 'E']) {
        let sign = usize::from(after(text, end + 1).starts_with(['-', '+']));
        let exponent = digits(end + 1 + sign);
        let whole = end + 1 + sign + exponent;
        if exponent > 0 && ends_word(after(text, whole)) {
            end = whole;
        }
    }
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_for_no_reason_is_masked() {
        for (text, masked) in [
            ("expected 5 but was -7.25e3", "expected <num> but was <num>"),
            ("thread gw3 lost 12,000 rows", "thread gw<num> lost <num> rows"),
            ("object at 0x7f3a9c is gone", "object at <token> is gone"),
            ("commit 9fceb02d0ae5 not found", "commit <token> not found"),
            ("id 06cb6db5-f807-5198-b072-af67a0636f8a!", "id <uuid>!"),
            ("at 2026-11-21T07:30:14.123Z: late", "at <time>: late"),
            ("2026-11-21 07:30:14,1 +0100 x", "<time> <num> x"),
            ("on 2026/11/21 and 07:30", "on <time> and <time>"),
            ("took 1.5s, limit 300 ms", "took <duration>, limit <duration>"),
            ("waited 10 seconds", "waited <duration>"),
            ("cannot open /tmp/run-7/out.log", "cannot open <path>"),
            ("src/calc.rs:12:5: panicked", "<path>: panicked"),
            (r"C:\build\x.cs(3)", "<path>(<num>)"),
            ("GET http://127.0.0.1:8080/a?b=1 failed", "GET <url> failed"),
            ("no key 'abc def' in \"x\"", "no key <quoted> in <quoted>"),
            ("can't find the user's name", "can't find the user's name"),
            ("\u{1b}[31mred\u{1b}[0m\ttext\n\n  next  line ", "red text next line"),
            ("token eyJhbGciOiJIUzI1NiJ9eyJzdWIiOiIxIn0 expired", "token <token> expired"),
            ("java.lang.NullPointerException", "java.lang.NullPointerException"),
            ("5e is no exponent, 5e7 is", "<num>e is no exponent, <num> is"),
            ("http:// names nothing", "http:// names nothing"),
            ("the decade was added", "the decade was added"),
            ("at: 07:30", "at: <time>"),
            ("at 07:30:14. Late", "at <time>. Late"),
            ("2026-11-21T07:30:14+01:00 x", "<time> x"),
            ("://abc", ":<path>"),
            ("abcdXYZ1234", "abcdXYZ<num>"),
            ("abABCDEFGHIJKLMNOPQR1234", "abABCDEFGHIJKLMNOPQR<num>"),
            ("1.5e+7 and 2e-3", "<num> and <num>"),
            ("x0x7f3a9c", "x<num>x<num>f<num>a<num>c"),
            ("'abc'def", "'abc'def"),
            ("abcdefghijklmnopqrABcd1234", "abcdefghijklmnopqrABcd<num>"),
            ("abcdefghijklmnopqrABCd12", "abcdefghijklmnopqrABCd<num>"),
            ("abcdefghijklmnopqrABCd123", "<token>"),
            ("0x y and 0x1", "<num>x y and <token>"),
            (
                "x06cb6db5-f807-5198-b072-af67a0636f8a",
                "x<num>cb<num>db<num>-f<num>-<num>-b<num>-<token>",
            ),
            ("feedbeef and 1234567", "feedbeef and <num>"),
            ("in src/calc.rs: wrong", "in <path>: wrong"),
            ("", ""),
        ] {
            assert_eq!(mask(text), masked, "{text:?}");
        }
    }
}
