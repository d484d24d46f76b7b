//! A queue as clients see it.

use serde::Serialize;
use signalbox_domain::queue::{Queue, QueueState, view_queue};
use utoipa::ToSchema;

use super::words::{
    DirectMergeModeWord, MergeMethodWord, ModeWord, OptimizationModeWord, QueueStateWord,
    TestBranchConstructionModeWord,
};
use super::{ListedEntry, Words};

/// A rule that keeps targets out of shared batches.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BatchingRuleReply {
    /// Which targets; `*` matches any text.
    pub(crate) target_pattern: String,
    /// Always `isolate`.
    pub(crate) policy: String,
}

/// State and settings of a queue.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SettingsReply {
    #[schema(value_type = QueueStateWord)]
    state: String,
    /// The branch that it targets.
    #[schema(example = "main")]
    branch: String,
    concurrency: u32,
    bisection_concurrency: u32,
    testing_timeout_minutes: u32,
    /// While modes are switched, the new one.
    #[schema(value_type = ModeWord)]
    mode: String,
    can_optimistically_merge: bool,
    pending_failure_depth: u32,
    batch: bool,
    batching_max_wait_time_minutes: u32,
    batching_min_size: u32,
    create_prs_for_testing_branches: bool,
    comments_enabled: bool,
    commands_enabled: bool,
    status_check_enabled: bool,
    /// The queue's own list; empty when the repository or the host decides.
    required_statuses: Vec<String>,
    #[schema(value_type = DirectMergeModeWord)]
    direct_merge_mode: String,
    #[schema(value_type = OptimizationModeWord)]
    optimization_mode: String,
    #[schema(value_type = MergeMethodWord)]
    merge_method: String,
    extension_enabled: bool,
    enqueueing_label: String,
    label_commands_enabled: bool,
    state_labels_enabled: bool,
    not_ready_timeout_hours: u32,
    #[schema(value_type = TestBranchConstructionModeWord)]
    test_branch_construction_mode: String,
    allowed_bot_submitters: Vec<String>,
    batching_rules: Vec<BatchingRuleReply>,
    /// Who paused the queue, while it is paused.
    paused_by: Option<String>,
    /// Why it was paused.
    paused_reason: Option<String>,
}

impl SettingsReply {
    /// The reply to a change: a change of mode that waits for the line to empty does not show as
    /// a state that nobody asked for.
    pub(crate) fn after_update(queue: &Queue, words: Words) -> Self {
        let mut reply = Self::of(queue, words);
        if let QueueState::SwitchingModes { draining, .. } = queue.header.state {
            reply.state = words.word(if draining { "DRAINING" } else { "RUNNING" });
        }
        reply
    }

    pub(crate) fn of(queue: &Queue, words: Words) -> Self {
        let (header, settings) = (&queue.header, &queue.header.settings);
        let (paused_by, paused_reason) = match &header.state {
            QueueState::Paused { by, reason, .. } => (Some(by.to_string()), reason.clone()),
            QueueState::Running | QueueState::Draining | QueueState::SwitchingModes { .. } => {
                (None, None)
            }
        };
        Self {
            state: words.word(header.state.name().word()),
            branch: header.branch.to_string(),
            concurrency: settings.concurrency,
            bisection_concurrency: settings.bisection_concurrency,
            testing_timeout_minutes: settings.testing_timeout_minutes,
            mode: words.word(settings.mode.word()),
            can_optimistically_merge: settings.can_optimistically_merge,
            pending_failure_depth: settings.pending_failure_depth,
            batch: settings.batch,
            batching_max_wait_time_minutes: settings.batching_max_wait_time_minutes,
            batching_min_size: settings.batching_min_size,
            create_prs_for_testing_branches: settings.create_prs_for_testing_branches,
            comments_enabled: settings.comments_enabled,
            commands_enabled: settings.commands_enabled,
            status_check_enabled: settings.status_check_enabled,
            required_statuses: settings.required_statuses.clone().unwrap_or_default(),
            direct_merge_mode: words.word(settings.direct_merge_mode.word()),
            optimization_mode: words.word(settings.optimization_mode.word()),
            merge_method: words.word(settings.merge_method.word()),
            extension_enabled: settings.extension_enabled,
            enqueueing_label: settings.enqueueing_label.clone(),
            label_commands_enabled: settings.label_commands_enabled,
            state_labels_enabled: settings.state_labels_enabled,
            not_ready_timeout_hours: settings.not_ready_timeout_hours,
            test_branch_construction_mode: words
                .word(settings.test_branch_construction_mode.word()),
            allowed_bot_submitters: settings.allowed_bot_submitters.clone(),
            batching_rules: settings
                .batching_rules
                .iter()
                .map(|rule| BatchingRuleReply {
                    target_pattern: rule.target_pattern.clone(),
                    policy: rule.policy.clone(),
                })
                .collect(),
            paused_by,
            paused_reason,
        }
    }
}

/// A queue with its entries.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QueueReply {
    #[serde(flatten)]
    settings: SettingsReply,
    /// All live entries in queue order; those that are not ready last.
    enqueued_pull_requests: Vec<ListedEntry>,
}

impl QueueReply {
    pub(crate) fn of(queue: &Queue, words: Words) -> Self {
        let listed = |view: &signalbox_domain::queue::EntryView<'_>| {
            ListedEntry::of(view.entry, view.state, view.waits.as_ref(), view.position, words)
        };
        Self {
            settings: SettingsReply::of(queue, words),
            enqueued_pull_requests: view_queue(queue).entries.iter().map(listed).collect(),
        }
    }
}
