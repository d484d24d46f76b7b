//! An earlier run, and how the figures have changed since.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde::Deserialize;

use crate::failure::{During, Failure};
use crate::report::{Row, figure};

/// The figures of an earlier run, as written to its file.
#[derive(Debug, Deserialize)]
pub(crate) struct Earlier {
    rows: Vec<EarlierRow>,
}

#[derive(Debug, Deserialize)]
struct EarlierRow {
    operation: String,
    data: String,
    unit: String,
    product: f64,
    ratio: Option<f64>,
}

impl Earlier {
    /// Reads a file that a run has written.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let what = path.display().to_string();
        let text = std::fs::read_to_string(path).during(&what)?;
        serde_json::from_str(&text).during(&what)
    }

    /// The rows of a run beside those of the earlier one, as a table in Markdown. A row that the earlier
    /// run does not have in the same unit is omitted.
    pub(crate) fn compared(&self, rows: &[Row]) -> String {
        let known: BTreeMap<(&str, &str), &EarlierRow> = self
            .rows
            .iter()
            .map(|row| ((row.operation.as_str(), row.data.as_str()), row))
            .collect();
        let mut text = String::from(
            "| operation | data | earlier | now | now ÷ earlier | share of the floor, earlier | now |\n\
             |---|---|--:|--:|--:|--:|--:|\n",
        );
        for row in rows {
            let before = known.get(&(row.operation(), row.data()));
            let Some(before) = before.filter(|before| before.unit == row.unit()) else { continue };
            let change = row.product() / before.product;
            let change = if change.is_finite() { format!("{change:.2}") } else { "–".to_owned() };
            let share = |ratio: Option<f64>| {
                ratio.map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2} ×"))
            };
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {change} | {} | {} |",
                row.operation(),
                row.data(),
                figure(before.product, row.unit()),
                figure(row.product(), row.unit()),
                share(before.ratio),
                share(row.share()),
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Turns;

    #[test]
    fn rows_of_both_runs_are_compared() {
        let file = r#"{"rounds": 3, "rows": [
            {"operation": "x", "data": "both", "unit": "µs", "product": 50.0, "ratio": 0.8},
            {"operation": "x", "data": "was nothing", "unit": "ms", "product": 0.0, "ratio": null},
            {"operation": "x", "data": "other unit", "unit": "s", "product": 1.0, "ratio": null},
            {"operation": "x", "data": "only earlier", "unit": "µs", "product": 1.0, "ratio": null}
        ]}"#;
        let earlier: Earlier = serde_json::from_str(file).expect("a run");
        let turns = Turns { floor: vec![40.0], product: vec![100.0] };
        let rows = [
            Row::against("x", "both".to_owned(), &turns),
            Row::of("x", "was nothing".to_owned(), 1.0, "ms"),
            Row::of("x", "other unit".to_owned(), 1.0, "ms"),
            Row::of("x", "only now".to_owned(), 1.0, "ms"),
        ];
        let table = earlier.compared(&rows);
        let lines: Vec<&str> = table.lines().skip(2).collect();
        let both = "| x | both | 50.0 µs | 100 µs | 2.00 | 0.80 × | 0.40 × |";
        assert_eq!(lines, [both, "| x | was nothing | 0.00 ms | 1.00 ms | – | – | – |"]);
    }
}
