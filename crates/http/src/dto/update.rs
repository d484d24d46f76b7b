//! A change of a queue.

use serde::Deserialize;
use signalbox_domain::queue::{
    BatchingRule, DirectMergeMode, MergeMethod, Mode, OptimizationMode, RequestedState,
    SettingsPatch, TestBranchConstructionMode,
};
use utoipa::ToSchema;

use super::BatchingRuleReply;
use super::field::{Errors, Field, object_form, shown};
use super::forms::{Count, Flag, List, Text};
use super::place::{Place, RepoRef, Request, check_place};
use super::queue_requests::check_setting;
use super::words::{
    DirectMergeModeWord, MergeMethodWord, ModeWord, OptimizationModeWord, RequestedStateWord,
    TestBranchConstructionModeWord,
};

/// The most characters of the reason of a pause.
const MAX_REASON: usize = 500;

/// A change of a queue: what is left out stays as it is.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "repo": {"host": "github.com", "owner": "acme", "name": "calc"},
    "targetBranch": "main",
    "state": "PAUSED",
    "reason": "release freeze",
    "concurrency": 10
}))]
pub(crate) struct UpdateRequest {
    /// The repository.
    #[schema(value_type = RepoRef, required)]
    repo: Field<RepoRef>,
    /// The branch that the merge queue targets.
    #[schema(value_type = String, required)]
    target_branch: Field<Text>,
    /// The state to go to.
    #[schema(value_type = Option<RequestedStateWord>)]
    state: Field<Text>,
    /// Why, shown to whoever waits.
    #[schema(value_type = Option<String>, max_length = 500)]
    reason: Field<Text>,
    /// With entries in the line the queue switches when it is empty.
    #[schema(value_type = Option<ModeWord>)]
    mode: Field<Text>,
    /// Test runs at the same time.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    concurrency: Field<Count>,
    /// Bisection runs at the same time; 0 shares the main budget.
    #[schema(value_type = Option<u32>, maximum = 1000)]
    bisection_concurrency: Field<Count>,
    /// Minutes until a test run counts as failed; 0 means never.
    #[schema(value_type = Option<u32>, maximum = 10080)]
    testing_timeout_minutes: Field<Count>,
    /// Levels of successors that may still absolve a failed entry. Without `canOptimisticallyMerge`
    /// it only delays failures.
    #[schema(value_type = Option<u32>, maximum = 1000)]
    pending_failure_depth: Field<Count>,
    /// Whether a passing successor absolves what it contains.
    #[schema(value_type = Option<bool>)]
    can_optimistically_merge: Field<Flag>,
    /// Whether entries are tested in groups.
    #[schema(value_type = Option<bool>)]
    batch: Field<Flag>,
    /// Target size of a batch.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    batching_min_size: Field<Count>,
    /// Minutes that a batch may wait to fill.
    #[schema(value_type = Option<u32>, maximum = 10080)]
    batching_max_wait_time_minutes: Field<Count>,
    /// Whether test branches get a draft pull request, on hosts that know them.
    #[schema(value_type = Option<bool>)]
    create_prs_for_testing_branches: Field<Flag>,
    /// Whether the queue comments on pull requests.
    #[schema(value_type = Option<bool>)]
    comments_enabled: Field<Flag>,
    /// Whether comments may carry commands.
    #[schema(value_type = Option<bool>)]
    commands_enabled: Field<Flag>,
    /// Whether the queue reports a status on pull requests.
    #[schema(value_type = Option<bool>)]
    status_check_enabled: Field<Flag>,
    /// The queue's own list, at most 100; an empty one drops it.
    #[schema(value_type = Option<Vec<String>>)]
    required_statuses: Field<List<Text>>,
    /// Drops the queue's own list.
    #[schema(value_type = Option<bool>)]
    delete_required_statuses: Field<Flag>,
    /// Whether up-to-date pull requests may skip an empty queue.
    #[schema(value_type = Option<DirectMergeModeWord>)]
    direct_merge_mode: Field<Text>,
    /// Whether bisection skips implied runs.
    #[schema(value_type = Option<OptimizationModeWord>)]
    optimization_mode: Field<Text>,
    /// How changes become commits.
    #[schema(value_type = Option<MergeMethodWord>)]
    merge_method: Field<Text>,
    /// Whether browser extensions may act on this queue.
    #[schema(value_type = Option<bool>)]
    extension_enabled: Field<Flag>,
    /// The label that submits a pull request.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 100)]
    enqueueing_label: Field<Text>,
    /// Whether labels may carry commands.
    #[schema(value_type = Option<bool>)]
    label_commands_enabled: Field<Flag>,
    /// Whether the queue labels pull requests with their state.
    #[schema(value_type = Option<bool>)]
    state_labels_enabled: Field<Flag>,
    /// Hours until an entry that is not ready is cancelled; 0 means never.
    #[schema(value_type = Option<u32>, maximum = 720)]
    not_ready_timeout_hours: Field<Count>,
    /// How test branches come to their names.
    #[schema(value_type = Option<TestBranchConstructionModeWord>)]
    test_branch_construction_mode: Field<Text>,
    /// Logins of bots that may submit, at most 100.
    #[schema(value_type = Option<Vec<String>>)]
    allowed_bot_submitters: Field<List<Text>>,
    /// Rules that keep targets out of shared batches, at most 100.
    #[schema(value_type = Option<Vec<BatchingRuleReply>>)]
    batching_rules: Field<List<RuleForm>>,
}

/// A rule that keeps targets out of shared batches, as it was sent.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RuleForm {
    target_pattern: Field<Text>,
    policy: Field<Text>,
}

object_form!(UpdateRequest, RuleForm);

/// What an update asks for.
#[derive(Debug)]
pub(crate) struct Update {
    pub(crate) place: Place,
    pub(crate) settings: SettingsPatch,
    pub(crate) state: Option<RequestedState>,
    pub(crate) reason: Option<String>,
}

/// One of several words, in any case.
fn word<T: Copy>(
    errors: &mut Errors,
    pointer: &str,
    field: Field<Text>,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> Option<T> {
    let Text(given) = errors.optional(pointer, field)?;
    let found = all.iter().copied().find(|it| name(*it).eq_ignore_ascii_case(&given));
    if found.is_none() {
        let all: Vec<&str> = all.iter().map(|it| name(*it)).collect();
        let rule = format!("must be one of {}, but is {}", all.join(", "), shown(&given));
        errors.add(pointer, rule);
    }
    found
}

fn texts(errors: &mut Errors, pointer: &str, field: Field<List<Text>>) -> Option<Vec<String>> {
    let List(items) = errors.optional(pointer, field)?;
    let texts = items.into_iter().enumerate().filter_map(|(at, item)| {
        errors.required(&format!("{pointer}/{at}"), item).map(|text| text.0)
    });
    Some(texts.collect())
}

fn rules(
    errors: &mut Errors,
    pointer: &str,
    field: Field<List<RuleForm>>,
) -> Option<Vec<BatchingRule>> {
    let List(items) = errors.optional(pointer, field)?;
    let rules = items.into_iter().enumerate().filter_map(|(at, item)| {
        let RuleForm { target_pattern, policy } =
            errors.required(&format!("{pointer}/{at}"), item)?;
        let pattern = errors.required(&format!("{pointer}/{at}/targetPattern"), target_pattern);
        let policy = errors.required(&format!("{pointer}/{at}/policy"), policy);
        Some(BatchingRule { target_pattern: pattern?.0, policy: policy?.0 })
    });
    Some(rules.collect())
}

impl Request for UpdateRequest {
    type Asked = Update;

    fn check(self, errors: &mut Errors) -> Option<Update> {
        let place = check_place(self.repo, self.target_branch, errors);
        let state = word(errors, "/state", self.state, RequestedState::ALL, RequestedState::word);
        let reason = errors.optional("/reason", self.reason).map(|it| it.0);
        if reason.as_ref().is_some_and(|reason| reason.chars().count() > MAX_REASON) {
            errors.add("/reason", format!("must have at most {MAX_REASON} characters"));
        }
        let mut settings = SettingsPatch {
            mode: word(errors, "/mode", self.mode, Mode::ALL, Mode::word),
            ..SettingsPatch::default()
        };
        // Each setting is checked on its own, so that all that are out of bounds are told.
        macro_rules! set {
            ($field:ident, $value:expr) => {
                if let Some(value) = $value {
                    let mut alone = SettingsPatch::default();
                    alone.$field = Some(value);
                    check_setting(errors, &alone);
                    settings.$field = alone.$field;
                }
            };
        }
        macro_rules! set_count {
            ($($field:ident $pointer:literal),+ $(,)?) => {
                $(set!($field, errors.optional($pointer, self.$field).map(|it| it.0));)+
            };
        }
        macro_rules! set_word {
            ($($field:ident $pointer:literal $kind:ty),+ $(,)?) => {
                $(set!($field, word(errors, $pointer, self.$field, <$kind>::ALL, <$kind>::word));)+
            };
        }
        set_count!(
            concurrency "/concurrency",
            bisection_concurrency "/bisectionConcurrency",
            testing_timeout_minutes "/testingTimeoutMinutes",
            pending_failure_depth "/pendingFailureDepth",
            can_optimistically_merge "/canOptimisticallyMerge",
            batch "/batch",
            batching_min_size "/batchingMinSize",
            batching_max_wait_time_minutes "/batchingMaxWaitTimeMinutes",
            create_prs_for_testing_branches "/createPrsForTestingBranches",
            comments_enabled "/commentsEnabled",
            commands_enabled "/commandsEnabled",
            status_check_enabled "/statusCheckEnabled",
            extension_enabled "/extensionEnabled",
            enqueueing_label "/enqueueingLabel",
            label_commands_enabled "/labelCommandsEnabled",
            state_labels_enabled "/stateLabelsEnabled",
            not_ready_timeout_hours "/notReadyTimeoutHours",
        );
        set_word!(
            direct_merge_mode "/directMergeMode" DirectMergeMode,
            optimization_mode "/optimizationMode" OptimizationMode,
            merge_method "/mergeMethod" MergeMethod,
            test_branch_construction_mode "/testBranchConstructionMode" TestBranchConstructionMode,
        );
        set!(required_statuses, texts(errors, "/requiredStatuses", self.required_statuses));
        set!(
            allowed_bot_submitters,
            texts(errors, "/allowedBotSubmitters", self.allowed_bot_submitters)
        );
        set!(batching_rules, rules(errors, "/batchingRules", self.batching_rules));
        settings.delete_required_statuses = errors
            .optional("/deleteRequiredStatuses", self.delete_required_statuses)
            .is_some_and(|it| it.0);
        Some(Update { place: place?, settings, state, reason })
    }
}
