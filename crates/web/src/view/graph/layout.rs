//! Where the test runs of a queue are drawn: each to the right of the runs that it is built on, lane
//! below lane. A lane that is too long continues on the next line, as text does.

use std::collections::{BTreeMap, BTreeSet};

/// The measures of a graph.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// A box for one pull request.
    pub(super) width: i64,
    pub(super) height: i64,
    /// The space between boxes.
    pub(super) gap_x: i64,
    pub(super) gap_y: i64,
    /// The most boxes side by side.
    pub(super) columns: usize,
}

impl Sizes {
    pub(super) fn x(&self, column: usize) -> i64 {
        MARGIN + whole(column) * (self.width + self.gap_x)
    }

    /// The width of the whole graph.
    pub(super) fn total(&self) -> i64 {
        self.x(self.columns) - self.gap_x + EDGE
    }

    /// The height of boxes on top of each other.
    pub(super) fn stack(&self, boxes: usize) -> i64 {
        let boxes = whole(boxes.max(1));
        boxes * self.height + (boxes - 1) * self.gap_y
    }
}

/// The room on the left, for the line from the target branch, and on the right.
const MARGIN: i64 = 34;
const EDGE: i64 = 24;
/// The room between runs on top of each other, in gaps.
const BETWEEN: i64 = 2;

fn whole(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A run that is drawn.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    /// The nodes that it contains besides itself, each before it in the list.
    pub(super) ahead: Vec<usize>,
    /// How many boxes it has.
    pub(super) boxes: usize,
}

/// The lane of each node: nodes that share what they are built on share a lane, named after the first node.
pub(super) fn lanes(nodes: &[Node]) -> Vec<usize> {
    let mut lanes: Vec<usize> = Vec::with_capacity(nodes.len());
    for (at, node) in nodes.iter().enumerate() {
        let joined: BTreeSet<usize> =
            node.ahead.iter().filter_map(|ahead| lanes.get(*ahead).copied()).collect();
        let lane = joined.first().copied().unwrap_or(at);
        if joined.len() > 1 {
            for known in lanes.iter_mut().filter(|known| joined.contains(known)) {
                *known = lane;
            }
        }
        lanes.push(lane);
    }
    lanes
}

/// The positions of nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    /// The top left corner of each node.
    pub(super) spots: Vec<(i64, i64)>,
    /// The node to the left of each, which it is built on; `None` if that is the target branch.
    pub(super) bases: Vec<Option<usize>>,
    /// The nodes that continue a lane on the next line, with the height at which the line from the
    /// end of the last one passes.
    pub(super) turns: BTreeMap<usize, i64>,
    /// The lower end.
    pub(super) bottom: i64,
}

/// Places nodes below `top`.
pub(super) fn place(nodes: &[Node], sizes: &Sizes, top: i64) -> Layout {
    let mut depths: Vec<usize> = Vec::with_capacity(nodes.len());
    let mut layout = Layout { bottom: top, ..Layout::default() };
    for node in nodes {
        // Of those at the same depth, the last one.
        let deepest = node.ahead.iter().max_by_key(|it| depths.get(**it));
        layout.bases.push(deepest.copied());
        layout.spots.push((0, 0));
        depths.push(deepest.and_then(|it| depths.get(*it)).map_or(0, |it| it + 1));
    }
    let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (at, lane) in lanes(nodes).into_iter().enumerate() {
        members.entry(lane).or_default().push(at);
    }
    let (alone, lanes): (Vec<_>, Vec<_>) = members.into_values().partition(|it| it.len() == 1);
    for lane in lanes {
        let mut columns: Vec<Vec<usize>> = Vec::new();
        for at in lane {
            let depth = depths.get(at).copied().unwrap_or(0);
            columns.resize(columns.len().max(depth + 1), Vec::new());
            if let Some(column) = columns.get_mut(depth) {
                column.push(at);
            }
        }
        draw(&columns, nodes, sizes, &mut layout);
    }
    // Lanes of a single run are side by side.
    draw(&alone, nodes, sizes, &mut layout);
    layout
}

/// Draws columns, as many in a row as there is room for.
fn draw(columns: &[Vec<usize>], nodes: &[Node], sizes: &Sizes, layout: &mut Layout) {
    for part in columns.chunks(sizes.columns.max(1)) {
        let (top, mut lowest) = (layout.bottom, layout.bottom);
        for (column, stacked) in part.iter().enumerate() {
            let mut y = top;
            for at in stacked {
                let Some(node) = nodes.get(*at) else { continue };
                if let Some(spot) = layout.spots.get_mut(*at) {
                    *spot = (sizes.x(column), y);
                }
                if column == 0 && !node.ahead.is_empty() {
                    layout.turns.insert(*at, top - sizes.gap_y);
                }
                y += sizes.stack(node.boxes) + BETWEEN * sizes.gap_y;
            }
            lowest = lowest.max(y);
        }
        layout.bottom = lowest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: Sizes = Sizes { width: 60, height: 20, gap_x: 14, gap_y: 6, columns: 15 };

    fn node(ahead: &[usize], boxes: usize) -> Node {
        Node { ahead: ahead.to_vec(), boxes }
    }

    fn chain(count: usize) -> Vec<Node> {
        (0..count).map(|at| node(&(0..at).collect::<Vec<_>>(), 1 + at % 3)).collect()
    }

    fn check(nodes: &[Node], layout: &Layout) {
        let rects: Vec<[i64; 4]> = nodes
            .iter()
            .zip(&layout.spots)
            .map(|(node, (x, y))| [*x, *y, x + SIZES.width, y + SIZES.stack(node.boxes)])
            .collect();
        for (at, one) in rects.iter().enumerate() {
            assert!(one[0] >= 0 && one[2] <= SIZES.total() && one[3] <= layout.bottom, "{one:?}");
            for other in rects.iter().skip(at + 1) {
                let is_apart = one[2] < other[0]
                    || other[2] < one[0]
                    || one[3] < other[1]
                    || other[3] < one[1];
                assert!(is_apart, "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn a_long_lane_continues_on_the_next_line() {
        for count in [1, 15, 16, 500] {
            let nodes = chain(count);
            let layout = place(&nodes, &SIZES, 40);
            check(&nodes, &layout);
            let first = layout.spots.iter().filter(|(x, _)| *x == MARGIN).count();
            assert_eq!(first, count.div_ceil(SIZES.columns));
            assert_eq!(layout.turns.len(), first - 1);
        }
    }

    #[test]
    fn lanes_are_below_each_other_and_single_runs_side_by_side() {
        // Two lanes of three runs, one of which ends in two; and twenty runs on the target alone.
        let mut nodes = vec![
            node(&[], 1),
            node(&[], 2),
            node(&[0], 1),
            node(&[1], 1),
            node(&[0, 2], 4),
            node(&[1, 3], 1),
            node(&[1], 1),
        ];
        nodes.extend((0..20).map(|_| node(&[], 1)));
        let layout = place(&nodes, &SIZES, 40);
        check(&nodes, &layout);
        let lanes = lanes(&nodes);
        assert_eq!(lanes[..7], [0, 1, 0, 1, 0, 1, 1]);
        let x = |at: usize| layout.spots[at].0;
        assert!(x(0) < x(2) && x(2) < x(4) && x(1) < x(3) && x(3) < x(5) && x(3) == x(6));
        let heights: BTreeSet<i64> = layout.spots.iter().skip(7).map(|(_, y)| *y).collect();
        assert_eq!(heights.len(), 2, "15 and 5");
        assert!(layout.turns.is_empty());
    }

    #[test]
    fn a_run_that_contains_two_lanes_joins_them() {
        let nodes = [node(&[], 1), node(&[], 1), node(&[1], 1), node(&[0, 2], 1), node(&[], 1)];
        assert_eq!(lanes(&nodes), [0, 0, 0, 0, 4]);
        check(&nodes, &place(&nodes, &SIZES, 0));
    }
}
