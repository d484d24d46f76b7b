//! Charts that the server draws. Only shapes and numbers: no styles, so that the strict policy for
//! contents holds. Every chart comes with the same numbers as a table.

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
    /// Whether it contains links, so that it is a group and not one image.
    pub(crate) linked: bool,
}

const WIDTH: i64 = 720;
const HEIGHT: i64 = 160;
const LEFT: i64 = 36;
const BOTTOM: i64 = 20;

/// A series of a stacked chart: its class, its name and a value for each bucket.
pub(crate) struct Series {
    pub(crate) class: &'static str,
    pub(crate) name: &'static str,
    pub(crate) values: Vec<u64>,
}

fn whole(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn scaled(value: u64, most: u64, height: i64) -> i64 {
    let most = i64::try_from(most.max(1)).unwrap_or(i64::MAX);
    i64::try_from(value).unwrap_or(i64::MAX).saturating_mul(height) / most
}

/// Bars of several series on top of each other, one for each bucket.
pub(crate) fn stacked(id: &str, title: &str, buckets: &[String], series: &[Series]) -> Chart {
    let total = |at: usize| -> u64 { series.iter().filter_map(|it| it.values.get(at)).sum() };
    let most = (0..buckets.len()).map(total).max().unwrap_or(0).max(1);
    let (width, height) = (WIDTH - LEFT, HEIGHT - BOTTOM - 8);
    let step = width / whole(buckets.len().max(1));
    let mut chart = Chart {
        id: id.to_owned(),
        title: title.to_owned(),
        description: format!("{title}; the same numbers are in the table below"),
        width: WIDTH,
        height: HEIGHT,
        ..Chart::default()
    };
    for (at, bucket) in buckets.iter().enumerate() {
        let (mut y, x) = (height + 8, LEFT + whole(at) * step);
        for one in series {
            let value = one.values.get(at).copied().unwrap_or(0);
            let h = scaled(value, most, height);
            y -= h;
            if value > 0 {
                chart.rects.push(Rect {
                    x: x + 1,
                    y,
                    w: (step - 2).max(1),
                    h: h.max(1),
                    class: one.class,
                    title: format!("{bucket}: {value} {}", one.name),
                    label: String::new(),
                    href: String::new(),
                });
            }
        }
        let every = (buckets.len() / 8).max(1);
        if at % every == 0 {
            chart.texts.push(Text {
                x: x + step / 2,
                y: HEIGHT - 4,
                words: bucket.clone(),
                anchor: "middle",
            });
        }
    }
    axis(&mut chart, &most.to_string());
    chart.legend = series.iter().map(|it| (it.class, it.name.to_owned())).collect();
    chart
}

/// Lines with gaps where a bucket is empty: a gap is not a zero.
pub(crate) fn lines(
    id: &str,
    title: &str,
    buckets: &[String],
    series: &[(&'static str, &'static str, Vec<Option<u64>>)],
    unit: &str,
) -> Chart {
    let all = series.iter().flat_map(|(_, _, values)| values.iter().flatten());
    let most = all.copied().max().unwrap_or(0).max(1);
    let (width, height) = (WIDTH - LEFT, HEIGHT - BOTTOM - 8);
    let step = width / whole(buckets.len().max(1));
    let mut chart = Chart {
        id: id.to_owned(),
        title: title.to_owned(),
        description: format!("{title}; the same numbers are in the table below"),
        width: WIDTH,
        height: HEIGHT,
        ..Chart::default()
    };
    for (class, name, values) in series {
        let mut run: Vec<String> = Vec::new();
        let mut flush = |run: &mut Vec<String>| {
            if run.len() > 1 {
                chart.lines.push(Line { points: run.join(" "), class });
            }
            run.clear();
        };
        for (at, value) in values.iter().enumerate() {
            match value {
                Some(value) => {
                    let x = LEFT + whole(at) * step + step / 2;
                    let y = height + 8 - scaled(*value, most, height);
                    run.push(format!("{x},{y}"));
                    let bucket = buckets.get(at).cloned().unwrap_or_default();
                    chart.rects.push(Rect {
                        x: x - 2,
                        y: y - 2,
                        w: 4,
                        h: 4,
                        class,
                        title: format!("{bucket}: {name} {value} {unit}"),
                        label: String::new(),
                        href: String::new(),
                    });
                }
                None => flush(&mut run),
            }
        }
        flush(&mut run);
        chart.legend.push((class, (*name).to_owned()));
    }
    for (at, bucket) in buckets.iter().enumerate().step_by((buckets.len() / 8).max(1)) {
        let x = LEFT + whole(at) * step + step / 2;
        chart.texts.push(Text { x, y: HEIGHT - 4, words: bucket.clone(), anchor: "middle" });
    }
    axis(&mut chart, &format!("{most} {unit}"));
    chart
}

fn axis(chart: &mut Chart, most: &str) {
    let base = HEIGHT - BOTTOM;
    chart.lines.push(Line { points: format!("{LEFT},{base} {WIDTH},{base}"), class: "axis" });
    chart.texts.push(Text { x: LEFT - 4, y: 16, words: most.to_owned(), anchor: "end" });
    chart.texts.push(Text { x: LEFT - 4, y: base, words: "0".to_owned(), anchor: "end" });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_not_a_zero() {
        let buckets: Vec<String> = (0..4).map(|it| it.to_string()).collect();
        let values = vec![Some(1), Some(2), None, Some(3)];
        let chart = lines("x", "x", &buckets, &[("c1", "p50", values)], "s");
        assert_eq!(chart.rects.len(), 3, "a point for each value");
        assert_eq!(chart.lines.iter().filter(|it| it.class == "c1").count(), 1);
    }

    #[test]
    fn bars_stand_on_each_other_and_stay_inside() {
        let buckets = vec!["a".to_owned(), "b".to_owned()];
        let one = Series { class: "good", name: "merged", values: vec![3, 0] };
        let other = Series { class: "bad", name: "failed", values: vec![1, u64::MAX] };
        let chart = stacked("x", "x", &buckets, &[one, other]);
        assert!(chart.rects.iter().all(|it| it.y >= 0 && it.h > 0 && it.x + it.w <= WIDTH));
        assert_eq!(chart.rects.len(), 3);
    }
}
