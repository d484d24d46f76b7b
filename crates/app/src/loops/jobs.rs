//! The table of periodic jobs. `docs/contributing/adding-a-job.md` describes how to add one.

use std::sync::Arc;
use std::time::Duration;

use signalbox_domain::time::Span;
use signalbox_services::{Error, FlakyService, IdempotencyService};

use super::{failing, retention, webhooks};
use crate::wiring::App;

/// A periodic job of the server.
pub(super) type Job = signalbox_loops::Job<App>;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// Jobs that only one of the servers on a database runs.
///
/// `reread`: the shortest interval at which hosts are read again for changes that they have not
/// reported.
pub(super) fn shared(reread: Duration) -> Vec<Job> {
    let logged = Arc::new(failing::LastLogged::default());
    vec![
        Job::new("watched queues", 2 * SECOND, |app| async move { app.sweeper.look_often().await }),
        Job::new(
            "all queues",
            MINUTE.min(reread),
            |app| async move { app.sweeper.look_at_all().await },
        ),
        Job::new("missed commands", 5 * MINUTE, |app| async move { app.hints.catch_up().await }),
        Job::new("old host events", HOUR, |app| async move {
            app.hints.forget().await?;
            app.status_reporter.forget().await.map(drop)
        }),
        Job::new("old idempotency keys", HOUR, |app| async move {
            IdempotencyService::new(app.context.clone()).forget().await
        }),
        Job::new("waiting entries", MINUTE, waiting_entries),
        Job::new("landing audit", DAY, landing_audit),
        Job::new("stray branches", 10 * MINUTE, |app| async move {
            app.sweeper.stray_branches().await.map(drop)
        }),
        Job::new("failing effects", 15 * SECOND, move |app| {
            failing::log_lasting(app, logged.clone())
        }),
        Job::new("old outputs", HOUR, |app| async move {
            let days = app.config.retention.outputs_days;
            let before = app.context.clock.now().minus(Span::days(days));
            Ok(app.context.stores.queue.check_log.prune(before, 1_000).await.map(drop)?)
        }),
        Job::new("old history", HOUR, retention::forget),
        Job::new("monitors", 10 * SECOND, |app| async move {
            let service = &app.flaky.service;
            while service.measure().await? >= FlakyService::AT_ONCE {}
            Ok(())
        }),
        Job::new(
            "days of results",
            HOUR,
            |app| async move { app.flaky.service.prepare_days().await },
        ),
        Job::new("counts of tests", 10 * MINUTE, |app| async move {
            while app.flaky.service.count_tests().await? >= FlakyService::AT_ONCE {}
            Ok(())
        }),
        Job::new("old results", 10 * MINUTE, |app| async move {
            let history = Span::hours(app.config.flaky.history_days.saturating_mul(24));
            while app.flaky.service.prune(history).await? > 0 {}
            Ok(())
        }),
        Job::new("old webhook messages", 10 * MINUTE, webhooks::prune),
    ]
}

/// Jobs on the files of this machine: every server runs them.
pub(super) fn of_this_machine() -> Vec<Job> {
    vec![
        Job::new("locks of git", 30 * SECOND, failing::heal_locks),
        // Where uploads are kept may be a folder that only this server reads.
        Job::new("old uploads", HOUR, |app| async move {
            let now = app.context.clock.now();
            let before = |days: u32| now.minus(Span::hours(days * 24));
            let flaky = &app.config.flaky;
            let (bundles, records) = (flaky.keep_bundles_days, flaky.keep_uploads_days);
            app.uploads.sweep(before(bundles), before(records)).await
        }),
    ]
}

async fn landing_audit(app: Arc<App>) -> Result<(), Error> {
    for (queue, error) in app.landing_audit.audit().await? {
        tracing::warn!(
            queue = %queue.queue.id, branch = %queue.branch, %error,
            "could not prove all landings again"
        );
    }
    Ok(())
}

async fn waiting_entries(app: Arc<App>) -> Result<(), Error> {
    let looked = app.watch.look().await?;
    for it in &looked.unexplained {
        tracing::error!(
            queue = %it.queue.queue.id, branch = %it.queue.branch, pr = %it.pr,
            seen = it.why, "a pull request waits for no known reason; please report this"
        );
    }
    for run in &looked.lost {
        tracing::error!(%run, "an effect disappeared without a result; it is started again");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_has_a_name_of_its_own() {
        let mut kinds: Vec<&str> = shared(MINUTE).iter().map(|job| job.kind).collect();
        kinds.extend(of_this_machine().iter().map(|job| job.kind));
        let all = kinds.len();
        kinds.sort_unstable();
        kinds.dedup();
        assert_eq!(kinds.len(), all, "{kinds:?}");
    }
}
