//! Reads a configuration file of a repository. Any user who may push can write it.

use std::cell::RefCell;

use serde::de::DeserializeOwned;
use toml_parser::parser::{EventReceiver, parse_document};
use toml_parser::{ErrorSink, Expected, ParseError, Source, Span};

/// The name of the repository's own file, at its top.
pub const CONFIG_FILE: &str = ".signalbox.toml";
/// The most arrays and inline tables inside each other.
const MAX_DEPTH: usize = 32;

/// Parses the text of [`CONFIG_FILE`]. The error names the file, and the line or the key.
pub fn read_config<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let wrong = |words: String| format!("{CONFIG_FILE}: {words}");
    syntax(text).map_err(wrong)?;
    let parsed = toml::Deserializer::parse(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        wrong(at(text, start, error.message()))
    })?;
    serde_path_to_error::deserialize(parsed).map_err(|error| {
        let path = error.path().to_string();
        let words = error.into_inner().message().to_owned();
        wrong(if path == "." { words } else { format!("{path}: {words}") })
    })
}

/// The first error of the syntax. `toml` continues after an error, and then its limit of the depth
/// does not hold: closing brackets without an opening one count as well. So nothing is entered after
/// an error here, and `toml` is given only what has none.
fn syntax(text: &str) -> Result<(), String> {
    let first = RefCell::new(None);
    let tokens = Source::new(text).lex().into_vec();
    let mut sink = |error: ParseError| {
        first.borrow_mut().get_or_insert(error);
    };
    parse_document(&tokens, &mut Guard { depth: 0, first: &first }, &mut sink);
    let Some(error) = first.into_inner() else { return Ok(()) };
    let start = error.unexpected().or(error.context()).map_or(0, |span| span.start());
    Err(at(text, start, &message(&error)))
}

/// The message of an error, as `toml` writes it.
fn message(error: &ParseError) -> String {
    let expected: Vec<String> = error
        .expected()
        .unwrap_or_default()
        .iter()
        .filter_map(|expected| match expected {
            Expected::Literal("\n") => Some("a new line".to_owned()),
            Expected::Literal(text) => Some(format!("`{text}`")),
            Expected::Description(text) => Some((*text).to_owned()),
            _ => None,
        })
        .collect();
    if expected.is_empty() {
        return error.description().to_owned();
    }
    format!("{}, expected {}", error.description(), expected.join(", "))
}

fn at(text: &str, start: usize, words: &str) -> String {
    let before = text.get(..start).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|found| *found != '\n').count() + 1;
    format!("line {line}, column {column}: {words}")
}

/// Enters arrays and inline tables up to [`MAX_DEPTH`], and none after an error.
struct Guard<'a> {
    depth: usize,
    first: &'a RefCell<Option<ParseError>>,
}

impl Guard<'_> {
    fn enter(&mut self, span: Span, error: &mut dyn ErrorSink) -> bool {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let words = format!("more than {MAX_DEPTH} arrays and inline tables inside each other");
            error.report_error(ParseError::new(words).with_unexpected(span));
        }
        self.first.borrow().is_none()
    }

    fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }
}

impl EventReceiver for Guard<'_> {
    fn inline_table_open(&mut self, span: Span, error: &mut dyn ErrorSink) -> bool {
        self.enter(span, error)
    }

    fn inline_table_close(&mut self, _: Span, _: &mut dyn ErrorSink) {
        self.leave();
    }

    fn array_open(&mut self, span: Span, error: &mut dyn ErrorSink) -> bool {
        self.enter(span, error)
    }

    fn array_close(&mut self, _: Span, _: &mut dyn ErrorSink) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        read_config::<toml::Table>(text).expect_err(text)
    }

    #[test]
    fn an_error_names_the_line() {
        assert_eq!(
            error("[merge]\nlist = [\"é\", 1\n"),
            ".signalbox.toml: line 2, column 15: unclosed array, expected `]`"
        );
        assert!(error("a = 1\n\na = 2\n").contains("line 3, column 1: duplicate key"));
    }

    #[test]
    fn a_depth_has_a_limit() {
        let nested = |depth: usize| format!("a = {}{}\n", "[".repeat(depth), "]".repeat(depth));
        assert!(read_config::<toml::Table>(&nested(MAX_DEPTH)).is_ok());
        let words = "more than 32 arrays and inline tables inside each other";
        assert!(error(&nested(MAX_DEPTH + 1)).ends_with(words));
        assert!(error(&nested(100_000)).ends_with(words));
        assert!(error(&format!("a = {}", "{a = ".repeat(100_000))).ends_with(words));
    }

    #[test]
    fn no_depth_follows_an_error() {
        for (before, after) in [("[]", "{x"), ("]", "{x"), ("{}", "[{x"), ("[}", "[")] {
            let text = format!("a = {{{}{}", before.repeat(50_000), after.repeat(50_000));
            assert!(error(&text).contains("line 1, column "), "{before} {after}");
        }
    }
}
