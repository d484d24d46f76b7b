//! The demo's chapters: how each queue is set, what is done when, what git must have in the end.

use serde_json::json;
use signalbox_domain::queue::Mode;

use crate::branches;
use crate::chapter::{Action, Chapter, Cue, Gate, Sign};

/// Nothing holds the checks back.
const AT_ONCE: &[Cue] = &[Cue { when: &[], then: Action::Open(Gate::Checks) }];

/// All chapters, in the order in which they are told.
pub(crate) static CHAPTERS: [Chapter; 6] = [
    Chapter {
        target: "main",
        shows: "one line: each is tested on top of those ahead",
        preface: &[
            "Up to three candidates are tested at the same time, each on top of those ahead.",
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
        quarantines: false,
    },
    Chapter {
        target: "batches",
        shows: "a batch of four is halved until the culprit is alone",
        preface: &["Four are tested in one run. When it fails, its halves are tested."],
        mode: Mode::Single,
        concurrency: 2,
        settings: || json!({ "batch": true, "batchingMinSize": 4 }),
        branches: &branches::BATCHES,
        cues: AT_ONCE,
        lands: &["negate", "maximum", "square"],
        bisects: true,
        quarantines: false,
    },
    Chapter {
        target: "rescue",
        shows: "a success behind a failure absolves it",
        preface: &[
            "One test fails by chance. The next pull request is tested on top of it all the same,",
            "and when that passes, both are proven.",
        ],
        mode: Mode::Single,
        concurrency: 1,
        settings: || json!({ "canOptimisticallyMerge": true, "pendingFailureDepth": 1 }),
        branches: &branches::RESCUE,
        cues: AT_ONCE,
        lands: &["cube", "modulo"],
        bisects: false,
        quarantines: false,
    },
    Chapter {
        target: "lanes",
        shows: "what touches different targets does not wait",
        preface: &[
            "Mode PARALLEL. The frontend's test is slow; the backend shares no impacted target with",
            "it and lands first. What touches both comes after both.",
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
        quarantines: false,
    },
    Chapter {
        target: "urgent",
        shows: "an urgent one interrupts and lands first",
        preface: &["While the first one is under test, an urgent one is submitted."],
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
        quarantines: false,
    },
    Chapter {
        target: "flaky",
        shows: "a flaky test is found, quarantined, and blocks nobody",
        preface: &[
            "One test fails by chance. Its check tries it again and reports both attempts, so it is",
            "known to be flaky. The repository quarantines such tests: when it fails again, twice,",
            "the next pull request lands all the same.",
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
        quarantines: true,
    },
];
