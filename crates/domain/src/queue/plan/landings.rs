//! Landings that the target no longer contains, because it was moved to where they are not.

use crate::ids::Sha;

use super::super::{
    Decision, Effect, Entry, EntryState, EventKind, Exit, IgnoredBecause, LandingChange, Subject,
};
use super::draft::Draft;

/// Somebody moved the target: which landings does it contain?
pub(super) fn ask(draft: &mut Draft, was: Option<&Sha>, head: &Sha) {
    let Some(was) = was.filter(|was| *was != head) else { return };
    draft.effect(Effect::CheckLandings {
        branch: draft.queue.header.branch.clone(),
        was: was.clone(),
        head: head.clone(),
        off_target: draft.queue.header.off_target.clone(),
    });
}

/// The host has answered. If the target has moved on since, it is asked about where that is now.
pub(super) fn checked(draft: &mut Draft, was: &Sha, head: &Sha, lost: &[Entry], back: &[Entry]) {
    let now = draft.queue.header.target.head.clone();
    if now.as_ref() != Some(head) {
        if let Some(now) = now {
            ask(draft, Some(was), &now);
        }
        return draft.ignored(IgnoredBecause::Superseded);
    }
    let queue = draft.queue.clone();
    let merged_and_gone = |entry: &&Entry| {
        let merged = matches!(entry.state, EntryState::Ended(Exit::Merged { .. }));
        merged && queue.entry_of(entry.pr).is_none()
    };
    for entry in lost.iter().filter(merged_and_gone) {
        remove(draft, entry, was, head);
    }
    for entry in back.iter().filter(merged_and_gone) {
        let entry = Entry { off_target_since: None, ..entry.clone() };
        let what = format!("the target branch at {head} contains it again");
        draft.decision(Decision::Changed { pr: entry.pr, what });
        draft.put_entry(entry);
    }
    let is_off = |entry: &Entry, pr| entry.pr == pr;
    let mut off_target = queue.header.off_target.clone();
    off_target.extend(lost.iter().filter(merged_and_gone).map(|entry| entry.pr));
    off_target.sort_unstable();
    off_target.dedup();
    // Who was submitted again is in the queue, or was there since, and lands anew.
    off_target
        .retain(|pr| queue.entry_of(*pr).is_none() && !back.iter().any(|entry| is_off(entry, *pr)));
    if off_target == queue.header.off_target && lost.is_empty() && back.is_empty() {
        return draft.ignored(IgnoredBecause::Known);
    }
    draft.queue.header.off_target = off_target;
}

/// Notes that a landing is gone from the target, and tells so.
fn remove(draft: &mut Draft, entry: &Entry, was: &Sha, head: &Sha) {
    if entry.off_target_since.is_some() {
        return;
    }
    let reason = LandingChange::Removed.word();
    let what = format!("{reason}: the target branch was moved from {was} to {head}");
    draft.decision(Decision::Changed { pr: entry.pr, what });
    let subject = Subject::PullRequest {
        pr: entry.pr,
        author: entry.pull_request.author.clone(),
        url: entry.pull_request.url.clone(),
    };
    draft.event(EventKind::RemovedFromTarget, subject, Some(reason.to_owned()), None);
    let at = draft.at;
    draft.put_entry(Entry { off_target_since: Some(at), ..entry.clone() });
}
