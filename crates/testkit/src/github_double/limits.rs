//! The limits that GitHub publishes beside the quota, counted by the double itself ("Rate limits for
//! the REST API": 900 points a minute, of which GET uses one and a write five; 80 requests a minute and
//! 500 an hour that generate content).

use std::sync::Arc;

use signalbox_domain::ports::Clock;

const MINUTE_MICROS: i64 = 60 * 1_000_000;
const HOUR_MICROS: i64 = 60 * MINUTE_MICROS;

/// The calls so far, by a clock.
pub(super) struct SecondaryLimits {
    clock: Arc<dyn Clock>,
    made: Vec<Made>,
    exceeded: usize,
}

struct Made {
    at: i64,
    points: u32,
    generates_content: bool,
}

impl SecondaryLimits {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, made: Vec::new(), exceeded: 0 }
    }

    /// How many calls exceeded a limit.
    pub(super) fn exceeded(&self) -> usize {
        self.exceeded
    }

    /// Counts a call; returns whether it exceeds a limit.
    pub(super) fn count(&mut self, method: &str, path: &str) -> bool {
        let at = self.clock.now().unix_micros();
        let points = if method == "GET" { 1 } else { 5 };
        let is_content = path.contains("/comments") && !path.ends_with("/reactions");
        let generates_content =
            matches!(method, "POST" | "PATCH") && (is_content || path.ends_with("/pulls"));
        self.made.push(Made { at, points, generates_content });
        let within = |span: i64| self.made.iter().filter(move |made| made.at > at - span);
        let contents = |span: i64| within(span).filter(|made| made.generates_content).count();
        let is_exceeded = within(MINUTE_MICROS).map(|made| made.points).sum::<u32>() > 900
            || contents(MINUTE_MICROS) > 80
            || contents(HOUR_MICROS) > 500;
        self.exceeded += usize::from(is_exceeded);
        is_exceeded
    }
}
