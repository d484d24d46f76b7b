//! Logs the observations of services.

use std::sync::Arc;

use signalbox_domain::ids::PrNumber;
use signalbox_domain::ports::{Observed, Observer, QueueRef};
use signalbox_domain::queue::{Decision, Moved, PrState};

/// Logs observations, and passes them on to another observer.
pub struct LoggingObserver(
    /// The other observer.
    pub Arc<dyn Observer>,
);

impl Observer for LoggingObserver {
    fn observe(&self, seen: &Observed<'_>) {
        match seen {
            Observed::Step { queue, input, decisions, took } => {
                let duration_ms = took.millis();
                tracing::debug!(queue.id = %queue.id, input, duration_ms, "committed a step");
                for decision in *decisions {
                    log_decision(*queue, decision);
                }
            }
            Observed::CommitConflict { queue } => {
                tracing::debug!(queue.id = %queue.id, "a concurrent commit came first");
            }
            Observed::EffectRun { queue, effect, outcome, took } => {
                let duration_ms = took.millis();
                tracing::debug!(queue.id = %queue.id, effect, outcome, duration_ms, "ran an effect");
            }
            Observed::TokenRefused { reason, detail, from, count } => {
                tracing::warn!(
                    client.address = %from, reason, detail, refusals = count, "refused a token"
                );
            }
            Observed::WebhookDelivery { outcome, took } => {
                tracing::info!(outcome, duration_ms = took.millis(), "attempted a delivery");
            }
            _ => {}
        }
        self.0.observe(seen);
    }
}

fn log_decision(queue: QueueRef, decision: &Decision) {
    match decision {
        Decision::Moved(Moved { pr, from, to, reason, actor, .. }) => {
            let from = from.map_or("-", PrState::as_str);
            let (to, reason) = (to.as_str(), reason.as_str());
            tracing::info!(
                queue.id = %queue.id, pr.number = pr.0, from, to, reason, %actor,
                "a pull request changed its state"
            );
        }
        Decision::LandedTreeDiffers { run, tested, landed } => {
            tracing::error!(
                queue.id = %queue.id, run.id = %run, tested, landed,
                "Q1: the landed tree is not the tested tree"
            );
        }
        Decision::CompositionMismatch { run, mismatch } => {
            let expected = mismatch.expected.as_ref().map(ToString::to_string);
            tracing::error!(
                queue.id = %queue.id, run.id = %run, base = %mismatch.base,
                commit = %mismatch.commit, found = %mismatch.found, expected,
                paths = mismatch.paths.join(", "),
                "a candidate is not its base with the changes of its pull requests"
            );
        }
        Decision::LandingMismatch { pr, mismatch } => {
            let expected = mismatch.expected.as_ref().map(ToString::to_string);
            tracing::error!(
                queue.id = %queue.id, %pr, base = %mismatch.base, commit = %mismatch.commit,
                found = %mismatch.found, expected, paths = mismatch.paths.join(", "),
                "what landed is not its base with the changes of its pull requests"
            );
        }
        Decision::LandingsAudited { proved, not_checked, wrong } => {
            tracing::info!(queue.id = %queue.id, proved, not_checked, wrong, "landings were proved again");
        }
        Decision::QueueMoved { from, to, actor, .. } => {
            let (from, to) = (from.as_str(), to.as_str());
            tracing::info!(queue.id = %queue.id, from, to, %actor, "a queue changed its state");
        }
        Decision::Bisected { left, right, .. } => {
            let list = |prs: &[PrNumber]| {
                prs.iter().map(|pr| pr.0.to_string()).collect::<Vec<_>>().join(" ")
            };
            let (left, right) = (list(left), list(right));
            tracing::info!(queue.id = %queue.id, left, right, "a failed batch is bisected");
        }
        Decision::StatusesSilent { run, names } => {
            let names = names.join(", ");
            tracing::warn!(
                queue.id = %queue.id, run.id = %run, names,
                "required statuses without a report"
            );
        }
        Decision::Retried { run, retry, .. } => {
            let checks = retry.failed.iter().map(|check| check.name.as_str()).collect::<Vec<_>>();
            tracing::info!(
                queue.id = %queue.id, run.id = %run, class = retry.class.as_str(),
                checks = checks.join(", "), evidence = retry.evidence.join(", "),
                "failed checks run again"
            );
        }
        Decision::HeldByRedTarget { run, prs, tests, until } => {
            let prs: Vec<String> = prs.iter().map(ToString::to_string).collect();
            tracing::warn!(
                queue.id = %queue.id, run.id = %run, prs = prs.join(", "), tests = tests.join(", "),
                %until, "tests fail on the target branch itself; no test run starts"
            );
        }
        Decision::FreezeStarted { until, reason } => {
            let until = until.map(|until| until.to_string());
            tracing::info!(queue.id = %queue.id, until, reason, "a freeze is in force");
        }
        Decision::PartialFreezeStarted { scope, until, reason } => {
            let until = until.map(|until| until.to_string());
            tracing::info!(queue.id = %queue.id, %scope, until, reason, "a partial freeze is in force");
        }
        Decision::PartialFreezeEnded { scope } => {
            tracing::info!(queue.id = %queue.id, %scope, "a partial freeze has ended");
        }
        Decision::FreezeEnded => tracing::info!(queue.id = %queue.id, "the freeze has ended"),
        Decision::Reparented { run, prs } => {
            let prs: Vec<String> = prs.iter().map(ToString::to_string).collect();
            tracing::info!(
                queue.id = %queue.id, run.id = %run, prs = prs.join(", "),
                "a failed run is tested beside the line, and those behind it start without it"
            );
        }
        Decision::Pretested { run, prs, percent } => {
            let prs: Vec<String> = prs.iter().map(ToString::to_string).collect();
            tracing::info!(
                queue.id = %queue.id, run.id = %run, prs = prs.join(", "), percent,
                "tested beside the line first, because a run in the line would probably fail"
            );
        }
        Decision::WindowResized { from, to, run } => {
            tracing::debug!(
                queue.id = %queue.id, run.id = %run, from, to, "the adaptive window has another size"
            );
        }
        Decision::PolicyChanged { from, to } => {
            tracing::info!(
                queue.id = %queue.id, %from, %to, "the policy of the queue is another one"
            );
        }
        Decision::Excused { run, check, tests } => {
            tracing::info!(
                queue.id = %queue.id, run.id = %run, check, tests = tests.join(", "),
                "a failed check counts as passed, because only quarantined tests failed"
            );
        }
        Decision::Overtook { pr, overtaken } => {
            tracing::debug!(queue.id = %queue.id, %pr, %overtaken, "goes ahead by fair share");
        }
        Decision::Changed { .. }
        | Decision::RunCancelled { .. }
        | Decision::SettingsChanged { .. }
        | Decision::Ignored { .. } => {}
    }
}
