//! The graph of a queue: which pull requests are tested on top of which, in lanes and batches.

use std::collections::BTreeMap;

use signalbox_domain::ids::PrNumber;
use signalbox_domain::queue::{EntryView, PrState, QueueView, TestRun};
use signalbox_wording::Named;

use super::QueueAddress;
use crate::model::{Block, Cell, Page, Section, Table};
use crate::svg::{Chart, Line, Rect, Text};
use crate::text::plain;

const WIDTH: i64 = 150;
const HEIGHT: i64 = 44;
const GAP_X: i64 = 34;
const GAP_Y: i64 = 14;
/// The most nodes that are drawn.
const MOST: usize = 150;

fn class(state: PrState) -> &'static str {
    match state {
        PrState::Testing => "node-active",
        PrState::TestsPassed | PrState::Merged => "node-good",
        PrState::PendingFailure | PrState::Failed => "node-warning",
        PrState::NotReady | PrState::Pending | PrState::Cancelled => "node",
    }
}

fn run_of<'a>(view: &'a QueueView<'_>, entry: &EntryView<'_>) -> Option<&'a TestRun> {
    entry.entry.state.run().and_then(|run| view.queue.run(run))
}

/// The depth of a pull request: one more than the deepest run that its run is built on.
fn depths(view: &QueueView<'_>) -> BTreeMap<PrNumber, i64> {
    let mut depths: BTreeMap<PrNumber, i64> = BTreeMap::new();
    let mut deepest = 0;
    for entry in view.entries.iter().filter(|it| it.position.is_some()).take(MOST) {
        let depth = match run_of(view, entry) {
            Some(run) => {
                run.ahead.iter().filter_map(|(_, pr)| depths.get(pr)).max().map_or(1, |it| it + 1)
            }
            None => deepest + 1,
        };
        if run_of(view, entry).is_some() {
            deepest = deepest.max(depth);
        }
        depths.insert(entry.entry.pr, depth);
    }
    depths
}

fn chart(view: &QueueView<'_>, place: &QueueAddress) -> Chart {
    let depths = depths(view);
    let mut rows: BTreeMap<i64, i64> = BTreeMap::new();
    let mut spots: BTreeMap<PrNumber, (i64, i64)> = BTreeMap::new();
    let mut chart = Chart {
        id: "graph".to_owned(),
        title: "Which pull requests are tested on top of which".to_owned(),
        description: "The queue as a graph. Each box links to a pull request; the table below has the same content".to_owned(),
        linked: true,
        ..Chart::default()
    };
    let mut boxes: BTreeMap<u64, (i64, i64, i64, bool)> = BTreeMap::new();
    for entry in view.entries.iter().take(MOST) {
        let Some(depth) = depths.get(&entry.entry.pr).copied() else { continue };
        let row = rows.entry(depth).or_insert(0);
        let (x, y) = (10 + depth * (WIDTH + GAP_X), 24 + *row * (HEIGHT + GAP_Y));
        *row += 1;
        spots.insert(entry.entry.pr, (x, y));
        if let Some(run) = run_of(view, entry).filter(|run| run.group.len() > 1 || run.bisection) {
            let of = boxes.entry(run.number).or_insert((x, y, y, run.bisection));
            of.2 = of.2.max(y);
        }
        let title = plain(&entry.entry.pull_request.title, 60);
        let short: String = title.chars().take(14).collect();
        let label = if short.len() < title.len() {
            format!("#{} {short}…", entry.entry.pr)
        } else {
            format!("#{} {title}", entry.entry.pr)
        };
        chart.rects.push(Rect {
            x,
            y,
            w: WIDTH,
            h: HEIGHT,
            class: class(entry.state),
            title: format!("#{} {title}: {}", entry.entry.pr, entry.state.named().label),
            label,
            href: place.pr(entry.entry.pr),
        });
        let word: String = entry.state.named().label.chars().take(22).collect();
        chart.texts.push(Text { x: x + 6, y: y + 34, words: word, anchor: "start" });
    }
    let target = (10, 24);
    chart.rects.push(Rect {
        x: target.0,
        y: target.1,
        w: WIDTH,
        h: HEIGHT,
        class: "node-target",
        title: format!("The target branch {}", place.branch),
        label: plain(place.branch.as_str(), 18),
        href: String::new(),
    });
    for entry in view.entries.iter().take(MOST) {
        let Some((x, y)) = spots.get(&entry.entry.pr).copied() else { continue };
        let Some(run) = run_of(view, entry) else { continue };
        let nearest = run.ahead.iter().rev().find_map(|(_, pr)| spots.get(pr)).copied();
        let (from_x, from_y) = nearest.unwrap_or(target);
        let (from_x, from_y) = (from_x + WIDTH, from_y + HEIGHT / 2);
        let mid = x - GAP_X / 2;
        let y = y + HEIGHT / 2;
        chart.lines.push(Line {
            points: format!("{from_x},{from_y} {mid},{from_y} {mid},{y} {x},{y}"),
            class: "c1",
        });
    }
    for (number, (x, top, bottom, bisection)) in boxes {
        chart.rects.insert(
            0,
            Rect {
                x: x - 6,
                y: top - 6,
                w: WIDTH + 12,
                h: bottom - top + HEIGHT + 12,
                class: "lane",
                title: format!(
                    "{} {number}",
                    if bisection { "Part of a failed batch, run" } else { "Batch, run" }
                ),
                label: String::new(),
                href: String::new(),
            },
        );
    }
    let deepest = depths.values().copied().max().unwrap_or(0);
    let tallest = rows.values().copied().max().unwrap_or(1).max(1);
    chart.width = 20 + (deepest + 1) * (WIDTH + GAP_X);
    chart.height = 40 + tallest * (HEIGHT + GAP_Y);
    chart.legend = vec![
        ("node-active", "testing".to_owned()),
        ("node-good", "passed".to_owned()),
        ("node-warning", "pending failure".to_owned()),
        ("node", "waiting".to_owned()),
        ("lane", "tested together".to_owned()),
    ];
    chart
}

/// The page.
pub(crate) fn page(place: &QueueAddress, view: &QueueView<'_>) -> Page {
    let mut table = Table::new(
        "graph-table",
        "Which pull requests are tested on top of which",
        &["#Position", "Pull request", "State", "Tested together", "On top of"],
    )
    .empty("The queue is empty.");
    for entry in view.entries.iter().filter(|it| it.position.is_some()).take(MOST) {
        let run = run_of(view, entry);
        let list = |prs: Vec<PrNumber>| {
            let named: Vec<String> = prs.iter().take(20).map(|pr| format!("#{pr}")).collect();
            if named.is_empty() { "–".to_owned() } else { named.join(", ") }
        };
        let together = run.map(|it| it.group.iter().map(|it| it.pr).collect()).unwrap_or_default();
        let ahead = run.map(|it| it.ahead.iter().map(|(_, pr)| *pr).collect()).unwrap_or_default();
        table.push(
            entry.entry.pr,
            vec![
                Cell::number(entry.position.unwrap_or_default()),
                super::queue::titled(entry.entry, place),
                Cell::named(&entry.state),
                Cell::text(list(together)),
                Cell::text(list(ahead)),
            ],
        );
    }
    let mut section = Section::plain("picture");
    if view.entries.len() > MOST {
        let text = format!(
            "The graph shows the first {MOST} of {} pull requests; the list has all of them.",
            view.entries.len()
        );
        section = section.with(Block::Text(text));
    }
    section = if table.rows.is_empty() {
        section.with(Block::Table(table))
    } else {
        section.with(Block::Chart(Box::new(chart(view, place)), table))
    };
    Page {
        title: format!("Graph: {}", place.name()),
        heading: "Graph".to_owned(),
        above: vec![
            Cell::text("Queues").link("/"),
            Cell::text(place.name()).link(place.path("queue")),
        ],
        menu: place.menu("queue/graph"),
        topic: format!("queue:{}", view.queue.header.id),
        version: view.queue.header.sequence,
        sections: vec![section],
        curl: place.curl("getQueue", ""),
        ..Page::default()
    }
}
