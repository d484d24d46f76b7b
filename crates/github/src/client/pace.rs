//! Keeps writes below the limits that GitHub publishes beside the quota ("secondary rate limits"): 900
//! points a minute, of which a read uses one and a write five, and 80 new or changed texts a minute and
//! 500 an hour. Reads are counted, but never delayed.
//!
//! The host counts by its own clock, so a part of each limit is left unused. What is
//! shown on pull requests leaves more of it than what they wait for.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use reqwest::Method;
use signalbox_domain::time::Timestamp;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
/// The points of a read.
const READ: u32 = 1;
/// The points of a write.
const WRITE: u32 = 5;
/// Points a minute; the published limit is 900.
const POINTS: u32 = 800;
/// Points a minute above which comments, statuses, labels and reactions wait.
const POINTS_FOR_NEWS: u32 = 600;
/// New or changed texts a minute; the published limit is 80.
const TEXTS_A_MINUTE: u32 = 70;
/// The same an hour; the published limit is 500.
const TEXTS_AN_HOUR: u32 = 450;

/// What a call counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cost {
    points: u32,
    /// Points a minute up to which it is made; `None` if it is never delayed.
    below: Option<u32>,
    /// Whether it creates or changes a text that people read.
    is_text: bool,
}

impl Cost {
    /// The cost of a call to that path.
    pub(super) fn of(method: &Method, path: &str) -> Self {
        if method == Method::GET {
            return Self { points: READ, below: None, is_text: false };
        }
        let mut parts = path.rsplit('/');
        let (last, before) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let is_deleted = method == Method::DELETE;
        let is_comment = last == "comments" || before == "comments";
        let is_shown = ["labels", "reactions"].iter().any(|part| last == *part || before == *part);
        let is_news = is_comment || is_shown || before == "statuses" || last == "check-runs";
        let is_text = !is_deleted && (is_comment || last == "pulls" || before == "pulls");
        let below = if is_news { POINTS_FOR_NEWS } else { POINTS };
        Self { points: WRITE, below: Some(below), is_text }
    }
}

/// The calls of the last minute and the texts of the last hour.
#[derive(Default)]
pub(super) struct Pace(Mutex<Spent>);

#[derive(Default)]
struct Spent {
    points: Window<MINUTE>,
    minute: Window<MINUTE>,
    hour: Window<HOUR>,
}

impl Pace {
    /// Counts a call that is made now; the error is when it may be made instead.
    pub(super) fn admit(&self, cost: Cost, now: Timestamp) -> Result<(), Timestamp> {
        let mut spent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Spent { points, minute, hour } = &mut *spent;
        let texts = u32::from(cost.is_text);
        let now = now.unix_micros().div_euclid(1_000_000);
        let waits = [
            cost.below.and_then(|most| points.free_at(now, cost.points, most)),
            minute.free_at(now, texts, TEXTS_A_MINUTE),
            hour.free_at(now, texts, TEXTS_AN_HOUR),
        ];
        if let Some(at) = waits.into_iter().flatten().max() {
            return Err(Timestamp::from_unix_seconds(at));
        }
        points.count(now, cost.points);
        minute.count(now, texts);
        hour.count(now, texts);
        Ok(())
    }
}

/// What was counted within the last so many seconds, by the second.
#[derive(Default)]
struct Window<const SECONDS: i64> {
    counted: VecDeque<(i64, u32)>,
    sum: u32,
}

impl<const SECONDS: i64> Window<SECONDS> {
    /// The second in which so much more is at most `most`; `None` if it is now.
    fn free_at(&mut self, now: i64, more: u32, most: u32) -> Option<i64> {
        self.forget(now);
        let mut left = self.sum.saturating_add(more);
        if more == 0 || left <= most {
            return None;
        }
        let mut free = None;
        for (second, count) in &self.counted {
            free = Some(second + SECONDS + 1);
            left -= count;
            if left <= most {
                break;
            }
        }
        free
    }

    fn count(&mut self, now: i64, more: u32) {
        if more == 0 {
            return;
        }
        self.sum = self.sum.saturating_add(more);
        match self.counted.back_mut() {
            // A clock that was set back does not reorder them.
            Some((second, count)) if *second >= now => *count = count.saturating_add(more),
            Some(_) | None => self.counted.push_back((now, more)),
        }
    }

    /// Drops the seconds that lie wholly before the window, and all of them if the clock was set back
    /// by more than a minute.
    fn forget(&mut self, now: i64) {
        if self.counted.back().is_some_and(|(second, _)| *second > now + MINUTE) {
            (self.counted, self.sum) = (VecDeque::new(), 0);
        }
        while let Some((second, count)) = self.counted.front()
            && second + SECONDS < now
        {
            self.sum -= count;
            self.counted.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_call_of_the_host_has_its_cost() {
        let of = |method: Method, rest: &str| {
            let cost = Cost::of(&method, &format!("/api/v3/repos/acme/calc{rest}"));
            (cost.points, cost.below, cost.is_text)
        };
        assert_eq!(of(Method::GET, "/issues/7/comments"), (READ, None, false));
        let (news, others) = (Some(POINTS_FOR_NEWS), Some(POINTS));
        assert_eq!(of(Method::POST, "/issues/7/comments"), (WRITE, news, true));
        assert_eq!(of(Method::PATCH, "/issues/comments/9"), (WRITE, news, true));
        assert_eq!(of(Method::DELETE, "/issues/comments/9"), (WRITE, news, false));
        assert_eq!(of(Method::POST, "/statuses/0123"), (WRITE, news, false));
        assert_eq!(of(Method::POST, "/check-runs"), (WRITE, news, false));
        assert_eq!(of(Method::POST, "/issues/7/labels"), (WRITE, news, false));
        assert_eq!(of(Method::DELETE, "/issues/7/labels/queued"), (WRITE, news, false));
        assert_eq!(of(Method::POST, "/issues/comments/9/reactions"), (WRITE, news, false));
        assert_eq!(of(Method::POST, "/pulls"), (WRITE, others, true));
        assert_eq!(of(Method::PATCH, "/pulls/7"), (WRITE, others, true));
        assert_eq!(of(Method::POST, "/merges"), (WRITE, others, false));
        assert_eq!(of(Method::PUT, "/pulls/7/merge"), (WRITE, others, false));
        assert_eq!(of(Method::DELETE, "/git/refs/heads/x"), (WRITE, others, false));
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_unix_seconds(seconds)
    }

    fn comment() -> Cost {
        Cost::of(&Method::POST, "/repos/acme/calc/issues/7/comments")
    }

    #[test]
    fn comments_leave_room_for_landings() {
        let pace = Pace::default();
        let status = Cost::of(&Method::POST, "/repos/acme/calc/statuses/0123");
        let merge = Cost::of(&Method::POST, "/repos/acme/calc/merges");
        let made = (0..1_000).take_while(|_| pace.admit(status, at(0)).is_ok()).count();
        assert_eq!(made, 120);
        assert_eq!(pace.admit(status, at(0)), Err(at(61)));
        let made = (0..1_000).take_while(|_| pace.admit(merge, at(0)).is_ok()).count();
        assert_eq!(made, 40);
        let read = Cost::of(&Method::GET, "/repos/acme/calc/pulls/7");
        assert!((0..1_000).all(|_| pace.admit(read, at(0)).is_ok()), "reads are not delayed");
        assert!(pace.admit(merge, at(60)).is_err());
        assert!(pace.admit(merge, at(61)).is_ok());
    }

    #[test]
    fn a_clock_that_is_set_back_stops_nothing_for_long() {
        let pace = Pace::default();
        let made = (0..1_000).take_while(|_| pace.admit(comment(), at(10_000)).is_ok()).count();
        assert_eq!(made, 70);
        assert_eq!(pace.admit(comment(), at(9_990)), Err(at(10_061)));
        assert!(pace.admit(comment(), at(100)).is_ok());
        assert!(pace.admit(comment(), at(101)).is_ok());
    }

    fn calls() -> impl Strategy<Value = Vec<(u8, i64)>> {
        proptest::collection::vec(
            (0..4_u8, prop_oneof![8 => 0..300_i64, 1 => 0..90_000_i64]),
            1..1_500,
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Whatever is called, and when: no minute or hour has more than the host allows, and a refused
        /// write is allowed at the time that the refusal names.
        #[test]
        fn no_limit_is_ever_exceeded(calls in calls()) {
            let pace = Pace::default();
            let (mut millis, mut writes, mut texts) = (0_i64, Vec::new(), Vec::new());
            let mut reads = Vec::new();
            for (kind, pause) in calls {
                millis += pause;
                let cost = match kind {
                    0 => Cost::of(&Method::GET, "/repos/acme/calc/pulls/7"),
                    1 => comment(),
                    2 => Cost::of(&Method::POST, "/repos/acme/calc/statuses/0123"),
                    _ => Cost::of(&Method::POST, "/repos/acme/calc/merges"),
                };
                let time = |millis: i64| Timestamp::from_unix_micros(millis * 1_000);
                if let Err(later) = pace.admit(cost, time(millis)) {
                    prop_assert!(kind != 0 && later > time(millis));
                    millis = later.unix_micros() / 1_000;
                    prop_assert_eq!(pace.admit(cost, later), Ok(()));
                }
                let list = if kind == 0 { &mut reads } else { &mut writes };
                list.push(millis);
                if kind == 1 {
                    texts.push(millis);
                }
                let within = |list: &[i64], span: i64| {
                    list.iter().rev().take_while(|at| **at > millis - span).count()
                };
                if kind != 0 {
                    prop_assert!(within(&writes, 60_000) * 5 + within(&reads, 60_000) <= 900);
                }
                prop_assert!(within(&texts, 60_000) <= 80);
                prop_assert!(within(&texts, 3_600_000) <= 500);
            }
        }
    }
}
