//! The form in which a command prints.

use std::fmt::Display;

use clap::{Args, ValueEnum};

use crate::{say, say_json};

/// The form of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Form {
    #[default]
    Table,
    Json,
}

/// The flags of every command that prints data.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct Format {
    /// How to print the result; JSON has one value per line of a list.
    #[arg(long, value_enum, value_name = "FORM", default_value_t = Form::Table)]
    output: Form,
    /// Print JSON; short for --output json.
    #[arg(long, conflicts_with = "output")]
    json: bool,
}

impl Format {
    /// Whether it is JSON.
    pub fn is_json(self) -> bool {
        self.json || self.output == Form::Json
    }

    /// Prints a value: its JSON, or the words.
    pub fn say(self, json: &impl Display, words: impl FnOnce() -> String) {
        if self.is_json() {
            say_json(json);
        } else {
            say(&words());
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        format: Format,
    }

    #[test]
    fn json_has_a_long_and_a_short_form_but_not_both() {
        let read = |words: &[&str]| {
            Line::try_parse_from([&["x"], words].concat()).map(|line| line.format.is_json()).ok()
        };
        assert_eq!(read(&[]), Some(false));
        assert_eq!(read(&["--output", "table"]), Some(false));
        assert_eq!((read(&["--json"]), read(&["--output", "json"])), (Some(true), Some(true)));
        assert_eq!(read(&["--json", "--output", "table"]), None);
    }
}
