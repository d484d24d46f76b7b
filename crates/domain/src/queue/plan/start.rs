//! Starting test runs, and landing what was tested.

use std::sync::Arc;

use crate::ids::{BranchName, PrNumber, RunId, Sha};
use crate::time::Span;

use super::super::{
    Actor, Ahead, BuildCandidate, Change, Effect, Entry, EntryState, Land, Landing, Member, Place,
    RunStatus, TestRun,
};
use super::advance::in_line;
use super::draft::{Because, Draft};

/// The prefix of the branches under test.
const TEST_BRANCHES: &str = "signalbox-merge";

/// Starts the run of the first entry that may have one. Returns whether it did.
pub(super) fn start(draft: &mut Draft) -> bool {
    let header = &draft.queue.header;
    if !header.state.moves() || draft.queue.slots_used() >= header.settings.concurrency {
        return false;
    }
    let Some(target_head) = header.target.head.clone() else { return false };
    let Some((entry, ahead)) = next_to_start(draft) else { return false };
    open_run(draft, &entry, &ahead, &target_head);
    true
}

/// A run that a new candidate is built on, with its last pull request and its commit.
type Built = (RunId, PrNumber, Sha);

/// The first entry in the line without a run, and the runs that it is to be built on. `None` when
/// nothing can be started now.
///
/// Nobody is passed over but entries that are held by a conflict: these are not part of what is
/// built. Behind one whose candidate is not known yet, or whose run has failed, nothing starts.
fn next_to_start(draft: &Draft) -> Option<(Arc<Entry>, Vec<Built>)> {
    let mut ahead: Vec<Built> = Vec::new();
    for entry in in_line(&draft.queue) {
        match &entry.state {
            EntryState::Pending { held_by: Some(_), .. } => {}
            EntryState::Pending { held_by: None, .. } => {
                // While something lands, the target's head is about to change; only what was
                // built on the landing candidate may go on.
                let landing = draft.queue.header.landing.as_ref();
                let on_landing =
                    landing.is_none_or(|it| ahead.iter().any(|(run, ..)| *run == it.run));
                if !on_landing {
                    return None;
                }
                return Some((draft.entry(entry.id)?, ahead));
            }
            EntryState::Testing { run, .. } | EntryState::TestsPassed { run, .. } => {
                if ahead.last().is_some_and(|(last, ..)| last == run) {
                    continue;
                }
                let sha = draft.queue.run(*run)?.candidate.as_ref()?.sha.clone();
                ahead.push((*run, entry.pr, sha));
            }
            EntryState::PendingFailure { .. } | EntryState::NotReady | EntryState::Ended(_) => {
                return None;
            }
        }
    }
    None
}

fn open_run(draft: &mut Draft, entry: &Entry, ahead: &[Built], target_head: &Sha) {
    let number = draft.number();
    let header = &draft.queue.header;
    let id = RunId(uuid::Uuid::new_v5(&header.id.0, format!("run:{number}").as_bytes()));
    let Ok(branch) = BranchName::new(format!("{TEST_BRANCHES}/pr-{}/{id}", entry.pr)) else {
        return;
    };
    let (method, minutes) = (header.settings.merge_method, header.settings.testing_timeout_minutes);
    let run = TestRun {
        id,
        number,
        bisection: false,
        group: vec![member(entry)],
        ahead: ahead.iter().map(|(run, pr, _)| (*run, *pr)).collect(),
        base: ahead.last().map_or_else(|| target_head.clone(), |(.., sha)| sha.clone()),
        method,
        branch: branch.clone(),
        candidate: None,
        required: None,
        checks: Vec::new(),
        status: RunStatus::Building,
        started_at: draft.at,
        ended_at: None,
        deadline: (minutes > 0).then(|| draft.at.plus(Span::minutes(minutes))),
    };
    let build = BuildCandidate {
        run: id,
        target: header.branch.clone(),
        target_head: target_head.clone(),
        ahead: ahead.iter().map(|(run, _, sha)| Ahead { run: *run, sha: sha.clone() }).collect(),
        changes: vec![change(entry)],
        method,
        branch,
    };
    let was_held_by = match &entry.state {
        EntryState::Pending { was_held_by, .. } => *was_held_by,
        EntryState::NotReady
        | EntryState::Testing { .. }
        | EntryState::TestsPassed { .. }
        | EntryState::PendingFailure { .. }
        | EntryState::Ended(_) => None,
    };
    draft.put_run(run);
    if let Place::Waiting { .. } | Place::Outside = entry.place {
        let place = Place::Anchored { number };
        draft.change_entry(entry.id, |entry| entry.place = place);
    }
    let to = EntryState::Testing { run: id, was_held_by };
    draft.move_entry(entry.id, to, Because::new("TEST_RUN_STARTED", &Actor::Queue));
    draft.effect(Effect::BuildCandidate(build));
}

fn member(entry: &Entry) -> Member {
    Member {
        entry: entry.id,
        pr: entry.pr,
        head: entry.pull_request.head.clone(),
        title: entry.pull_request.title.clone(),
        url: entry.pull_request.url.clone(),
    }
}

fn change(entry: &Entry) -> Change {
    Change {
        pr: entry.pr,
        head: entry.pull_request.head.clone(),
        title: entry.pull_request.commit_title().to_owned(),
        body: entry.pull_request.body.clone(),
        author: entry.pull_request.author.clone(),
    }
}

/// Hands the first tested group to the host when nothing is ahead of it. Returns whether it did.
pub(super) fn land(draft: &mut Draft) -> bool {
    let header = &draft.queue.header;
    if header.landing.is_some() || !header.state.moves() {
        return false;
    }
    let Some(expected) = header.target.head.clone() else { return false };
    let front = in_line(&draft.queue)
        .find(|entry| !matches!(entry.state, EntryState::Pending { held_by: Some(_), .. }));
    let Some(EntryState::TestsPassed { run, .. }) = front.map(|entry| entry.state.clone()) else {
        return false;
    };
    let Some(state) = draft.run(run) else { return false };
    let Some(candidate) = state.candidate.clone() else { return false };
    let members = state.group.iter().filter_map(|member| draft.entry(member.entry));
    let changes: Vec<Change> = members.map(|entry| change(&entry)).collect();
    let land = Land {
        run,
        target: draft.queue.header.branch.clone(),
        expected,
        candidate,
        changes,
        method: state.method,
    };
    draft.queue.header.landing = Some(Landing { run, runs: vec![run], since: draft.at });
    draft.effect(Effect::Land(land));
    true
}
