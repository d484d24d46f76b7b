//! Charts that the server draws. Only shapes and numbers: no styles, so that the strict policy for
//! contents holds. Every chart comes with the same numbers as a table.

mod rows;

pub(crate) use rows::{Bar, Height, Mark, Piece, cells, spans, strips};

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
/// The room for labels on the left.
const LEFT: i64 = 64;
const RIGHT: i64 = 56;
const TOP: i64 = 16;
const BOTTOM: i64 = 34;
/// The most steps of a vertical scale.
const STEPS: u64 = 4;

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
pub(crate) const fn shape(x: i64, y: i64, w: i64, h: i64, class: &'static str) -> Rect {
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

#[cfg(test)]
mod tests {
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
}
