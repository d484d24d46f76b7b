//! Testing results: one for each time that a pull request was under test, computed from the
//! journal.

use crate::ids::{PrNumber, RunId};
use crate::time::{Span, Timestamp};
use crate::words::words;

use super::{Move, PrState, QueuedReason};

words!(
    /// How a test ended.
    Outcome {
        /// The pull request passed.
        Passed = "PASSED",
        /// A required status failed, the run timed out, or the candidate could not be built.
        Failed = "FAILED",
        /// The run was cancelled without a result: it was restarted, or its base changed.
        Interrupted = "INTERRUPTED",
        /// The pull request left the queue during the test.
        Cancelled = "CANCELLED",
    }
);

words!(
    /// The role of a test in a bisection.
    BisectionPart {
        /// The test is part of a bisection.
        Within = "IN_BISECTION",
        /// The test failed and started a bisection.
        Entered = "ENTERED_BISECTION",
    }
);

/// The result of one test of a pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TestingResult {
    /// The pull request.
    pub pr: PrNumber,
    /// The run, if known.
    pub run: Option<RunId>,
    /// How the pull request left the queue; `None` while it is in the queue.
    pub conclusion: Option<PrState>,
    /// Its role in a bisection, if any.
    pub bisection: Option<BisectionPart>,
    /// When the test ended.
    pub ended_at: Timestamp,
    /// The time in TESTING.
    pub took: Span,
    /// How the test ended.
    pub outcome: Outcome,
}

/// Computes the results of ended tests.
///
/// `ends` are moves out of TESTING; the results have the same order. `after` are all moves of the
/// same entries from the earliest of them on, oldest first.
pub fn testing_results(ends: &[Move], after: &[Move]) -> Vec<TestingResult> {
    ends.iter().map(|end| result(end, after)).collect()
}

fn result(end: &Move, after: &[Move]) -> TestingResult {
    let rest = || after.iter().filter(|it| it.entry == end.entry && it.place() >= end.place());
    let conclusion = rest().map(|it| it.to).find(|state| state.is_terminal());
    // The next test is another attempt.
    let attempt = std::iter::once(end)
        .chain(rest().skip(1).take_while(|it| it.to != PrState::Testing && it.from.is_some()));
    let splits = |it: &Move| it.reason == QueuedReason::BisectionRequired.into();
    let bisection = if end.bisection {
        Some(BisectionPart::Within)
    } else if attempt.into_iter().any(splits) {
        Some(BisectionPart::Entered)
    } else {
        None
    };
    let outcome = match end.to {
        PrState::TestsPassed => Outcome::Passed,
        PrState::Failed | PrState::PendingFailure => Outcome::Failed,
        PrState::Pending if splits(end) => Outcome::Failed,
        PrState::Cancelled => Outcome::Cancelled,
        PrState::NotReady | PrState::Pending | PrState::Testing | PrState::Merged => {
            Outcome::Interrupted
        }
    };
    // A move from run to run names the new run.
    let run = end.run.filter(|_| end.to != PrState::Testing);
    TestingResult {
        pr: end.pr,
        run,
        conclusion,
        bisection,
        ended_at: end.at,
        took: end.after,
        outcome,
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::ids::EntryId;
    use crate::queue::{
        Actor, CancelReason, FailReason, MergeReason, PassReason, Reason, SubmitReason, TestFailure,
    };

    fn moved(number: u64, from: PrState, to: PrState, reason: impl Into<Reason>) -> Move {
        Move {
            number,
            ordinal: 0,
            at: Timestamp::from_unix_seconds(i64::try_from(number).expect("small")),
            entry: EntryId(Uuid::from_u128(1)),
            pr: PrNumber(1),
            from: Some(from),
            to,
            reason: reason.into(),
            actor: Actor::Queue,
            run: Some(RunId(Uuid::from_u128(u128::from(number)))),
            bisection: false,
            after: Span::seconds(90),
            details: Vec::new(),
        }
    }

    fn results(moves: &[Move]) -> Vec<TestingResult> {
        let ends: Vec<Move> =
            moves.iter().filter(|it| it.from == Some(PrState::Testing)).cloned().collect();
        testing_results(&ends, moves)
    }

    #[test]
    fn each_attempt_has_its_own_outcome_and_the_conclusion_of_its_submission() {
        use PrState::{Cancelled, Failed, Merged, NotReady, Pending, Testing, TestsPassed};
        let seen = results(&[
            moved(1, Testing, Pending, QueuedReason::PredecessorFailed),
            moved(2, Pending, Testing, Reason::Started),
            moved(3, Testing, Failed, FailReason::RequiredStatus),
            Move { from: None, ..moved(4, NotReady, NotReady, SubmitReason::ApiRequested) },
            moved(5, Testing, TestsPassed, PassReason::OwnRun),
            moved(6, TestsPassed, Merged, MergeReason::Queue),
            Move { from: None, ..moved(7, NotReady, NotReady, SubmitReason::ApiRequested) },
            moved(8, Testing, Cancelled, CancelReason::UserRequested),
        ]);
        let seen: Vec<_> = seen.iter().map(|it| (it.outcome, it.conclusion)).collect();
        assert_eq!(
            seen,
            [
                (Outcome::Interrupted, Some(Failed)),
                (Outcome::Failed, Some(Failed)),
                (Outcome::Passed, Some(Merged)),
                (Outcome::Cancelled, Some(Cancelled)),
            ]
        );
    }

    #[test]
    fn a_failure_that_starts_a_bisection_and_its_parts_are_marked() {
        use PrState::{Pending, PendingFailure, Testing, TestsPassed};
        let split = QueuedReason::BisectionRequired;
        let seen = results(&[
            moved(1, Testing, PendingFailure, TestFailure::RequiredStatus),
            moved(2, PendingFailure, Pending, split),
            moved(3, Pending, Testing, Reason::Started),
            Move { bisection: true, ..moved(4, Testing, Pending, QueuedReason::PredecessorFailed) },
            moved(5, Pending, Testing, Reason::Started),
            moved(6, Testing, Pending, split),
            moved(7, Pending, Testing, Reason::Started),
            moved(8, Testing, TestsPassed, PassReason::OwnRun),
        ]);
        let seen: Vec<_> = seen.iter().map(|it| (it.outcome, it.bisection)).collect();
        assert_eq!(
            seen,
            [
                (Outcome::Failed, Some(BisectionPart::Entered)),
                (Outcome::Interrupted, Some(BisectionPart::Within)),
                (Outcome::Failed, Some(BisectionPart::Entered)),
                (Outcome::Passed, None),
            ]
        );
        assert!(
            results(&[moved(9, Testing, TestsPassed, PassReason::OwnRun)])[0].conclusion.is_none()
        );
    }

    #[test]
    fn a_move_from_run_to_run_names_no_run() {
        let seen = results(&[moved(1, PrState::Testing, PrState::Testing, Reason::Started)]);
        assert_eq!((seen[0].run, seen[0].outcome), (None, Outcome::Interrupted));
    }
}
