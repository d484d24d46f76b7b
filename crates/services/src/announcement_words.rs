//! The texts of announcements on pull requests.

use signalbox_domain::ids::{Sha, TreeId};
use signalbox_domain::ports::{Forge, StatusState};
use signalbox_domain::queue::{
    Composition, CompositionCheck, Entry, EntryState, Exit, PrState, Queue, WaitReason, view_entry,
};
use signalbox_wording::{Named as _, blame, composition, held_by_freeze, wait};

/// The labels of states: `signalbox: testing`. Each begins with
/// [`STATE_LABELS`](signalbox_domain::queue::STATE_LABELS).
pub(super) const LABELS: [(PrState, &str); 5] = [
    (PrState::NotReady, "signalbox: not ready"),
    (PrState::Pending, "signalbox: queued"),
    (PrState::Testing, "signalbox: testing"),
    (PrState::Failed, "signalbox: failed"),
    (PrState::Merged, "signalbox: merged"),
];

/// The announced state: short-lived states count as the longer one around them, so that a pull
/// request is not updated at each step.
pub(super) const fn phase(state: &EntryState) -> PrState {
    match state {
        EntryState::NotReady => PrState::NotReady,
        EntryState::Pending { .. } => PrState::Pending,
        EntryState::Testing { .. }
        | EntryState::TestsPassed { .. }
        | EntryState::PendingFailure { .. } => PrState::Testing,
        EntryState::Ended(exit) => exit.state(),
    }
}

/// The texts of an entry.
pub(super) struct AnnouncementText {
    pub(super) state: StatusState,
    pub(super) line: String,
    pub(super) comment: String,
}

/// How the landed tree relates to the tested one.
fn of_trees(tested: &TreeId, landed: &TreeId, exact: bool) -> String {
    match (tested == landed, exact) {
        (true, _) => format!("The landed tree {landed} is the tested tree."),
        (false, true) => {
            format!("The landed tree {landed} **is not** the tested tree {tested}.")
        }
        (false, false) => format!(
            "Other lanes have landed beside it: the landed tree {landed} is the clean merge of the \
             target branch with the tested tree {tested}."
        ),
    }
}

/// How its composition was checked.
fn of_check(checked: &Composition, neutral: &impl Fn(&[String]) -> String) -> String {
    let about: &[String] = match checked.check {
        CompositionCheck::NotChecked => checked.why_not.as_slice(),
        CompositionCheck::Compared => &checked.merged_by_host,
        CompositionCheck::Recomputed => &[],
    };
    let list = if about.is_empty() { String::new() } else { neutral(about) };
    format!("{}{list}", composition(checked))
}

/// The freeze that keeps a passed entry from landing.
fn freeze(queue: &Queue, entry: &Entry) -> Option<String> {
    let is_passed = matches!(entry.state, EntryState::TestsPassed { .. });
    queue.header.freeze.in_force.as_ref().filter(|_| is_passed)?;
    let WaitReason::Frozen { until, reason } = view_entry(queue, entry.pr)?.waits? else {
        return None;
    };
    Some(held_by_freeze(until, reason.as_deref()))
}

impl AnnouncementText {
    /// `newer` is the pull request's present head, if it landed with an older one.
    pub(super) fn of(queue: &Queue, entry: &Entry, forge: &dyn Forge, newer: Option<&Sha>) -> Self {
        let branch = forge.neutral(queue.header.branch.as_str());
        let neutral = |list: &[String]| {
            let items: Vec<String> =
                list.iter().take(20).map(|it| format!("\n- {}", forge.neutral(it))).collect();
            items.concat()
        };
        let held = freeze(queue, entry);
        let (state, why, more) = match &entry.state {
            EntryState::NotReady => {
                let missing = entry.readiness(&queue.header).missing();
                let of_queue = || {
                    let waits = view_entry(queue, entry.pr).and_then(|view| view.waits);
                    waits.filter(|reason| {
                        matches!(
                            reason,
                            WaitReason::AuthorLimit { .. }
                                | WaitReason::Frozen { .. }
                                | WaitReason::Quota { .. }
                                | WaitReason::DependencyCycle { .. }
                        )
                    })
                };
                let reason = match missing {
                    None | Some(WaitReason::Dependencies { .. }) => of_queue().or(missing),
                    Some(_) => missing,
                };
                let why = match &reason {
                    Some(WaitReason::Frozen { until, reason }) => {
                        Some(held_by_freeze(*until, reason.as_deref()))
                    }
                    Some(_) | None => None,
                };
                let more = reason.map(|it| forge.neutral(&wait(&it).sentence)).unwrap_or_default();
                (StatusState::Pending, why, more)
            }
            EntryState::Pending { .. } => (StatusState::Pending, None, String::new()),
            EntryState::Testing { .. }
            | EntryState::TestsPassed { .. }
            | EntryState::PendingFailure { .. } => {
                let branch = entry.state.run().and_then(|run| queue.run(run));
                let more = branch.map(|run| {
                    format!("The test branch is {}.", forge.neutral(run.branch.as_str()))
                });
                let more = more.filter(|_| matches!(entry.state, EntryState::Testing { .. }));
                let waits = held.as_ref().map(|frozen| format!("It has passed, but {frozen}."));
                let more = more.or_else(|| Some(forge.neutral(&waits?)));
                (StatusState::Pending, held, more.unwrap_or_default())
            }
            EntryState::Ended(Exit::Merged { sha, tested_tree, landed_tree, proof, .. }) => {
                let mut more =
                    sha.as_ref().map(|sha| format!("Landed as {sha}.")).unwrap_or_default();
                if let (Some(tested), Some(landed)) = (tested_tree, landed_tree) {
                    let exact = proof.as_ref().is_none_or(|proof| proof.exact);
                    more = format!("{more} {}", of_trees(tested, landed, exact));
                }
                let checked = proof.as_ref().and_then(|proof| proof.composition.as_ref());
                if let Some(checked) = checked {
                    more = format!("{more} {}", of_check(checked, &neutral));
                }
                if let Some(since) = entry.off_target_since {
                    more = format!(
                        "{more} A push to the target branch has removed it (detected at {since})."
                    );
                }
                if let Some(newer) = newer {
                    let landed = &entry.pull_request.head;
                    more = format!(
                        "{more}\n\n**Newer commits were not merged.** This pull request landed at \
                         {landed}; its head is now {newer}. Open a new pull request to land them, \
                         or submit this one again if it is still open."
                    );
                }
                (StatusState::Success, None, more)
            }
            EntryState::Ended(exit @ Exit::Failed { reason, details, .. }) => {
                let blame = blame(exit).unwrap_or_default();
                let why = reason.named().label.to_owned();
                let more = format!("{why}: {blame}{}", neutral(details));
                (StatusState::Failure, Some(why), more)
            }
            EntryState::Ended(Exit::Cancelled { reason, by }) => {
                let why = reason.named().label.to_owned();
                let more = format!("{why}, by {}.", forge.neutral(&by.to_string()));
                (StatusState::Failure, Some(why), more)
            }
        };
        let word = phase(&entry.state).named();
        let line = why.map_or_else(|| word.label.into(), |why| format!("{}: {why}", word.label));
        let comment =
            format!("**Merge queue {branch}**: {}: {}.\n\n{more}", word.label, word.sentence);
        Self { state, line, comment }
    }
}

#[cfg(test)]
mod tests {
    use signalbox_domain::queue::STATE_LABELS;

    use super::LABELS;

    #[test]
    fn every_label_of_a_state_begins_like_one() {
        assert!(LABELS.iter().all(|(_, label)| label.starts_with(STATE_LABELS)));
    }
}
