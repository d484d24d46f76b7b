//! The health of a queue: outcomes, durations and restarts.

use std::collections::BTreeMap;

use signalbox_domain::queue::{Move, PassReason, PrState, QueuedReason};
use signalbox_domain::time::{Span, Timestamp};
use time::OffsetDateTime;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;

use super::QueueAddress;
use super::failing_hours;
use super::load::{self, Parts};
use crate::model::{Block, Cell, Page, Section, Table, Tile};
use crate::svg::{Buckets, Series, lines, stacked};
use crate::text::span;

/// The fewest merges for which percentiles are shown.
const ENOUGH: usize = 20;

/// The data of the page.
pub(crate) struct Seen<'a> {
    pub(crate) place: &'a QueueAddress,
    /// Changes of state since [`read_since`], oldest first.
    pub(crate) moves: &'a [Move],
    /// When the queue was created.
    pub(crate) created_at: Timestamp,
    /// How many pull requests are in the line now, and how many of them are being tested.
    pub(crate) line: (u64, u64),
    pub(crate) range: Range,
    pub(crate) now: Timestamp,
}

/// The outcomes of a queue within a part of the time.
#[derive(Default)]
struct Bucket {
    label: String,
    merged: u64,
    failed: u64,
    cancelled: u64,
    stays: Vec<Span>,
}

pub(super) fn percentile(sorted: &[Span], percent: usize) -> Option<Span> {
    let last = sorted.len().checked_sub(1)?;
    sorted.get((last * percent).div_ceil(100)).copied()
}

/// The time that is shown, which ends now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) hours: u32,
}

impl Range {
    /// The ranges that the page links to.
    const LINKED: [Self; 5] =
        [Self { hours: 1 }, Self { hours: 6 }, Self::days(1), Self::days(7), Self::days(30)];

    /// The longest one that is compared with the same time before.
    const COMPARED: u32 = Self::days(7).hours;

    pub(crate) const fn days(days: u32) -> Self {
        Self { hours: days * 24 }
    }

    fn span(self) -> Span {
        Span::hours(self.hours)
    }

    /// `6 h`, `7 d`.
    fn name(self) -> String {
        match self.hours {
            ..24 => format!("{} h", self.hours),
            24.. => format!("{} d", self.hours / 24),
        }
    }

    /// Its part of an address.
    fn query(self) -> String {
        match self.hours {
            ..24 => format!("hours={}", self.hours),
            24.. => format!("days={}", self.hours / 24),
        }
    }

    /// The length of a part: there are 12 to 57 of them.
    fn step(self) -> Span {
        match self.hours {
            ..=3 => Span::minutes(5),
            4..=12 => Span::minutes(15),
            13..=48 => Span::hours(1),
            49..=336 => Span::hours(6),
            337.. => Span::days(1),
        }
    }

    /// The start of the first part: that long before now, and up to a part more.
    fn start(self, now: Timestamp) -> Timestamp {
        now.minus(self.span()).floor(self.step())
    }

    const fn is_compared(self) -> bool {
        self.hours <= Self::COMPARED
    }
}

/// The least time of which changes are read: the time to merge is known only of pull requests whose
/// submission is read.
const READ_DAYS: u32 = 2;

/// From when on changes of state are read.
pub(crate) fn read_since(range: Range, now: Timestamp) -> Timestamp {
    let compared = if range.is_compared() { 2 * range.hours } else { range.hours };
    range.start(now).min(now.minus(Span::hours(compared).max(Span::days(READ_DAYS))))
}

/// The changes from a time on.
fn after(moves: &[Move], at: Timestamp) -> &[Move] {
    moves.split_at(moves.partition_point(|it| it.at < at)).1
}

/// When pull requests merged, and how long they were in the queue.
fn stays(moves: &[Move]) -> Vec<(Timestamp, Span)> {
    let mut entered = BTreeMap::new();
    let mut stays = Vec::new();
    for it in moves {
        if it.from.is_none() {
            entered.insert(it.entry, it.at);
        }
        if it.to == PrState::Merged {
            stays.extend(entered.get(&it.entry).map(|from| (it.at, it.at.since(*from))));
        }
    }
    stays
}

/// How many pull requests moved to a state.
fn count<'a>(moves: impl IntoIterator<Item = &'a Move>, to: PrState) -> u64 {
    moves.into_iter().map(|it| u64::from(it.to == to)).sum()
}

/// Equal parts of the time, which begin at multiples of their length; the last one has not ended.
fn parts(range: Range, now: Timestamp) -> Parts {
    let (step, start) = (range.step(), range.start(now));
    let after = |at: &Timestamp| Some(at.plus(step)).filter(|next| *next <= now);
    let starts: Vec<Timestamp> = std::iter::successors(Some(start), after).collect();
    let is_in_days = step >= Span::days(1);
    let name = if is_in_days { DAY } else { MOMENT };
    let names = starts.iter().map(|at| shown(*at, name)).collect();
    // The time between two labels.
    let every = match range.hours {
        ..=3 => Span::minutes(15),
        4..=12 => Span::hours(1),
        13..=24 => Span::hours(3),
        25..=336 => Span::days(1),
        337.. => Span::days(4),
    };
    let label = if range.hours <= 24 { CLOCK } else { DAY };
    let is_tick = |at: usize, time: Timestamp| {
        if is_in_days {
            let days = usize::try_from(every.micros() / step.micros()).unwrap_or(1);
            at.is_multiple_of(days)
        } else {
            time.floor(every) == time
        }
    };
    let ticks = starts.iter().enumerate().filter(|(at, time)| is_tick(*at, **time));
    let ticks = ticks.map(|(at, time)| (at, shown(*time, label)));
    Parts { start, step, buckets: Buckets { names, ticks: ticks.collect() } }
}

const CLOCK: &[BorrowedFormatItem<'_>] = format_description!("[hour]:[minute]");
pub(super) const DAY: &[BorrowedFormatItem<'_>] =
    format_description!("[day padding:none] [month repr:short]");
const MOMENT: &[BorrowedFormatItem<'_>] =
    format_description!("[day padding:none] [month repr:short] [hour]:[minute]");

pub(super) fn shown(at: Timestamp, format: &[BorrowedFormatItem<'_>]) -> String {
    OffsetDateTime::from(at).format(format).unwrap_or_default()
}

fn buckets(moves: &[Move], stays: &[(Timestamp, Span)], parts: &Parts) -> Vec<Bucket> {
    let label = |label: &String| Bucket { label: label.clone(), ..Bucket::default() };
    let mut buckets: Vec<Bucket> = parts.buckets.names.iter().map(label).collect();
    for it in moves {
        let Some(bucket) = buckets.get_mut(parts.of(it.at)) else { continue };
        match it.to {
            PrState::Merged => bucket.merged += 1,
            PrState::Failed => bucket.failed += 1,
            PrState::Cancelled => bucket.cancelled += 1,
            PrState::NotReady
            | PrState::Pending
            | PrState::Testing
            | PrState::TestsPassed
            | PrState::PendingFailure => {}
        }
    }
    for (at, stay) in stays.iter().filter(|(at, _)| *at >= parts.start) {
        if let Some(bucket) = buckets.get_mut(parts.of(*at)) {
            bucket.stays.push(*stay);
        }
    }
    for bucket in &mut buckets {
        bucket.stays.sort_unstable();
    }
    buckets
}

/// The page.
pub(crate) fn page(seen: &Seen<'_>) -> Page {
    let (parts, range) = (parts(seen.range, seen.now), seen.range);
    let (drawn, every_stay) = (after(seen.moves, parts.start), stays(seen.moves));
    let buckets = buckets(drawn, &every_stay, &parts);
    let since = seen.now.minus(range.span());
    let recent = after(seen.moves, since);
    let (merged, failed) = (count(recent, PrState::Merged), count(recent, PrState::Failed));
    let recent_stays = every_stay.iter().filter(|(at, _)| *at >= since);
    let mut stays: Vec<Span> = recent_stays.map(|(_, stay)| *stay).collect();
    stays.sort_unstable();
    let tests = recent.iter().filter(|it| it.from == Some(PrState::Testing)).count();
    let restarts =
        recent.iter().filter(|it| it.from == Some(PrState::Testing) && it.to == PrState::Pending);
    let restarts = restarts.count();
    let saved = recent
        .iter()
        .filter(|it| it.to == PrState::TestsPassed && it.reason == PassReason::Successor.into());
    let saved = saved.count();
    let split = recent.iter().filter(|it| it.reason == QueuedReason::BisectionRequired.into());
    let split = split.count();
    let per = |count: usize| {
        let landed = usize::try_from(merged).unwrap_or(0);
        let hundredths = (count * 100).checked_div(landed);
        hundredths.map_or("–".to_owned(), |it| format!("{}.{:02}", it / 100, it % 100))
    };
    let tile = |label, value: String, note: String| Tile { label, value, note, href: None };
    let success = |merged: u64, failed: u64| {
        let percent = (merged * 100).checked_div(merged + failed);
        percent.map_or_else(|| "–".to_owned(), |it| format!("{it} %"))
    };
    let twice = since.minus(range.span());
    let has_before = range.is_compared() && seen.created_at <= twice;
    let before = || after(seen.moves, twice).iter().take_while(|it| it.at < since);
    let merged_before = count(before(), PrState::Merged);
    let failed_before = count(before(), PrState::Failed);
    let before = |value: String, otherwise: String| {
        if has_before { format!("{value} in the previous {}", range.name()) } else { otherwise }
    };
    let enough = stays.len() >= ENOUGH;
    let typical = |percent| {
        let value = percentile(&stays, percent).filter(|_| enough);
        value.map_or_else(|| "–".to_owned(), span)
    };
    let few = if enough {
        "to a merge".to_owned()
    } else {
        format!("needs {ENOUGH} merges, has {}", stays.len())
    };
    let left = seen.place.path("queue/left");
    let tiles = vec![
        Tile {
            href: (range.hours >= 24).then(|| format!("{left}&{}", range.query())),
            ..tile(
                "Merged",
                merged.to_string(),
                before(merged_before.to_string(), format!("in {}", range.name())),
            )
        },
        tile(
            "Success rate",
            success(merged, failed),
            before(success(merged_before, failed_before), "of merged and failed".to_owned()),
        ),
        tile("Median time to merge", typical(50), few.clone()),
        tile("95th percentile", typical(95), few),
        tile("Tests per merge", per(tests), "1 is best".to_owned()),
        tile(
            "Restarts per merge",
            per(restarts),
            "because a pull request ahead changed".to_owned(),
        ),
        tile("Passed with a later one", saved.to_string(), "optimistic merges".to_owned()),
        tile("In bisected batches", split.to_string(), "tested again in halves".to_owned()),
    ];
    let series = [
        Series {
            class: "good",
            name: "merged",
            values: buckets.iter().map(|it| it.merged).collect(),
        },
        Series {
            class: "bad",
            name: "failed",
            values: buckets.iter().map(|it| it.failed).collect(),
        },
        Series {
            class: "quiet",
            name: "cancelled",
            values: buckets.iter().map(|it| it.cancelled).collect(),
        },
    ];
    let mut twin = Table::new(
        "outcomes-table",
        "Outcomes of the queue",
        &["Time", "#Merged", "#Failed", "#Cancelled"],
    )
    .empty("No pull request left the queue in this time.");
    let mut durations = Table::new(
        "times-table",
        "Minutes from submission to merge",
        &["Time", "#Half", "#95 %", "#Merges"],
    )
    .empty("No pull request merged in this time.");
    for (at, it) in buckets.iter().enumerate() {
        if it.merged + it.failed + it.cancelled > 0 {
            twin.push(
                at,
                vec![
                    Cell::text(&it.label),
                    Cell::number(it.merged),
                    Cell::number(it.failed),
                    Cell::number(it.cancelled),
                ],
            );
        }
        if let (Some(half), Some(most)) = (percentile(&it.stays, 50), percentile(&it.stays, 95)) {
            durations.push(
                at,
                vec![
                    Cell::text(&it.label),
                    Cell::number(span(half)),
                    Cell::number(span(most)),
                    Cell::number(it.stays.len()),
                ],
            );
        }
    }
    let minutes = |percent| -> Vec<Option<u64>> {
        let of = |it: &Bucket| {
            percentile(&it.stays, percent)
                .map(|it| u64::try_from(it.millis() / 60_000).unwrap_or(0))
        };
        buckets.iter().map(of).collect()
    };
    let outcomes = stacked("outcomes", "Outcomes of the queue", &parts.buckets, &series);
    let waits = lines(
        "times",
        "Minutes from submission to merge",
        &parts.buckets,
        &[("c1", "half", minutes(50)), ("c2", "95 %", minutes(95))],
        "min",
    );
    let spent = load::time_by_state(drawn, &parts);
    let depth = load::depth(drawn, &parts, seen.line);
    let links = Range::LINKED.iter().map(|it| {
        let address = format!("{}&{}", seen.place.path("queue/health"), it.query());
        Cell::text(it.name()).maybe_link((*it != range).then_some(address))
    });
    let hourly = failing_hours::section(recent, range, seen.now);
    Page {
        title: format!("Health: {}", seen.place.name()),
        heading: "Health".to_owned(),
        above: vec![
            Cell::text("Queues").link("/"),
            Cell::text(seen.place.name()).link(seen.place.path("queue")),
        ],
        menu: seen.place.menu("queue/health"),
        sections: vec![
            Section::new("numbers", format!("Last {}", range.name()))
                .with(Block::Links(links.collect()))
                .with(Block::Tiles(tiles)),
            Section::new("outcomes-part", "Outcomes of the queue")
                .with(Block::Chart(Box::new(outcomes), twin)),
            Section::new("times-part", "Minutes from submission to merge")
                .with(Block::Chart(Box::new(waits), durations)),
            Section::new("spent-part", "Time in each state (minutes)")
                .with(Block::Chart(Box::new(spent.0), spent.1)),
            Section::new("depth-part", "Longest line and most pull requests testing")
                .with(Block::Chart(Box::new(depth.0), depth.1)),
        ]
        .into_iter()
        .chain(hourly)
        .collect(),
        curl:
            "curl -H \"x-api-token: $SIGNALBOX_TOKEN\" \"$SIGNALBOX_URL/v1/getMergeQueueMetrics\""
                .to_owned(),
        ..Page::default()
    }
}

#[cfg(test)]
mod tests {
    use signalbox_domain::ids::{EntryId, PrNumber};
    use signalbox_domain::queue::{Actor, Reason};
    use uuid::Uuid;

    use super::*;

    fn moved(day: u32, pr: u32, from: Option<PrState>, to: PrState) -> Move {
        Move {
            number: 0,
            ordinal: 0,
            at: Timestamp::from_unix_seconds(0).plus(Span::days(day)),
            entry: EntryId(Uuid::from_u128(pr.into())),
            pr: PrNumber(pr),
            from,
            to,
            reason: Reason::Started,
            actor: Actor::Queue,
            run: None,
            bisection: false,
            after: Span::ZERO,
            details: Vec::new(),
        }
    }

    /// Every range that an address can have.
    fn every_range() -> impl Iterator<Item = Range> {
        let days = (1..=30).map(Range::days);
        (1..24).map(|hours| Range { hours }).chain(days)
    }

    #[test]
    fn a_stay_counts_where_it_ends_also_if_it_began_before() {
        let (waiting, merged) = (Some(PrState::Pending), PrState::Merged);
        let moves = [
            moved(1, 1, None, PrState::Pending),
            moved(2, 2, None, PrState::Pending),
            moved(9, 1, waiting, merged),
            moved(10, 2, waiting, PrState::Failed),
            moved(11, 3, waiting, merged),
        ];
        let at = |day| Timestamp::from_unix_seconds(0).plus(Span::days(day));
        assert_eq!(stays(&moves), [(at(9), Span::days(8))], "when #3 was submitted is unknown");
        let recent = after(&moves, at(9));
        assert_eq!((count(recent, merged), count(recent, PrState::Failed)), (2, 1));
        assert_eq!(after(&moves, at(12)).len(), 0);
    }

    #[test]
    fn enough_is_read_for_the_charts_and_for_the_days_before() {
        let now = Timestamp::from_unix_seconds(1_764_294_000);
        for range in every_range() {
            let hours = range.hours;
            let since = read_since(range, now);
            assert!(since <= range.start(now), "{hours}");
            assert!(since <= now.minus(Span::days(READ_DAYS)), "{hours}");
            let twice = now.minus(Span::hours(2 * hours));
            assert_eq!(since <= twice, range.is_compared(), "{hours}");
        }
        assert_eq!(
            [CLOCK, DAY, MOMENT].map(|it| shown(now, it)),
            ["01:40", "28 Nov", "28 Nov 01:40"]
        );
    }

    #[test]
    fn parts_begin_at_round_times_and_end_now() {
        let now = Timestamp::from_unix_seconds(1_764_294_000);
        let drawn = |hours| parts(Range { hours }, now).buckets;
        for range in every_range() {
            let Buckets { names, ticks } = drawn(range.hours);
            assert!((12..=58).contains(&names.len()), "{range:?}: {}", names.len());
            assert!((2..=15).contains(&ticks.len()), "{range:?}: {ticks:?}");
        }
        let counts = [1, 6, 24, 168, 720].map(|hours| drawn(hours).names.len());
        assert_eq!(counts, [13, 25, 25, 29, 31]);
        let hour = drawn(1);
        assert_eq!((&*hour.names[0], &*hour.names[12]), ("28 Nov 00:40", "28 Nov 01:40"));
        let labels: Vec<&str> = hour.ticks.iter().map(|(_, label)| label.as_str()).collect();
        assert_eq!(labels, ["00:45", "01:00", "01:15", "01:30"]);
        assert_eq!(drawn(168).names[0], "21 Nov 00:00");
    }

    #[test]
    fn percentiles_are_taken_from_the_values() {
        let spans: Vec<Span> = (1..=100).map(Span::seconds).collect();
        assert_eq!(percentile(&spans, 50), Some(Span::seconds(51)));
        assert_eq!(percentile(&spans, 95), Some(Span::seconds(96)));
        assert_eq!(percentile(&spans[..1], 95), Some(Span::seconds(1)));
        assert_eq!(percentile(&[], 50), None);
    }
}
