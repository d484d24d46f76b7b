//! Timelines: the steps of a pull request through a queue, with what was known at each step.

use crate::ids::{EntryId, PrNumber};
use crate::time::Timestamp;

use super::{
    Actor, BlockReason, Check, CheckConclusion, CheckStatus, Culprit, Entry, EntryState, Exit,
    FailReason, LandingChange, Member, Move, PassReason, PrState, Priority, Reason, TestFailure,
    TestRun, WaitReason,
};

/// A reference to a pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PrRef {
    /// Its number.
    pub pr: PrNumber,
    /// The URL of its page, if known.
    pub url: Option<String>,
}

/// A required status that made a run fail.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailedStatus {
    /// Its name.
    pub name: String,
    /// Its conclusion; `None` if it did not complete in time.
    pub conclusion: Option<CheckConclusion>,
    /// The URL of its details, if it ever reported.
    pub url: Option<String>,
}

/// The options of a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The priority.
    pub priority: Priority,
    /// Whether it must be tested alone.
    pub no_batch: bool,
}

/// One step: a state and the circumstances.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// When the entry came to the state.
    pub at: Timestamp,
    /// The state that the entry came to.
    pub state: PrState,
    /// Why it came to it.
    pub reason: Reason,
    /// Who caused the change.
    pub actor: Actor,
    /// Details: conflicting paths, failed statuses, the host's message.
    pub details: Vec<String>,
    /// The run of the step.
    pub run: Option<TestRun>,
    /// The options of the submission, on the step of the last submission.
    pub terms: Option<Terms>,
    /// The pull requests ahead: now for the present step, and in the base of the next run for past
    /// steps.
    pub prerequisites: Vec<PrRef>,
    /// The pull requests that it waits for now; empty for past steps.
    pub waiting_for: Vec<PrRef>,
    /// The required statuses that made its run fail.
    pub failed_statuses: Vec<FailedStatus>,
    /// What blocked it, if it failed.
    pub block_reason: Option<BlockReason>,
    /// The culprit, on the step of its last exit.
    pub culprit: Option<Culprit>,
    /// The entry whose run proved it, if that was another entry.
    pub successor: Option<EntryId>,
}

impl Step {
    /// A reference to a pull request that the step names.
    pub fn reference(&self, entry: &Entry, pr: PrNumber) -> PrRef {
        reference(entry, self.run.as_ref(), pr)
    }

    /// The pull requests that were tested together with this one.
    pub fn tested_with(&self, pr: PrNumber) -> impl Iterator<Item = &Member> {
        let group = self.run.iter().flat_map(|run| run.group.iter());
        group.filter(move |member| member.pr != pr)
    }
}

/// Builds the timeline of an entry, newest step first. `moves` are its moves, newest first; `runs`
/// are the runs that they name, as far as known; `waits` is its present wait reason.
pub fn timeline(
    entry: &Entry,
    waits: Option<&WaitReason>,
    moves: &[Move],
    runs: &[TestRun],
) -> Vec<Step> {
    let run_of = |it: &Move| it.run.and_then(|id| runs.iter().find(|run| run.id == id));
    let last_submission = moves.iter().position(|it| it.from.is_none());
    let mut steps = Vec::with_capacity(moves.len() + 1);
    steps.extend(removal(entry));
    for (index, it) in moves.iter().enumerate() {
        let is_now = index == 0 && it.to == entry.state.name();
        let run = run_of(it);
        // The pull requests that the next run was built on were ahead of this one while it waited.
        let next = index.checked_sub(1).and_then(|at| moves.get(at)).and_then(run_of);
        let named = |run: Option<&TestRun>| -> Vec<PrRef> {
            let ahead = run.into_iter().flat_map(|run| run.ahead.iter());
            ahead.map(|(_, pr)| reference(entry, run, *pr)).collect()
        };
        let waited_for = waits.filter(|_| is_now).map(waited_for).unwrap_or_default();
        let waiting_for: Vec<PrRef> =
            waited_for.iter().map(|pr| reference(entry, run, *pr)).collect();
        let prerequisites = match it.to {
            PrState::Testing => named(run),
            PrState::Pending if is_now => waiting_for.clone(),
            PrState::Pending => named(next.filter(|run| run.group.iter().any(|m| m.pr == it.pr))),
            PrState::NotReady
            | PrState::TestsPassed
            | PrState::PendingFailure
            | PrState::Merged
            | PrState::Failed
            | PrState::Cancelled => Vec::new(),
        };
        let culprit = match &entry.state {
            EntryState::Ended(Exit::Failed { culprit, .. }) if is_now => Some(culprit.clone()),
            EntryState::Ended(_)
            | EntryState::NotReady
            | EntryState::Pending { .. }
            | EntryState::Testing { .. }
            | EntryState::TestsPassed { .. }
            | EntryState::PendingFailure { .. } => None,
        };
        let terms = Terms { priority: entry.priority, no_batch: entry.no_batch };
        steps.push(Step {
            at: it.at,
            state: it.to,
            reason: it.reason,
            actor: it.actor.clone(),
            details: it.details.clone(),
            run: run.cloned(),
            terms: (last_submission == Some(index)).then_some(terms),
            prerequisites,
            waiting_for,
            failed_statuses: failed_statuses(it, run),
            block_reason: failure(it.reason).and_then(BlockReason::of),
            culprit,
            successor: successor(it, run),
        });
    }
    steps
}

/// The step for a push from outside that removed a merged entry from the target branch.
fn removal(entry: &Entry) -> Option<Step> {
    Some(Step {
        at: entry.off_target_since?,
        state: entry.state.name(),
        reason: LandingChange::Removed.into(),
        actor: Actor::Host,
        details: Vec::new(),
        run: None,
        terms: None,
        prerequisites: Vec::new(),
        waiting_for: Vec::new(),
        failed_statuses: Vec::new(),
        block_reason: None,
        culprit: None,
        successor: None,
    })
}

fn failure(reason: Reason) -> Option<FailReason> {
    if let Reason::Failed(reason) = reason { Some(reason) } else { None }
}

/// The pull requests that a wait reason names.
fn waited_for(waits: &WaitReason) -> Vec<PrNumber> {
    if let WaitReason::BehindPrs { prs, .. }
    | WaitReason::PredecessorTesting { prs }
    | WaitReason::SuccessorTesting { prs } = waits
    {
        prs.clone()
    } else if let WaitReason::ConflictWithAhead { pr } = waits {
        vec![*pr]
    } else {
        Vec::new()
    }
}

fn failed_statuses(it: &Move, run: Option<&TestRun>) -> Vec<FailedStatus> {
    let failed = matches!(it.to, PrState::Failed | PrState::PendingFailure);
    let Some(run) = run.filter(|_| failed) else { return Vec::new() };
    let Some(required) = &run.required else { return Vec::new() };
    let check_of = |name: &String| run.checks.iter().find(|check| check.name == *name);
    let status = |name: &String, check: Option<&Check>| FailedStatus {
        name: name.clone(),
        conclusion: check.and_then(|check| check.conclusion),
        url: check.map(|check| check.url.clone()),
    };
    let failed = |check: &Check| check.conclusion.is_some_and(|it| !it.is_success());
    let ended = |check: &Check| check.status == CheckStatus::Completed;
    let names = required.names.iter().map(|name| (name, check_of(name)));
    let of_exit = failure(it.reason).and_then(FailReason::test_failure);
    let held = if let Reason::TestsFailed(failure) = it.reason { Some(failure) } else { None };
    match held.or(of_exit) {
        Some(TestFailure::RequiredStatus) => names
            .filter(|(_, check)| check.is_some_and(failed))
            .map(|(name, check)| status(name, check))
            .collect(),
        Some(TestFailure::Timeout) => names
            .filter(|(_, check)| !check.is_some_and(ended))
            .map(|(name, check)| status(name, check))
            .collect(),
        Some(TestFailure::Optimization) | None => Vec::new(),
    }
}

/// The last entry of the run that proved this one, if that run tested another entry.
fn successor(it: &Move, run: Option<&TestRun>) -> Option<EntryId> {
    let by_another = it.to == PrState::TestsPassed && it.reason == PassReason::Successor.into();
    let last = run.filter(|_| by_another).and_then(|run| run.group.last());
    last.map(|member| member.entry).filter(|entry| *entry != it.entry)
}

/// A pull request with the URL of its page: as its run knows it, or derived from this entry's URL,
/// which ends with the number on every host.
fn reference(entry: &Entry, run: Option<&TestRun>, pr: PrNumber) -> PrRef {
    let tested = run.and_then(|run| run.group.iter().find(|member| member.pr == pr));
    let known = tested.map(|member| member.url.clone());
    let made = || {
        let page = entry.pull_request.url.strip_suffix(&entry.pr.to_string())?;
        page.ends_with('/').then(|| format!("{page}{pr}"))
    };
    PrRef { pr, url: known.or_else(made) }
}

#[cfg(test)]
#[path = "timeline_tests.rs"]
mod tests;
