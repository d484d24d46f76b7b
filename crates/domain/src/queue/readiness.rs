//! Readiness: the conditions for entering the line.

use super::{Mergeability, WaitReason};

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
}

impl Readiness {
    /// Whether every condition holds.
    pub fn is_ready(&self) -> bool {
        self.missing().is_none()
    }

    /// The first condition that does not hold, as a wait reason; conditions that an author can fix
    /// come first.
    pub fn missing(&self) -> Option<WaitReason> {
        if self.draft {
            return Some(WaitReason::Draft);
        }
        if !self.does_base_branch_match {
            return Some(WaitReason::BaseBranchDiffers);
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
}
