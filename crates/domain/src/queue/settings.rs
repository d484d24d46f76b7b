//! What a queue is told to do. Every field can be changed by updateQueue.

use crate::words::words;

use super::Refusal;

words!(
    /// Whether the line is one, or split into lanes by impacted targets.
    Mode {
        /// One line: every entry is tested on top of all that are ahead.
        Single = "SINGLE",
        /// Lanes: only entries that share an impacted target depend on each other.
        Parallel = "PARALLEL",
    }
);

words!(
    /// How a pull request's changes become commits on the target.
    MergeMethod {
        /// A merge commit with the target first and the pull request's head second.
        MergeCommit = "MERGE_COMMIT",
        /// One commit with all changes.
        Squash = "SQUASH",
        /// The pull request's own commits, replayed.
        Rebase = "REBASE",
    }
);

words!(
    /// Whether an up-to-date, tested pull request may skip an empty queue.
    DirectMergeMode {
        /// Never.
        Off = "OFF",
        /// Whenever its preconditions hold.
        Always = "ALWAYS",
    }
);

words!(
    /// Whether bisection skips runs whose result follows from known ones.
    OptimizationMode {
        /// Every run is started.
        Off = "OFF",
        /// Runs whose result is already implied are not started.
        BisectionSkipRedundantTests = "BISECTION_SKIP_REDUNDANT_TESTS",
    }
);

words!(
    /// How a test branch comes to its final name.
    TestBranchConstructionMode {
        /// Built under a temporary name, then renamed.
        RenameTempBranch = "RENAME_TEMP_BRANCH",
        /// Built under a temporary name, then pushed anew.
        PushNewBranchFromTemp = "PUSH_NEW_BRANCH_FROM_TEMP",
    }
);

/// A rule that keeps pull requests with certain targets out of shared batches.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct BatchingRule {
    /// Which targets the rule is about; `*` matches any text.
    pub target_pattern: String,
    /// What to do with them; the only known policy is `isolate`.
    pub policy: String,
}

/// All settings of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Settings {
    /// One line or lanes.
    pub mode: Mode,
    /// Test runs at the same time, 1 to 1000.
    pub concurrency: u32,
    /// Bisection runs at the same time, 0 to 1000; 0 shares the main budget.
    pub bisection_concurrency: u32,
    /// Minutes until a test run counts as failed, 0 to 10080; 0 means never.
    pub testing_timeout_minutes: u32,
    /// Levels of successors that may still absolve a failed entry, 0 to 1000.
    pub pending_failure_depth: u32,
    /// Whether a passing successor absolves what it contains.
    pub can_optimistically_merge: bool,
    /// Whether entries are tested in groups.
    pub batch: bool,
    /// Target size of a batch, 1 to 1000.
    pub batching_min_size: u32,
    /// Minutes that a batch may wait to fill, 0 to 10080.
    pub batching_max_wait_time_minutes: u32,
    /// Whether test branches get a draft pull request, on hosts that know them.
    pub create_prs_for_testing_branches: bool,
    /// Whether the queue comments on pull requests.
    pub comments_enabled: bool,
    /// Whether comments may carry commands.
    pub commands_enabled: bool,
    /// Whether the queue reports a status on pull requests.
    pub status_check_enabled: bool,
    /// The queue's own list of required statuses; `None` asks the repository and the host.
    pub required_statuses: Option<Vec<String>>,
    /// Whether up-to-date pull requests may skip an empty queue.
    pub direct_merge_mode: DirectMergeMode,
    /// Whether bisection skips implied runs.
    pub optimization_mode: OptimizationMode,
    /// How changes become commits.
    pub merge_method: MergeMethod,
    /// Whether browser extensions may act on this queue.
    pub extension_enabled: bool,
    /// The label that submits a pull request.
    pub enqueueing_label: String,
    /// Whether labels may carry commands.
    pub label_commands_enabled: bool,
    /// Whether the queue labels pull requests with their state.
    pub state_labels_enabled: bool,
    /// Hours until an entry that is not ready is cancelled, 0 to 720; 0 means never.
    pub not_ready_timeout_hours: u32,
    /// How test branches come to their names.
    pub test_branch_construction_mode: TestBranchConstructionMode,
    /// Logins of bots that may submit.
    pub allowed_bot_submitters: Vec<String>,
    /// Rules that keep targets out of shared batches.
    pub batching_rules: Vec<BatchingRule>,
}

impl Settings {
    /// The settings of a new queue. `bisection_concurrency` starts equal to `concurrency`.
    pub fn new(mode: Mode, concurrency: u32) -> Self {
        Self {
            mode,
            concurrency,
            bisection_concurrency: concurrency,
            testing_timeout_minutes: 300,
            pending_failure_depth: 0,
            can_optimistically_merge: false,
            batch: false,
            batching_min_size: 4,
            batching_max_wait_time_minutes: 5,
            create_prs_for_testing_branches: true,
            comments_enabled: true,
            commands_enabled: true,
            status_check_enabled: true,
            required_statuses: None,
            direct_merge_mode: DirectMergeMode::Off,
            optimization_mode: OptimizationMode::Off,
            merge_method: MergeMethod::Squash,
            extension_enabled: true,
            enqueueing_label: "signalbox-merge-queue-submit".into(),
            label_commands_enabled: false,
            state_labels_enabled: false,
            not_ready_timeout_hours: 24,
            test_branch_construction_mode: TestBranchConstructionMode::RenameTempBranch,
            allowed_bot_submitters: Vec::new(),
            batching_rules: Vec::new(),
        }
    }
}

impl Settings {
    /// Settings that have no effect, or not the one that their names promise, beside the others; a
    /// sentence each. Empty for settings that make sense together.
    pub fn warnings(&self) -> Vec<&'static str> {
        let mut found = Vec::new();
        if self.pending_failure_depth > 0 && !self.can_optimistically_merge {
            found.push(
                "pendingFailureDepth without canOptimisticallyMerge only delays failures: \
                 a failed pull request waits for those behind it, and their success does not help it",
            );
        }
        if self.batch && self.batching_min_size == 1 {
            found.push("batchingMinSize 1 makes every batch a single pull request");
        }
        found
    }
}

/// A partial change of settings: what is `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
#[expect(missing_docs, reason = "each field is the field of the same name in Settings")]
pub struct SettingsPatch {
    pub mode: Option<Mode>,
    pub concurrency: Option<u32>,
    pub bisection_concurrency: Option<u32>,
    pub testing_timeout_minutes: Option<u32>,
    pub pending_failure_depth: Option<u32>,
    pub can_optimistically_merge: Option<bool>,
    pub batch: Option<bool>,
    pub batching_min_size: Option<u32>,
    pub batching_max_wait_time_minutes: Option<u32>,
    pub create_prs_for_testing_branches: Option<bool>,
    pub comments_enabled: Option<bool>,
    pub commands_enabled: Option<bool>,
    pub status_check_enabled: Option<bool>,
    /// `Some(empty)` drops the queue's own list, as [`Self::delete_required_statuses`] does.
    pub required_statuses: Option<Vec<String>>,
    /// Drops the queue's own list.
    pub delete_required_statuses: bool,
    pub direct_merge_mode: Option<DirectMergeMode>,
    pub optimization_mode: Option<OptimizationMode>,
    pub merge_method: Option<MergeMethod>,
    pub extension_enabled: Option<bool>,
    pub enqueueing_label: Option<String>,
    pub label_commands_enabled: Option<bool>,
    pub state_labels_enabled: Option<bool>,
    pub not_ready_timeout_hours: Option<u32>,
    pub test_branch_construction_mode: Option<TestBranchConstructionMode>,
    pub allowed_bot_submitters: Option<Vec<String>>,
    pub batching_rules: Option<Vec<BatchingRule>>,
}

/// The most items in one list of a setting.
const MAX_LIST: usize = 100;

impl SettingsPatch {
    /// The settings with this change made, or the first rule that it breaks.
    ///
    /// `mode` is left alone: changing it is a matter of the queue's state, not of a value.
    pub fn applied_to(&self, settings: &Settings) -> Result<Settings, Refusal> {
        bound("concurrency", self.concurrency, 1, 1000)?;
        bound("bisectionConcurrency", self.bisection_concurrency, 0, 1000)?;
        bound("testingTimeoutMinutes", self.testing_timeout_minutes, 0, 10_080)?;
        bound("pendingFailureDepth", self.pending_failure_depth, 0, 1000)?;
        bound("batchingMinSize", self.batching_min_size, 1, 1000)?;
        bound("batchingMaxWaitTimeMinutes", self.batching_max_wait_time_minutes, 0, 10_080)?;
        bound("notReadyTimeoutHours", self.not_ready_timeout_hours, 0, 720)?;
        names("requiredStatuses", self.required_statuses.as_deref())?;
        names("allowedBotSubmitters", self.allowed_bot_submitters.as_deref())?;
        if let Some(label) = &self.enqueueing_label
            && (label.is_empty() || label.len() > 100)
        {
            return Err(invalid("enqueueingLabel", "must have 1 to 100 characters"));
        }
        if let Some(rules) = &self.batching_rules {
            if rules.len() > MAX_LIST {
                return Err(invalid("batchingRules", "must have at most 100 items"));
            }
            if rules.iter().any(|rule| rule.policy != "isolate" || rule.target_pattern.is_empty()) {
                return Err(invalid(
                    "batchingRules",
                    "each needs a targetPattern and the policy \"isolate\"",
                ));
            }
        }
        if self.delete_required_statuses
            && self.required_statuses.as_ref().is_some_and(|list| !list.is_empty())
        {
            return Err(invalid(
                "deleteRequiredStatuses",
                "cannot be true together with a list of requiredStatuses",
            ));
        }
        Ok(self.merged_into(settings.clone()))
    }

    fn merged_into(&self, mut to: Settings) -> Settings {
        macro_rules! take {
            ($($field:ident),+ $(,)?) => { $(if let Some(value) = self.$field.clone() { to.$field = value; })+ };
        }
        take!(
            concurrency,
            bisection_concurrency,
            testing_timeout_minutes,
            pending_failure_depth,
            can_optimistically_merge,
            batch,
            batching_min_size,
            batching_max_wait_time_minutes,
            create_prs_for_testing_branches,
            comments_enabled,
            commands_enabled,
            status_check_enabled,
            direct_merge_mode,
            optimization_mode,
            merge_method,
            extension_enabled,
            enqueueing_label,
            label_commands_enabled,
            state_labels_enabled,
            not_ready_timeout_hours,
            test_branch_construction_mode,
            allowed_bot_submitters,
            batching_rules,
        );
        if let Some(list) = &self.required_statuses {
            to.required_statuses = if list.is_empty() { None } else { Some(list.clone()) };
        }
        if self.delete_required_statuses {
            to.required_statuses = None;
        }
        to
    }
}

fn invalid(field: &str, rule: &str) -> Refusal {
    Refusal::InvalidSetting { field: field.into(), rule: rule.into() }
}

fn bound(field: &str, value: Option<u32>, low: u32, high: u32) -> Result<(), Refusal> {
    match value {
        Some(value) if value < low || value > high => {
            Err(invalid(field, &format!("must be a whole number from {low} to {high}")))
        }
        Some(_) | None => Ok(()),
    }
}

fn names(field: &str, list: Option<&[String]>) -> Result<(), Refusal> {
    let Some(list) = list else { return Ok(()) };
    if list.len() > MAX_LIST {
        return Err(invalid(field, "must have at most 100 items"));
    }
    if list.iter().any(|name| name.is_empty() || name.len() > 255) {
        return Err(invalid(field, "each must have 1 to 255 characters"));
    }
    Ok(())
}
