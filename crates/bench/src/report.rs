//! The figures: as a table to read, as JSON to keep.

use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;

use crate::failure::{During, Failure};
use crate::measure::{Turns, median};
use crate::setup::Setup;

/// One line of the table.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    /// The measured operation.
    operation: &'static str,
    /// On which data.
    data: String,
    /// The unit of the figures: `µs`, `ms`, `MiB`, `steps/s`, `×`.
    unit: &'static str,
    /// The floor's median.
    floor: Option<f64>,
    /// The product's median.
    product: f64,
    /// The share of the floor's throughput that is left; above 1 the product is faster.
    ratio: Option<f64>,
    /// The largest minus the smallest of the product's rounds, as a share of the median.
    spread: Option<f64>,
    /// The goal.
    goal: Option<String>,
    /// Whether it was reached.
    met: Option<bool>,
}

impl Row {
    /// A figure without a floor.
    pub(crate) const fn of(
        operation: &'static str,
        data: String,
        product: f64,
        unit: &'static str,
    ) -> Self {
        let (floor, ratio, spread) = (None, None, None);
        Self { operation, data, unit, floor, product, ratio, spread, goal: None, met: None }
    }

    /// Costs of one operation in microseconds, against the floor's.
    pub(crate) fn against(operation: &'static str, data: String, turns: &Turns) -> Self {
        let (floor, product) = (median(&turns.floor), median(&turns.product));
        let (least, most) = turns
            .product
            .iter()
            .fold((f64::MAX, 0.0_f64), |(least, most), it| (least.min(*it), most.max(*it)));
        Self {
            floor: Some(floor),
            ratio: Some(floor / product),
            spread: Some((most - least) / product),
            ..Self::of(operation, data, product, "µs")
        }
    }

    /// The same with a goal, and whether it was reached.
    pub(crate) fn with_goal(self, goal: &str, met: bool) -> Self {
        Self { goal: Some(goal.to_owned()), met: Some(met), ..self }
    }

    /// The same with the least share of the floor's throughput as the goal.
    pub(crate) fn at_least(self, ratio: f64) -> Self {
        let met = self.ratio.is_some_and(|it| it >= ratio);
        self.with_goal(&format!("≥ {ratio} ×"), met)
    }

    /// The product's median.
    pub(crate) const fn product(&self) -> f64 {
        self.product
    }

    /// The measured operation.
    pub(crate) const fn operation(&self) -> &'static str {
        self.operation
    }

    /// The data that it was measured on.
    pub(crate) fn data(&self) -> &str {
        &self.data
    }

    /// The unit of the figures.
    pub(crate) const fn unit(&self) -> &'static str {
        self.unit
    }

    /// The share of the floor's throughput that is left, if there is a floor.
    pub(crate) const fn share(&self) -> Option<f64> {
        self.ratio
    }

    /// The same, 0 without a floor.
    pub(crate) fn ratio(&self) -> f64 {
        self.ratio.unwrap_or_default()
    }
}

/// Everything that a run found out.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    rounds: u32,
    quick: bool,
    cores: usize,
    rows: Vec<Row>,
    notes: Vec<String>,
}

impl Report {
    /// Nothing yet.
    pub(crate) fn new(setup: &Setup) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let (rows, notes) = (Vec::new(), Vec::new());
        Self { rounds: setup.rounds, quick: setup.quick, cores, rows, notes }
    }

    /// Adds a line.
    pub(crate) fn add(&mut self, row: Row) {
        crate::tell(&format!("  {}", line(&row)));
        self.rows.push(row);
    }

    /// The lines.
    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Adds a sentence below the table.
    pub(crate) fn note(&mut self, words: String) {
        crate::tell(&format!("  {words}"));
        self.notes.push(words);
    }

    /// The table in Markdown, and the notes.
    pub(crate) fn table(&self) -> String {
        let mut text = String::from(
            "| operation | data | floor | product | share of the floor | goal | met |\n\
             |---|---|--:|--:|--:|---|---|\n",
        );
        for row in &self.rows {
            text.push_str(&line(row));
            text.push('\n');
        }
        let (rounds, cores) = (self.rounds, self.cores);
        let _ =
            writeln!(text, "\nRounds: {rounds}, of which the medians are shown. Cores: {cores}.");
        for note in &self.notes {
            let _ = writeln!(text, "\n{note}");
        }
        text
    }

    /// Writes everything to a file.
    pub(crate) fn write_json(&self, path: &Path) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(self).during("the report")?;
        let what = path.display().to_string();
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).during(&what)?;
        }
        std::fs::write(path, text + "\n").during(&what)
    }
}

fn line(row: &Row) -> String {
    let floor = row.floor.map_or_else(|| "–".to_owned(), |floor| figure(floor, row.unit));
    let ratio = row.ratio.map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2} ×"));
    let met = row.met.map_or("", |met| if met { "yes" } else { "no" });
    format!(
        "| {} | {} | {floor} | {} | {ratio} | {} | {met} |",
        row.operation,
        row.data,
        figure(row.product, row.unit),
        row.goal.as_deref().unwrap_or("–"),
    )
}

/// A figure with its unit.
pub(crate) fn figure(value: f64, unit: &str) -> String {
    format!("{} {unit}", rounded(value))
}

/// Three digits that matter, thousands apart.
fn rounded(value: f64) -> String {
    if value < 10.0 {
        return format!("{value:.2}");
    }
    if value < 100.0 {
        return format!("{value:.1}");
    }
    grouped(&format!("{value:.0}"))
}

fn grouped(digits: &str) -> String {
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A whole number with its thousands apart.
pub(crate) fn count(number: usize) -> String {
    grouped(&number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        for (value, text) in
            [(0.123_4, "0.12"), (12.34, "12.3"), (123.4, "123"), (1_234_567.0, "1,234,567")]
        {
            assert_eq!(rounded(value), text);
        }
    }

    #[test]
    fn a_share_below_the_goal_is_reported_as_missed() {
        let turns = Turns { floor: vec![40.0], product: vec![100.0] };
        let row = Row::against("x", "y".to_owned(), &turns).at_least(0.5);
        assert_eq!(line(&row), "| x | y | 40.0 µs | 100 µs | 0.40 × | ≥ 0.5 × | no |");
    }
}
