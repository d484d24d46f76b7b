//! Stays: what the steps of a pull request say about each time that it was in a queue.

use signalbox_domain::queue::{
    FailReason, MergeReason, PassReason, PrState, Priority, TestFailure,
};
use signalbox_domain::time::{Span, Timestamp};

use crate::Areas;
use crate::history::Ending;
use crate::workload::{MAX_TEST_MINUTES, minutes, span};

/// A stay of a pull request in a queue. One that was submitted several times has several.
#[derive(Clone, Debug, PartialEq)]
pub struct PastStay {
    /// The number of the pull request.
    pub number: u32,
    /// When it last entered the line.
    pub queued_at: Timestamp,
    /// When it left the queue.
    pub ended_at: Timestamp,
    /// How it left the queue.
    pub outcome: Ending,
    /// The duration of its last complete test run; `None` if there was none.
    pub tests_take: Option<Span>,
    /// Its priority; `None` for the default.
    pub priority: Option<Priority>,
    /// What it changes; `None` if that is not known.
    pub areas: Option<Areas>,
    /// Its author; empty if unknown.
    pub author: String,
}

/// A step of a pull request: the time, the state that it came to, and the reason as the API names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PastStep<'a> {
    /// When it came to the state.
    pub at: Timestamp,
    /// The state.
    pub state: PrState,
    /// Why; empty if the API names no reason.
    pub reason: &'a str,
}

impl PastStay {
    /// The stays that ended at a time or later, from all steps of a pull request, oldest first. A stay
    /// whose beginning is not among the steps is omitted.
    pub fn all<'a>(
        number: u32,
        priority: Option<Priority>,
        steps: impl IntoIterator<Item = PastStep<'a>>,
        since: Timestamp,
    ) -> Vec<Self> {
        let mut found = Vec::new();
        // The first known step may be within a stay.
        let (mut may_enter, mut queued_at) = (false, None);
        let (mut testing, mut tests_take) = (None, None);
        for step in steps {
            let PastStep { at, state, .. } = step;
            if let Some(began) = testing.take().filter(|_| step.is_tested()) {
                tests_take = Some(at.since(began));
            }
            let outcome = match state {
                PrState::NotReady => {
                    (may_enter, queued_at) = (true, None);
                    continue;
                }
                PrState::Pending => {
                    if std::mem::take(&mut may_enter) {
                        queued_at = Some(at);
                    }
                    continue;
                }
                PrState::Testing => {
                    testing = Some(at);
                    continue;
                }
                PrState::TestsPassed | PrState::PendingFailure => continue,
                PrState::Merged | PrState::Failed | PrState::Cancelled => step.ending(),
            };
            let is_possible = |it: &Span| *it > Span::ZERO && *it <= span(MAX_TEST_MINUTES);
            let tests_take = tests_take.take().filter(is_possible);
            if let (Some(queued_at), true) = (queued_at.take(), at >= since) {
                found.push(Self {
                    number,
                    queued_at,
                    ended_at: at,
                    outcome,
                    tests_take,
                    priority,
                    areas: None,
                    author: String::new(),
                });
            }
        }
        found
    }

    /// Its minutes in the queue.
    pub(crate) fn minutes(&self) -> f64 {
        minutes(self.ended_at.since(self.queued_at))
    }

    /// Whether its tests failed.
    pub(crate) fn failed(&self) -> bool {
        self.outcome == Ending::Failed
    }
}

impl PastStep<'_> {
    /// Whether its own test run led to this step, and no conflict, earlier result or later run.
    fn is_tested(&self) -> bool {
        let reason = self.reason.to_uppercase();
        match self.state {
            PrState::TestsPassed => PassReason::parse(&reason) == Some(PassReason::OwnRun),
            PrState::PendingFailure => {
                let failure = TestFailure::parse(&reason);
                matches!(failure, Some(TestFailure::RequiredStatus | TestFailure::Timeout))
            }
            PrState::Failed => {
                let failure = FailReason::parse(&reason);
                matches!(failure, Some(FailReason::RequiredStatus | FailReason::Timeout))
            }
            PrState::NotReady
            | PrState::Pending
            | PrState::Testing
            | PrState::Merged
            | PrState::Cancelled => false,
        }
    }

    /// How a stay counts: as merged or failed only if a test run of the queue decided.
    fn ending(&self) -> Ending {
        let reason = self.reason.to_uppercase();
        match (self.state, MergeReason::parse(&reason), FailReason::parse(&reason)) {
            (PrState::Merged, Some(MergeReason::Queue), _) => Ending::Merged,
            (
                PrState::Failed,
                _,
                Some(FailReason::RequiredStatus | FailReason::Timeout | FailReason::Optimization),
            ) => Ending::Failed,
            _ => Ending::Cancelled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Step = (&'static str, &'static str, &'static str);

    fn at(time: &str) -> Timestamp {
        Timestamp::parse(&format!("2026-09-17T{time}:00.000Z")).expect("a time")
    }

    /// Steps: the time, the state and the reason of its result.
    fn found(steps: &[Step], since: &str) -> Vec<PastStay> {
        let steps = steps.iter().map(|(time, state, reason)| PastStep {
            at: at(time),
            state: PrState::parse(state).expect("a state"),
            reason,
        });
        PastStay::all(7, Some(Priority::number(10)), steps, at(since))
    }

    fn stay(queued: &str, ended: &str, outcome: Ending, tests: Option<u32>) -> PastStay {
        PastStay {
            number: 7,
            queued_at: at(queued),
            ended_at: at(ended),
            outcome,
            tests_take: tests.map(Span::minutes),
            priority: Some(Priority::number(10)),
            areas: None,
            author: String::new(),
        }
    }

    #[test]
    fn each_stay_has_its_last_complete_test() {
        let steps = |failed: &'static str, passed: &'static str, same: &'static str| {
            [
                ("08:00", "NOT_READY", ""),
                ("08:30", "PENDING", ""),
                ("08:31", "TESTING", ""),
                ("08:40", "PENDING", ""),
                ("08:41", "TESTING", ""),
                ("09:11", "PENDING_FAILURE", failed),
                ("09:20", "FAILED", failed),
                ("10:00", "NOT_READY", ""),
                ("10:01", "PENDING", ""),
                ("10:02", "TESTING", ""),
                ("10:22", "TESTS_PASSED", passed),
                ("10:23", "TESTING", ""),
                // The same tree again.
                ("10:24", "TESTS_PASSED", same),
                ("10:50", "MERGED", "MERGE_GRAPH_MERGE"),
                ("11:00", "NOT_READY", ""),
                ("11:10", "CANCELLED", ""),
                ("11:20", "NOT_READY", ""),
                ("11:21", "PENDING", ""),
                ("11:30", "CANCELLED", ""),
                ("12:00", "NOT_READY", ""),
                ("12:01", "PENDING", ""),
            ]
        };
        let upper =
            steps("TEST_RUN_REQUIRED_STATUS_FAILED", "TEST_RUN_PASSED", "SAME_TREE_PASSED_BEFORE");
        let first = stay("08:30", "09:20", Ending::Failed, Some(30));
        let rest = [
            stay("10:01", "10:50", Ending::Merged, Some(20)),
            stay("11:21", "11:30", Ending::Cancelled, None),
        ];
        assert_eq!(found(&upper, "00:00"), [&[first], &rest[..]].concat());
        assert_eq!(found(&upper, "10:00"), rest);
        let lower =
            steps("test_run_required_status_failed", "test_run_passed", "same_tree_passed_before");
        assert_eq!(found(&lower, "10:00"), rest);
    }

    #[test]
    fn a_stay_begins_when_it_last_entered_the_line_and_counts_if_tests_decided() {
        let returned = [
            ("08:00", "NOT_READY", ""),
            ("08:01", "PENDING", ""),
            ("08:05", "NOT_READY", ""),
            ("09:05", "PENDING", ""),
            ("09:06", "TESTING", ""),
            ("09:07", "FAILED", "START_TEST_RUN_MERGE_CONFLICT"),
        ];
        assert_eq!(found(&returned, "00:00"), [stay("09:05", "09:07", Ending::Cancelled, None)]);
        // The beginning is not known.
        assert_eq!(
            found(&[("08:40", "PENDING", ""), ("09:00", "MERGED", "MERGE_GRAPH_MERGE")], "00:00"),
            []
        );
        let by_hand = [
            ("08:00", "NOT_READY", ""),
            ("08:01", "PENDING", ""),
            ("08:09", "MERGED", "MANUAL_MERGE"),
        ];
        assert_eq!(found(&by_hand, "00:00"), [stay("08:01", "08:09", Ending::Cancelled, None)]);
        let direct = by_hand.map(|(at, state, reason)| {
            let direct = MergeReason::Direct.as_str();
            (at, state, if reason.is_empty() { reason } else { direct })
        });
        assert_eq!(found(&direct, "00:00"), [stay("08:01", "08:09", Ending::Cancelled, None)]);
    }
}
