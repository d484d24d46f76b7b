//! What must be true before an entry may enter the line.

use super::{Mergeability, WaitReason};

/// The conditions, one by one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Readiness {
    /// Whether targets must be reported: only in PARALLEL mode.
    pub requires_impacted_targets: bool,
    /// Whether they were, for the current head.
    pub has_impacted_targets: bool,
    /// Whether the pull request wants to be merged into the queue's branch.
    pub does_base_branch_match: bool,
    /// What the host says.
    pub mergeability: Mergeability,
    /// Whether it is marked as unfinished.
    pub draft: bool,
}

impl Readiness {
    /// Whether nothing is missing.
    pub fn is_ready(&self) -> bool {
        self.missing().is_none()
    }

    /// The first thing that is missing, in the order in which people can do something about it.
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
