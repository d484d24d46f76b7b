//! A change of a queue.

use serde::Deserialize;
use signalbox_domain::queue::{
    BatchingRule, DirectMergeMode, MergeMethod, Mode, OptimizationMode, RequestedState,
    SettingsPatch, TestBranchConstructionMode,
};
use utoipa::ToSchema;

use super::requests::Place;
use super::{BatchingRuleField, PlaceOnly};
use crate::problem::Problem;

/// A change of a queue: what is left out stays as it is.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UpdateQueue {
    #[serde(flatten)]
    place: PlaceOnly,
    /// RUNNING, PAUSED or DRAINING.
    #[schema(example = "PAUSED")]
    state: Option<String>,
    /// Why, shown to whoever waits.
    reason: Option<String>,
    /// SINGLE or PARALLEL.
    mode: Option<String>,
    /// 1 to 1000.
    concurrency: Option<u32>,
    /// 0 to 1000; 0 shares the main budget.
    bisection_concurrency: Option<u32>,
    /// 0 to 10080; 0 means never.
    testing_timeout_minutes: Option<u32>,
    /// 0 to 1000.
    pending_failure_depth: Option<u32>,
    can_optimistically_merge: Option<bool>,
    batch: Option<bool>,
    /// 1 to 1000.
    batching_min_size: Option<u32>,
    /// 0 to 10080.
    batching_max_wait_time_minutes: Option<u32>,
    create_prs_for_testing_branches: Option<bool>,
    comments_enabled: Option<bool>,
    commands_enabled: Option<bool>,
    status_check_enabled: Option<bool>,
    /// The queue's own list; an empty one drops it.
    required_statuses: Option<Vec<String>>,
    /// Drops the queue's own list.
    delete_required_statuses: Option<bool>,
    /// OFF or ALWAYS.
    direct_merge_mode: Option<String>,
    /// OFF or BISECTION_SKIP_REDUNDANT_TESTS.
    optimization_mode: Option<String>,
    /// MERGE_COMMIT, SQUASH or REBASE.
    merge_method: Option<String>,
    extension_enabled: Option<bool>,
    enqueueing_label: Option<String>,
    label_commands_enabled: Option<bool>,
    state_labels_enabled: Option<bool>,
    /// 0 to 720; 0 means never.
    not_ready_timeout_hours: Option<u32>,
    /// RENAME_TEMP_BRANCH or PUSH_NEW_BRANCH_FROM_TEMP.
    test_branch_construction_mode: Option<String>,
    allowed_bot_submitters: Option<Vec<String>>,
    batching_rules: Option<Vec<BatchingRuleField>>,
}

/// What an update asks for.
pub(crate) struct Change {
    pub(crate) place: Place,
    pub(crate) settings: SettingsPatch,
    pub(crate) state: Option<RequestedState>,
    pub(crate) reason: Option<String>,
}

fn one_of<T>(
    field: &str,
    text: Option<&str>,
    parse: fn(&str) -> Option<T>,
    all: &[&str],
) -> Result<Option<T>, Problem> {
    let Some(text) = text else { return Ok(None) };
    parse(text).map(Some).ok_or_else(|| {
        let rule = format!("{text:?} is not one of {}", all.join(", "));
        Problem::invalid(format!("/{field}"), rule)
    })
}

macro_rules! word {
    ($self:ident.$field:ident, $name:literal, $type:ty) => {
        one_of(
            $name,
            $self.$field.as_deref(),
            <$type>::parse,
            &<$type>::ALL.iter().map(|value| value.word()).collect::<Vec<_>>(),
        )?
    };
}

impl UpdateQueue {
    pub(crate) fn change(self) -> Result<Change, Problem> {
        let place = self.place.place()?;
        let state = word!(self.state, "state", RequestedState);
        if self.reason.as_ref().is_some_and(|reason| reason.chars().count() > 500) {
            return Err(Problem::invalid("/reason", "must have at most 500 characters"));
        }
        let settings = SettingsPatch {
            mode: word!(self.mode, "mode", Mode),
            direct_merge_mode: word!(self.direct_merge_mode, "directMergeMode", DirectMergeMode),
            optimization_mode: word!(self.optimization_mode, "optimizationMode", OptimizationMode),
            merge_method: word!(self.merge_method, "mergeMethod", MergeMethod),
            test_branch_construction_mode: word!(
                self.test_branch_construction_mode,
                "testBranchConstructionMode",
                TestBranchConstructionMode
            ),
            concurrency: self.concurrency,
            bisection_concurrency: self.bisection_concurrency,
            testing_timeout_minutes: self.testing_timeout_minutes,
            pending_failure_depth: self.pending_failure_depth,
            can_optimistically_merge: self.can_optimistically_merge,
            batch: self.batch,
            batching_min_size: self.batching_min_size,
            batching_max_wait_time_minutes: self.batching_max_wait_time_minutes,
            create_prs_for_testing_branches: self.create_prs_for_testing_branches,
            comments_enabled: self.comments_enabled,
            commands_enabled: self.commands_enabled,
            status_check_enabled: self.status_check_enabled,
            required_statuses: self.required_statuses,
            delete_required_statuses: self.delete_required_statuses.unwrap_or(false),
            extension_enabled: self.extension_enabled,
            enqueueing_label: self.enqueueing_label,
            label_commands_enabled: self.label_commands_enabled,
            state_labels_enabled: self.state_labels_enabled,
            not_ready_timeout_hours: self.not_ready_timeout_hours,
            allowed_bot_submitters: self.allowed_bot_submitters,
            batching_rules: self.batching_rules.map(|rules| {
                rules
                    .into_iter()
                    .map(|rule| BatchingRule {
                        target_pattern: rule.target_pattern,
                        policy: rule.policy,
                    })
                    .collect()
            }),
        };
        Ok(Change { place, settings, state, reason: self.reason })
    }
}
