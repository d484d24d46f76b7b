//! The cause of a failure, in a sentence that claims only what the test runs have shown.

use signalbox_domain::ids::PrNumber;
use signalbox_domain::queue::{Culprit, Evidence, Exit, FailReason};

/// Why a pull request failed, as far as is known; `None` when it did not fail.
pub fn blame(exit: &Exit) -> Option<String> {
    let Exit::Failed { reason, culprit, evidence, .. } = exit else { return None };
    Some(match (reason, culprit) {
        (FailReason::MergeConflict, Culprit::PullRequest(pr)) => {
            format!("It conflicts with #{pr}, which has landed.")
        }
        (FailReason::MergeConflict, Culprit::TargetBranch | Culprit::Itself | Culprit::Host) => {
            "It conflicts with the target branch.".to_owned()
        }
        (FailReason::UpdatedAtMergeTime, _) => {
            "Its head changed while it was being merged.".to_owned()
        }
        (_, Culprit::PullRequest(pr)) => format!("Pull request #{pr} is at fault."),
        (_, Culprit::TargetBranch) => "The target branch is at fault, not the change.".to_owned(),
        (_, Culprit::Host) => "The git host refused it.".to_owned(),
        (_, Culprit::Itself) => evidence.as_deref().map_or_else(String::new, seen),
    })
}

/// How a pull request left, with the reason as the caller spells it, without a full stop.
pub fn exit_sentence(exit: &Exit, reason: &str) -> String {
    match exit {
        Exit::Merged { .. } => format!("merged: {reason}"),
        Exit::Cancelled { by, .. } => format!("cancelled by {by}: {reason}"),
        Exit::Failed { culprit, details, .. } => {
            let fault = match culprit {
                Culprit::Itself | Culprit::Host => String::new(),
                Culprit::TargetBranch => " with the target branch".to_owned(),
                Culprit::PullRequest(pr) => format!(" with #{pr}"),
            };
            let details = details.join("; ");
            if details.is_empty() {
                format!("failed{fault}: {reason}")
            } else {
                format!("failed{fault}: {reason} ({details})")
            }
        }
    }
}

fn seen(evidence: &Evidence) -> String {
    if evidence.is_alone() {
        return "It fails on its own.".to_owned();
    }
    let named = &evidence.on_top_of;
    let count = usize::try_from(evidence.ahead).unwrap_or(usize::MAX);
    let ahead = list(named, count.saturating_sub(named.len()));
    if evidence.passed_without.is_empty() {
        return format!("It failed on top of {ahead}, without which it has not been tested.");
    }
    let without = list(&evidence.passed_without, 0);
    format!("It passed without {without} and failed on top of {ahead}.")
}

/// `#1`, `#1 and #2`, `#1, #2 and 3 more`: at most five are named.
fn list(prs: &[PrNumber], more: usize) -> String {
    let named: Vec<String> = prs.iter().take(5).map(|pr| format!("#{pr}")).collect();
    let more = more + prs.len().saturating_sub(named.len());
    match (named.as_slice(), more) {
        ([], more) => format!("{more} pull requests"),
        ([one], 0) => one.clone(),
        ([first @ .., last], 0) => format!("{} and {last}", first.join(", ")),
        (named, more) => format!("{} and {more} more", named.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(reason: FailReason, culprit: Culprit, evidence: Option<Evidence>) -> String {
        let evidence = evidence.map(Box::new);
        let exit = Exit::Failed { reason, culprit, details: Vec::new(), evidence };
        blame(&exit).expect("it failed")
    }

    #[test]
    fn it_fails_on_its_own_only_after_a_run_alone() {
        let prs = |numbers: &[u32]| numbers.iter().copied().map(PrNumber).collect::<Vec<_>>();
        let by_test = |on_top_of: &[u32], ahead, without: &[u32]| {
            let (on_top_of, passed_without) = (prs(on_top_of), prs(without));
            let evidence = Evidence { on_top_of, ahead, passed_without };
            failed(FailReason::RequiredStatus, Culprit::Itself, Some(evidence))
        };
        assert_eq!(by_test(&[], 0, &[]), "It fails on its own.");
        let sentence = "It failed on top of #8, without which it has not been tested.";
        assert_eq!(by_test(&[8], 1, &[]), sentence);
        let sentence = "It passed without #8 and failed on top of #7 and #8.";
        assert_eq!(by_test(&[7, 8], 2, &[8]), sentence);
        let sentence = "It failed on top of #1, #2, #3, #4, #5 and 3 more, without which it has \
                        not been tested.";
        assert_eq!(by_test(&[1, 2, 3, 4, 5, 6], 8, &[]), sentence);
        let conflict = failed(FailReason::MergeConflict, Culprit::PullRequest(PrNumber(8)), None);
        assert_eq!(conflict, "It conflicts with #8, which has landed.");
    }
}
