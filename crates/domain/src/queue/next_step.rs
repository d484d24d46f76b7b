//! What to do about a pull request that has failed.

use crate::words::words;

use super::{BlockReason, Culprit, FailReason};

words!(
    /// What to do about a pull request that has failed.
    NextStep {
        /// Fix the failed tests that are not known to be flaky.
        FixTests = "fix_tests",
        /// Fix what made the checks fail; no test results tell more.
        FixChecks = "fix_checks",
        /// Submit it again, or quarantine the tests: all that failed are known to be flaky.
        SubmitAgainOrQuarantine = "submit_again_or_quarantine",
        /// Submit it again: nothing of it has failed.
        SubmitAgain = "submit_again",
        /// Resolve its conflicts with the target branch.
        ResolveConflicts = "resolve_conflicts",
        /// Wait until the pull request at fault is fixed, or has left the queue.
        WaitForCulprit = "wait_for_culprit",
        /// Repair the target branch, which fails without it.
        RepairTarget = "repair_target",
        /// Correct the configuration on the target branch.
        CorrectConfiguration = "correct_configuration",
        /// Make the checks faster, or raise the test timeout.
        ShortenChecks = "shorten_checks",
        /// Remove the cause that the git host's message names.
        AskHost = "ask_host",
    }
);

/// How many tests failed in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FailedTests {
    /// Tests that are known to be flaky.
    pub known: u32,
    /// The others.
    pub others: u32,
}

impl NextStep {
    /// What to do after a failure. `tests`: what uploaded results say about the run; zeros if there
    /// are none.
    pub const fn after(reason: FailReason, culprit: &Culprit, tests: FailedTests) -> Self {
        match (BlockReason::of(reason), culprit) {
            (Some(BlockReason::MergeConflict), _) => Self::ResolveConflicts,
            (None, _) => Self::CorrectConfiguration,
            (Some(BlockReason::Undetermined), _)
                if matches!(reason, FailReason::UpdatedAtMergeTime) =>
            {
                Self::SubmitAgain
            }
            (Some(BlockReason::Undetermined), _) | (_, Culprit::Host) => Self::AskHost,
            (_, Culprit::PullRequest(_)) => Self::WaitForCulprit,
            (_, Culprit::TargetBranch) => Self::RepairTarget,
            (Some(BlockReason::AwaitingRequiredCheck), Culprit::Itself) => Self::ShortenChecks,
            (Some(BlockReason::FailingRequiredCheck), Culprit::Itself) => match tests {
                FailedTests { known: 0, others: 0 } => Self::FixChecks,
                FailedTests { others: 0, .. } => Self::SubmitAgainOrQuarantine,
                FailedTests { .. } => Self::FixTests,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::PrNumber;

    #[test]
    fn failed_tests_decide_only_where_the_pull_request_is_at_fault() {
        let after = |culprit: &Culprit, known, others| {
            NextStep::after(FailReason::RequiredStatus, culprit, FailedTests { known, others })
        };
        assert_eq!(after(&Culprit::Itself, 0, 0), NextStep::FixChecks);
        assert_eq!(after(&Culprit::Itself, 2, 1), NextStep::FixTests);
        assert_eq!(after(&Culprit::Itself, 2, 0), NextStep::SubmitAgainOrQuarantine);
        assert_eq!(after(&Culprit::PullRequest(PrNumber(8)), 2, 0), NextStep::WaitForCulprit);
        assert_eq!(after(&Culprit::TargetBranch, 0, 1), NextStep::RepairTarget);
    }

    #[test]
    fn every_reason_leads_to_a_step_of_its_own_kind() {
        let tests = FailedTests { known: 1, others: 0 };
        for (reason, step) in [
            (FailReason::MergeConflict, NextStep::ResolveConflicts),
            (FailReason::ConfigParsingFailure, NextStep::CorrectConfiguration),
            (FailReason::StartRefused, NextStep::AskHost),
            (FailReason::MergeRefused, NextStep::AskHost),
            (FailReason::UpdatedAtMergeTime, NextStep::SubmitAgain),
            (FailReason::Timeout, NextStep::ShortenChecks),
        ] {
            assert_eq!(NextStep::after(reason, &Culprit::Itself, tests), step);
        }
        let other = Culprit::PullRequest(PrNumber(8));
        assert_eq!(NextStep::after(FailReason::Timeout, &other, tests), NextStep::WaitForCulprit);
        let conflict = NextStep::after(FailReason::MergeConflict, &other, tests);
        assert_eq!(conflict, NextStep::ResolveConflicts);
    }
}
