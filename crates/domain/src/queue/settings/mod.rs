//! The settings of a queue: types, bounds, defaults and partial changes.
//!
//! `table.rs` declares each setting once. From that declaration follow the fields of [`Settings`],
//! [`SettingsPatch`] and [`SettingsBuilder`], the checks of bounds, and [`SETTINGS`], from which the
//! audit log, the API, the pages, the command line and the documentation read the rest.

mod spec;
mod table;

use crate::words::words;

use super::Refusal;

pub use spec::{
    LineSyntax, MAX_LIST, MAX_NAME, SettingGroup, SettingKind, SettingSpec, SettingValue, setting,
};
pub use table::{SETTINGS, Settings, SettingsBuilder, SettingsPatch};

words!(
    /// Whether the queue has one line, or parallel lanes by impacted targets.
    Mode {
        /// One line: every entry is tested on top of all entries ahead.
        Single = "SINGLE",
        /// Parallel lanes: only entries that share an impacted target depend on each other.
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
    /// Whether a pull request merges without a test run when it depends on nothing ahead, is up to
    /// date, and has passed its checks.
    DirectMergeMode {
        /// Never.
        Off = "OFF",
        /// Whenever the pull request is up to date and tested, and none is ahead of it.
        Always = "ALWAYS",
    }
);

words!(
    /// Whether bisection skips test runs whose result follows from earlier ones.
    OptimizationMode {
        /// Every run is started.
        Off = "OFF",
        /// Runs whose result follows from known ones are skipped.
        BisectionSkipRedundantTests = "BISECTION_SKIP_REDUNDANT_TESTS",
    }
);

words!(
    /// Where a failed batch is bisected.
    BisectionMode {
        /// In its place: pull requests behind it wait, and its good pull requests merge without
        /// another test.
        InPlace = "IN_PLACE",
        /// Beside the line: pull requests behind it continue without it, and its good pull requests
        /// are tested again behind them.
        Aside = "ASIDE",
    }
);

words!(
    /// What happens when a run fails while runs ahead of it are unfinished.
    ReparentingMode {
        /// It keeps its position; what is built on it continues, although it probably fails, too.
        Off = "OFF",
        /// A batch is bisected beside the line immediately, and pull requests behind it continue
        /// without it.
        Batches = "BATCHES",
        /// A single pull request, too, is tested again beside the line immediately.
        All = "ALL",
    }
);

words!(
    /// Whose failure rate gives the probability that a pull request passes.
    SuccessEstimates {
        /// That of all pull requests of the queue.
        Queue = "QUEUE",
        /// That of its author or agent, mixed with that of all.
        Authors = "AUTHORS",
    }
);

words!(
    /// How a test branch gets its final name. Accepted and stored; the queue ignores it.
    TestBranchConstructionMode {
        /// Built under a temporary name, then renamed.
        RenameTempBranch = "RENAME_TEMP_BRANCH",
        /// Built under a temporary name, then pushed under the final one.
        PushNewBranchFromTemp = "PUSH_NEW_BRANCH_FROM_TEMP",
    }
);

/// A rule that keeps pull requests with certain targets out of shared batches.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct BatchingRule {
    /// A pattern for target names; `*` matches any text.
    pub target_pattern: String,
    /// The policy for matching targets; only `isolate` is valid.
    pub policy: String,
}

impl Settings {
    /// The settings of a new queue: `bisection_concurrency` equals `concurrency`, all others have
    /// their defaults. Refused unless `concurrency` is between 1 and 1000.
    pub fn new(mode: Mode, concurrency: u32) -> Result<Self, Refusal> {
        Self::builder()
            .mode(mode)
            .concurrency(concurrency)
            .bisection_concurrency(concurrency)
            .build()
    }

    /// A builder that starts from the defaults.
    pub fn builder() -> SettingsBuilder {
        SettingsBuilder::default()
    }

    /// Refuses the first setting that is out of its bounds, in the order of [`SETTINGS`].
    pub fn check(&self) -> Result<(), Refusal> {
        SETTINGS.iter().try_for_each(|spec| spec.check(&spec.value(self)))
    }

    /// Warnings about settings that have little or no effect in this combination.
    pub fn warnings(&self) -> Vec<SettingsWarning> {
        let mut found = Vec::new();
        if self.pending_failure_depth > 0 && !self.can_optimistically_merge {
            found.push(SettingsWarning::DepthOnlyDelays);
        }
        if self.batch && self.batching_min_size == 1 {
            found.push(SettingsWarning::BatchesOfOne);
        }
        if !self.target_capacities.is_empty() && self.mode == Mode::Single {
            found.push(SettingsWarning::CapacitiesWithoutLanes);
        }
        let no_limit = self.author_limit == 0
            && self.author_hourly_limit == 0
            && self.author_daily_minutes == 0;
        if !self.agent_labels.is_empty() && no_limit && !self.fair_share {
            found.push(SettingsWarning::AgentsWithoutLimit);
        }
        let few = 1..self.concurrency.div_ceil(ENOUGH_FOR_BISECTION);
        if self.reparenting_mode == ReparentingMode::All
            && few.contains(&self.bisection_concurrency)
        {
            found.push(SettingsWarning::FewBisectionSlots);
        }
        found
    }
}

/// A combination of settings that has less effect than expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingsWarning {
    /// `pendingFailureDepth` is set without optimistic merging: it only delays failures.
    DepthOnlyDelays,
    /// Batching is on with a batch size of 1.
    BatchesOfOne,
    /// `targetCapacities` is set in SINGLE mode, in which targets have no effect.
    CapacitiesWithoutLanes,
    /// `agentLabels` is set, but neither a limit for authors nor fair share.
    AgentsWithoutLimit,
    /// `reparentingMode` is ALL, and less than a twentieth of the slots are for what leaves the line.
    FewBisectionSlots,
}

/// With a twentieth of the slots, what leaves the line waits no longer than with all of them
/// (docs/domain/policies.md, Compared with an oracle).
const ENOUGH_FOR_BISECTION: u32 = 20;

impl SettingsPatch {
    /// Applies the change; refused with the first rule that it breaks, in the order of
    /// [`SETTINGS`]. The planner works in the old mode until the line is empty.
    pub fn applied_to(&self, settings: &Settings) -> Result<Settings, Refusal> {
        for spec in SETTINGS {
            if let Some(value) = spec.proposed(self) {
                spec.check(&value)?;
            }
        }
        let list = self.required_statuses.as_ref();
        if self.delete_required_statuses && list.is_some_and(|list| !list.is_empty()) {
            let rule = "cannot be true together with a list of requiredStatuses".into();
            return Err(Refusal::InvalidSetting { field: "deleteRequiredStatuses".into(), rule });
        }
        let mut changed = self.merged_into(settings.clone());
        if self.delete_required_statuses {
            changed.required_statuses = None;
        }
        Ok(changed)
    }
}
