//! The shapes of replies, by what clients of the API are known to read.

use crate::schema::Shape;

pub(crate) const PR_STATES: &[&str] = &[
    "not_ready",
    "pending",
    "testing",
    "tests_passed",
    "merged",
    "failed",
    "cancelled",
    "pending_failure",
];
const RUN_STATUSES: &[&str] = &["in_progress", "failed", "cancelled", "succeeded"];
const SOURCES: &[&str] = &["trunk_config", "repo_provider_branch_protection", "merge_instance"];
const CHECK_CONCLUSIONS: &[&str] = &[
    "ACTION_REQUIRED",
    "CANCELLED",
    "FAILURE",
    "NEUTRAL",
    "SUCCESS",
    "SKIPPED",
    "STALE",
    "TIMED_OUT",
];
const CONCLUSIONS: &[&str] = &["merged", "failed", "cancelled"];

/// An entry as lists have it.
pub(crate) fn listed() -> Vec<(&'static str, Shape)> {
    vec![
        ("id", Shape::Uuid),
        ("state", Shape::Word(PR_STATES)),
        ("stateChangedAt", Shape::Time),
        ("priorityValue", Shape::Count),
        ("priorityName", Shape::Text),
        ("usedDefaultPriorityName", Shape::Text),
        ("skipTheLine", Shape::Flag),
        ("noBatch", Shape::Flag),
        ("prNumber", Shape::Count),
        ("prTitle", Shape::Text),
        ("prSha", Shape::Text),
        ("prBaseBranch", Shape::Text),
        ("prAuthor", Shape::Text),
        // Additions of Signalbox.
        ("position", Shape::or_null(Shape::Count)),
        ("reason", Shape::Text),
        ("waitReason", Shape::or_null(Shape::Anything)),
    ]
}

pub(crate) fn entry() -> Shape {
    let mergeability = &["unspecified", "in_progress", "mergeable", "not_mergeable"];
    let mut keys = listed();
    keys.extend([
        ("forceEnqueued", Shape::Flag),
        ("isCurrentlySubmittedToQueue", Shape::Flag),
        (
            "readiness",
            Shape::Object(vec![
                ("requiresImpactedTargets", Shape::Flag),
                ("doesBaseBranchMatch", Shape::Flag),
                ("gitHubMergeability", Shape::Word(mergeability)),
                ("hasImpactedTargets", Shape::Flag),
            ]),
        ),
        ("verifiedByTestRun", Shape::or_null(Shape::Uuid)),
        // Additions of Signalbox.
        ("testRunId", Shape::or_null(Shape::Uuid)),
        ("exit", Shape::or_null(exit())),
        ("impactedTargets", Shape::optional(Shape::Anything)),
        ("dependencies", Shape::optional(Shape::Anything)),
        ("timeline", Shape::optional(Shape::list(step()))),
        ("estimatedTimeToMerge", Shape::optional(estimate())),
    ]);
    Shape::Object(keys)
}

fn exit() -> Shape {
    Shape::Object(vec![
        ("state", Shape::Word(CONCLUSIONS)),
        ("reason", Shape::AnyWord),
        ("actor", Shape::or_null(Shape::Text)),
        ("culprit", Shape::or_null(Shape::Text)),
        ("culpritPrNumber", Shape::or_null(Shape::Count)),
        ("details", Shape::list(Shape::Text)),
        ("sha", Shape::or_null(Shape::Text)),
        ("testedTree", Shape::or_null(Shape::Text)),
        ("landedTree", Shape::or_null(Shape::Text)),
        ("proof", Shape::optional(proof())),
    ])
}

fn proof() -> Shape {
    let change = Shape::Object(vec![("prNumber", Shape::Count), ("head", Shape::Text)]);
    Shape::Object(vec![
        ("base", Shape::Text),
        ("changes", Shape::list(change)),
        ("mergeMethod", Shape::AnyWord),
        ("exact", Shape::Flag),
        ("check", Shape::Word(&["recomputed", "compared", "not_checked"])),
        ("notCheckedBecause", Shape::optional(Shape::Text)),
        ("mergedByHost", Shape::list(Shape::Text)),
    ])
}

fn step() -> Shape {
    let why = || vec![("reason", Shape::AnyWord), ("actor", Shape::Text)];
    let with = |more: Vec<(&'static str, Shape)>| {
        Shape::optional(Shape::Object(why().into_iter().chain(more).collect()))
    };
    let pull_requests = || {
        Shape::list(Shape::Object(vec![
            ("prNumber", Shape::Count),
            ("prUrl", Shape::optional(Shape::Text)),
        ]))
    };
    let tested = || Shape::list(tested_pull_request());
    let statuses = || {
        Shape::list(Shape::Object(vec![
            ("name", Shape::Text),
            ("conclusion", Shape::optional(Shape::Shouted(CHECK_CONCLUSIONS))),
            ("url", Shape::optional(Shape::Text)),
        ]))
    };
    let test_run = Shape::Object(vec![
        ("id", Shape::Uuid),
        ("branch", Shape::Text),
        ("sha", Shape::optional(Shape::Text)),
        ("status", Shape::Word(RUN_STATUSES)),
        ("requiredStatuses", Shape::list(Shape::Text)),
        ("requiredStatusesSource", Shape::optional(Shape::Word(SOURCES))),
        ("testedPullRequests", tested()),
    ]);
    let kinds =
        &["merge_conflict", "failing_required_check", "awaiting_required_check", "undetermined"];
    Shape::Object(vec![
        ("timestamp", Shape::Time),
        ("state", Shape::Word(PR_STATES)),
        (
            "notReady",
            with(vec![
                ("priority", Shape::optional(Shape::Count)),
                ("noBatch", Shape::optional(Shape::Flag)),
            ]),
        ),
        ("pending", with(vec![("prerequisitePullRequests", pull_requests())])),
        (
            "testing",
            with(vec![("testRun", test_run), ("prerequisitePullRequests", pull_requests())]),
        ),
        (
            "testsPassed",
            Shape::optional(Shape::Object(vec![
                ("reason", Shape::AnyWord),
                ("testRunId", Shape::Uuid),
                ("testBranch", Shape::Text),
                ("testBranchSha", Shape::Text),
                ("successorMergeItemId", Shape::optional(Shape::Uuid)),
                ("otherTestedPullRequests", tested()),
                ("waitingFor", pull_requests()),
            ])),
        ),
        (
            "pendingFailure",
            Shape::optional(Shape::Object(vec![
                ("reason", Shape::AnyWord),
                ("testRunId", Shape::Uuid),
                ("failureCausingStatuses", statuses()),
                ("waitingFor", pull_requests()),
            ])),
        ),
        (
            "failure",
            with(vec![
                ("testRunId", Shape::optional(Shape::Uuid)),
                ("failureCausingStatuses", statuses()),
                ("blockReasons", Shape::list(Shape::Object(vec![("kind", Shape::Word(kinds))]))),
                ("conflictCulprit", Shape::optional(Shape::Anything)),
                ("details", Shape::list(Shape::Text)),
            ]),
        ),
        ("cancellation", with(Vec::new())),
        ("merged", with(Vec::new())),
    ])
}

fn estimate() -> Shape {
    let basis = Shape::Object(vec![("runs", Shape::Count), ("percentile", Shape::Count)]);
    Shape::Object(vec![
        ("seconds", Shape::or_null(Shape::Count)),
        ("basis", basis),
        ("ahead", Shape::list(Shape::Count)),
        ("sentence", Shape::Text),
    ])
}

fn tested_pull_request() -> Shape {
    Shape::Object(vec![("prNumber", Shape::Count), ("prUrl", Shape::Text), ("title", Shape::Text)])
}

pub(crate) fn settings() -> Vec<(&'static str, Shape)> {
    let (flag, count) = (|| Shape::Flag, || Shape::Count);
    vec![
        ("state", Shape::Word(&["running", "paused", "draining", "switching_modes"])),
        ("branch", Shape::Text),
        ("concurrency", count()),
        ("testingTimeoutMinutes", count()),
        ("mode", Shape::Word(&["single", "parallel"])),
        ("canOptimisticallyMerge", flag()),
        ("pendingFailureDepth", count()),
        ("batch", flag()),
        ("batchingMaxWaitTimeMinutes", count()),
        ("batchingMinSize", count()),
        ("createPrsForTestingBranches", flag()),
        ("commentsEnabled", flag()),
        ("commandsEnabled", flag()),
        ("statusCheckEnabled", flag()),
        ("bisectionConcurrency", count()),
        ("requiredStatuses", Shape::list(Shape::Text)),
        ("directMergeMode", Shape::Word(&["off", "always"])),
        ("optimizationMode", Shape::Word(&["off", "bisection_skip_redundant_tests"])),
        ("bisectionMode", Shape::Word(&["in_place", "aside"])),
        ("reparentingMode", Shape::Word(&["off", "batches", "all"])),
        ("pretestThreshold", count()),
        ("successEstimates", Shape::Word(&["queue", "authors"])),
        ("authorLimit", count()),
        ("authorHourlyLimit", count()),
        ("authorDailyMinutes", count()),
        ("agentLabels", Shape::list(Shape::Text)),
        ("fairShare", flag()),
        ("adaptiveWindow", flag()),
        ("windowFloor", count()),
        ("mergeMethod", Shape::Word(&["merge_commit", "squash", "rebase"])),
        ("freezes", Shape::list(Shape::Text)),
        ("impactedTargetRules", Shape::list(Shape::Text)),
        ("targetCapacities", Shape::list(Shape::Text)),
        ("dependenciesEnabled", flag()),
        ("testWhileFrozen", flag()),
        ("extensionEnabled", flag()),
        ("enqueueingLabel", Shape::Text),
        ("labelCommandsEnabled", flag()),
        ("stateLabelsEnabled", flag()),
        ("notReadyTimeoutHours", count()),
        ("startTimeoutMinutes", count()),
        ("automaticTestingTimeout", flag()),
        ("infrastructureRetries", count()),
        ("knownFlakyRetries", count()),
        ("redTargetHoldMinutes", count()),
        ("seenElsewhereRetries", count()),
        ("retriesPerHour", count()),
        ("evidenceChecks", Shape::list(Shape::Text)),
        ("infrastructureMessages", Shape::list(Shape::Text)),
        ("evidenceWaitSeconds", count()),
        ("evidenceNeedsIdentity", Shape::Flag),
        (
            "testBranchConstructionMode",
            Shape::Word(&["rename_temp_branch", "push_new_branch_from_temp"]),
        ),
        ("allowedBotSubmitters", Shape::list(Shape::Text)),
        (
            "batchingRules",
            Shape::list(Shape::Object(vec![
                ("targetPattern", Shape::Text),
                ("policy", Shape::Text),
            ])),
        ),
        // Additions of Signalbox.
        ("pausedBy", Shape::or_null(Shape::Text)),
        ("pausedReason", Shape::or_null(Shape::Text)),
        (
            "freeze",
            Shape::or_null(Shape::Object(vec![("until", Shape::Text), ("reason", Shape::Text)])),
        ),
        (
            "partialFreezes",
            Shape::list(Shape::Object(vec![
                ("scope", Shape::Text),
                ("until", Shape::or_null(Shape::Text)),
                ("reason", Shape::or_null(Shape::Text)),
            ])),
        ),
    ]
}

pub(crate) fn queue() -> Shape {
    let mut keys = settings();
    keys.push(("enqueuedPullRequests", Shape::list(Shape::Object(listed()))));
    Shape::Object(keys)
}

pub(crate) fn run() -> Shape {
    let statuses = &["QUEUED", "IN_PROGRESS", "COMPLETED"];
    let check_run = Shape::Object(vec![
        ("name", Shape::Text),
        ("url", Shape::Text),
        ("status", Shape::Shouted(statuses)),
        ("conclusion", Shape::optional(Shape::Shouted(CHECK_CONCLUSIONS))),
        ("summary", Shape::optional(Shape::Text)),
    ]);
    Shape::Object(vec![
        ("testRunId", Shape::Uuid),
        ("requiredStatuses", Shape::list(Shape::Text)),
        // Not known before the candidate is built.
        ("requiredStatusesSource", Shape::optional(Shape::Word(SOURCES))),
        ("testBranch", Shape::Text),
        ("testBranchSha", Shape::Text),
        ("createdAt", Shape::Time),
        ("status", Shape::Word(RUN_STATUSES)),
        ("checkSuites", Shape::list(Shape::Object(vec![("checkRuns", Shape::list(check_run))]))),
        ("statusChecks", Shape::list(Shape::Anything)),
        ("testedPullRequests", Shape::list(tested_pull_request())),
        ("impactedTargets", Shape::optional(Shape::list(Shape::Text))),
        ("impactedTargetsForTestedPrs", Shape::optional(Shape::list(Shape::Text))),
        ("dependentPrs", Shape::list(Shape::Count)),
    ])
}

pub(crate) fn results() -> Shape {
    let outcomes = &["passed", "failed", "interrupted", "cancelled"];
    let result = Shape::Object(vec![
        ("prNumber", Shape::Count),
        ("testRunId", Shape::optional(Shape::Uuid)),
        ("cycleConclusion", Shape::optional(Shape::Word(CONCLUSIONS))),
        ("bisection", Shape::optional(Shape::Word(&["in_bisection", "entered_bisection"]))),
        ("endedAt", Shape::Time),
        ("testingDurationMs", Shape::Count),
        ("outcome", Shape::Word(outcomes)),
    ]);
    Shape::Object(vec![("testingResults", Shape::list(result)), ("totalItems", Shape::Count)])
}

pub(crate) fn status() -> Shape {
    let colors: &[&str] = &["green", "yellow", "red"];
    let part = || {
        Shape::Object(vec![
            ("name", Shape::Text),
            ("color", Shape::Fixed(colors)),
            ("statusDescription", Shape::Text),
        ])
    };
    let overall = Shape::Object(vec![
        ("type", Shape::Fixed(&["up", "impacted"])),
        ("color", Shape::Fixed(colors)),
        ("overallStatusDescription", Shape::Fixed(&["All systems operational", "Impacted"])),
        ("impactedStatuses", Shape::optional(Shape::list(part()))),
    ]);
    Shape::Object(vec![("overallStatus", overall), ("statuses", Shape::list(part()))])
}
