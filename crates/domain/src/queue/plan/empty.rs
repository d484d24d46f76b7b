//! Pull requests that add no changes, because the target already contains them.

use crate::ids::{PrNumber, RunId, TreeId};

use super::super::{Actor, Candidate, Exit, MergeReason, RunStatus, TestRun};
use super::builder::TransitionBuilder;
use super::leave;

/// The exit of a pull request that adds no changes.
pub(super) const fn exit() -> Exit {
    Exit::Merged {
        reason: MergeReason::Already,
        sha: None,
        tested_tree: None,
        landed_tree: None,
        proof: None,
    }
}

/// Removes the pull requests that add no changes to the target itself; the rest of their group is
/// rebuilt. Returns whether there were any. Pull requests that add no changes only relative to
/// entries ahead of them are recorded and stay, because those entries may still leave.
pub(super) fn removed(
    builder: &mut TransitionBuilder,
    id: RunId,
    candidate: &Candidate,
    named: &[PrNumber],
) -> bool {
    let Some(run) = builder.run(id).filter(|run| run.status == RunStatus::Building) else {
        return false;
    };
    let is_member = |pr: &&PrNumber| run.group.iter().any(|member| member.pr == **pr);
    let mut empty: Vec<PrNumber> = named.iter().filter(is_member).copied().collect();
    if let [only] = &*run.group
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

/// The tree of the commit that a run's candidate is built on, if known.
fn base_tree<'a>(builder: &'a TransitionBuilder, run: &TestRun) -> Option<&'a TreeId> {
    let target = &builder.queue.header.target;
    if target.head.as_ref() == Some(&run.base) {
        return target.tree.as_ref();
    }
    let built = builder.queue.by_status.with_candidate(&run.base)?;
    Some(&builder.queue.run(built)?.candidate.as_ref()?.tree)
}
