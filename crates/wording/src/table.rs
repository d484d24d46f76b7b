//! All labels in one table, for the documentation. A wait reason has no single API value,
//! as it carries data; its kinds are listed by name.

use std::fmt::Write;

use signalbox_domain::flaky::{QuarantineOverride, StatusReason, TestStatus};
use signalbox_domain::ids::PrNumber;
use signalbox_domain::queue::{
    CancelReason, CheckConclusion, CheckStatus, Culprit, FailReason, LandingChange, ManagedState,
    MergeReason, Outcome, PassReason, PrState, QueueStateName, QueuedReason, SubmitReason,
    TestFailure, WaitReason,
};
use signalbox_domain::upload::UploadState;
use signalbox_domain::webhook::{self, MessageState, OffReason};

use super::Named;

fn section(page: &mut String, title: &str, rows: impl Iterator<Item = (String, super::Word)>) {
    // Writing to a String does not fail.
    let _head =
        write!(page, "\n## {title}\n\n| API value | label | icon | meaning |\n|---|---|---|---|\n");
    for (wire, word) in rows {
        let (label, icon, sentence) = (word.label, word.icon, word.sentence);
        let _row = writeln!(page, "| `{wire}` | {label} | {icon} | {sentence} |");
    }
}

/// The vocabulary page of the documentation.
pub fn table() -> String {
    let mut page = String::from(
        "# Vocabulary\n\n\
          What each state and reason of the API means, and which label the pages and the command\n\
         line show for it. For other terms, see the [Glossary](glossary.md).\n\n\
         This page is generated: `just gen` regenerates it.\n",
    );
    macro_rules! sections {
        ($($title:literal $kind:ident),+ $(,)?) => {
            $(section(
                &mut page,
                $title,
                $kind::ALL.iter().map(|it| (it.as_str().to_owned(), it.named())),
            );)+
        };
    }
    sections!(
        "State of a pull request" PrState,
        "State of a queue" QueueStateName,
        "Management of a queue" ManagedState,
        "State of a check" CheckStatus,
        "Conclusion of a check" CheckConclusion,
        "Outcome of a test run" Outcome,
        "Why it was submitted" SubmitReason,
        "Why it is in the line" QueuedReason,
        "Why it passed" PassReason,
        "Why its tests failed" TestFailure,
        "Why it failed" FailReason,
        "Why it was cancelled" CancelReason,
        "Why it merged" MergeReason,
        "After the merge" LandingChange,
        "Status of a test" TestStatus,
        "Quarantine of a test" QuarantineOverride,
        "Why a test has its status" StatusReason,
        "State of an upload" UploadState,
        "State of a message to a webhook" MessageState,
        "Why a webhook is off" OffReason,
    );
    section(
        &mut page,
        "Outcome of a delivery attempt",
        webhook::Outcome::ALL.iter().map(|it| (it.as_str().to_owned(), it.named())),
    );
    section(
        &mut page,
        "Why it waits",
        WaitReason::samples().into_iter().map(|(_, wait)| (wait.kind().to_owned(), wait.named())),
    );
    let culprits = [
        ("itself", Culprit::Itself),
        ("pull_request", Culprit::PullRequest(PrNumber(1))),
        ("target_branch", Culprit::TargetBranch),
        ("host", Culprit::Host),
    ];
    let culprits = culprits.into_iter().map(|(name, it)| (name.to_owned(), it.named()));
    section(&mut page, "Culprit", culprits);
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_label_has_a_meaning() {
        for line in table().lines().filter(|line| line.starts_with("| `")) {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            assert!(cells.get(1..5).is_some_and(|it| it.iter().all(|it| it.len() > 1)), "{line}");
        }
    }

    #[test]
    fn states_of_one_kind_have_different_words() {
        let labels = |words: Vec<super::super::Word>| {
            let mut labels: Vec<&str> = words.iter().map(|it| it.label).collect();
            let all = labels.len();
            labels.sort_unstable();
            labels.dedup();
            assert_eq!(labels.len(), all, "{labels:?}");
        };
        labels(PrState::ALL.iter().map(Named::named).collect());
        labels(QueueStateName::ALL.iter().map(Named::named).collect());
        labels(ManagedState::ALL.iter().map(Named::named).collect());
        labels(TestStatus::ALL.iter().map(Named::named).collect());
        labels(MessageState::ALL.iter().map(Named::named).collect());
        labels(webhook::Outcome::ALL.iter().map(Named::named).collect());
        labels(OffReason::ALL.iter().map(Named::named).collect());
        labels(WaitReason::samples().iter().map(|(_, wait)| wait.named()).collect());
    }
}
