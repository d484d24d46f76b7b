//! An entry of a queue as clients see it.

use serde::Serialize;
use signalbox_domain::queue::{
    Composition, Culprit, Entry, EntryState, Exit, LandingProof, PrState, Priority, WaitReason,
};
use signalbox_domain::time::Timestamp;
use signalbox_services::{EntryDetails, EntrySnapshot};
use signalbox_wording::{exit_sentence, wait};
use utoipa::ToSchema;

use super::Words;
use super::estimate::EstimateReply;
use super::readiness::{DependencyReply, ImpactedTargetsReply, ReadinessReply};
use super::timeline::StepReply;
use super::wait_reason::WaitReasonReply;
use super::words::{CompositionCheckWord, MergeMethodWord, PrStateWord};

/// A pull request of a landing.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct LandedChangeReply {
    pr_number: u32,
    /// The head that landed.
    head: String,
}

/// What a landing consists of. With the commits of `base` and of every `head`, git computes the landed
/// tree again.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ProofReply {
    /// The target's head before the landing.
    base: String,
    /// The pull requests that landed together, in the order in which they were applied.
    changes: Vec<LandedChangeReply>,
    #[schema(value_type = MergeMethodWord)]
    merge_method: String,
    /// Whether the tested tree itself landed. When false, it was the clean three-way merge of the
    /// target and the tested candidate (PARALLEL mode).
    exact: bool,
    #[schema(value_type = CompositionCheckWord)]
    check: String,
    /// Why it was not checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_checked_because: Option<String>,
    /// Paths that several sides have changed, so that only the git host knows the merged content.
    merged_by_host: Vec<String>,
    /// How what landed differs from the base with the changes, if a check found that after the landing.
    #[serde(skip_serializing_if = "Option::is_none")]
    mismatch: Option<MismatchReply>,
}

/// A difference between what landed and what should have landed.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct MismatchReply {
    /// The tree that should have landed, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    expected_tree: Option<String>,
    /// The paths that differ, at most 100.
    paths: Vec<String>,
}

impl ProofReply {
    fn of(proof: &LandingProof, words: Words) -> Self {
        let changes = proof.changes.iter();
        let unknown = || Composition::not_checked("how it was checked is not known");
        let composition = proof.composition.clone().unwrap_or_else(unknown);
        Self {
            base: proof.base.to_string(),
            changes: changes
                .map(|(pr, head)| LandedChangeReply { pr_number: pr.0, head: head.to_string() })
                .collect(),
            merge_method: words.word(proof.method.as_str()),
            exact: proof.exact,
            check: words.word(composition.check.as_str()),
            not_checked_because: composition.why_not,
            merged_by_host: composition.merged_by_host,
            mismatch: proof.mismatch.as_ref().map(|it| MismatchReply {
                expected_tree: it.expected.as_ref().map(ToString::to_string),
                paths: it.paths.clone(),
            }),
        }
    }
}

/// How an entry left.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExitReply {
    #[schema(value_type = PrStateWord)]
    state: String,
    /// The reason, as in events; in lower case for a token with the profile `v1-live`.
    #[schema(example = "TEST_RUN_REQUIRED_STATUS_FAILED")]
    reason: String,
    /// The actor who cancelled it.
    actor: Option<String>,
    /// The culprit of a failure: `itself`, `target_branch`, `host` or `pull_request`.
    culprit: Option<String>,
    /// The number of that pull request, when the culprit is `pull_request`.
    culprit_pr_number: Option<u32>,
    /// Failed statuses, conflicting paths, or the host's message.
    details: Vec<String>,
    /// The commit on the target.
    sha: Option<String>,
    /// The tree that was tested.
    tested_tree: Option<String>,
    /// The tree that landed; equal to the tested one, except in PARALLEL mode (see `proof.exact`).
    landed_tree: Option<String>,
    /// What the landing consists of, if the queue landed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    proof: Option<ProofReply>,
    /// Since when the target branch has not contained it, because the branch was moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "2026-09-17T10:16:02.000Z")]
    off_target_since: Option<String>,
}

impl ExitReply {
    fn of(exit: &Exit, off_target_since: Option<Timestamp>, words: Words) -> Self {
        let mut reply = Self {
            state: words.word(exit.state().as_str()),
            reason: words.word(exit.reason().as_str()),
            actor: None,
            culprit: None,
            culprit_pr_number: None,
            details: Vec::new(),
            sha: None,
            tested_tree: None,
            landed_tree: None,
            proof: None,
            off_target_since: off_target_since.map(|at| at.to_string()),
        };
        match exit {
            Exit::Merged { sha, tested_tree, landed_tree, proof, .. } => {
                reply.proof = proof.as_ref().map(|proof| ProofReply::of(proof, words));
                reply.sha = sha.as_ref().map(ToString::to_string);
                reply.tested_tree = tested_tree.as_ref().map(ToString::to_string);
                reply.landed_tree = landed_tree.as_ref().map(ToString::to_string);
            }
            Exit::Failed { culprit, details, .. } => {
                reply.culprit = Some(culprit.as_str().to_owned());
                reply.culprit_pr_number = match culprit {
                    Culprit::PullRequest(pr) => Some(pr.0),
                    Culprit::Itself | Culprit::TargetBranch | Culprit::Host => None,
                };
                reply.details.clone_from(details);
            }
            Exit::Cancelled { by, .. } => reply.actor = Some(by.to_string()),
        }
        reply
    }
}

/// How an entry left; `None` while it is live.
pub(super) fn exit_of(entry: &Entry, words: Words) -> Option<ExitReply> {
    match &entry.state {
        EntryState::Ended(exit) => Some(ExitReply::of(exit, entry.off_target_since, words)),
        EntryState::NotReady
        | EntryState::Pending { .. }
        | EntryState::Testing { .. }
        | EntryState::TestsPassed { .. }
        | EntryState::PendingFailure { .. } => None,
    }
}

/// Why an entry waits, or its outcome, as a sentence.
pub(super) fn reason(entry: &Entry, waits: Option<&WaitReason>, words: Words) -> String {
    match (&entry.state, waits) {
        (EntryState::Ended(exit), _) => {
            let sentence = exit_sentence(exit, &words.word(exit.reason().as_str()));
            match entry.off_target_since {
                Some(since) => format!("{sentence}; no longer on the target branch since {since}"),
                None => sentence,
            }
        }
        (_, Some(waits)) => wait(waits).sentence.into_owned(),
        (_, None) => String::new(),
    }
}

/// An entry in a list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListedEntry {
    /// The entry's id; the same for every submission of the pull request.
    id: String,
    #[schema(value_type = PrStateWord)]
    state: String,
    #[schema(example = "2026-09-17T10:16:02.000Z")]
    state_changed_at: String,
    priority_value: u32,
    /// urgent, high, medium, low, or the number as text.
    priority_name: String,
    /// The name of the default priority.
    used_default_priority_name: String,
    skip_the_line: bool,
    no_batch: bool,
    pr_number: u32,
    pr_title: String,
    pr_sha: String,
    pr_base_branch: String,
    pr_author: String,
    /// Its position in the line, from 1; null outside the line.
    #[schema(required)]
    position: Option<usize>,
    /// Why it waits, or its outcome, as a sentence.
    reason: String,
    /// The wait reason: `kind` and its particulars; null once it has ended.
    #[schema(required)]
    wait_reason: Option<WaitReasonReply>,
}

impl ListedEntry {
    pub(crate) fn of(
        entry: &Entry,
        state: PrState,
        waits: Option<&WaitReason>,
        position: Option<usize>,
        words: Words,
    ) -> Self {
        let pull_request = &entry.pull_request;
        Self {
            id: entry.id.to_string(),
            state: words.word(state.as_str()),
            state_changed_at: entry.state_changed_at.to_string(),
            priority_value: entry.priority.value,
            priority_name: entry.priority.name(),
            used_default_priority_name: Priority::DEFAULT_NAME.to_owned(),
            skip_the_line: entry.priority.is_urgent(),
            no_batch: entry.no_batch,
            pr_number: entry.pr.0,
            pr_title: pull_request.title.clone(),
            pr_sha: pull_request.head.to_string(),
            pr_base_branch: pull_request.base.to_string(),
            pr_author: pull_request.author.clone(),
            position,
            reason: reason(entry, waits, words),
            wait_reason: waits.map(Into::into),
        }
    }
}

/// An entry with all its fields.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EntryReply {
    #[serde(flatten)]
    listed: ListedEntry,
    readiness: ReadinessReply,
    /// The impacted targets of its head, if it has any. After a change of the rules, the previous ones
    /// until others are computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    impacted_targets: Option<ImpactedTargetsReply>,
    /// What it depends on and has not merged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dependencies: Vec<DependencyReply>,
    force_enqueued: bool,
    /// Whether it is still in the queue.
    is_currently_submitted_to_queue: bool,
    /// The test run that proved it; null until it is merged.
    #[schema(required)]
    verified_by_test_run: Option<String>,
    /// The test run that it is in now.
    #[schema(required)]
    test_run_id: Option<String>,
    /// How it left; null while it is in the queue.
    #[schema(required)]
    exit: Option<ExitReply>,
    /// The steps through the queue, newest first, at most 200; only when requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    timeline: Option<Vec<StepReply>>,
    /// The estimated time until its merge; only when requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    estimated_time_to_merge: Option<EstimateReply>,
}

impl EntryReply {
    pub(crate) fn of(details: &EntryDetails, words: Words) -> Self {
        let EntrySnapshot { entry, state, readiness, waits, position } = &details.snapshot;
        Self {
            listed: ListedEntry::of(entry, *state, waits.as_ref(), *position, words),
            readiness: ReadinessReply::of(readiness, words),
            impacted_targets: ImpactedTargetsReply::of(entry),
            dependencies: DependencyReply::all(readiness, words),
            force_enqueued: entry.force_enqueued,
            is_currently_submitted_to_queue: entry.is_live(),
            verified_by_test_run: entry.verified_by.map(|run| run.to_string()),
            test_run_id: entry.state.run().map(|run| run.to_string()),
            exit: exit_of(entry, words),
            timeline: details
                .timeline
                .as_ref()
                .map(|steps| steps.iter().map(|it| StepReply::of(entry, it, words)).collect()),
            estimated_time_to_merge: details.estimate.as_ref().map(EstimateReply::of),
        }
    }
}
