//! The load of a queue: the time by state, and the length of the line.

use signalbox_domain::queue::{Move, PrState};
use signalbox_domain::time::{Span, Timestamp};
use signalbox_wording::Named;

use crate::model::{Cell, Table};
use crate::svg::{Buckets, Chart, Series, lines, stacked};
use crate::text::span;

/// Equal parts of the time, the first one first.
pub(crate) struct Parts {
    pub(crate) start: Timestamp,
    pub(crate) step: Span,
    pub(crate) buckets: Buckets,
}

impl Parts {
    /// The part that a time is in; the last one for later times.
    pub(crate) fn of(&self, at: Timestamp) -> usize {
        let part = at.since(self.start).micros() / self.step.micros().max(1);
        usize::try_from(part).unwrap_or(0).min(self.buckets.names.len().saturating_sub(1))
    }
}

/// The states in which time passes, and how each is drawn.
const STATES: [(PrState, &str); 5] = [
    (PrState::NotReady, "quiet"),
    (PrState::Pending, "c2"),
    (PrState::Testing, "c1"),
    (PrState::PendingFailure, "c3"),
    (PrState::TestsPassed, "good"),
];

/// The time that pull requests have spent in each state, by when they left it.
pub(crate) fn time_by_state(moves: &[Move], parts: &Parts) -> (Chart, Table) {
    let mut spent = vec![[Span::ZERO; STATES.len()]; parts.buckets.names.len()];
    for it in moves {
        let state = STATES.iter().position(|(state, _)| Some(*state) == it.from);
        let of = state.and_then(|state| spent.get_mut(parts.of(it.at))?.get_mut(state));
        if let Some(of) = of {
            *of = Span::from_micros(of.micros().saturating_add(it.after.micros()));
        }
    }
    let title = "Time in each state (minutes)";
    let minutes = |of: &Span| u64::try_from(of.millis() / 60_000).unwrap_or(0);
    let series = STATES.iter().enumerate().map(|(at, (state, class))| Series {
        class,
        name: state.named().label,
        values: spent.iter().map(|it| it.get(at).map_or(0, minutes)).collect(),
    });
    let chart = stacked("spent", title, &parts.buckets, &series.collect::<Vec<_>>());
    let heads = ["Time", "#To enter", "#To be tested", "#Testing", "#Pending failure", "#To merge"];
    let mut table =
        Table::new("spent-table", "Time that pull requests spent in each state", &heads)
            .empty("No pull request changed its state in this time.");
    for (at, (label, spent)) in parts.buckets.names.iter().zip(&spent).enumerate() {
        if spent.iter().any(|it| *it > Span::ZERO) {
            let mut row = vec![Cell::text(label)];
            row.extend(spent.iter().map(|it| Cell::number(span(*it))));
            table.push(at, row);
        }
    }
    (chart, table)
}

const fn stands(state: Option<PrState>) -> bool {
    matches!(
        state,
        Some(PrState::Pending | PrState::Testing | PrState::TestsPassed | PrState::PendingFailure)
    )
}

const fn tests(state: Option<PrState>) -> bool {
    matches!(state, Some(PrState::Testing))
}

/// Longest line and most pull requests testing, counted back from now.
pub(crate) fn depth(moves: &[Move], parts: &Parts, now: (u64, u64)) -> (Chart, Table) {
    let (mut line, mut testing) = now;
    let mut peaks: Vec<(u64, u64)> = vec![(0, 0); parts.buckets.names.len()];
    let mut reached = parts.buckets.names.len().saturating_sub(1);
    let mut note = |from: usize, to: usize, line: u64, testing: u64| {
        for peak in peaks.iter_mut().take(to + 1).skip(from) {
            *peak = (peak.0.max(line), peak.1.max(testing));
        }
    };
    let before = |count: u64, was: bool, is: bool| match (was, is) {
        (true, false) => count.saturating_add(1),
        (false, true) => count.saturating_sub(1),
        (true, true) | (false, false) => count,
    };
    for it in moves.iter().rev() {
        let part = parts.of(it.at);
        note(part, reached, line, testing);
        reached = part;
        let to = Some(it.to);
        line = before(line, stands(it.from), stands(to));
        testing = before(testing, tests(it.from), tests(to));
    }
    note(0, reached, line, testing);
    let title = "Longest line and most pull requests testing";
    let values = |of: fn(&(u64, u64)) -> u64| peaks.iter().map(|it| Some(of(it))).collect();
    let series = [("c1", "in the line", values(|it| it.0)), ("c2", "testing", values(|it| it.1))];
    let chart = lines("depth", title, &parts.buckets, &series, "");
    let mut table = Table::new("depth-table", title, &["Time", "#In the line", "#Testing"])
        .empty("The queue was empty for the whole time.");
    for (at, (label, peak)) in parts.buckets.names.iter().zip(&peaks).enumerate() {
        if *peak != (0, 0) {
            let row = vec![Cell::text(label), Cell::number(peak.0), Cell::number(peak.1)];
            table.push(at, row);
        }
    }
    (chart, table)
}

#[cfg(test)]
mod tests {
    use signalbox_domain::ids::{EntryId, PrNumber};
    use signalbox_domain::queue::{Actor, Reason};
    use uuid::Uuid;

    use super::*;

    fn moved(minute: u32, from: Option<PrState>, to: PrState, after: u32) -> Move {
        Move {
            number: 0,
            ordinal: 0,
            at: Timestamp::from_unix_seconds(0).plus(Span::minutes(minute)),
            entry: EntryId(Uuid::nil()),
            pr: PrNumber(1),
            from,
            to,
            reason: Reason::Started,
            actor: Actor::Queue,
            run: None,
            bisection: false,
            after: Span::minutes(after),
            details: Vec::new(),
        }
    }

    fn parts() -> Parts {
        Parts {
            start: Timestamp::from_unix_seconds(0),
            step: Span::minutes(10),
            buckets: Buckets {
                names: ["a", "b", "c"].map(ToOwned::to_owned).to_vec(),
                ticks: Vec::new(),
            },
        }
    }

    fn rows(table: &Table) -> Vec<Vec<String>> {
        let row = |it: &crate::model::Row| it.cells.iter().map(|it| it.text.clone()).collect();
        table.rows.iter().map(row).collect()
    }

    #[test]
    fn time_counts_where_a_state_was_left() {
        let moves = [
            moved(2, Some(PrState::NotReady), PrState::Pending, 2),
            moved(12, Some(PrState::Pending), PrState::Testing, 10),
            moved(19, Some(PrState::Testing), PrState::Failed, 7),
        ];
        let (chart, table) = time_by_state(&moves, &parts());
        let found = rows(&table);
        assert_eq!(found[0], ["a", "2 min", "0 s", "0 s", "0 s", "0 s"]);
        assert_eq!(found[1], ["b", "0 s", "10 min", "7 min", "0 s", "0 s"]);
        let bars = chart.rects.iter().filter(|it| it.class != "hit");
        assert_eq!((found.len(), bars.count()), (2, 3));
    }

    #[test]
    fn the_line_is_counted_back_from_now() {
        // One stood there before and still does; another came and went within the first part.
        let moves = [
            moved(1, None, PrState::Pending, 0),
            moved(3, Some(PrState::Pending), PrState::Testing, 2),
            moved(5, Some(PrState::Testing), PrState::Failed, 2),
        ];
        let (_, table) = depth(&moves, &parts(), (1, 0));
        assert_eq!(rows(&table), [["a", "2", "1"], ["b", "1", "0"], ["c", "1", "0"]]);
        let (_, table) = depth(&[], &parts(), (0, 0));
        assert_eq!(table.rows.len(), 0);
    }
}
