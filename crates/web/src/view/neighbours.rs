//! The pull requests next to one in the line.

use std::cmp::Ordering;

use signalbox_domain::ids::PrNumber;
use signalbox_domain::queue::{Entry, LinePosition, Queue};

use super::QueueAddress;
use super::queue::titled;
use crate::model::{Block, Cell, Section, Table};

/// The most pull requests that are shown on each side.
const MOST: usize = 5;

/// The nearest ones ahead and behind; `None` when it is not in the line.
pub(crate) fn section(place: &QueueAddress, queue: &Queue, pr: PrNumber) -> Option<Section> {
    let line = queue.entries_in_order().take_while(|it| it.place != LinePosition::Outside);
    let line: Vec<&Entry> = line.collect();
    let own = line.iter().position(|it| it.pr == pr)?;
    let heads = ["#Position", "Pull request", "State", "Where"];
    let mut table = Table::new("neighbours", "Neighbors in the line", &heads)
        .empty("No other pull request is in the line.");
    let near = line.iter().enumerate().skip(own.saturating_sub(MOST));
    for (at, it) in near.take_while(|(at, _)| *at <= own + MOST) {
        let side = match at.cmp(&own) {
            Ordering::Less => "ahead",
            Ordering::Equal => continue,
            Ordering::Greater => "behind",
        };
        let (number, state) = (Cell::number(at + 1), Cell::named(&it.state.name()));
        table.push(it.pr, vec![number, titled(it, place), state, Cell::text(side)]);
    }
    let note = format!("{own} ahead, {} behind", line.len() - own - 1);
    Some(Section::new("beside", "Neighbors in the line").note(note).with(Block::Table(table)))
}
