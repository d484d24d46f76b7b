//! Readiness: the conditions for entering the line.

use super::{DependencyState, DependsOn, Mergeability, WaitReason};

/// The conditions for entering the line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Readiness {
    /// Whether impacted targets must be known: true in PARALLEL mode, and in SINGLE mode if the queue
    /// computes targets and has batching rules for them.
    pub requires_impacted_targets: bool,
    /// Whether they are known for the current head.
    pub has_impacted_targets: bool,
    /// Whether the queue's rules compute them.
    #[cfg_attr(feature = "serde", serde(default))]
    pub computes_impacted_targets: bool,
    /// Whether the pull request targets the queue's branch.
    pub does_base_branch_match: bool,
    /// Whether the host allows the merge.
    pub mergeability: Mergeability,
    /// Whether it is a draft.
    pub draft: bool,
    /// The dependencies that have not merged.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub dependencies: Vec<DependsOn>,
}

impl Readiness {
    /// Whether every condition holds.
    pub fn is_ready(&self) -> bool {
        self.missing().is_none()
    }

    /// The first condition that does not hold, as a wait reason; conditions that an author can fix
    /// come first.
    pub fn missing(&self) -> Option<WaitReason> {
        let dependencies = || {
            let on = self.depends_on(&[DependencyState::Unread, DependencyState::Open])?;
            Some(WaitReason::Dependencies { on })
        };
        let targets = || self.lacks_targets().then_some(WaitReason::ComputingTargets);
        self.unprepared().or_else(dependencies).or_else(targets)
    }

    fn lacks_targets(&self) -> bool {
        self.requires_impacted_targets && !self.has_impacted_targets
    }

    /// The first condition that its author must fulfill: dependencies may still merge, and the queue
    /// may compute targets.
    fn unprepared(&self) -> Option<WaitReason> {
        if self.draft {
            return Some(WaitReason::Draft);
        }
        if !self.does_base_branch_match {
            return Some(WaitReason::BaseBranchDiffers);
        }
        if let Some(on) = self.depends_on(&[DependencyState::Missing]) {
            return Some(WaitReason::DependencyUnknown { on });
        }
        if let Some(on) = self.depends_on(&[DependencyState::Closed]) {
            return Some(WaitReason::DependencyClosed { on });
        }
        match &self.mergeability {
            Mergeability::Mergeable => {}
            Mergeability::NotMergeable(detail) => {
                return Some(WaitReason::HostMergeability { detail: detail.clone() });
            }
            Mergeability::InProgress | Mergeability::Unspecified => {
                return Some(WaitReason::HostMergeability {
                    detail: "the host is still computing whether it can be merged".into(),
                });
            }
        }
        if self.lacks_targets() && !self.computes_impacted_targets {
            return Some(WaitReason::MissingTargets);
        }
        None
    }

    /// The dependencies in one of these states, by name; `None` if there is none.
    fn depends_on(&self, states: &[DependencyState]) -> Option<Vec<String>> {
        let in_state = self.dependencies.iter().filter(|it| states.contains(&it.state));
        let names: Vec<String> = in_state.map(|it| it.on.to_string()).collect();
        (!names.is_empty()).then_some(names)
    }

    /// Whether its author has nothing to do: only the queue, open dependencies or targets that are being
    /// computed keep it outside the line.
    pub(super) fn depends_on_others_only(&self) -> bool {
        self.unprepared().is_none()
    }
}
