//! The settings of a repository's flaky tests.

use serde::{Deserialize, Serialize};
use signalbox_domain::flaky::{
    AutoQuarantine, BranchPattern, InfrastructureGuard, QuarantineSettings, Settings, SettingsPatch,
};
use signalbox_domain::ids::RepoName;
use utoipa::ToSchema;

use super::super::field::{Errors, Field, object_form, shown};
use super::super::forms::{Count, Flag, List, Text};
use super::super::place::{RepoRef, Request, check_repository};
use super::super::shapes::BranchPatternText;
use super::super::words::AutoQuarantineWord;

/// The effective settings.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "quarantineEnabled": true, "autoQuarantine": "flaky_and_broken",
    "quarantineCovers": "Flaky and broken tests, unless their override is NEVER_QUARANTINE.",
    "stableBranches": ["main"], "mergeBranches": ["signalbox-merge/*"],
    "infrastructureGuard": true, "infrastructureFailedPercent": 80,
    "infrastructureMinTests": 20, "infrastructureSameFailureTests": null,
    "countPublicUploads": false, "gateWhileOff": false
}))]
pub(crate) struct FlakySettingsReply {
    /// Whether quarantine is on. That alone quarantines no test automatically: see `quarantineCovers`.
    quarantine_enabled: bool,
    /// Which tests are quarantined automatically.
    #[schema(value_type = AutoQuarantineWord)]
    auto_quarantine: &'static str,
    /// The tests that are quarantined with these settings, as a sentence.
    quarantine_covers: &'static str,
    /// Branches on which tests are expected to pass.
    stable_branches: Vec<String>,
    /// Branches of merge queues.
    merge_branches: Vec<String>,
    /// Whether uploads that look like an infrastructure failure, and failures that belong to an
    /// incident, are excluded.
    infrastructure_guard: bool,
    /// The percentage of failing tests above which an upload is excluded.
    infrastructure_failed_percent: u32,
    /// The fewest tests of an upload that can be excluded.
    infrastructure_min_tests: u32,
    /// How many tests of an upload must share a failure for it to be excluded; `null`: off.
    infrastructure_same_failure_tests: Option<u32>,
    /// Whether uploads without a token count.
    count_public_uploads: bool,
    /// Whether the public uploader fails with its tests while quarantine is off. If not, it lets
    /// every failure pass.
    gate_while_off: bool,
}

/// What quarantine covers.
const fn quarantine_covers(quarantine: QuarantineSettings) -> &'static str {
    match (quarantine.enabled, quarantine.auto) {
        (false, _) => "No test: quarantine is off.",
        (true, AutoQuarantine::Off) => {
            "Only tests with the override ALWAYS_QUARANTINE. Set autoQuarantine to flaky or \
             flaky_and_broken to quarantine tests by their status."
        }
        (true, AutoQuarantine::Flaky) => {
            "Flaky tests, unless their override is NEVER_QUARANTINE, and tests with the override \
             ALWAYS_QUARANTINE."
        }
        (true, AutoQuarantine::FlakyAndBroken) => {
            "Flaky and broken tests, unless their override is NEVER_QUARANTINE, and tests with the \
             override ALWAYS_QUARANTINE."
        }
    }
}

fn patterns(patterns: &[BranchPattern]) -> Vec<String> {
    patterns.iter().map(|pattern| pattern.0.clone()).collect()
}

impl FlakySettingsReply {
    pub(crate) fn of(settings: &Settings) -> Self {
        let guard = settings.guard;
        Self {
            quarantine_enabled: settings.quarantine.enabled,
            auto_quarantine: settings.quarantine.auto.as_str(),
            quarantine_covers: quarantine_covers(settings.quarantine),
            stable_branches: patterns(&settings.branches.stable),
            merge_branches: patterns(&settings.branches.merge),
            infrastructure_guard: guard.enabled,
            infrastructure_failed_percent: guard.failed_percent,
            infrastructure_min_tests: guard.min_tests,
            infrastructure_same_failure_tests: guard.same_failure_tests,
            count_public_uploads: settings.count_public_uploads,
            gate_while_off: settings.gate_while_off,
        }
    }
}

/// A change of settings; omitted fields are unchanged.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "repo": {"host": "github.com", "owner": "acme", "name": "calc"},
    "quarantineEnabled": true, "autoQuarantine": "flaky"
}))]
pub(crate) struct UpdateSettingsRequest {
    /// The repository.
    #[schema(value_type = RepoRef, required)]
    repo: Field<RepoRef>,
    /// Whether quarantine is on. Turning it off also turns automatic quarantine off.
    #[schema(value_type = Option<bool>)]
    quarantine_enabled: Field<Flag>,
    /// `off`, `flaky` or `flaky_and_broken`.
    #[schema(value_type = Option<AutoQuarantineWord>)]
    auto_quarantine: Field<Text>,
    /// 1 to 10 patterns; `*` is any text, `?` is one character.
    #[schema(value_type = Option<Vec<BranchPatternText>>, min_items = 1, max_items = 10)]
    stable_branches: Field<List<Text>>,
    /// 1 to 10 patterns.
    #[schema(value_type = Option<Vec<BranchPatternText>>, min_items = 1, max_items = 10)]
    merge_branches: Field<List<Text>>,
    /// Whether uploads that look like an infrastructure failure, and failures that belong to an
    /// incident, are excluded.
    #[schema(value_type = Option<bool>)]
    infrastructure_guard: Field<Flag>,
    /// The percentage of failing tests above which an upload is excluded.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 99)]
    infrastructure_failed_percent: Field<Count>,
    /// The fewest tests of an upload that can be excluded.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 100_000)]
    infrastructure_min_tests: Field<Count>,
    /// How many tests of an upload must share a failure for it to be excluded, at least 2; 0: off.
    #[schema(value_type = Option<u32>, maximum = 100_000)]
    infrastructure_same_failure_tests: Field<Count>,
    /// Whether uploads without a token count.
    #[schema(value_type = Option<bool>)]
    count_public_uploads: Field<Flag>,
    /// Whether the public uploader fails with its tests while quarantine is off.
    #[schema(value_type = Option<bool>)]
    gate_while_off: Field<Flag>,
}

/// A request to change settings. The guard is changed field by field, so it needs the
/// settings as they are.
#[derive(Debug)]
pub(crate) struct SettingsChange {
    pub(crate) repo: RepoName,
    patch: SettingsPatch,
    guard: Option<bool>,
    failed_percent: Option<u32>,
    min_tests: Option<u32>,
    same_failure_tests: Option<u32>,
}

impl SettingsChange {
    /// The patch for settings that have this guard.
    pub(crate) fn patch(&self, guard: InfrastructureGuard) -> SettingsPatch {
        let changed = InfrastructureGuard {
            enabled: self.guard.unwrap_or(guard.enabled),
            failed_percent: self.failed_percent.unwrap_or(guard.failed_percent),
            min_tests: self.min_tests.unwrap_or(guard.min_tests),
            same_failure_tests: match self.same_failure_tests {
                None => guard.same_failure_tests,
                Some(0) => None,
                Some(tests) => Some(tests),
            },
        };
        SettingsPatch { guard: (changed != guard).then_some(changed), ..self.patch.clone() }
    }
}

/// Reads a list of texts.
pub(super) fn texts(
    errors: &mut Errors,
    pointer: &str,
    field: Field<List<Text>>,
) -> Option<Vec<String>> {
    let list = errors.optional(pointer, field)?;
    let items = list.0.into_iter().enumerate();
    let read = items.map(|(at, item)| errors.required(&format!("{pointer}/{at}"), item));
    read.map(|text| text.map(|it| it.0)).collect()
}

impl Request for UpdateSettingsRequest {
    type Checked = SettingsChange;

    fn check(self, errors: &mut Errors) -> Option<SettingsChange> {
        let repo = check_repository(self.repo, errors);
        let auto = errors.optional("/autoQuarantine", self.auto_quarantine).map(|Text(text)| {
            let rule = "must be off, flaky or flaky_and_broken";
            let wrong = || format!("{rule}, but is {}", shown(&text));
            errors.keep("/autoQuarantine", AutoQuarantine::parse(&text).ok_or_else(wrong))
        });
        let mut patterns = |pointer, field| {
            let texts = texts(errors, pointer, field);
            texts.map(|texts| texts.into_iter().map(BranchPattern).collect())
        };
        let stable_branches = patterns("/stableBranches", self.stable_branches);
        let merge_branches = patterns("/mergeBranches", self.merge_branches);
        let mut flag = |pointer, field| errors.optional::<Flag>(pointer, field).map(|it| it.0);
        let quarantine_enabled = flag("/quarantineEnabled", self.quarantine_enabled);
        let guard = flag("/infrastructureGuard", self.infrastructure_guard);
        let count_public_uploads = flag("/countPublicUploads", self.count_public_uploads);
        let gate_while_off = flag("/gateWhileOff", self.gate_while_off);
        let mut count = |pointer, field| errors.optional::<Count>(pointer, field).map(|it| it.0);
        let failed_percent =
            count("/infrastructureFailedPercent", self.infrastructure_failed_percent);
        let min_tests = count("/infrastructureMinTests", self.infrastructure_min_tests);
        let same_failure_tests =
            count("/infrastructureSameFailureTests", self.infrastructure_same_failure_tests);
        let patch = SettingsPatch {
            quarantine_enabled,
            auto_quarantine: auto.flatten(),
            stable_branches,
            merge_branches,
            guard: None,
            count_public_uploads,
            gate_while_off,
        };
        let repo = repo?;
        Some(SettingsChange { repo, patch, guard, failed_percent, min_tests, same_failure_tests })
    }
}

object_form!(UpdateSettingsRequest);
