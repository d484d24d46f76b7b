//! Tables: aligned columns with headers, one line per row.

use comfy_table::{ColumnConstraint, ContentArrangement, Row, Table as Drawn, presets::NOTHING};
use terminal_size::{Width, terminal_size};

use crate::format::Format;
use crate::output::{is_interactive, print, say};
use crate::text::one_line;

/// The widest table on a terminal of unknown width.
const USUAL_WIDTH: u16 = 80;
/// The least width of columns that are cut.
const ROOM: u16 = 10;
/// `2026-01-31T12:00`: the date and the minutes of a time.
const MINUTES: usize = 16;

/// A value of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// A text.
    Text(String),
    /// A time by RFC 3339; terminals show it to the minute.
    Time(String),
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl Cell {
    /// A time, or nothing.
    pub fn time(time: Option<impl ToString>) -> Self {
        Self::Time(time.map_or_else(String::new, |time| time.to_string()))
    }

    fn shown(&self, is_short: bool) -> String {
        match self {
            Self::Text(text) => one_line(text),
            Self::Time(time) => match time.get(..MINUTES).filter(|_| is_short) {
                Some(short) => one_line(&format!("{}Z", short.replace('T', " "))),
                None => one_line(time),
            },
        }
    }
}

/// A table. On a terminal it is as wide as the terminal at most, and values that do not fit are
/// cut; elsewhere every value is whole.
#[derive(Debug)]
pub struct Table {
    headers: Vec<&'static str>,
    /// The columns that are cut first.
    cut: Vec<usize>,
    rows: Vec<Vec<Cell>>,
    empty: &'static str,
}

impl Table {
    /// A table with these columns; `empty` is printed when it has no row. Columns whose header ends
    /// with `…` are cut first.
    pub fn new(empty: &'static str, headers: &[&'static str]) -> Self {
        let cut = headers.iter().enumerate().filter(|(_, header)| header.ends_with('…'));
        Self {
            cut: cut.map(|(column, _)| column).collect(),
            headers: headers.iter().map(|header| header.trim_end_matches('…')).collect(),
            rows: Vec::new(),
            empty,
        }
    }

    /// Adds a row.
    pub fn row<const N: usize>(&mut self, cells: [Cell; N]) {
        self.rows.push(cells.into());
    }

    /// Prints the table, or that it is empty.
    pub fn print(&self) {
        if self.rows.is_empty() {
            return say(self.empty);
        }
        let size = is_interactive().then(terminal_size);
        print(&self.text(size.map(|size| size.map_or(USUAL_WIDTH, |(Width(width), _)| width))));
    }

    /// The same, unless the list was printed as JSON.
    pub fn print_unless(&self, format: Format) {
        if !format.is_json() {
            self.print();
        }
    }

    /// The table as text, with a width on terminals.
    pub fn text(&self, width: Option<u16>) -> String {
        let mut drawn = Drawn::new();
        let mut headers = Row::from(self.headers.clone());
        headers.max_height(1);
        drawn.load_style(NOTHING).set_header(headers);
        for row in &self.rows {
            let cells = row.iter().map(|cell| cell.shown(width.is_some()));
            let mut row = Row::from(cells.collect::<Vec<String>>());
            row.max_height(1);
            drawn.add_row(row);
        }
        drawn.set_truncation_indicator("…");
        if let Some(width) = width {
            drawn.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
            self.keep_whole(&mut drawn, width);
        }
        let last = self.headers.len().saturating_sub(1);
        for (number, column) in drawn.column_iter_mut().enumerate() {
            column.set_padding((0, if number == last { 0 } else { 2 }));
        }
        let lines = drawn.lines().map(|line| line.trim_end().to_owned());
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Columns keep their width as long as the others have some room.
    fn keep_whole(&self, drawn: &mut Drawn, width: u16) {
        let whole = |number: &usize| !self.cut.contains(number);
        let widths = drawn.column_max_content_widths();
        let mut left = width.saturating_sub(u16::try_from(self.cut.len()).unwrap_or(width) * ROOM);
        for number in (0..self.headers.len()).filter(whole) {
            let wanted = widths.get(number).copied().unwrap_or_default().saturating_add(2);
            let Some(rest) = left.checked_sub(wanted) else { continue };
            left = rest;
            if let Some(column) = drawn.column_mut(number) {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new("no tests found", &["ID", "STATE", "CREATED", "NAME…"]);
        let time = || Cell::time(Some("2026-01-31T12:00:05.123Z"));
        table.row(["1".into(), "valid".into(), time(), "a name\n2 forged".into()]);
        table.row(["22".into(), "ended".into(), time(), "x".repeat(80).into()]);
        table
    }

    #[test]
    fn values_are_whole_outside_of_terminals() {
        let text = table().text(None);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "ID  STATE  CREATED                   NAME");
        assert_eq!(lines[1], "1   valid  2026-01-31T12:00:05.123Z  a name 2 forged");
        assert!(lines.len() == 3 && lines[2].ends_with(&"x".repeat(80)), "{text}");
    }

    #[test]
    fn a_table_fits_into_the_terminal() {
        for width in [40, 60, 80] {
            let text = table().text(Some(width));
            assert!(text.lines().all(|line| line.chars().count() <= width.into()), "{text}");
            assert_eq!(text.lines().count(), 3, "{text}");
            assert!(text.contains("1   valid  2026-01-31 12:00Z  a name"), "{text}");
            assert!(text.ends_with('…'), "{text}");
        }
    }
}
