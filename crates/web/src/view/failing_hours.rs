//! When pull requests failed: by day of the week and hour.

use std::collections::BTreeMap;

use signalbox_domain::queue::{Move, PrState};
use signalbox_domain::time::{Span, Timestamp};
use time::{OffsetDateTime, Weekday};

use super::health::Range;
use crate::model::{Block, Cell, Section, Table};
use crate::svg::{Piece, cells};

const WEEK: [Weekday; 7] = [
    Weekday::Monday,
    Weekday::Tuesday,
    Weekday::Wednesday,
    Weekday::Thursday,
    Weekday::Friday,
    Weekday::Saturday,
    Weekday::Sunday,
];
const HOURS: u8 = 24;
/// From none to the most.
const CLASSES: [&str; 5] = ["heat-0", "heat-1", "heat-2", "heat-3", "heat-4"];

/// The section, about the whole weeks of a range, so that each day of the week counts as often; `None` if it
/// has no whole week.
pub(super) fn section(moves: &[Move], range: Range, now: Timestamp) -> Option<Section> {
    let weeks = range.hours / Range::days(7).hours;
    if weeks == 0 {
        return None;
    }
    let since = now.minus(Span::days(7 * weeks));
    let mut failed: BTreeMap<(u8, u8), u64> = BTreeMap::new();
    for it in moves.iter().filter(|it| it.to == PrState::Failed && it.at >= since) {
        let at = OffsetDateTime::from(it.at);
        *failed.entry((at.weekday().number_days_from_monday(), at.hour())).or_default() += 1;
    }
    let title = "Failed pull requests by hour";
    let most = failed.values().copied().max().unwrap_or(0);
    let row = |day: Weekday| {
        let pieces = (0..HOURS).map(|hour| {
            let count = failed.get(&(day.number_days_from_monday(), hour)).copied().unwrap_or(0);
            Piece {
                from: hour.into(),
                to: usize::from(hour) + 1,
                class: class(count, most),
                what: if count == 0 { String::new() } else { count.to_string() },
                title: if count == 0 {
                    String::new()
                } else {
                    format!("{day} {hour:02}:00: {count} failed")
                },
            }
        });
        (day.to_string(), pieces.collect())
    };
    let rows: Vec<(String, Vec<Piece>)> = WEEK.into_iter().map(row).collect();
    let labels = (0..HOURS).step_by(3).map(|hour| (usize::from(hour), format!("{hour:02}:00")));
    let labels: Vec<(usize, String)> = labels.collect();
    let chart = cells("failing-hours", title, (HOURS.into(), &labels), &rows);
    let mut table = Table::new("failing-hours-table", title, &["Day", "Hour", "#Failed"])
        .empty("No pull request failed in this time.");
    for ((day, hour), count) in &failed {
        let day = WEEK.get(usize::from(*day)).map(Weekday::to_string).unwrap_or_default();
        let row = vec![Cell::text(day), Cell::text(format!("{hour:02}:00")), Cell::number(count)];
        table.push(table.rows.len(), row);
    }
    let of = if weeks == 1 { "last week".to_owned() } else { format!("last {weeks} weeks") };
    let section = Section::new("failing-hours-part", title).note(format!("{of}, in UTC"));
    Some(section.with(if failed.is_empty() {
        Block::Table(table)
    } else {
        Block::Chart(Box::new(chart), table)
    }))
}

/// The class of a count, by its share of the largest one.
fn class(count: u64, most: u64) -> &'static str {
    let steps = CLASSES.len() - 1;
    let step = (u128::from(count) * 4).div_ceil(u128::from(most.max(1)));
    let step = usize::try_from(step).unwrap_or(steps);
    CLASSES.get(step.min(steps)).copied().unwrap_or("heat-0")
}

#[cfg(test)]
mod tests {
    use signalbox_domain::ids::{EntryId, PrNumber};
    use signalbox_domain::queue::{Actor, Reason};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn the_largest_count_is_darkest_and_none_is_empty() {
        let classes = |most| (0..=most).map(|it| class(it, most)).collect::<Vec<_>>();
        assert_eq!(classes(0), ["heat-0"]);
        assert_eq!(classes(1), ["heat-0", "heat-4"]);
        assert_eq!(classes(4), CLASSES);
        assert_eq!(class(1, 1_000), "heat-1");
        assert_eq!(class(u64::MAX, u64::MAX), "heat-4");
    }

    #[test]
    fn less_than_a_week_has_no_days_to_compare() {
        let now = Timestamp::from_unix_seconds(1_764_294_000);
        let notes = |range| section(&[], range, now).map(|it| it.note);
        assert_eq!(notes(Range { hours: 6 }), None);
        assert_eq!(notes(Range::days(6)), None);
        assert_eq!(notes(Range::days(13)).as_deref(), Some("last week, in UTC"));
        assert_eq!(notes(Range::days(30)).as_deref(), Some("last 4 weeks, in UTC"));
    }

    #[test]
    fn only_whole_weeks_are_counted() {
        let now = Timestamp::from_unix_seconds(1_764_294_000);
        let failed = |days| Move {
            number: 0,
            ordinal: 0,
            at: now.minus(Span::days(days)),
            entry: EntryId(Uuid::from_u128(1)),
            pr: PrNumber(1),
            from: Some(PrState::Testing),
            to: PrState::Failed,
            reason: Reason::Started,
            actor: Actor::Queue,
            run: None,
            bisection: false,
            after: Span::ZERO,
            details: Vec::new(),
        };
        let section = section(&[failed(8), failed(6), failed(6)], Range::days(10), now);
        let Some(Block::Chart(_, table)) = section.expect("a week").blocks.into_iter().next()
        else {
            panic!("no chart");
        };
        let rows: Vec<Vec<&str>> =
            table.rows.iter().map(|row| row.cells.iter().map(|it| &*it.text).collect()).collect();
        assert_eq!(rows, [["Saturday", "01:00", "2"]]);
    }
}
