//! The settings of a queue: types, bounds, defaults and partial changes.
//!
//! `table.rs` declares each setting once. From that declaration follow the fields of [`Settings`],
//! [`SettingsPatch`] and [`SettingsBuilder`], the checks of bounds, and [`SETTINGS`], from which the
//! audit log, the API, the pages, the command line and the documentation read the rest.

mod spec;
mod table;

use crate::words::words;

use super::Refusal;

pub use spec::{SettingGroup, SettingKind, SettingSpec, SettingValue, setting};
pub use table::{SETTINGS, Settings, SettingsBuilder, SettingsPatch};

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
    /// How a test branch gets its final name. Accepted and stored; the queue ignores it.
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

impl Settings {
    /// The settings of a new queue: `bisection_concurrency` is `concurrency`, the others have their
    /// defaults. Refused when `concurrency` is not from 1 to 1000.
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

    /// Settings that have no effect, or less than their names promise, beside the others.
    pub fn warnings(&self) -> Vec<SettingsWarning> {
        let mut found = Vec::new();
        if self.pending_failure_depth > 0 && !self.can_optimistically_merge {
            found.push(SettingsWarning::DepthOnlyDelays);
        }
        if self.batch && self.batching_min_size == 1 {
            found.push(SettingsWarning::BatchesOfOne);
        }
        found
    }
}

/// Settings that do not do together what each promises alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingsWarning {
    /// Pending failures wait for successors, and optimistic merging, which would use a success among
    /// them, is off.
    DepthOnlyDelays,
    /// Batching is on with batches of one.
    BatchesOfOne,
}

impl SettingsPatch {
    /// The settings with this change made, or the first rule that it breaks, in the order of
    /// [`SETTINGS`].
    ///
    /// `mode` is left alone: the planner changes it when the line is empty.
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
        changed.mode = settings.mode;
        if self.delete_required_statuses {
            changed.required_statuses = None;
        }
        Ok(changed)
    }
}
