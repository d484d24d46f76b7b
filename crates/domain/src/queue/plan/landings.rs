//! Landings that a push from outside removed from the target, and landings that turn out to be wrong.

use std::collections::BTreeMap;

use crate::ids::{PrNumber, Sha};

use super::super::{
    Decision, Effect, Entry, EntryState, EventKind, Exit, IgnoredBecause, LandingChange, Mismatch,
    Queue, Subject, WrongLanding,
};
use super::builder::TransitionBuilder;
use super::{composition, targets};

/// Asks the host which landings the target contains after a push from outside.
pub(super) fn ask(builder: &mut TransitionBuilder, was: Option<&Sha>, head: &Sha) {
    let Some(was) = was.filter(|was| *was != head) else { return };
    builder.effect(Effect::CheckLandings {
        branch: builder.queue.header.branch.clone(),
        was: was.clone(),
        head: head.clone(),
        off_target: builder.queue.header.off_target.clone(),
    });
}

/// Records the host's answer. If the target has moved again since, asks about its present head.
pub(super) fn checked(
    builder: &mut TransitionBuilder,
    was: &Sha,
    head: &Sha,
    lost: &[Entry],
    back: &[Entry],
) {
    let now = builder.queue.header.target.head.clone();
    if now.as_ref() != Some(head) {
        if let Some(now) = now {
            ask(builder, Some(was), &now);
        }
        return builder.ignored(IgnoredBecause::Superseded);
    }
    let queue = builder.queue.clone();
    let merged_and_gone = |entry: &&Entry| is_merged_and_gone(&queue, entry);
    for entry in lost.iter().filter(merged_and_gone) {
        remove(builder, entry, was, head);
    }
    for entry in back.iter().filter(merged_and_gone) {
        let entry = Entry { off_target_since: None, ..entry.clone() };
        let what = format!("the target branch at {head} contains it again");
        builder.decision(Decision::Changed { pr: entry.pr, what });
        builder.put_entry(entry);
    }
    if !lost.is_empty() {
        targets::request_all(builder);
    }
    let is_off = |entry: &Entry, pr| entry.pr == pr;
    let mut off_target = queue.header.off_target.clone();
    off_target.extend(lost.iter().filter(merged_and_gone).map(|entry| entry.pr));
    off_target.sort_unstable();
    off_target.dedup();
    // A pull request that was resubmitted since is not marked; it lands again.
    off_target
        .retain(|pr| queue.entry_of(*pr).is_none() && !back.iter().any(|entry| is_off(entry, *pr)));
    if off_target == queue.header.off_target && lost.is_empty() && back.is_empty() {
        return builder.ignored(IgnoredBecause::Known);
    }
    builder.queue.header.off_target = off_target;
}

/// Whether an entry has merged, and its pull request was not submitted again since.
fn is_merged_and_gone(queue: &Queue, entry: &Entry) -> bool {
    let merged = matches!(entry.state, EntryState::Ended(Exit::Merged { .. }));
    merged && queue.entry_of(entry.pr).is_none()
}

/// Records the result of an audit. Wrong landings that were not known pause the queue.
pub(super) fn audited(
    builder: &mut TransitionBuilder,
    proved: u32,
    not_checked: u32,
    wrong: &[WrongLanding],
) {
    let mut news: BTreeMap<&Sha, (Vec<PrNumber>, &Mismatch)> = BTreeMap::new();
    for WrongLanding { entry, mismatch } in wrong {
        if mark(builder, entry, mismatch) {
            news.entry(&mismatch.commit).or_insert((Vec::new(), mismatch)).0.push(entry.pr);
        }
    }
    let wrong = u32::try_from(news.len()).unwrap_or(u32::MAX);
    builder.decision(Decision::LandingsAudited { proved, not_checked, wrong });
    if let Some((prs, mismatch)) = news.into_values().next() {
        composition::landed_wrongly(builder, &prs, mismatch);
    }
}

/// Records a wrong landing with its entry, and emits the event; `false` if that was done before.
fn mark(builder: &mut TransitionBuilder, entry: &Entry, mismatch: &Mismatch) -> bool {
    if !is_merged_and_gone(&builder.queue, entry) {
        return false;
    }
    let mut marked = entry.clone();
    let EntryState::Ended(exit) = &mut marked.state else { return false };
    let Exit::Merged { sha, proof: Some(proof), .. } = exit else { return false };
    if proof.mismatch.is_some() || sha.as_ref() != Some(&mismatch.commit) {
        return false;
    }
    proof.mismatch = Some(mismatch.clone());
    report_mismatch(builder, entry, exit);
    // A push from outside may have removed it since it was read.
    let is_off = builder.queue.header.off_target.contains(&entry.pr);
    marked.off_target_since = is_off.then(|| entry.off_target_since.unwrap_or(builder.at));
    builder.put_entry(marked);
    true
}

/// Reports that something else than the recorded changes has landed.
pub(super) fn report_mismatch(builder: &mut TransitionBuilder, entry: &Entry, exit: &Exit) {
    let Exit::Merged { proof: Some(proof), .. } = exit else { return };
    let Some(mismatch) = proof.mismatch.clone() else { return };
    builder.decision(Decision::LandingMismatch { pr: entry.pr, mismatch });
    let subject = Subject::PullRequest {
        pr: entry.pr,
        author: entry.pull_request.author.clone(),
        url: entry.pull_request.url.clone(),
        exit: Some(Box::new(exit.clone())),
    };
    builder.event(EventKind::LandingMismatch, subject, None, None);
}

/// Records that the target no longer contains a landing, and emits the event.
fn remove(builder: &mut TransitionBuilder, entry: &Entry, was: &Sha, head: &Sha) {
    if entry.off_target_since.is_some() {
        return;
    }
    let reason = LandingChange::Removed.as_str();
    let what = format!("{reason}: the target branch was moved from {was} to {head}");
    builder.decision(Decision::Changed { pr: entry.pr, what });
    let subject = Subject::PullRequest {
        pr: entry.pr,
        author: entry.pull_request.author.clone(),
        url: entry.pull_request.url.clone(),
        exit: None,
    };
    builder.event(EventKind::RemovedFromTarget, subject, Some(reason.to_owned()), None);
    let at = builder.at;
    builder.put_entry(Entry { off_target_since: Some(at), ..entry.clone() });
}
