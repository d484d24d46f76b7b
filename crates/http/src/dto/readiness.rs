//! What an entry needs to enter the line, as clients see it.

use serde::Serialize;
use signalbox_domain::queue::{
    DependsOn, Entry, Readiness, ReportedTargets, Targets, TargetsOrigin,
};
use utoipa::ToSchema;

use super::Words;
use super::words::{DependencyStateWord, MergeabilityWord};

/// The most names of impacted targets in a reply.
const MAX_NAMES: usize = 100;

/// The conditions for an entry to enter the line.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReadinessReply {
    has_impacted_targets: bool,
    requires_impacted_targets: bool,
    does_base_branch_match: bool,
    #[schema(value_type = MergeabilityWord)]
    git_hub_mergeability: String,
}

impl ReadinessReply {
    pub(super) fn of(readiness: &Readiness, words: Words) -> Self {
        Self {
            has_impacted_targets: readiness.has_impacted_targets,
            requires_impacted_targets: readiness.requires_impacted_targets,
            does_base_branch_match: readiness.does_base_branch_match,
            git_hub_mergeability: words.word(readiness.mergeability.as_str()),
        }
    }
}

/// The impacted targets of a pull request.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ImpactedTargetsReply {
    /// Whether it impacts all targets.
    all: bool,
    /// The first 100 names, sorted; none if it impacts all targets.
    #[schema(max_items = 100)]
    names: Vec<String>,
    /// The number of names.
    count: usize,
    /// Whether the queue's `impactedTargetRules` computed them from the changed paths; otherwise they were
    /// reported.
    computed: bool,
    /// Why it impacts all targets, if they were computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "no rule matches Makefile")]
    reason: Option<String>,
}

impl ImpactedTargetsReply {
    /// The targets of an entry; `None` if it has none for its head.
    pub(super) fn of(entry: &Entry) -> Option<Self> {
        let ReportedTargets { targets, origin, .. } = entry.applied_targets()?;
        let mut names: Vec<&str> = match targets {
            Targets::All => Vec::new(),
            Targets::Only(names) => names.iter().collect(),
        };
        let count = names.len();
        names.sort_unstable();
        names.truncate(MAX_NAMES);
        let reason = match origin {
            TargetsOrigin::Computed { why_all, .. } => why_all.as_ref().map(ToString::to_string),
            TargetsOrigin::Reported => None,
        };
        Some(Self {
            all: *targets == Targets::All,
            names: names.into_iter().map(ToOwned::to_owned).collect(),
            count,
            computed: !origin.is_reported(),
            reason,
        })
    }
}

/// A dependency that has not merged.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DependencyReply {
    /// `#12`, `owner/name#12`, or a reference that names no pull request.
    #[schema(example = "#12")]
    name: String,
    #[schema(value_type = DependencyStateWord)]
    state: String,
}

impl DependencyReply {
    pub(super) fn all(readiness: &Readiness, words: Words) -> Vec<Self> {
        let reply = |DependsOn { on, state }: &DependsOn| Self {
            name: on.to_string(),
            state: words.word(state.as_str()),
        };
        readiness.dependencies.iter().map(reply).collect()
    }
}
