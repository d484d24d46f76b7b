//! A queue without its entries and runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ids::{BranchName, OrgId, PrNumber, QueueId, RepoId, Sha, TreeId};
use crate::time::Timestamp;

use super::host_health::HostHealth;
use super::management::Management;
use super::state::QueueState;
use super::usage::Usage;
use super::{FreezeState, Landing, Mode, Outcomes, PolicyId, RedTarget, Settings, ShareOutcomes};

/// The target branch as last read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Target {
    /// Its head, or its last one if it is missing; `None` if none was ever read.
    pub head: Option<Sha>,
    /// The head's tree.
    pub tree: Option<TreeId>,
    /// Whether the host has no such branch.
    pub missing: bool,
    /// When the head was last read, or moved by a landing.
    pub seen_at: Option<Timestamp>,
}

/// A queue without its entries and runs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Header {
    /// Its id.
    pub id: QueueId,
    /// The organization that owns it.
    pub org: OrgId,
    /// The repository.
    pub repo: RepoId,
    /// The target branch.
    pub branch: BranchName,
    /// Its state.
    pub state: QueueState,
    /// Its settings.
    pub settings: Arc<Settings>,
    /// The target as last read.
    pub target: Target,
    /// The active landing, if any; at most one at a time.
    pub landing: Option<Landing>,
    /// Merged pull requests that a push from outside has removed from the target.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub off_target: Vec<PrNumber>,
    /// Whether the host can be used.
    pub host: HostHealth,
    /// When a filling batch, for which a slot is free, starts.
    #[cfg_attr(feature = "serde", serde(default))]
    pub batch_due: Option<Timestamp>,
    /// When failed checks ran again within an hour before the last retry.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub retried: Vec<Timestamp>,
    /// The red target that holds the line, or has held it last.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub red: Option<RedTarget>,
    /// The adaptive window in test runs; `None` until a failure has reduced it.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub window: Option<u32>,
    /// The freeze in force, and when that changes.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "FreezeState::is_empty"))]
    pub freeze: FreezeState,
    /// What authors have used of their quotas.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Usage::is_empty"))]
    pub usage: Usage,
    /// How the last pull requests ended.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Outcomes::is_empty"))]
    pub outcomes: Outcomes,
    /// How those of each author or agent ended, with `successEstimates=AUTHORS`.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "ShareOutcomes::is_empty"))]
    pub share_outcomes: ShareOutcomes,
    /// The last started turn of each priority, with fair share.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "BTreeMap::is_empty"))]
    pub started_turns: BTreeMap<u32, u32>,
    /// Seconds that the last passing runs took; kept while the test timeout is automatic.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub passed_in: Vec<u32>,
    /// The policy of the last step.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "PolicyId::is_standard"))]
    pub policy: PolicyId,
    /// The last number given to a run, an effect, a place or a journal record.
    pub sequence: u64,
    /// Incremented when `impactedTargetRules` or `mergeMethod` changes.
    #[cfg_attr(feature = "serde", serde(default))]
    pub rules_revision: u64,
    /// Terraform's management of the queue; `None` if Terraform has never written it.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub management: Option<Management>,
    /// When it was created.
    pub created_at: Timestamp,
    /// Whether it was deleted.
    pub deleted: bool,
}

impl Header {
    /// The mode in force: during a mode switch, the old one.
    pub fn mode(&self) -> Mode {
        match self.state.switching_from() {
            Some(from) => from,
            None => self.settings.mode,
        }
    }
}
