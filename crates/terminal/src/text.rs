//! Texts that others wrote, made safe to print.

use std::error::Error;
use std::fmt::Write;

/// Whether a character could control a terminal, or change the direction of text.
fn steers(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2066}'..='\u{2069}')
}

/// Text without control, direction and escape characters.
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if steers(c) { '\u{fffd}' } else { c }).collect()
}

/// The same on one line, so that it cannot forge another line.
pub fn one_line(text: &str) -> String {
    plain(text.trim_end()).replace(['\n', '\t'], " ")
}

/// JSON with these characters as escapes. They are inside of its texts, where an escape stands for
/// the same character.
pub(crate) fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if steers(c) {
            // Writing to a string never fails.
            let _ = write!(text, "\\u{:04x}", u32::from(c));
        } else {
            text.push(c);
        }
    }
    text
}

/// An error with its causes, on one line. A cause that the line ends with already is not repeated.
pub fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let words = cause.to_string();
        if !text.ends_with(&words) {
            text = format!("{text}: {words}");
        }
        source = cause.source();
    }
    text
}

/// What failed, and the error with its causes, on one line.
pub fn chain(what: &str, error: &dyn Error) -> String {
    format!("{what}: {}", causes(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_cause_is_printed_once() {
        let inner = std::io::Error::other("no route");
        assert_eq!(chain("host", &std::io::Error::other(inner)), "host: no route");
    }

    #[test]
    fn nothing_steers_the_terminal() {
        assert_eq!(plain("a\u{1b}[31mb\u{202e}c\td"), "a\u{fffd}[31mb\u{fffd}c\td");
    }

    #[test]
    fn no_text_can_forge_a_line() {
        assert_eq!(one_line("release\n#1 merged\t(x)\n"), "release #1 merged (x)");
    }

    #[test]
    fn json_keeps_its_values() {
        let text = "{\"name\": \"a\u{202e}\u{85}b\"}";
        assert_eq!(escaped(text), r#"{"name": "a\u202e\u0085b"}"#);
    }
}
