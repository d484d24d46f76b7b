//! The one declaration of every setting of a queue, in the order in which the API shows them.

use super::spec::{LineSyntax, SettingGroup, SettingKind, SettingSpec, SettingType};
use super::{
    BatchingRule, BisectionMode, DirectMergeMode, MergeMethod, Mode, OptimizationMode,
    ReparentingMode, SuccessEstimates, TestBranchConstructionMode,
};
use crate::queue::Refusal;

/// One row per setting: the documentation, the field with its type and default, then the name in
/// the API, the title on pages, the group, and the allowed values.
macro_rules! settings {
    ($(
        $(#[doc = $doc:literal])+
        $field:ident: $type:ty = $default:expr, $name:literal, $title:literal, $group:ident, $kind:expr;
    )+) => {
        /// All settings of a queue. [`Settings::check`] checks their bounds.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
        pub struct Settings { $($(#[doc = $doc])+ pub $field: $type,)+ }

        impl Default for Settings {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }

        /// A partial change of settings: a field that is `None` stays unchanged.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
        pub struct SettingsPatch {
            $($(#[doc = $doc])+ pub $field: Option<<$type as SettingType>::Patch>,)+
            /// Deletes the queue's own list of required statuses, as an empty list does.
            pub delete_required_statuses: bool,
        }

        impl SettingsPatch {
            pub(super) fn merged_into(&self, mut settings: Settings) -> Settings {
                $(if let Some(value) = self.$field.clone() {
                    settings.$field = SettingType::patched(value);
                })+
                settings
            }
        }

        /// Builder of [`Settings`]; a setting that is not given has its default.
        #[derive(Clone, Debug, Default)]
        pub struct SettingsBuilder(Settings);

        impl SettingsBuilder {
            $(
                $(#[doc = $doc])+
                #[must_use]
                pub fn $field(mut self, value: impl Into<$type>) -> Self {
                    self.0.$field = value.into();
                    self
                }
            )+

            /// Returns the settings; refused with the first rule that they break.
            pub fn build(self) -> Result<Settings, Refusal> {
                self.0.check().map(|()| self.0)
            }
        }

        /// Every setting: its name, title, documentation, group and allowed values, and access to
        /// its value.
        pub const SETTINGS: &[SettingSpec] = &[$(SettingSpec {
            name: $name,
            field: stringify!($field),
            title: $title,
            group: SettingGroup::$group,
            kind: $kind,
            raw_doc: concat!($($doc),+),
            read: |settings| settings.$field.value(),
            proposed: |patch| patch.$field.clone().map(|value| {
                <$type as SettingType>::patched(value).value()
            }),
            write: |patch, value| {
                let read = <$type as SettingType>::Patch::from_value(value);
                let fits = read.is_some();
                patch.$field = read.or_else(|| patch.$field.take());
                fits
            },
        },)+];
    };
}

const fn whole(min: u32, max: u32, unit: &'static str) -> SettingKind {
    SettingKind::Whole { min, max, unit }
}

/// A week, in minutes.
const WEEK: u32 = 10_080;

settings! {
    /// The most test runs at the same time.
    concurrency: u32 = 1,
        "concurrency", "Concurrency", Testing, whole(1, 1000, "");
    /// The most bisection runs at the same time; 0 shares `concurrency` with the main line.
    bisection_concurrency: u32 = 1,
        "bisectionConcurrency", "Bisection concurrency", Testing, whole(0, 1000, "");
    /// Whether failures reduce the number of test runs at the same time: a failure that restarts other
    /// runs halves it, down to `windowFloor`, and each merged pull request adds one, up to `concurrency`.
    adaptive_window: bool = false,
        "adaptiveWindow", "Adaptive window", Testing, SettingKind::Flag;
    /// With `adaptiveWindow`, failures never reduce the number of test runs at the same time below this
    /// number.
    window_floor: u32 = 3,
        "windowFloor", "Window floor", Testing, whole(1, 1000, "");
    /// Minutes until a test run times out and counts as failed, from the start of its first check;
    /// 0 means never.
    testing_timeout_minutes: u32 = 300,
        "testingTimeoutMinutes", "Test timeout", Testing, whole(0, WEEK, "minutes");
    /// Minutes that a test run may wait for its first check to start before the test timeout
    /// counts.
    start_timeout_minutes: u32 = 30,
        "startTimeoutMinutes", "Start timeout", Testing, whole(0, WEEK, "minutes");
    /// Whether the test timeout follows from the queue's own passing runs, once 20 are known: one
    /// and a half times their 95th percentile, at least 5 minutes, and never more than
    /// `testingTimeoutMinutes`.
    automatic_testing_timeout: bool = false,
        "automaticTestingTimeout", "Automatic test timeout", Testing, SettingKind::Flag;
    /// One line, or parallel lanes of pull requests that share impacted targets. A change takes
    /// effect once the line is empty.
    mode: Mode = Mode::Single,
        "mode", "Mode", Testing, SettingKind::Word(Mode::NAMES);
    /// Rules that compute the impacted targets of a pull request from the paths that it changes. At most 100 rules
    /// of at most 255 bytes, each a pattern followed by target names: `api/** api web`. `NONE` means no
    /// targets, `ALL` means all targets. A pull request impacts the targets of all rules that
    /// match one of its paths, and all targets if one of its paths matches no rule or
    /// the git host cannot list them all. Targets reported through the API
    /// take precedence.
    impacted_target_rules: Vec<String> = Vec::new(),
        "impactedTargetRules", "Impacted target rules", Testing,
        SettingKind::Lines(LineSyntax::TargetRule);
    /// How many test runs at the same time may test pull requests that impact a target. At most 100 rules of
    /// at most 255 bytes, each a target name, in which `*` matches any text, and a whole number from 1 to
    /// 1000: `ios 2`. A pull request that impacts all targets counts for every rule. Without effect in SINGLE
    /// mode.
    target_capacities: Vec<String> = Vec::new(),
        "targetCapacities", "Target capacities", Testing,
        SettingKind::Lines(LineSyntax::Capacity);
    /// Whether a passing test run merges everything that its candidate contains, including pull
    /// requests whose own run failed.
    can_optimistically_merge: bool = false,
        "canOptimisticallyMerge", "Optimistic merging", Failures, SettingKind::Flag;
    /// How many later test runs the queue waits for before a failure is final. Without
    /// `canOptimisticallyMerge` it only delays failures.
    pending_failure_depth: u32 = 0,
        "pendingFailureDepth", "Pending failure depth", Failures, whole(0, 1000, "");
    /// How often failed checks of a pull request run again because CI failed and not a test.
    infrastructure_retries: u32 = 2,
        "infrastructureRetries", "Retries after failures of CI", Failures, whole(0, 10, "");
    /// Messages in the output of a check that show that a machine failed, at most 100. A failed check
    /// whose output contains one is retried as a failure of CI, unless a test failed. Case-sensitive.
    infrastructure_messages: Vec<String> = Vec::new(),
        "infrastructureMessages", "Machine failure messages", Failures,
        SettingKind::Names { optional: false };
    /// How often failed checks of a pull request run again because only tests failed that are known
    /// to be flaky.
    known_flaky_retries: u32 = 1,
        "knownFlakyRetries", "Retries after known flaky tests", Failures, whole(0, 10, "");
    /// How often failed checks of a pull request run again because every failed test has failed in
    /// the same way within 24 hours without its changes.
    seen_elsewhere_retries: u32 = 1,
        "seenElsewhereRetries", "Retries after failures seen elsewhere", Failures, whole(0, 10, "");
    /// The most retries of the whole queue within an hour; 0 means that no failed check runs again.
    retries_per_hour: u32 = 20,
        "retriesPerHour", "Retries per hour", Failures, whole(0, 100, "");
    /// The most minutes for which no test run starts while the target is red: the retries of a pull
    /// request are used up, and its tests fail as in the newest results of the target. Urgent ones
    /// are tested. The hold ends when the target moves, other than by the queue; 0 holds none.
    red_target_hold_minutes: u32 = 60,
        "redTargetHoldMinutes", "Hold while the target is red", Failures,
        whole(0, WEEK, "minutes");
    /// Checks that only run tests and upload their results, at most 100: when one fails, the
    /// queue waits for its results, and it counts as passed if every failed test is quarantined.
    evidence_checks: Vec<String> = Vec::new(),
        "evidenceChecks", "Checks with test results", Failures,
        SettingKind::Names { optional: false };
    /// Seconds to wait for the test results of a failed check that uploads them.
    evidence_wait_seconds: u32 = 120,
        "evidenceWaitSeconds", "Wait for test results", Failures, whole(0, 3600, "seconds");
    /// Whether a failed check counts as passed only by results that were sent with an identity token of
    /// CI, which proves their commit. Otherwise results from every token with `tests:upload` count.
    evidence_needs_identity: bool = true,
        "evidenceNeedsIdentity", "Test results need an identity token", Failures,
        SettingKind::Flag;
    /// Whether pull requests are tested in batches.
    batch: bool = false,
        "batch", "Batching", Batching, SettingKind::Flag;
    /// The most minutes that a batch waits to fill. While the queue pretests, pull requests that have
    /// passed a bisection or a pretest and return to the line wait as long for others to join them.
    batching_max_wait_time_minutes: u32 = 5,
        "batchingMaxWaitTimeMinutes", "Batch wait", Batching, whole(0, WEEK, "minutes");
    /// The most pull requests in a batch. A full batch does not wait for more. With
    /// `pretestThreshold` above 0, pull requests that have passed a test run before can exceed it, up to
    /// twice the size.
    batching_min_size: u32 = 4,
        "batchingMinSize", "Batch size", Batching, whole(1, 1000, "");
    /// Whether test branches get a draft pull request, on hosts that have draft pull requests.
    create_prs_for_testing_branches: bool = true,
        "createPrsForTestingBranches", "Draft pull requests for test branches", Host,
        SettingKind::Flag;
    /// Whether the queue comments on pull requests.
    comments_enabled: bool = true,
        "commentsEnabled", "Comments", Host, SettingKind::Flag;
    /// Whether users can give commands in comments.
    commands_enabled: bool = true,
        "commandsEnabled", "Commands in comments", Host, SettingKind::Flag;
    /// Whether the queue reports a status on pull requests.
    status_check_enabled: bool = true,
        "statusCheckEnabled", "Status on pull requests", Host, SettingKind::Flag;
    /// The queue's own list of required statuses, at most 100. If empty, the repository's
    /// configuration decides, then the branch protection.
    required_statuses: Option<Vec<String>> = None,
        "requiredStatuses", "Required statuses", Testing, SettingKind::Names { optional: true };
    /// Whether a pull request merges without a test run when it depends on nothing ahead, is up to
    /// date, and has passed its checks.
    direct_merge_mode: DirectMergeMode = DirectMergeMode::Off,
        "directMergeMode", "Direct merge", Merging, SettingKind::Word(DirectMergeMode::NAMES);
    /// Whether bisection skips test runs whose result follows from earlier ones.
    optimization_mode: OptimizationMode = OptimizationMode::Off,
        "optimizationMode", "Optimization of bisection", Batching,
        SettingKind::Word(OptimizationMode::NAMES);
    /// Where a failed batch is bisected. `IN_PLACE` keeps its position in the line. `ASIDE` moves it
    /// outside the line, so it does not block later pull requests, but members that passed may be
    /// tested again.
    bisection_mode: BisectionMode = BisectionMode::Aside,
        "bisectionMode", "Bisection", Batching, SettingKind::Word(BisectionMode::NAMES);
    /// Which runs that fail while runs ahead of them are unfinished are tested beside the line
    /// immediately, so that pull requests behind them continue without them. `ALL` adds test runs.
    /// Needs the bisection `ASIDE`; with `pendingFailureDepth` above 0 it has no effect.
    reparenting_mode: ReparentingMode = ReparentingMode::Batches,
        "reparentingMode", "Re-parenting", Failures, SettingKind::Word(ReparentingMode::NAMES);
    /// The lowest probability of passing, in percent, at which a group is tested in the line. A group that
    /// is less likely to pass is first tested beside the line, on the target alone, and enters the line
    /// after it has passed. The probability is computed from the failure rate of earlier pull requests
    /// (`successEstimates`); 0 turns pretests off. Needs the bisection `ASIDE`; with `pendingFailureDepth`
    /// above 0 it has no effect.
    pretest_threshold: u32 = 50,
        "pretestThreshold", "Pretest threshold", Failures, whole(0, 100, "percent");
    /// Which failure rate of the last 100 to 200 pull requests `pretestThreshold` uses: that of all, or one
    /// for each author and agent, which differs from it the more the rates of authors differ.
    success_estimates: SuccessEstimates = SuccessEstimates::Authors,
        "successEstimates", "Success estimates", Failures,
        SettingKind::Word(SuccessEstimates::NAMES);
    /// Whether a pull request waits outside the line for its dependencies: the pull requests in
    /// `Depends-On: #12` lines of its description.
    dependencies_enabled: bool = true,
        "dependenciesEnabled", "Dependencies", Merging, SettingKind::Flag;
    /// How changes become commits.
    merge_method: MergeMethod = MergeMethod::Squash,
        "mergeMethod", "Merge method", Merging, SettingKind::Word(MergeMethod::NAMES);
    /// Rules for freezes: periods in which only urgent pull requests merge, or some do not. At most 100 rules of at most
    /// 255 bytes, each `START/END[TIME ZONE]{SCOPE} REASON` in local time; scope and reason are optional.
    /// Weekly: `Fri 16:00/Mon 08:00[Europe/Berlin] weekend`. Daily: `22:00/06:00[UTC]`.
    /// Once: `2026-12-21T00:00/2027-01-04T08:00[UTC]`, or with `..` as the end for a freeze that lasts
    /// until the rule is deleted. Of some pull requests, by targets and labels:
    /// `22:00/06:00[UTC]{target:ios-*; !label:docs}`.
    freezes: Vec<String> = Vec::new(),
        "freezes", "Freezes", Merging, SettingKind::Lines(LineSyntax::Freeze);
    /// Whether pull requests that are not urgent are tested during a freeze. If they pass, they merge
    /// when the freeze ends. Urgent pull requests are always tested.
    test_while_frozen: bool = true,
        "testWhileFrozen", "Test during freezes", Merging, SettingKind::Flag;
    /// Whether browser extensions may act on this queue. Stored for clients that send it; the queue
    /// ignores it.
    extension_enabled: bool = true,
        "extensionEnabled", "Browser extensions", WithoutEffect, SettingKind::Flag;
    /// The label that submits a pull request.
    enqueueing_label: String = "signalbox-merge-queue-submit".to_owned(),
        "enqueueingLabel", "Submitting label", Host, SettingKind::Text { max: 100 };
    /// Whether users can give commands by labels.
    label_commands_enabled: bool = false,
        "labelCommandsEnabled", "Commands by label", Host, SettingKind::Flag;
    /// Whether the queue labels pull requests with their state.
    state_labels_enabled: bool = false,
        "stateLabelsEnabled", "State labels", Host, SettingKind::Flag;
    /// The most pull requests of one author in the line; 0 means no limit. Further ones wait outside it.
    /// When one in the line merges or leaves, the one that has waited longest enters. Urgent pull
    /// requests always enter.
    author_limit: u32 = 0,
        "authorLimit", "Author limit", Testing, whole(0, 1000, "pull requests");
    /// The most pull requests of one author that enter the line within an hour, counted in periods of 5
    /// minutes; 0 means no limit. Further ones wait outside it. Urgent pull requests always enter, and
    /// count.
    author_hourly_limit: u32 = 0,
        "authorHourlyLimit", "Hourly author limit", Testing, whole(0, 1000, "pull requests");
    /// The most minutes of test runs within 24 hours for the pull requests of one author, counted in periods
    /// of 4 hours; 0 means no limit. A test run counts when it ends, divided among its pull requests. When the
    /// minutes are used up, further pull requests wait outside the line; urgent ones always enter it.
    author_daily_minutes: u32 = 0,
        "authorDailyMinutes", "Daily test minutes per author", Testing,
        whole(0, 100_000, "minutes");
    /// Patterns for labels that agents give their pull requests, at most 100; `*` matches any text. A pull request
    /// with such a label counts for the agent that the label names, not for its author, in the limits for
    /// authors and in fair share.
    agent_labels: Vec<String> = Vec::new(),
        "agentLabels", "Labels of agents", Testing, SettingKind::Names { optional: false };
    /// Whether authors take turns: among the waiting pull requests of one priority, a new one goes behind the
    /// next one of each other author, instead of behind all that entered the line earlier.
    fair_share: bool = false,
        "fairShare", "Fair share", Testing, SettingKind::Flag;
    /// Hours until a pull request that is not ready is cancelled; 0 means never.
    not_ready_timeout_hours: u32 = 24,
        "notReadyTimeoutHours", "Not-ready timeout", Testing, whole(0, 720, "hours");
    /// How test branches get their names. Stored for clients that send it; the queue ignores it.
    test_branch_construction_mode: TestBranchConstructionMode =
        TestBranchConstructionMode::RenameTempBranch,
        "testBranchConstructionMode", "Test branch construction", WithoutEffect,
        SettingKind::Word(TestBranchConstructionMode::NAMES);
    /// Logins of bots that may submit, at most 100.
    allowed_bot_submitters: Vec<String> = Vec::new(),
        "allowedBotSubmitters", "Bots that may submit", Host,
        SettingKind::Names { optional: false };
    /// Rules that keep pull requests with certain impacted targets out of shared batches, at most
    /// 100.
    batching_rules: Vec<BatchingRule> = Vec::new(),
        "batchingRules", "Isolated targets", Batching, SettingKind::Rules;
}
