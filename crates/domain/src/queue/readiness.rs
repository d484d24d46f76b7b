//! Readiness: the conditions for entering the line.

use super::{DependencyState, DependsOn, Mergeability, WaitReason};

/// The conditions for entering the line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Readiness {
    /// Whether impacted targets must be reported: true in PARALLEL mode.
    pub requires_impacted_targets: bool,
    /// Whether targets are reported for the current head.
    pub has_impacted_targets: bool,
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
        self.unprepared().or_else(|| {
            let on = self.depends_on(&[DependencyState::Unread, DependencyState::Open])?;
            Some(WaitReason::Dependencies { on })
        })
    }

    /// The same, ignoring dependencies that may still merge.
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
        if self.requires_impacted_targets && !self.has_impacted_targets {
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

    /// Whether its author has nothing to do: only the queue or open dependencies keep it outside the
    /// line.
    pub(super) fn depends_on_others_only(&self) -> bool {
        self.unprepared().is_none()
    }
}
