//! Reports effects that keep failing, and removes stale locks of git.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use signalbox_domain::ports::QueueRef;
use signalbox_domain::time::{Span, Timestamp};
use signalbox_services::{Error, failing};

use crate::wiring::App;

/// The most effects that are logged one by one.
const LISTED: u32 = 20;
/// Minutes before the same effect is logged again.
const AGAIN_MINUTES: u32 = 10;

/// When each effect was last logged.
#[derive(Default)]
pub(super) struct LastLogged(Mutex<BTreeMap<(QueueRef, u64), Timestamp>>);

/// Logs effects that keep failing: once, and then at intervals.
pub(super) async fn log_lasting(app: Arc<App>, logged: Arc<LastLogged>) -> Result<(), Error> {
    let now = app.context.clock.now();
    let outbox = &*app.context.stores.queue.outbox;
    let failing = failing::for_long(outbox, now, LISTED).await?;
    let mut logged = logged.0.lock().unwrap_or_else(PoisonError::into_inner);
    let fails =
        |key: &(QueueRef, u64)| failing.longest.iter().any(|it| (it.queue, it.number) == *key);
    logged.retain(|key, at| fails(key) && now < at.plus(Span::minutes(AGAIN_MINUTES)));
    for it in &failing.longest {
        let key = (it.queue, it.number);
        if logged.contains_key(&key) {
            continue;
        }
        logged.insert(key, now);
        tracing::warn!(
            queue.id = %it.queue.id,
            effect.name = it.effect.name(),
            effect.number = it.number,
            effect.attempt = it.attempts,
            since = %it.since,
            error = it.error,
            failing = failing.count,
            "an effect keeps failing; it is retried"
        );
    }
    Ok(())
}

/// Removes the lock files that killed git processes have left in repositories of plain hosts.
pub(super) async fn heal_locks(app: Arc<App>) -> Result<(), Error> {
    for repository in app.context.stores.account.repos.list(None).await? {
        if repository.path.is_none() {
            continue;
        }
        let host = app.hosts.plain(repository.org, &repository.name.host);
        match host.heal_locks(&repository).await {
            Ok(healed) => {
                for lock in healed {
                    tracing::warn!(
                        repository = %repository.name,
                        lock = %lock.path.display(),
                        age_s = lock.age.millis() / 1_000,
                        "removed a stale lock of git"
                    );
                }
            }
            // A problem with the repository is reported by the work that needs it.
            Err(error) => tracing::debug!(repository = %repository.name, %error, "locks"),
        }
    }
    Ok(())
}
