//! Keeps writes below the limits that GitHub publishes beside the quota ("secondary rate limits"): 900
//! points a minute, of which a read uses one and a write five, and 80 requests a minute and 500 an hour
//! that create content. Reads are counted, but never delayed.
//!
//! An operation that has begun is not interrupted, because it would start from the beginning: builds and
//! landings wait before their first call. The host counts by its own clock, and several operations run
//! at the same time, so a part of each limit is left unused. Announcements leave more of it than builds,
//! and builds more than landings.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use reqwest::Method;
use signalbox_domain::ids::RunId;
use signalbox_domain::ports::HostError;
use signalbox_domain::time::Timestamp;
use url::Url;

use super::Client;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
/// The points of a read.
const READ: u32 = 1;
/// The points of a write.
const WRITE: u32 = 5;
/// The points of the last minute above which announcements wait; the published limit is 900.
const ANNOUNCE_BELOW: u32 = 500;
/// Comments a minute and an hour; the published limits of all content are 80 and 500.
const COMMENTS: (u32, u32) = (50, 300);
/// Comments and new pull requests a minute and an hour.
const CONTENT: (u32, u32) = (70, 450);

/// How long the build of a run may begin again, as after a conflict, in seconds.
const BEGUN: i64 = 2 * MINUTE;

/// What must not be interrupted once it has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// The build of the candidate of a run.
    Build(RunId),
    /// The deletion of a branch.
    Deletion,
    /// A landing.
    Landing,
}

impl Operation {
    /// The points of the last minute above which it does not begin.
    const fn below(self) -> u32 {
        match self {
            Self::Build(_) | Self::Deletion => 600,
            Self::Landing => 750,
        }
    }
}

/// What a call counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cost {
    points: u32,
    /// The points of the last minute above which it waits.
    below: Option<u32>,
    /// The most requests a minute and an hour that create content, if it is one of them.
    content: Option<(u32, u32)>,
}

impl Cost {
    /// The cost of a call to that path.
    pub(super) fn of(method: &Method, path: &str) -> Self {
        let points = if method == Method::GET { READ } else { WRITE };
        let plain = Self { points, below: None, content: None };
        // Names of branches are part of these paths.
        if method == Method::GET || path.contains("/git/refs/") {
            return plain;
        }
        let mut parts = path.rsplit('/');
        let (last, before) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let is_comment = last == "comments" || before == "comments";
        let is_shown = ["labels", "reactions"].iter().any(|part| last == *part || before == *part);
        let is_announcement =
            is_comment || is_shown || before == "statuses" || last == "check-runs";
        let below = is_announcement.then_some(ANNOUNCE_BELOW);
        let content = match (is_comment, last) {
            _ if method == Method::DELETE => None,
            (true, _) => Some(COMMENTS),
            (false, "pulls") => Some(CONTENT),
            (false, _) => None,
        };
        Self { points, below, content }
    }
}

/// The calls of the last minute, and the requests of the last hour that created content.
#[derive(Default)]
pub(super) struct Pace(Mutex<Spent>);

#[derive(Default)]
struct Spent {
    points: Window<MINUTE>,
    minute: Window<MINUTE>,
    hour: Window<HOUR>,
    /// The runs whose builds have begun, and when.
    builds: BTreeMap<RunId, i64>,
}

impl Client {
    /// Refuses an operation that would exceed a published limit.
    pub(crate) fn begin(&self, operation: Operation) -> Result<(), HostError> {
        let Some(pace) = &self.pace else { return Ok(()) };
        let begun = pace.begin(operation, self.clock.now());
        begun.map_err(|retry_at| HostError::RateLimited { retry_at })
    }

    /// Refuses a call while the host limits calls, and one that would exceed a published limit.
    pub(super) fn admit(&self, method: &Method, address: &Url) -> Result<(), HostError> {
        if let Some(retry_at) = self.blocked() {
            return Err(HostError::RateLimited { retry_at });
        }
        let Some(pace) = &self.pace else { return Ok(()) };
        let admitted = pace.admit(Cost::of(method, address.path()), self.clock.now());
        admitted.map_err(|retry_at| HostError::RateLimited { retry_at })
    }
}

fn second(now: Timestamp) -> i64 {
    now.unix_micros().div_euclid(1_000_000)
}

impl Pace {
    /// Counts a call that is made now; the error is when it may be made instead.
    pub(super) fn admit(&self, cost: Cost, now: Timestamp) -> Result<(), Timestamp> {
        let mut spent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Spent { points, minute, hour, .. } = &mut *spent;
        let now = second(now);
        let waits = [
            cost.below.and_then(|most| points.free_at(now, cost.points, most)),
            cost.content.and_then(|(most, _)| minute.free_at(now, 1, most)),
            cost.content.and_then(|(_, most)| hour.free_at(now, 1, most)),
        ];
        if let Some(at) = waits.into_iter().flatten().max() {
            return Err(Timestamp::from_unix_seconds(at));
        }
        points.count(now, cost.points);
        if cost.content.is_some() {
            minute.count(now, 1);
            hour.count(now, 1);
        }
        Ok(())
    }

    /// Whether an operation may begin now; the error is when it may.
    pub(super) fn begin(&self, operation: Operation, now: Timestamp) -> Result<(), Timestamp> {
        let mut spent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = second(now);
        spent.builds.retain(|_, at| (0..BEGUN).contains(&(now - *at)));
        let run = if let Operation::Build(run) = operation { Some(run) } else { None };
        if run.is_some_and(|run| spent.builds.contains_key(&run)) {
            return Ok(());
        }
        if let Some(at) = spent.points.free_at(now, WRITE, operation.below()) {
            return Err(Timestamp::from_unix_seconds(at));
        }
        spent.builds.extend(run.map(|run| (run, now)));
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
        if left <= most {
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
    use uuid::Uuid;

    use super::*;

    #[test]
    fn every_call_of_the_host_has_its_cost() {
        let of = |method: Method, rest: &str| {
            let cost = Cost::of(&method, &format!("/api/v3/repos/acme/calc{rest}"));
            (cost.points, cost.below.is_some(), cost.content)
        };
        assert_eq!(of(Method::GET, "/issues/7/comments"), (READ, false, None));
        assert_eq!(of(Method::POST, "/issues/7/comments"), (WRITE, true, Some(COMMENTS)));
        assert_eq!(of(Method::PATCH, "/issues/comments/9"), (WRITE, true, Some(COMMENTS)));
        assert_eq!(of(Method::DELETE, "/issues/comments/9"), (WRITE, true, None));
        assert_eq!(of(Method::POST, "/statuses/0123"), (WRITE, true, None));
        assert_eq!(of(Method::POST, "/check-runs"), (WRITE, true, None));
        assert_eq!(of(Method::POST, "/issues/7/labels"), (WRITE, true, None));
        assert_eq!(of(Method::DELETE, "/issues/7/labels/queued"), (WRITE, true, None));
        assert_eq!(of(Method::POST, "/issues/comments/9/reactions"), (WRITE, true, None));
        assert_eq!(of(Method::POST, "/pulls"), (WRITE, false, Some(CONTENT)));
        assert_eq!(of(Method::PATCH, "/pulls/7"), (WRITE, false, None));
        assert_eq!(of(Method::POST, "/merges"), (WRITE, false, None));
        assert_eq!(of(Method::PUT, "/pulls/7/merge"), (WRITE, false, None));
        let comment = Cost::of(&Method::POST, "/repos/acme/git/issues/7/comments");
        assert_eq!(comment.content, Some(COMMENTS), "of a repository of that name");
        for branch in ["x", "comments/x", "statuses/x", "x/labels", "pulls"] {
            let rest = format!("/git/refs/heads/{branch}");
            assert_eq!(of(Method::PATCH, &rest), (WRITE, false, None), "{branch}");
        }
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_unix_seconds(seconds)
    }

    fn of(method: &Method, rest: &str) -> Cost {
        Cost::of(method, &format!("/repos/acme/calc{rest}"))
    }

    fn comment() -> Cost {
        of(&Method::POST, "/issues/7/comments")
    }

    /// How often it is admitted at that time, at most 1,000 times.
    fn made(pace: &Pace, cost: Cost, now: Timestamp) -> usize {
        (0..1_000).take_while(|_| pace.admit(cost, now).is_ok()).count()
    }

    #[test]
    fn announcements_leave_room_for_builds_and_builds_for_landings() {
        let pace = Pace::default();
        let (status, merge) = (of(&Method::POST, "/statuses/0123"), of(&Method::POST, "/merges"));
        assert_eq!(made(&pace, status, at(0)), 100);
        assert_eq!(pace.admit(status, at(0)), Err(at(61)));
        let begun = |operation| {
            (0..1_000)
                .take_while(|_| {
                    let may_begin = pace.begin(operation, at(0)).is_ok();
                    may_begin && pace.admit(merge, at(0)).is_ok()
                })
                .count()
        };
        let build = |number| Operation::Build(RunId(Uuid::from_u128(number)));
        assert_eq!(begun(Operation::Deletion), 20);
        assert_eq!(pace.begin(build(1), at(0)), Err(at(61)));
        assert_eq!(begun(Operation::Landing), 30);
        assert_eq!(made(&pace, merge, at(0)), 1_000, "what has begun is not interrupted");
        assert_eq!(pace.begin(Operation::Landing, at(60)), Err(at(61)));
        assert_eq!(pace.begin(build(1), at(61)), Ok(()));
        assert_eq!(made(&pace, merge, at(61)), 1_000);
        assert_eq!(pace.begin(build(1), at(62)), Ok(()), "it builds again after a conflict");
        assert!(pace.begin(build(2), at(62)).is_err());
    }

    #[test]
    fn comments_leave_room_for_pull_requests() {
        let pace = Pace::default();
        assert_eq!(made(&pace, comment(), at(0)), 50);
        assert_eq!(made(&pace, of(&Method::POST, "/pulls"), at(0)), 20);
        for minute in 1..6 {
            assert_eq!(made(&pace, comment(), at(100 * minute)), if minute < 5 { 50 } else { 30 });
        }
        assert_eq!(pace.admit(comment(), at(600)), Err(at(3_601)));
        assert_eq!(made(&pace, of(&Method::POST, "/pulls"), at(600)), 70);
    }

    #[test]
    fn a_clock_that_is_set_back_stops_nothing_for_long() {
        let pace = Pace::default();
        assert_eq!(made(&pace, comment(), at(10_000)), 50);
        assert_eq!(pace.admit(comment(), at(9_990)), Err(at(10_061)));
        assert_eq!(pace.admit(comment(), at(100)), Ok(()));
        assert_eq!(pace.admit(comment(), at(101)), Ok(()));
    }

    fn calls() -> impl Strategy<Value = Vec<(u8, i64)>> {
        let pause = prop_oneof![8 => 0..300_i64, 1 => 0..90_000_i64];
        proptest::collection::vec((0..5_u8, pause), 1..800)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Whatever is done, and when: no minute or hour has more than the host allows, and what was
        /// refused is allowed at the time that the refusal names.
        #[test]
        fn no_limit_is_ever_exceeded(calls in calls()) {
            let pace = Pace::default();
            let mut millis = 0_i64;
            let (mut points, mut content) = (Vec::new(), Vec::new());
            let time = |millis: i64| Timestamp::from_unix_micros(millis * 1_000);
            let merge = of(&Method::POST, "/merges");
            for (kind, pause) in calls {
                millis += pause;
                let (cost, operation) = match kind {
                    0 => (of(&Method::GET, "/pulls/7"), None),
                    1 => (comment(), None),
                    2 => (of(&Method::POST, "/statuses/0123"), None),
                    3 => (merge, Some((Operation::Deletion, 13))),
                    _ => (merge, Some((Operation::Landing, 3))),
                };
                let (operation, count) = operation.unzip();
                let allowed = |now| match operation {
                    Some(operation) => pace.begin(operation, now),
                    None => pace.admit(cost, now),
                };
                if let Err(later) = allowed(time(millis)) {
                    prop_assert!(kind != 0 && later > time(millis));
                    millis = later.unix_micros() / 1_000;
                    prop_assert_eq!(allowed(later), Ok(()));
                }
                for _ in 0..count.unwrap_or_default() {
                    prop_assert_eq!(pace.admit(cost, time(millis)), Ok(()));
                }
                let number = u32::try_from(count.unwrap_or(1)).expect("small");
                points.push((millis, cost.points * number));
                content.extend((kind == 1).then_some((millis, 1)));
                let within = |list: &[(i64, u32)], span: i64| -> u32 {
                    let last = list.iter().rev().take_while(|(at, _)| *at > millis - span);
                    last.map(|(_, count)| count).sum()
                };
                if kind != 0 {
                    prop_assert!(within(&points, 60_000) <= 900);
                }
                prop_assert!(within(&content, 60_000) <= 80);
                prop_assert!(within(&content, 3_600_000) <= 500);
            }
        }
    }
}
