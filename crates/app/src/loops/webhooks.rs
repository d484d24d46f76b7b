//! Creates messages from events, and sends them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use signalbox_domain::ports::{LeasedEndpoint, Work};
use signalbox_domain::time::Span;
use signalbox_loops::{Backoff, FALLBACK, RETRY};
use signalbox_services::Error;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::Instrument;

use crate::wiring::{App, chain};

/// Messages to read ahead, for each message that is sent concurrently.
const READ_AHEAD: u32 = 4;

/// Creates messages until there are no new events.
pub(super) async fn fan_out(app: Arc<App>) -> Result<(), Error> {
    while !app.stopping.load(Ordering::SeqCst) && app.webhooks.fan_out().await? > 0 {
        app.wake_ups.of(Work::Deliveries).ring();
    }
    Ok(())
}

/// Removes messages that ended long ago.
pub(super) async fn prune(app: Arc<App>) -> Result<(), Error> {
    let kept = Span::days(app.config.webhooks.keep_days);
    while app.webhooks.prune(kept).await? > 0 {}
    Ok(())
}

/// Sends due messages, to as many endpoints at the same time as there are workers. Endpoints whose
/// last delivery attempt failed get at most half of the workers, so that they never block the
/// others.
pub(super) async fn deliver(app: Arc<App>, mut stopped: watch::Receiver<bool>) {
    let workers = usize::try_from(app.config.webhooks.workers).unwrap_or(usize::MAX);
    let (mut healthy, mut failing) = (JoinSet::new(), JoinSet::new());
    let mut backoff = Backoff::new(RETRY);
    let mut bell = app.wake_ups.of(Work::Deliveries).listen();
    while !*stopped.borrow() {
        let for_failing = (workers / 2).max(1);
        let free = workers.saturating_sub(healthy.len() + failing.len());
        let more = lease(&app, free, false, &mut healthy, &mut backoff).await;
        let free = for_failing.saturating_sub(failing.len());
        let more = lease(&app, free, true, &mut failing, &mut backoff).await || more;
        if more && !backoff.is_failing() {
            continue;
        }
        let pause = if backoff.is_failing() { backoff.pause() } else { FALLBACK };
        tokio::select! {
            Some(ended) = healthy.join_next(), if !healthy.is_empty() => log_panic(ended),
            Some(ended) = failing.join_next(), if !failing.is_empty() => log_panic(ended),
            Ok(()) = bell.changed(), if !backoff.is_failing() => {}
            () = tokio::time::sleep(pause) => {}
            _ = stopped.wait_for(|stopped| *stopped) => break,
        }
    }
    // Tries under way are finished and written down; none is begun.
    while let Some(ended) = healthy.join_next().await {
        log_panic(ended);
    }
    while let Some(ended) = failing.join_next().await {
        log_panic(ended);
    }
}

fn log_panic(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "the task of an endpoint panicked; its lease expires");
    }
}

/// Leases endpoints and starts their tasks. Returns whether there were any.
async fn lease(
    app: &Arc<App>,
    free: usize,
    failing: bool,
    turns: &mut JoinSet<()>,
    backoff: &mut Backoff,
) -> bool {
    if free == 0 {
        return false;
    }
    match app.webhooks.lease(u32::try_from(free).unwrap_or(u32::MAX), failing).await {
        Ok(leased) => {
            backoff.succeeded();
            let any = !leased.is_empty();
            for leased in leased {
                turns.spawn(turn(app.clone(), leased));
            }
            any
        }
        Err(error) => {
            backoff.failed();
            tracing::warn!(error = %chain("webhooks", &error), "could not lease endpoints");
            false
        }
    }
}

/// Sends the messages of an endpoint until none is due, or its time is over.
async fn turn(app: Arc<App>, leased: LeasedEndpoint) {
    let id = leased.endpoint.id;
    if let Err(error) = send(&app, &leased).await {
        let error = chain("webhooks", &error);
        tracing::warn!(webhook.id = %id, %error, "could not send messages; they wait for the endpoint's next turn");
        // An immediate retry is likely to fail again.
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    if let Err(error) = app.webhooks.release(&leased).await {
        let error = chain("webhooks", &error);
        tracing::warn!(webhook.id = %id, %error, "could not release a lease; it expires");
    }
}

async fn send(app: &App, leased: &LeasedEndpoint) -> Result<(), Error> {
    let at_once = app.config.webhooks.at_once;
    let end = app.webhooks.turn_end();
    loop {
        let due = app.webhooks.due(leased, end, at_once.saturating_mul(READ_AHEAD)).await?;
        if due.is_empty() {
            return Ok(());
        }
        let tries = stream::iter(due).map(|message| async move {
            if app.stopping.load(Ordering::SeqCst) {
                return Ok(false);
            }
            let span = tracing::info_span!(
                "webhook",
                request.id = message.request.as_deref(),
                webhook.id = %message.endpoint,
                message.id = %message.id,
                event.id = %message.event,
                event.type = message.kind,
            );
            app.webhooks.deliver(leased, &message).instrument(span).await
        });
        let mut tries = tries.buffer_unordered(usize::try_from(at_once).unwrap_or(usize::MAX));
        while let Some(kept) = tries.next().await {
            if !kept? {
                return Ok(());
            }
        }
    }
}
