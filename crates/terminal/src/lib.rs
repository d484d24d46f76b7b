#![doc = include_str!("../README.md")]

mod signals;

use std::error::Error;
use std::io::{IsTerminal, Write};

pub use signals::Signals;

/// Prints a line.
pub fn say(line: &str) {
    // A closed pipe at the other end is no reason to fail.
    let _printed = writeln!(std::io::stdout().lock(), "{}", plain(line));
}

/// Whether the output goes to a terminal.
pub fn is_interactive() -> bool {
    std::io::stdout().is_terminal()
}

/// Clears the terminal and prints a text.
pub fn redraw(text: &str) {
    let _printed = writeln!(std::io::stdout().lock(), "\u{1b}[H\u{1b}[2J{}", plain(text));
}

/// Prints a line about progress, where it does not mix with results.
pub fn note(line: &str) {
    let _printed = writeln!(std::io::stderr().lock(), "{}", plain(line));
}

/// Prints an error on one line.
pub fn complain(words: &str) {
    let words = plain(words).replace('\n', "; ");
    let _printed = writeln!(std::io::stderr().lock(), "signalbox: {words}");
}

/// Text without control, direction and escape characters.
pub fn plain(text: &str) -> String {
    let steers = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}')
            || matches!(c, '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if steers(c) { '\u{fffd}' } else { c }).collect()
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
}
