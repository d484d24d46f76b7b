//! The picture of the graph.

use signalbox_domain::queue::EntryView;
use signalbox_wording::Named;

use super::layout::{Layout, Node, Sizes, place as placed};
use super::units::{Drawn, MOST_WAITING, Unit};
use super::{class, counted, waiting_path};
use crate::svg::{Chart, Line, Rect, Text, shape};
use crate::text::plain;
use crate::view::{QueueAddress, numbers};

const LARGE: Sizes = Sizes { width: 150, height: 44, gap_x: 34, gap_y: 14, columns: 6 };
const SMALL: Sizes = Sizes { width: 96, height: 22, gap_x: 14, gap_y: 6, columns: 10 };
/// Where the box of the target branch is.
const TOP: i64 = 24;
/// Where the line from the target branch runs, and those between the lines of a lane.
const TRUNK: i64 = 10;
const TURN: i64 = 22;
/// The most narrow letters in a box, and in a tooltip.
const LETTERS: usize = 19;
const TITLE: usize = 60;

/// The picture.
pub(super) fn chart(drawn: &Drawn<'_>, place: &QueueAddress) -> Chart {
    let sizes = if drawn.is_large { LARGE } else { SMALL };
    let nodes: Vec<Node> = drawn.units.iter().map(|it| it.node.clone()).collect();
    let top = TOP + SMALL.height + 2 * LARGE.gap_y;
    let layout = placed(&nodes, &sizes, top);
    let mut chart = Chart {
        id: "graph".to_owned(),
        title: "Which pull requests are tested on top of which".to_owned(),
        description:
            "The queue as a graph. Each box links to a pull request or to a lane; the table below has the \
             same content"
                .to_owned(),
        linked: true,
        width: sizes.total(),
        ..Chart::default()
    };
    let x = sizes.x(0);
    chart.rects.push(Rect {
        title: format!("The target branch {}", plain(place.branch.as_str(), 250)),
        label: fitting(&plain(place.branch.as_str(), 250)),
        ..shape(x, TOP, LARGE.width, SMALL.height, "node-target")
    });
    for (at, unit) in drawn.units.iter().enumerate() {
        let Some(spot) = layout.spots.get(at).copied() else { continue };
        connect(&mut chart, &layout, &nodes, &sizes, at);
        if drawn.is_large && !unit.is_lane() {
            large(&mut chart, unit, place, spot);
        } else {
            small(&mut chart, unit, place, spot, &sizes);
        }
    }
    chart.height = waiting(&mut chart, drawn, place, &sizes, layout.bottom);
    chart.legend = legend(drawn);
    chart
}

fn legend(drawn: &Drawn<'_>) -> Vec<(&'static str, String)> {
    let mut legend = vec![
        ("node-active", "testing".to_owned()),
        ("node-good", "passed".to_owned()),
        ("node-warning", "pending failure".to_owned()),
        ("node", "waiting".to_owned()),
    ];
    if drawn.is_large {
        legend.push(("lane", "tested together".to_owned()));
    }
    legend
}

/// The line to a unit from what it is built on.
fn connect(chart: &mut Chart, layout: &Layout, nodes: &[Node], sizes: &Sizes, at: usize) {
    let spot = |at: usize| layout.spots.get(at).copied().unwrap_or_default();
    let middle = |at: usize| {
        let boxes = nodes.get(at).map_or(1, |it| it.boxes);
        spot(at).1 + sizes.stack(boxes) / 2
    };
    let ((x, top), y) = (spot(at), middle(at));
    let points = if let Some(base) = layout.bases.get(at).copied().flatten() {
        let (from_x, from_y) = (spot(base).0 + sizes.width, middle(base));
        let mid = from_x + sizes.gap_x / 2;
        let mut points = vec![(from_x, from_y), (mid, from_y)];
        if let Some(turn) = layout.turns.get(&at) {
            points.extend([(mid, *turn), (TURN, *turn), (TURN, y), (x, y)]);
        } else {
            points.extend([(mid, y), (x, y)]);
        }
        points
    } else {
        let (from_x, from_y) = (sizes.x(0), TOP + SMALL.height / 2);
        let mut points = vec![(from_x, from_y), (TRUNK, from_y)];
        if x == from_x {
            points.extend([(TRUNK, y), (x, y)]);
        } else {
            let (bus, mid) = (top - sizes.gap_y, x - sizes.gap_x / 2);
            points.extend([(TRUNK, bus), (mid, bus), (mid, y), (x, y)]);
        }
        points
    };
    let points: Vec<String> = points.iter().map(|(x, y)| format!("{x},{y}")).collect();
    chart.lines.push(Line { points: points.join(" "), class: "c1" });
}

/// A text, cut to the width of a box.
fn fitting(text: &str) -> String {
    let mut room = LETTERS;
    let mut cut = String::new();
    for letter in text.chars() {
        // Letters that are not Latin are up to twice as wide.
        let width = if letter.is_ascii() { 1 } else { 2 };
        if width > room {
            return format!("{cut}…");
        }
        room -= width;
        cut.push(letter);
    }
    cut
}

/// A pull request with its title and its state.
fn full(chart: &mut Chart, entry: &EntryView<'_>, place: &QueueAddress, (x, y): (i64, i64)) {
    let (pr, title) = (entry.entry.pr, plain(&entry.entry.pull_request.title, TITLE));
    let state = entry.state.named().label;
    chart.rects.push(Rect {
        title: format!("#{pr} {title}: {state}"),
        label: fitting(&format!("#{pr} {title}")),
        href: place.pr(pr),
        ..shape(x, y, LARGE.width, LARGE.height, class(std::iter::once(entry.state)))
    });
    let words: String = state.chars().take(22).collect();
    chart.texts.push(Text { x: x + 6, y: y + 34, words, anchor: "start" });
}

/// A test run with a box for each pull request, and a box around them if it is a batch.
fn large(chart: &mut Chart, unit: &Unit<'_>, place: &QueueAddress, (x, top): (i64, i64)) {
    if let Some(run) = unit.run.filter(|run| run.group.len() > 1 || run.bisection) {
        let what = if run.bisection { "Part of a failed batch, run" } else { "Batch, run" };
        let (w, h) = (LARGE.width + 12, LARGE.stack(unit.entries.len()) + 12);
        chart.rects.push(Rect {
            title: format!("{what} {}", run.number),
            ..shape(x - 6, top - 6, w, h, "lane")
        });
    }
    let mut y = top;
    for entry in &unit.entries {
        full(chart, entry, place, (x, y));
        y += LARGE.height + LARGE.gap_y;
    }
}

/// A test run or a lane as one box.
fn small(
    chart: &mut Chart,
    unit: &Unit<'_>,
    place: &QueueAddress,
    (x, y): (i64, i64),
    sizes: &Sizes,
) {
    let (Some(first), Some(last)) = (unit.entries.first(), unit.entries.last()) else { return };
    let (pr, others) = (first.entry.pr, unit.entries.len() - 1);
    let label = if others == 0 { format!("#{pr}") } else { format!("#{pr} +{others}") };
    let states = counted(&unit.entries);
    let (title, href) = if unit.is_lane() {
        // The last one stays when others have merged.
        let lane = format!("{}&lane={}", place.path("queue/graph"), last.entry.pr);
        (format!("Lane of #{pr}, {} test runs: {states}", unit.runs), lane)
    } else if others > 0 {
        let named = numbers(unit.entries.iter().map(|it| it.entry.pr));
        (format!("Batch: {named}: {states}"), place.pr(pr))
    } else {
        let title = plain(&first.entry.pull_request.title, TITLE);
        (format!("#{pr} {title}: {states}"), place.pr(pr))
    };
    let class = class(unit.entries.iter().map(|it| it.state));
    chart.rects.push(Rect { title, label, href, ..shape(x, y, sizes.width, sizes.height, class) });
}

/// The waiting pull requests, or a box that stands for them; returns the lower end.
fn waiting(
    chart: &mut Chart,
    drawn: &Drawn<'_>,
    place: &QueueAddress,
    sizes: &Sizes,
    top: i64,
) -> i64 {
    let count = drawn.waiting.len();
    if count == 0 {
        return top;
    }
    if !drawn.has_single_waiting() {
        chart.rects.push(Rect {
            title: format!("{count} pull requests wait to be tested"),
            label: format!("{count} waiting"),
            href: waiting_path(place),
            ..shape(sizes.x(0), top, LARGE.width, SMALL.height, "node")
        });
        return top + SMALL.height + 2 * sizes.gap_y;
    }
    let nodes = vec![Node { ahead: Vec::new(), boxes: 1 }; count.min(MOST_WAITING)];
    let layout = placed(&nodes, sizes, top);
    for (entry, spot) in drawn.waiting.iter().zip(layout.spots) {
        full(chart, entry, place, spot);
    }
    layout.bottom
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_cut_to_the_width_of_a_box() {
        assert_eq!(fitting("#7 Add two numbers"), "#7 Add two numbers");
        assert_eq!(fitting("#1234567 Add two numbers"), "#1234567 Add two nu…");
        assert_eq!(fitting("#7 日本語日本語日本語日本語"), "#7 日本語日本語日本…");
    }
}
