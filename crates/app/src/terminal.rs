//! What is printed: data of others is stripped of everything that could steer a terminal.

use std::io::Write;

/// Prints a line.
pub(crate) fn say(line: &str) {
    // A closed pipe at the other end is no reason to fail.
    let _printed = writeln!(std::io::stdout().lock(), "{}", plain(line));
}

/// Prints an error on one line.
pub(crate) fn complain(words: &str) {
    let words = plain(words).replace('\n', "; ");
    let _printed = writeln!(std::io::stderr().lock(), "signalbox: {words}");
}

/// Text without control, direction and escape characters.
pub(crate) fn plain(text: &str) -> String {
    let steers = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if steers(c) { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_the_terminal() {
        assert_eq!(plain("a\u{1b}[31mb\u{202e}c\td"), "a\u{fffd}[31mb\u{fffd}c\td");
    }
}
