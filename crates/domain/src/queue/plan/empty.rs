//! Pull requests that add nothing: their changes are on the target already.

use crate::ids::{PrNumber, RunId, TreeId};

use super::super::{Actor, Candidate, Exit, MergeReason, RunStatus, TestRun};
use super::builder::TransitionBuilder;
use super::leave;

/// How a pull request leaves that has nothing to add.
pub(super) const fn exit() -> Exit {
    Exit::Merged { reason: MergeReason::Already, sha: None, tested_tree: None, landed_tree: None }
}

/// Takes the pull requests out of the queue that add nothing to the target itself, and tells
/// whether there were any; the rest of their group is built anew. Those that add nothing to what
/// is ahead of them, in their own group or before it, are noted: it may still leave.
pub(super) fn taken_out(
    builder: &mut TransitionBuilder,
    id: RunId,
    candidate: &Candidate,
    told: &[PrNumber],
) -> bool {
    let Some(run) = builder.run(id).filter(|run| run.status == RunStatus::Building) else {
        return false;
    };
    let is_member = |pr: &&PrNumber| run.group.iter().any(|member| member.pr == **pr);
    let mut empty: Vec<PrNumber> = told.iter().filter(is_member).copied().collect();
    if let [only] = run.group.as_slice()
        && base_tree(builder, &run) == Some(&candidate.tree)
    {
        empty = vec![only.pr];
    }
    if empty.is_empty() {
        return false;
    }
    let leading = run.group.iter().map(|member| member.pr).take_while(|pr| empty.contains(pr));
    let leading: Vec<PrNumber> = leading.collect();
    if !run.ahead.is_empty() || leading.is_empty() {
        builder.change_run(id, |run| run.empty = empty);
        return false;
    }
    builder.change_run(id, |run| run.candidate = Some(candidate.clone()));
    leave::give_up(builder, id, MergeReason::Already);
    for pr in leading {
        let entry = builder.queue.entry_id(pr);
        leave::leave(builder, entry, exit(), &Actor::Queue);
    }
    true
}

/// The tree of what a run's candidate is built on, if it is known.
fn base_tree<'a>(builder: &'a TransitionBuilder, run: &TestRun) -> Option<&'a TreeId> {
    let target = &builder.queue.header.target;
    if target.head.as_ref() == Some(&run.base) {
        return target.tree.as_ref();
    }
    let mut candidates = builder.queue.runs().filter_map(|it| it.candidate.as_ref());
    candidates.find(|it| it.sha == run.base).map(|it| &it.tree)
}
