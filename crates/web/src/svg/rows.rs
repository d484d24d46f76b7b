//! Charts of rows with names.

use signalbox_domain::time::Span;

use super::{BOTTOM, Chart, Line, RIGHT, Rect, TOP, Text, WIDTH, shape, whole};

/// The room for the names of rows.
const NAMES: i64 = 170;
/// The most steps of an axis of time.
const TIMES: i64 = 8;
/// The height of a row with bars, and of a bar in it.
const ROW: i64 = 34;
const BAR: i64 = 20;
/// The width of a letter where letters are largest.
const LETTER: i64 = 12;

/// A bar in a row: from a time to another one since the start.
pub(crate) struct Bar {
    pub(crate) from: Span,
    pub(crate) to: Span,
    pub(crate) class: &'static str,
    /// What it shows; written into it if there is room.
    pub(crate) what: String,
    pub(crate) title: String,
}

/// A mark in a row.
pub(crate) struct Mark {
    pub(crate) class: &'static str,
    pub(crate) title: String,
    pub(crate) height: Height,
}

/// How high a mark is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Height {
    Whole,
    Half,
    Quarter,
}

/// A chart of rows with names.
fn rows(id: &str, title: &str, names: impl Iterator<Item = String>) -> Chart {
    let mut chart = Chart {
        id: id.to_owned(),
        title: title.to_owned(),
        description: format!("{title}; the same content is in the table below"),
        width: WIDTH,
        height: TOP,
        has_rows: true,
        ..Chart::default()
    };
    for name in names {
        let y = chart.height + BAR / 2 + 5;
        chart.texts.push(Text { x: NAMES - 12, y, words: name, anchor: "end" });
        chart.height += ROW;
    }
    chart
}

/// Rows of bars on one axis of time, which ends at `total`.
pub(crate) fn spans(id: &str, title: &str, all: &[(String, Vec<Bar>)], total: Span) -> Chart {
    let mut chart = rows(id, title, all.iter().map(|(name, _)| name.clone()));
    let micros = i128::from(total.micros().max(1));
    let x = |at: Span| {
        let room = i128::from(WIDTH - NAMES - RIGHT);
        NAMES
            + i64::try_from(i128::from(at.micros().clamp(0, total.micros())) * room / micros)
                .unwrap_or(0)
    };
    let step = TIME_STEPS.map(Span::seconds).into_iter();
    let step = { step }.find(|step| total.micros() / step.micros() <= TIMES);
    let weeks = total.micros() / Span::days(7 * 8).micros() + 1;
    let step = step.unwrap_or(Span::days(7 * u32::try_from(weeks).unwrap_or(u32::MAX / 7)));
    for number in 0..=TIMES {
        let at = Span::from_micros(step.micros().saturating_mul(number));
        if at > total {
            break;
        }
        let (x, bottom) = (x(at), chart.height);
        chart.lines.push(Line { points: format!("{x},{} {x},{bottom}", TOP - 4), class: "grid" });
        let words = since_start(at, step);
        chart.texts.push(Text { x, y: bottom + 20, words, anchor: "middle" });
    }
    for (row, (_, bars)) in all.iter().enumerate() {
        for bar in bars {
            let (from, to) = (x(bar.from), x(bar.to));
            let fits = whole(bar.what.chars().count()) * LETTER + 12 <= to - from;
            chart.rects.push(Rect {
                title: bar.title.clone(),
                label: if fits { bar.what.clone() } else { String::new() },
                ..shape(from, TOP + whole(row) * ROW, (to - from).max(3), BAR, bar.class)
            });
        }
    }
    chart.height += BOTTOM;
    chart
}

/// A time on an axis with that step: `45 s`, `1:15 min`, `20 min`, `1:30 h`, `6 h`, `2 d`.
fn since_start(at: Span, step: Span) -> String {
    let seconds = at.millis() / 1_000;
    let (minutes, hours) = (seconds / 60, seconds / 3_600);
    match (seconds, step.millis() / 1_000) {
        (..60, ..60) => format!("{seconds} s"),
        (_, ..60) => format!("{minutes}:{:02} min", seconds % 60),
        (..3_600, ..3_600) => format!("{minutes} min"),
        (_, ..3_600) => format!("{hours}:{:02} h", minutes % 60),
        (_, ..86_400) => format!("{hours} h"),
        (_, 86_400..) => format!("{} d", hours / 24),
    }
}

/// Steps of an axis of time, in seconds.
const TIME_STEPS: [u32; 20] = [
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200,
    86_400, 172_800, 604_800,
];

/// Rows of marks, the newest on the right.
pub(crate) fn strips(id: &str, title: &str, all: &[(String, Vec<Mark>)]) -> Chart {
    let mut chart = rows(id, title, all.iter().map(|(name, _)| name.clone()));
    for (row, (_, marks)) in all.iter().enumerate() {
        for (at, mark) in marks.iter().enumerate() {
            let h = match mark.height {
                Height::Whole => BAR,
                Height::Half => BAR / 2,
                Height::Quarter => BAR / 4,
            };
            let (x, y) = (NAMES + whole(at) * (BAR - 2), TOP + whole(row) * ROW + BAR - h);
            chart
                .rects
                .push(Rect { title: mark.title.clone(), ..shape(x, y, BAR - 5, h, mark.class) });
        }
    }
    chart
}

/// A part of a row: from a column to before another one.
pub(crate) struct Piece {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) class: &'static str,
    /// What it shows; written into it if there is room.
    pub(crate) what: String,
    pub(crate) title: String,
}

/// Rows of pieces in equal columns, some of which have a label. Labels without room are omitted.
pub(crate) fn cells(
    id: &str,
    title: &str,
    (columns, labels): (usize, &[(usize, String)]),
    all: &[(String, Vec<Piece>)],
) -> Chart {
    let mut chart = rows(id, title, all.iter().map(|(name, _)| name.clone()));
    let room = WIDTH - NAMES - RIGHT;
    let x = |column: usize| NAMES + whole(column) * room / whole(columns.max(1));
    for (row, (_, pieces)) in all.iter().enumerate() {
        for piece in pieces {
            let (from, to) = (x(piece.from), x(piece.to));
            let fits = whole(piece.what.chars().count()) * LETTER + 12 <= to - from;
            chart.rects.push(Rect {
                title: piece.title.clone(),
                label: if fits { piece.what.clone() } else { String::new() },
                ..shape(from, TOP + whole(row) * ROW, (to - from - 2).max(1), BAR, piece.class)
            });
        }
    }
    let y = chart.height + 6;
    let mut free = 0;
    for (column, words) in labels {
        let x = i64::midpoint(x(*column), x(column + 1)) - 1;
        let half = whole(words.chars().count()) * LETTER / 2;
        if x - half >= free {
            chart.texts.push(Text { x, y, words: words.clone(), anchor: "middle" });
            free = x + half + LETTER;
        }
    }
    chart.height += BOTTOM / 2;
    chart
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn bars_of_time_stay_on_their_axis() {
        let bar = |from, to| Bar {
            from: Span::seconds(from),
            to: Span::seconds(to),
            class: "c1",
            what: "testing".into(),
            title: "t".into(),
        };
        let all = [
            ("one".to_owned(), vec![bar(0, 30), bar(30, 400)]),
            ("two".to_owned(), vec![bar(90, 90)]),
        ];
        let chart = spans("x", "x", &all, Span::seconds(90));
        let ends: Vec<i64> = chart.rects.iter().map(|it| it.x + it.w).collect();
        assert_eq!(ends[1], WIDTH - RIGHT);
        assert!(ends.iter().all(|end| *end <= WIDTH), "{ends:?}");
        let labels: Vec<&str> = chart.texts.iter().skip(2).map(|it| it.words.as_str()).collect();
        assert_eq!(labels, ["0 s", "15 s", "30 s", "45 s", "1:00 min", "1:15 min", "1:30 min"]);
        let words: Vec<&str> = chart.rects.iter().map(|it| it.label.as_str()).collect();
        assert_eq!(words, ["testing", "testing", ""], "where there is room");
        for days in [30, 60, 4_000] {
            let texts = spans("x", "x", &[], Span::days(days)).texts;
            let labels: BTreeSet<&str> = texts.iter().map(|it| it.words.as_str()).collect();
            assert!(texts.len() >= 4 && labels.len() == texts.len(), "{days}: {labels:?}");
        }
    }

    #[test]
    fn pieces_stay_in_their_columns() {
        for columns in [1, 24, 100] {
            let piece =
                |from, to| Piece { from, to, class: "good", what: "7".into(), title: "t".into() };
            let all = [("whole".to_owned(), vec![piece(0, columns)]), {
                let each = (0..columns).map(|at| piece(at, at + 1)).collect();
                ("each".to_owned(), each)
            }];
            let labels: Vec<(usize, String)> =
                (0..columns).map(|at| (at, format!("#{at}"))).collect();
            let chart = cells("x", "x", (columns, &labels), &all);
            let ends: Vec<i64> = chart.rects.iter().map(|it| it.x + it.w).collect();
            assert_eq!(ends.iter().max(), Some(&(WIDTH - RIGHT - 2)), "{columns}");
            let apart = chart.rects.windows(2).skip(1).all(|it| it[0].x + it[0].w < it[1].x);
            assert!(apart, "{columns}");
            let (names, labels): (Vec<_>, Vec<_>) =
                chart.texts.iter().partition(|it| it.anchor == "end");
            assert!(names.len() == 2 && labels.iter().all(|it| it.y <= chart.height));
            assert_eq!(labels[0].words, "#0");
            let ends = |it: &Text| {
                let half = whole(it.words.len()) * LETTER / 2;
                (it.x - half, it.x + half)
            };
            let has_room = labels.windows(2).all(|it| ends(it[0]).1 < ends(it[1]).0);
            assert!(has_room && labels.len() > columns / 5, "{columns}: {labels:?}");
        }
    }
}
