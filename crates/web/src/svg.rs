//! Charts that the server draws. Only shapes and numbers: no styles, so that the strict policy for
//! contents holds. Every chart comes with the same numbers as a table.

use signalbox_domain::time::Span;

/// A rectangle, in the units of the view box.
#[derive(Clone, Debug)]
pub(crate) struct Rect {
    pub(crate) x: i64,
    pub(crate) y: i64,
    pub(crate) w: i64,
    pub(crate) h: i64,
    /// The name of its class.
    pub(crate) class: &'static str,
    /// The tooltip, which screen readers read.
    pub(crate) title: String,
    /// Its label.
    pub(crate) label: String,
    /// Its link.
    pub(crate) href: String,
}

/// A line through points.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// `x,y x,y`.
    pub(crate) points: String,
    pub(crate) class: &'static str,
}

/// A text.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    pub(crate) x: i64,
    pub(crate) y: i64,
    pub(crate) words: String,
    /// `start`, `middle` or `end`.
    pub(crate) anchor: &'static str,
}

/// A chart.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chart {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) width: i64,
    pub(crate) height: i64,
    pub(crate) rects: Vec<Rect>,
    pub(crate) lines: Vec<Line>,
    pub(crate) texts: Vec<Text>,
    /// The legend: names of classes and their meanings.
    pub(crate) legend: Vec<(&'static str, String)>,
    /// Whether its rows have names on the left.
    pub(crate) has_rows: bool,
    /// Whether it contains links, so that it is a group and not one image.
    pub(crate) linked: bool,
}

const WIDTH: i64 = 1_200;
const HEIGHT: i64 = 220;
/// The room for labels on the left, and for those of rows.
const LEFT: i64 = 64;
const NAMES: i64 = 170;
const RIGHT: i64 = 56;
const TOP: i64 = 16;
const BOTTOM: i64 = 34;
/// The most steps of a vertical scale, and of one of time.
const STEPS: u64 = 4;
const TIMES: i64 = 8;
/// The height of a row with bars, and of a bar in it.
const ROW: i64 = 34;
const BAR: i64 = 20;
/// The width of a letter where letters are largest.
const LETTER: i64 = 12;

/// The times of a chart.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buckets {
    /// The name of each, for tooltips and tables.
    pub(crate) names: Vec<String>,
    /// Those with a label on the axis.
    pub(crate) ticks: Vec<(usize, String)>,
}

/// A series of a stacked chart: its class, its name and a value for each bucket.
pub(crate) struct Series {
    pub(crate) class: &'static str,
    pub(crate) name: &'static str,
    pub(crate) values: Vec<u64>,
}

fn whole(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A vertical scale from 0 in steps of 1, 2 or 5 times a power of ten.
struct Scale {
    step: u64,
    top: u64,
}

impl Scale {
    fn over(most: u64) -> Self {
        let most = most.max(1);
        let steps = (0..20).flat_map(|power| {
            let unit = 10_u64.saturating_pow(power);
            [1, 2, 5].map(|times| unit.saturating_mul(times))
        });
        let step = { steps }.find(|step| most.div_ceil(*step) <= STEPS).unwrap_or(most);
        Self { step, top: most.div_ceil(step).saturating_mul(step) }
    }

    /// How far above the bottom a value is.
    fn height(&self, value: u64) -> i64 {
        let room = u128::from((HEIGHT - TOP - BOTTOM).unsigned_abs());
        let height = u128::from(value.min(self.top)) * room / u128::from(self.top.max(1));
        i64::try_from(height).unwrap_or_default()
    }
}

/// A value on a scale that ends there: `5000`, `20k`, `15M`.
fn short(value: u64, top: u64) -> String {
    match top {
        _ if value == 0 => "0".to_owned(),
        ..10_000 => value.to_string(),
        10_000..10_000_000 => format!("{}k", value / 1_000),
        10_000_000.. => format!("{}M", value / 1_000_000),
    }
}

/// A chart over time, with its grid and its labels.
struct Plot {
    chart: Chart,
    scale: Scale,
    step: i64,
}

impl Plot {
    fn new(id: &str, title: &str, buckets: &Buckets, most: u64) -> Self {
        let (scale, base) = (Scale::over(most), HEIGHT - BOTTOM);
        let step = (WIDTH - LEFT - RIGHT) / whole(buckets.names.len().max(1));
        let mut chart = Chart {
            id: id.to_owned(),
            title: title.to_owned(),
            description: format!("{title}; the same numbers are in the table below"),
            width: WIDTH,
            height: HEIGHT,
            ..Chart::default()
        };
        let mut value = 0;
        loop {
            let y = base - scale.height(value);
            chart
                .lines
                .push(Line { points: format!("{LEFT},{y} {},{y}", WIDTH - RIGHT), class: "grid" });
            chart.texts.push(Text {
                x: LEFT - 8,
                y: y + 5,
                words: short(value, scale.top),
                anchor: "end",
            });
            value = match value.checked_add(scale.step) {
                Some(next) if next <= scale.top => next,
                _ => break,
            };
        }
        for (at, label) in &buckets.ticks {
            let x = LEFT + whole(*at) * step + step / 2;
            chart.texts.push(Text { x, y: HEIGHT - 8, words: label.clone(), anchor: "middle" });
        }
        Self { chart, scale, step }
    }

    /// The left edge of a bucket.
    fn x(&self, bucket: usize) -> i64 {
        LEFT + whole(bucket) * self.step
    }

    fn y(&self, value: u64) -> i64 {
        HEIGHT - BOTTOM - self.scale.height(value)
    }

    /// The chart, with a tooltip for each bucket: its name and its values.
    fn finish(mut self, buckets: &Buckets, values: impl Fn(usize) -> Vec<String>) -> Chart {
        for (at, name) in buckets.names.iter().enumerate() {
            let values = values(at);
            if !values.is_empty() {
                self.chart.rects.push(Rect {
                    x: self.x(at),
                    y: TOP,
                    w: self.step,
                    h: HEIGHT - TOP - BOTTOM,
                    class: "hit",
                    title: format!("{name}: {}", values.join(", ")),
                    label: String::new(),
                    href: String::new(),
                });
            }
        }
        self.chart
    }
}

/// A shape without a tooltip.
const fn shape(x: i64, y: i64, w: i64, h: i64, class: &'static str) -> Rect {
    Rect { x, y, w, h, class, title: String::new(), label: String::new(), href: String::new() }
}

/// Bars of several series on top of each other, one for each bucket.
pub(crate) fn stacked(id: &str, title: &str, buckets: &Buckets, series: &[Series]) -> Chart {
    let count = buckets.names.len();
    let total = |at: usize| -> u64 {
        series.iter().filter_map(|it| it.values.get(at)).fold(0, |sum, it| sum.saturating_add(*it))
    };
    let mut plot = Plot::new(id, title, buckets, (0..count).map(total).max().unwrap_or(0));
    for at in 0..count {
        let (x, w) = (plot.x(at) + 2, (plot.step - 4).max(1));
        let mut below = 0_u64;
        for one in series {
            let value = one.values.get(at).copied().unwrap_or(0);
            let bottom = plot.y(below);
            below = below.saturating_add(value);
            let top = plot.y(below);
            if value > 0 {
                plot.chart.rects.push(shape(x, top, w, (bottom - top).max(1), one.class));
            }
        }
    }
    plot.chart.legend = series.iter().map(|it| (it.class, it.name.to_owned())).collect();
    plot.finish(buckets, |at| {
        let shown = series.iter().filter_map(|it| Some((it.values.get(at)?, it.name)));
        shown
            .filter(|(value, _)| **value > 0)
            .map(|(value, name)| format!("{value} {name}"))
            .collect()
    })
}

/// Lines with gaps where a bucket is empty: a gap is not a zero.
pub(crate) fn lines(
    id: &str,
    title: &str,
    buckets: &Buckets,
    series: &[(&'static str, &'static str, Vec<Option<u64>>)],
    unit: &str,
) -> Chart {
    let all = series.iter().flat_map(|(_, _, values)| values.iter().flatten());
    let mut plot = Plot::new(id, title, buckets, all.copied().max().unwrap_or(0));
    for (class, name, values) in series {
        let mut run: Vec<String> = Vec::new();
        let flush = |run: &mut Vec<String>, chart: &mut Chart| {
            if run.len() > 1 {
                chart.lines.push(Line { points: run.join(" "), class });
            }
            run.clear();
        };
        for (at, value) in values.iter().enumerate() {
            if let Some(value) = value {
                let (x, y) = (plot.x(at) + plot.step / 2, plot.y(*value));
                run.push(format!("{x},{y}"));
                plot.chart.rects.push(shape(x - 3, y - 3, 6, 6, class));
            } else {
                flush(&mut run, &mut plot.chart);
            }
        }
        flush(&mut run, &mut plot.chart);
        plot.chart.legend.push((class, (*name).to_owned()));
    }
    plot.finish(buckets, |at| {
        let shown = series.iter().filter_map(|(_, name, values)| Some((name, (*values.get(at)?)?)));
        shown.map(|(name, value)| format!("{name} {value} {unit}").trim_end().to_owned()).collect()
    })
}

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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn buckets(names: &[&str]) -> Buckets {
        let names = names.iter().map(|it| (*it).to_owned()).collect();
        Buckets { names, ticks: vec![(0, "a".to_owned())] }
    }

    fn of<'a>(chart: &'a Chart, class: &str) -> Vec<&'a Rect> {
        chart.rects.iter().filter(|it| it.class == class).collect()
    }

    #[test]
    fn a_gap_is_not_a_zero() {
        let values = vec![Some(1), Some(2), None, Some(3)];
        let chart = lines("x", "x", &buckets(&["0", "1", "2", "3"]), &[("c1", "p50", values)], "s");
        assert_eq!(of(&chart, "c1").len(), 3, "a point for each value");
        assert_eq!(chart.lines.iter().filter(|it| it.class == "c1").count(), 1);
        let titles: Vec<&str> = of(&chart, "hit").iter().map(|it| it.title.as_str()).collect();
        assert_eq!(titles, ["0: p50 1 s", "1: p50 2 s", "3: p50 3 s"]);
    }

    #[test]
    fn bars_stand_on_each_other_and_stay_inside() {
        let one = Series { class: "good", name: "merged", values: vec![3, 0] };
        let other = Series { class: "bad", name: "failed", values: vec![1, u64::MAX] };
        let chart = stacked("x", "x", &buckets(&["a", "b"]), &[one, other]);
        assert!(chart.rects.iter().all(|it| it.y >= 0 && it.h > 0 && it.x + it.w <= WIDTH));
        assert_eq!((of(&chart, "good").len(), of(&chart, "bad").len()), (1, 2));
        assert_eq!(of(&chart, "hit")[0].title, "a: 3 merged, 1 failed");
    }

    #[test]
    fn scales_have_few_round_steps() {
        for (most, step, top) in [
            (0, 1, 1),
            (1, 1, 1),
            (4, 1, 4),
            (5, 2, 6),
            (7, 2, 8),
            (9, 5, 10),
            (23, 10, 30),
            (1_999, 500, 2_000),
        ] {
            let scale = Scale::over(most);
            assert_eq!((scale.step, scale.top), (step, top), "{most}");
        }
        assert!(Scale::over(u64::MAX).top > 0);
    }

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
}
