//! How many tests were flaky, broken and quarantined on each of the last days.

use std::collections::BTreeMap;

use signalbox_domain::ports::DayCounts;
use signalbox_domain::time::{Span, Timestamp};

use super::health::{DAY, shown};
use crate::model::{Block, Cell, Section, Table};
use crate::svg::{Buckets, lines};

/// The days that are drawn.
pub(crate) const DAYS: u32 = 45;
/// The fewest days that are a trend.
const FEW: usize = 3;
/// Days are named one by one until there are more than that, then once a week.
const NAMED: usize = 10;

/// The section; `None` while too few days are known. `counts` has the oldest day first.
pub(super) fn section(counts: &[DayCounts]) -> Option<Section> {
    let (first, last) = (counts.first()?.day, counts.last()?.day);
    if counts.len() < FEW {
        return None;
    }
    let by_day: BTreeMap<Timestamp, &DayCounts> = counts.iter().map(|it| (it.day, it)).collect();
    let after = |day: &Timestamp| Some(day.plus(Span::days(1))).filter(|next| *next <= last);
    let days: Vec<Timestamp> = std::iter::successors(Some(first), after).collect();
    let every = if days.len() > NAMED { 7 } else { 1 };
    // The last day is always named, so that it is clear where the chart ends.
    let is_named = |at: usize| (days.len() - 1 - at).is_multiple_of(every);
    let ticks = days.iter().enumerate().filter(|(at, _)| is_named(*at));
    let buckets = Buckets {
        names: days.iter().map(|day| shown(*day, DAY)).collect(),
        ticks: ticks.map(|(at, day)| (at, shown(*day, DAY))).collect(),
    };
    let values = |of: fn(&DayCounts) -> u64| {
        days.iter().map(|day| by_day.get(day).map(|counts| of(counts))).collect()
    };
    let series = [
        ("c1", "flaky", values(|it| it.flaky)),
        ("bad", "broken", values(|it| it.broken)),
        ("c3", "quarantined", values(|it| it.quarantined)),
    ];
    let title = "Flaky, broken and quarantined tests by day";
    let chart = lines("trend", title, &buckets, &series, "");
    let heads = ["Day", "#Flaky", "#Broken", "#Quarantined"];
    let mut table = Table::new("trend-table", title, &heads);
    for (at, it) in counts.iter().enumerate().rev() {
        let row = [it.flaky, it.broken, it.quarantined].map(Cell::number);
        let day = Cell::text(shown(it.day, DAY));
        table.push(at, std::iter::once(day).chain(row).collect());
    }
    let section = Section::new("trend-part", "Trend").note("as last counted on each day in UTC");
    Some(section.with(Block::Chart(Box::new(chart), table)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(days: &[(u32, [u64; 3])]) -> Vec<DayCounts> {
        let start = Timestamp::from_unix_seconds(1_764_547_200);
        let counts = |(day, [flaky, broken, quarantined]): &(u32, [u64; 3])| DayCounts {
            day: start.plus(Span::days(*day)),
            flaky: *flaky,
            broken: *broken,
            quarantined: *quarantined,
        };
        days.iter().map(counts).collect()
    }

    fn drawn(days: &[(u32, [u64; 3])]) -> (crate::svg::Chart, Table) {
        let section = section(&counted(days)).expect("a section");
        match section.blocks.into_iter().next() {
            Some(Block::Chart(chart, table)) => (*chart, table),
            other => panic!("no chart: {other:?}"),
        }
    }

    #[test]
    fn few_days_are_no_trend() {
        assert!(section(&[]).is_none());
        assert!(section(&counted(&[(0, [1, 0, 0]), (9, [2, 0, 0])])).is_none());
    }

    #[test]
    fn a_day_without_counts_is_a_gap() {
        let (chart, table) =
            drawn(&[(0, [3, 1, 2]), (1, [4, 0, 2]), (3, [4, 0, 0]), (4, [5, 0, 0])]);
        let hits: Vec<&str> =
            chart.rects.iter().filter(|it| it.class == "hit").map(|it| it.title.as_str()).collect();
        assert_eq!(
            hits,
            [
                "1 Dec: flaky 3, broken 1, quarantined 2",
                "2 Dec: flaky 4, broken 0, quarantined 2",
                "4 Dec: flaky 4, broken 0, quarantined 0",
                "5 Dec: flaky 5, broken 0, quarantined 0",
            ]
        );
        let of_flaky = chart.lines.iter().filter(|it| it.class == "c1").count();
        assert_eq!(of_flaky, 2, "the line is interrupted");
        let rows: Vec<Vec<&str>> =
            table.rows.iter().map(|row| row.cells.iter().map(|it| &*it.text).collect()).collect();
        assert_eq!(rows[0], ["5 Dec", "5", "0", "0"]);
        assert_eq!(rows.len(), 4);
    }

    #[test]
    fn every_line_has_a_color() {
        let style = include_str!("../../assets/own/signalbox.css");
        let (chart, _) = drawn(&[(0, [3, 1, 2]), (1, [4, 0, 2]), (2, [4, 0, 0])]);
        for line in chart.lines.iter().filter(|it| it.class != "grid") {
            assert!(style.contains(&format!("polyline.{} {{ stroke:", line.class)), "{line:?}");
        }
    }

    #[test]
    fn the_last_day_is_named() {
        let days: Vec<(u32, [u64; 3])> = (0..45).map(|day| (day, [1, 1, 1])).collect();
        let (chart, _) = drawn(&days);
        let named: Vec<&str> = chart
            .texts
            .iter()
            .filter(|it| it.anchor == "middle")
            .map(|it| it.words.as_str())
            .collect();
        assert_eq!(named, ["3 Dec", "10 Dec", "17 Dec", "24 Dec", "31 Dec", "7 Jan", "14 Jan"]);
    }
}
