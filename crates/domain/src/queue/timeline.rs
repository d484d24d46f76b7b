//! A pull request's way through a queue, step by step, with what was known at each step.

use crate::ids::{EntryId, PrNumber};
use crate::time::Timestamp;

use super::{
    Actor, BlockReason, Check, CheckConclusion, CheckStatus, Culprit, Entry, EntryState, Exit,
    FailReason, LandingChange, Member, Move, PassReason, PrState, Priority, Reason, TestFailure,
    TestRun, WaitReason,
};

/// A pull request that a step names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PrRef {
    /// Its number.
    pub pr: PrNumber,
    /// Its page, when it is known.
    pub url: Option<String>,
}

/// A required status that made a run fail.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailedStatus {
    /// Its name.
    pub name: String,
    /// How it ended; `None` when it did not end in time.
    pub conclusion: Option<CheckConclusion>,
    /// Where to read more, if it ever reported.
    pub url: Option<String>,
}

/// What a submission asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// How soon it wants its turn.
    pub priority: Priority,
    /// Whether it must be tested alone.
    pub no_batch: bool,
}

/// One step: a state, and what was known when the entry came to it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// When.
    pub at: Timestamp,
    /// The state that the entry came to.
    pub state: PrState,
    /// Why it came to it.
    pub reason: Reason,
    /// Who caused it.
    pub actor: Actor,
    /// Conflicting paths, failed statuses, the host's words.
    pub details: Vec<String>,
    /// The run that it is about.
    pub run: Option<TestRun>,
    /// What the submission asked for: at the last submission.
    pub terms: Option<Terms>,
    /// The pull requests that had to come first: those of the present, or those that the next run
    /// was built on.
    pub prerequisites: Vec<PrRef>,
    /// The pull requests that it waits for now; empty in the past.
    pub waiting_for: Vec<PrRef>,
    /// The required statuses that made its run fail.
    pub failed_statuses: Vec<FailedStatus>,
    /// What kept it from being merged, if it failed.
    pub block_reason: Option<BlockReason>,
    /// Whose fault it is that it failed: at the end of its last stay.
    pub culprit: Option<Culprit>,
    /// The entry whose run proved it, when that was another one's.
    pub successor: Option<EntryId>,
}

impl Step {
    /// A pull request that the step names.
    pub fn reference(&self, entry: &Entry, pr: PrNumber) -> PrRef {
        reference(entry, self.run.as_ref(), pr)
    }

    /// The pull requests that were tested together with this one.
    pub fn tested_with(&self, pr: PrNumber) -> impl Iterator<Item = &Member> {
        let group = self.run.iter().flat_map(|run| &run.group);
        group.filter(move |member| member.pr != pr)
    }
}

/// The way of an entry, newest step first. `moves` are its moves, newest first; `runs` are the runs
/// that they name, as far as they are known; `waits` is why it waits now.
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
        // What the next run was built on stood before this one while it waited.
        let next = index.checked_sub(1).and_then(|at| moves.get(at)).and_then(run_of);
        let named = |run: Option<&TestRun>| -> Vec<PrRef> {
            let ahead = run.into_iter().flat_map(|run| &run.ahead);
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

/// That the target branch was moved to where a merged entry is not.
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

/// The pull requests that a reason to wait names.
fn waited_for(waits: &WaitReason) -> Vec<PrNumber> {
    if let WaitReason::BehindPrs { prs, .. } | WaitReason::PredecessorTesting { prs } = waits {
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
    let told = |name: &String, check: Option<&Check>| FailedStatus {
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
            .map(|(name, check)| told(name, check))
            .collect(),
        Some(TestFailure::Timeout) => names
            .filter(|(_, check)| !check.is_some_and(ended))
            .map(|(name, check)| told(name, check))
            .collect(),
        Some(TestFailure::Optimization) | None => Vec::new(),
    }
}

/// The last entry of the run that proved this one, when that run was another one's.
fn successor(it: &Move, run: Option<&TestRun>) -> Option<EntryId> {
    let by_another = it.to == PrState::TestsPassed && it.reason == PassReason::Successor.into();
    let last = run.filter(|_| by_another).and_then(|run| run.group.last());
    last.map(|member| member.entry).filter(|entry| *entry != it.entry)
}

/// A pull request with its page: as its run knows it, or made from the page of this entry, whose
/// address ends with its number on every host.
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
