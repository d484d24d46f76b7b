//! Decisions: what the planner did and why. The journal keeps them, and timelines and metrics are
//! computed from them, so they are part of the product and not debug output.

use crate::ids::{EntryId, PrNumber, RunId};
use crate::time::Timestamp;

use super::{
    Actor, FreezeScope, Mismatch, PolicyId, PrState, QueueStateName, Reason, Retry, RunCancelReason,
};
use crate::words::words;

words!(
    /// Why a fact changed nothing.
    IgnoredBecause {
        /// The pull request is not in the queue.
        NoSuchEntry = "NO_SUCH_ENTRY",
        /// The run has ended or was never started.
        NoSuchRun = "NO_SUCH_RUN",
        /// The commit is no longer under test, or a newer fact is known.
        Superseded = "SUPERSEDED",
        /// The queue knows it already.
        Known = "KNOWN",
        /// It names a pull request or a run that does not belong to its run.
        NotOfRun = "NOT_OF_RUN",
        /// No landing of that run is under way.
        NoSuchLanding = "NO_SUCH_LANDING",
    }
);

/// A change of an entry's state. The journal stores reason and actor as text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "stored::Moved", into = "stored::Moved")
)]
pub struct Moved {
    /// The entry.
    pub entry: EntryId,
    /// Its pull request.
    pub pr: PrNumber,
    /// The state before; `None` for a submission.
    pub from: Option<PrState>,
    /// The state after.
    pub to: PrState,
    /// Why the state changed.
    pub reason: Reason,
    /// Who caused the change.
    pub actor: Actor,
    /// The run that caused the change, or that the entry is now in.
    pub run: Option<RunId>,
    /// Whether that run belongs to a bisection.
    pub bisection: bool,
    /// How long the entry was in the state before, in microseconds.
    pub after_micros: i64,
    /// When it last entered the line; metrics measure the time in queue from here.
    pub entered_line_at: Option<Timestamp>,
    /// Details: failed statuses, conflicting paths, culprits.
    pub details: Vec<String>,
}

/// One thing that the planner decided.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Decision {
    /// An entry changed its state.
    Moved(Moved),
    /// A live entry was changed in place.
    Changed {
        /// Its pull request.
        pr: PrNumber,
        /// The change in words: `priority high, alone`.
        what: String,
    },
    /// With fair share, an entry has entered the line ahead of one that entered it earlier.
    Overtook {
        /// Its pull request.
        pr: PrNumber,
        /// The pull request directly behind it.
        overtaken: PrNumber,
    },
    /// A run was cancelled before it had a result.
    RunCancelled {
        /// The run.
        run: RunId,
        /// Why the run has no result.
        reason: RunCancelReason,
    },
    /// A failed batch is split in two; the right part is tested on top of the left one.
    Bisected {
        /// The failed run; `None` when the failure followed from other runs.
        run: Option<RunId>,
        /// The left part.
        left: Vec<PrNumber>,
        /// The right part.
        right: Vec<PrNumber>,
    },
    /// Required statuses did not report within [`SILENCE_MINUTES`](super::SILENCE_MINUTES) minutes.
    StatusesSilent {
        /// The run.
        run: RunId,
        /// The names of the statuses.
        names: Vec<String>,
    },
    /// Failed checks of a run run again on the same candidate.
    Retried {
        /// The run.
        run: RunId,
        /// The pull requests under test.
        prs: Vec<PrNumber>,
        /// The retry.
        retry: Retry,
    },
    /// Failed checks count as passed, because only quarantined tests failed.
    Excused {
        /// The run.
        run: RunId,
        /// The check.
        check: String,
        /// The failed tests, each with who or what quarantined it.
        tests: Vec<String>,
    },
    /// The queue changed its state.
    QueueMoved {
        /// The state before.
        from: QueueStateName,
        /// The state after.
        to: QueueStateName,
        /// Who caused the change.
        #[cfg_attr(feature = "serde", serde(with = "super::command::actor_text"))]
        actor: Actor,
        /// The caller's reason, if given.
        reason: Option<String>,
    },
    /// Settings were changed.
    SettingsChanged {
        /// Who changed them.
        #[cfg_attr(feature = "serde", serde(with = "super::command::actor_text"))]
        actor: Actor,
    },
    /// The landed tree is not the tested one. The host landed something else, so Q1 does not hold.
    LandedTreeDiffers {
        /// The run.
        run: RunId,
        /// The tested tree.
        tested: String,
        /// The landed tree.
        landed: String,
    },
    /// A candidate, or what was to land, is not its base with the changes. It was not tested, or
    /// did not land.
    CompositionMismatch {
        /// The run.
        run: RunId,
        /// The difference.
        mismatch: Mismatch,
    },
    /// What landed is not its base with only the recorded changes, which was found afterwards.
    LandingMismatch {
        /// The pull request.
        pr: PrNumber,
        /// The difference.
        mismatch: Mismatch,
    },
    /// Landings were proved again: the number of commits by result.
    LandingsAudited {
        /// They are their base with only the recorded changes.
        proved: u32,
        /// They could not be checked.
        not_checked: u32,
        /// They are something else, which was not known yet.
        wrong: u32,
    },
    /// Tests failed as they fail on the target branch: the run returned to the line, and no other run
    /// starts until the target moves or the hold ends.
    HeldByRedTarget {
        /// The run.
        run: RunId,
        /// Its pull requests.
        prs: Vec<PrNumber>,
        /// The failed tests.
        tests: Vec<String>,
        /// When the hold ends.
        until: Timestamp,
    },
    /// A freeze began, or its end or reason changed.
    FreezeStarted {
        /// When it ends; `None` for a freeze without an end.
        until: Option<Timestamp>,
        /// The reason given in its rule.
        reason: Option<String>,
    },
    /// The freeze ended.
    FreezeEnded,
    /// A freeze that applies only to some pull requests began, or its end or reason changed.
    PartialFreezeStarted {
        /// The pull requests that it applies to.
        scope: FreezeScope,
        /// When it ends; `None` for a freeze without an end.
        until: Option<Timestamp>,
        /// The reason given in its rule.
        reason: Option<String>,
    },
    /// A freeze that applied only to some pull requests ended.
    PartialFreezeEnded {
        /// The pull requests that it applied to.
        scope: FreezeScope,
    },
    /// A run failed while runs ahead of it were unfinished. Its pull requests are tested beside the line,
    /// and those behind it start without them.
    Reparented {
        /// The failed run.
        run: RunId,
        /// Its pull requests.
        prs: Vec<PrNumber>,
    },
    /// A group is tested beside the line before its first run in the line, because that run would pass
    /// only with this probability.
    Pretested {
        /// The run beside the line.
        run: RunId,
        /// Its pull requests.
        prs: Vec<PrNumber>,
        /// The probability in percent.
        percent: u32,
    },
    /// The adaptive window has another size: the run failed and others restart, or it has landed.
    WindowResized {
        /// The most test runs at the same time before.
        from: u32,
        /// The most test runs at the same time now.
        to: u32,
        /// The run.
        run: RunId,
    },
    /// This step and those after it use another policy.
    PolicyChanged {
        /// The policy of the steps before.
        from: PolicyId,
        /// The policy from this step on.
        to: PolicyId,
    },
    /// A fact changed nothing.
    Ignored {
        /// Why the planner ignored it.
        because: IgnoredBecause,
    },
}

#[cfg(feature = "serde")]
mod stored {
    use super::{Actor, EntryId, PrNumber, PrState, Reason, RunId, Timestamp};

    /// The form of [`super::Moved`] in the journal.
    #[derive(serde::Serialize, serde::Deserialize)]
    pub(super) struct Moved {
        entry: EntryId,
        pr: PrNumber,
        from: Option<PrState>,
        to: PrState,
        reason: String,
        actor: String,
        run: Option<RunId>,
        bisection: bool,
        after_micros: i64,
        entered_line_at: Option<Timestamp>,
        details: Vec<String>,
    }

    impl From<super::Moved> for Moved {
        fn from(moved: super::Moved) -> Self {
            let super::Moved { entry, pr, from, to, run, bisection, details, .. } = moved;
            let (reason, actor) = (moved.reason.as_str().to_owned(), moved.actor.to_string());
            let (after_micros, entered_line_at) = (moved.after_micros, moved.entered_line_at);
            Self {
                entry,
                pr,
                from,
                to,
                reason,
                actor,
                run,
                bisection,
                after_micros,
                entered_line_at,
                details,
            }
        }
    }

    impl TryFrom<Moved> for super::Moved {
        type Error = String;

        fn try_from(stored: Moved) -> Result<Self, String> {
            let Moved { entry, pr, from, to, run, bisection, details, .. } = stored;
            let Some(reason) = Reason::parse(to, &stored.reason) else {
                return Err(format!(
                    "unknown reason {:?} of a move to {}",
                    stored.reason,
                    to.as_str()
                ));
            };
            let actor = Actor::parse(&stored.actor);
            let (after_micros, entered_line_at) = (stored.after_micros, stored.entered_line_at);
            Ok(Self {
                entry,
                pr,
                from,
                to,
                reason,
                actor,
                run,
                bisection,
                after_micros,
                entered_line_at,
                details,
            })
        }
    }
}

#[cfg(all(test, feature = "serde"))]
mod tests {
    use serde_json::json;

    use super::*;
    use uuid::Uuid;

    use crate::queue::{
        CancelReason, FailReason, MergeReason, PassReason, QueuedReason, SubmitReason,
    };

    #[test]
    fn the_journal_stores_reasons_and_actors_as_text() {
        let id = "00000000-0000-0000-0000-000000000001";
        let stored = |to: &str, reason: &str, actor: &str| {
            json!({"Moved": {
                "entry": id, "pr": 7, "from": null, "to": to, "reason": reason, "actor": actor,
                "run": null, "bisection": false, "after_micros": 5, "entered_line_at": null,
                "details": ["a"]
            }})
        };
        for (to, word, reason, text, actor) in [
            (
                "NotReady",
                "USER_REQUESTED",
                Reason::Submitted(SubmitReason::UserRequested),
                "ada",
                Actor::User("ada".to_owned()),
            ),
            (
                "Cancelled",
                "USER_REQUESTED",
                Reason::Cancelled(CancelReason::UserRequested),
                "token ci",
                Actor::Token("ci".to_owned()),
            ),
            ("Testing", "TEST_RUN_STARTED", Reason::Started, "merge queue", Actor::Queue),
            ("NotReady", "NO_LONGER_READY", Reason::NoLongerReady, "git host", Actor::Host),
        ] {
            let text = stored(to, word, text);
            let decision: Decision = serde_json::from_value(text.clone()).expect("readable");
            let Decision::Moved(moved) = &decision else { panic!("{decision:?}") };
            assert_eq!((moved.reason, &moved.actor), (reason, &actor));
            assert_eq!(serde_json::to_value(&decision).expect("JSON"), text);
        }
        let unknown = serde_json::from_value::<Decision>(stored("Merged", "BY_MAGIC", "ada"));
        let error = unknown.expect_err("no reason").to_string();
        assert_eq!(error, "unknown reason \"BY_MAGIC\" of a move to MERGED");
    }

    #[test]
    fn the_journal_stores_cancel_reasons_of_runs_as_text() {
        let run = RunId(Uuid::from_u128(1));
        let stored = |reason: &str| json!({"RunCancelled": {"run": run, "reason": reason}});
        for (word, reason) in [
            ("BISECTION_REQUIRED", RunCancelReason::Requeued(QueuedReason::BisectionRequired)),
            ("SUCCESSOR_TEST_RUN_PASSED", RunCancelReason::Passed(PassReason::Successor)),
            ("START_TEST_RUN_MERGE_CONFLICT", RunCancelReason::Failed(FailReason::MergeConflict)),
            ("ALREADY_MERGED", RunCancelReason::Merged(MergeReason::Already)),
        ] {
            let decision = Decision::RunCancelled { run, reason };
            assert_eq!(serde_json::to_value(&decision).expect("JSON"), stored(word));
            assert_eq!(serde_json::from_value::<Decision>(stored(word)).expect("known"), decision);
        }
        let error = serde_json::from_value::<Decision>(stored("BY_MAGIC")).expect_err("no reason");
        assert_eq!(error.to_string(), "unknown reason \"BY_MAGIC\" of a run's end");
    }
}
