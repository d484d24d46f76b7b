//! The scenarios of the demo: the settings of each queue, the actions, and the commits to expect.

use serde_json::json;
use signalbox_domain::queue::Mode;

use crate::branches;
use crate::scenario::{Action, Cue, Gate, Scenario, Sign};

/// The checks start without waiting.
const UNGATED: &[Cue] = &[Cue { when: &[], then: Action::Open(Gate::Checks) }];

/// All scenarios, in the order in which they are played.
pub(crate) static SCENARIOS: [Scenario; 7] = [
    Scenario {
        target: "main",
        shows: "each pull request is tested on top of earlier ones",
        preface: &[
            "Concurrency 3: up to three candidates are tested at the same time, each on top of the",
            "pull requests ahead of it.",
        ],
        mode: Mode::Single,
        concurrency: 3,
        settings: || json!({}),
        branches: &branches::MAIN,
        cues: &[Cue {
            when: &[("comment", Sign::Waits("conflict_with_ahead"))],
            then: Action::Open(Gate::Checks),
        }],
        lands: &["subtract", "rename", "readme"],
        bisects: false,
        quarantine: None,
    },
    Scenario {
        target: "batches",
        shows: "a failed batch is bisected until the culprit is found",
        preface: &[
            "Four pull requests are tested in one run. When it fails, its halves are tested.",
        ],
        mode: Mode::Single,
        concurrency: 2,
        settings: || json!({ "batch": true, "batchingMinSize": 4 }),
        branches: &branches::BATCHES,
        cues: UNGATED,
        lands: &["negate", "maximum", "square"],
        bisects: true,
        quarantine: None,
    },
    Scenario {
        target: "rescue",
        shows: "optimistic merging: a later success overrides a flaky failure",
        preface: &[
            "One test is flaky and fails. The next pull request is still tested on top of it, and when",
            "that run passes, both merge.",
        ],
        mode: Mode::Single,
        concurrency: 1,
        settings: || json!({ "canOptimisticallyMerge": true, "pendingFailureDepth": 1 }),
        branches: &branches::RESCUE,
        cues: UNGATED,
        lands: &["cube", "modulo"],
        bisects: false,
        quarantine: None,
    },
    Scenario {
        target: "lanes",
        shows: "lanes: pull requests with disjoint impacted targets do not wait for each other",
        preface: &[
            "Mode PARALLEL. The frontend's test is slow; the backend shares no impacted target with",
            "it and merges first. A pull request that touches both merges after both.",
        ],
        mode: Mode::Parallel,
        concurrency: 2,
        settings: || json!({}),
        branches: &branches::LANES,
        cues: &[
            Cue {
                when: &[
                    ("frontend", Sign::Waits("checks_running")),
                    ("backend", Sign::Waits("checks_running")),
                ],
                then: Action::Open(Gate::Checks),
            },
            Cue { when: &[("backend", Sign::Is("MERGED"))], then: Action::Open(Gate::Slow) },
        ],
        lands: &["backend", "frontend", "both"],
        bisects: false,
        quarantine: None,
    },
    Scenario {
        target: "urgent",
        shows: "an urgent pull request interrupts a test run and merges first",
        preface: &["While the first pull request is being tested, an urgent one is submitted."],
        mode: Mode::Single,
        concurrency: 1,
        settings: || json!({}),
        branches: &branches::URGENT,
        cues: &[
            Cue {
                when: &[("halve", Sign::Waits("checks_running"))],
                then: Action::Submit("hotfix"),
            },
            Cue {
                when: &[("hotfix", Sign::Waits("checks_running"))],
                then: Action::Open(Gate::Checks),
            },
        ],
        lands: &["hotfix", "halve", "triple"],
        bisects: false,
        quarantine: None,
    },
    Scenario {
        target: "flaky",
        shows: "a flaky test is detected and quarantined, and blocks no pull request",
        preface: &[
            "One test is flaky. Its check retries it and uploads both attempts, so Signalbox detects",
            "it. The repository quarantines flaky tests automatically: when both attempts fail later,",
            "the next pull request merges anyway.",
        ],
        mode: Mode::Single,
        concurrency: 1,
        settings: || json!({}),
        branches: &branches::FLAKY,
        cues: &[
            Cue { when: &[], then: Action::Open(Gate::Checks) },
            Cue {
                when: &[("clock", Sign::Is("MERGED")), ("clock", Sign::Quarantined("clock ticks"))],
                then: Action::Submit("leap"),
            },
        ],
        lands: &["clock", "leap"],
        bisects: false,
        quarantine: Some(true),
    },
    Scenario {
        target: "retries",
        shows: "failed checks are judged by their test results before they count",
        preface: &[
            "Quarantine is off. On the first pull request all tests fail: the machine is broken, and",
            "the check runs again. On the second only the test fails that is known to be flaky, and",
            "the check runs again. On the third a test fails in a new way, which counts immediately.",
        ],
        mode: Mode::Single,
        concurrency: 1,
        settings: || json!({}),
        branches: &branches::RETRIES,
        cues: &[
            Cue { when: &[], then: Action::Open(Gate::Checks) },
            Cue {
                when: &[("count", Sign::Retries("INFRASTRUCTURE"))],
                then: Action::Open(Gate::Again),
            },
            Cue { when: &[("date", Sign::Retries("KNOWN_FLAKY"))], then: Action::Open(Gate::Slow) },
        ],
        lands: &["count", "date"],
        bisects: false,
        quarantine: Some(false),
    },
];
