//! Takes effects from the outbox and runs them.

use std::sync::Arc;
use std::time::Duration;

use signalbox_domain::ports::Leased;
use signalbox_domain::queue::EffectClass;
use signalbox_http::on_behalf_of;
use signalbox_loops::{Backoff, FALLBACK, RETRY};
use signalbox_services::EffectRunner;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::Instrument;

use crate::adapters::work_of;
use crate::wiring::{App, chain};

/// How often a lease on checks is renewed: a cancelled run stops within this time.
const CHECKS_RENEWAL: Duration = Duration::from_secs(1);

/// Leases effects of a class and runs them, as many at the same time as there are workers.
pub(super) async fn effects(
    app: Arc<App>,
    class: EffectClass,
    workers: usize,
    mut stopped: watch::Receiver<bool>,
) {
    let mut running = JoinSet::new();
    let mut backoff = Backoff::new(RETRY);
    let mut bell = app.wake_ups.of(work_of(class)).listen();
    while !*stopped.borrow() {
        let free = workers.saturating_sub(running.len());
        let leased = match free {
            0 => Ok(Vec::new()),
            _ => app.runner.lease(class, u32::try_from(free).unwrap_or(u32::MAX)).await,
        };
        let leased = match leased {
            Ok(leased) => {
                backoff.succeeded();
                leased
            }
            Err(error) => {
                backoff.failed();
                tracing::warn!(error = %chain("outbox", &error), "could not lease effects");
                Vec::new()
            }
        };
        let more = !leased.is_empty();
        for effect in leased {
            running.spawn(run(app.clone(), effect));
        }
        if more && running.len() < workers {
            continue;
        }
        let idle = free > 0;
        let pause = if backoff.is_failing() { backoff.pause() } else { FALLBACK };
        tokio::select! {
            ended = running.join_next(), if !running.is_empty() => {
                if let Some(Err(error)) = ended {
                    tracing::error!(%error, "the task of an effect panicked; its lease expires");
                }
            }
            Ok(()) = bell.changed(), if idle && !backoff.is_failing() => {}
            () = tokio::time::sleep(pause), if idle => {}
            _ = stopped.wait_for(|stopped| *stopped) => break,
        }
    }
    match class {
        // Short calls are finished; checks are killed by dropping them.
        EffectClass::Host => while running.join_next().await.is_some() {},
        EffectClass::Checks => running.shutdown().await,
    }
}

/// Runs an effect and keeps its lease alive. A lost lease closes the sink, which ends checks.
async fn run(app: Arc<App>, leased: Leased) {
    let sink = app.runner.sink(&leased);
    let pause = match leased.effect.class() {
        EffectClass::Host => EffectRunner::renewal(),
        EffectClass::Checks => CHECKS_RENEWAL,
    };
    let heartbeat = async {
        loop {
            tokio::time::sleep(pause).await;
            match app.runner.renew(&leased).await {
                Ok(true) => {}
                Ok(false) => sink.close(),
                Err(error) => {
                    tracing::warn!(error = %chain("lease", &error), "could not renew a lease");
                }
            }
        }
    };
    let span = tracing::info_span!(
        "effect",
        request.id = leased.request.as_deref(),
        queue.id = %leased.queue.id,
        effect.name = leased.effect.name(),
        effect.number = leased.number,
        effect.attempt = leased.attempts + 1,
    );
    let request = leased.request.clone();
    // What follows from the effect is still the doing of the same request.
    let work = on_behalf_of(request, app.runner.run(&leased, &sink)).instrument(span);
    tokio::select! {
        done = work => if let Err(error) = done {
            let what = leased.effect.name();
            tracing::warn!(error = %chain(what, &error), "an effect failed; it is retried later");
        },
        () = heartbeat => {}
    }
}
