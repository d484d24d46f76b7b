//! Says what has failed for long, and heals what can be healed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use signalbox_domain::ports::QueueRef;
use signalbox_domain::time::{Span, Timestamp};
use signalbox_services::{Error, failing};

use crate::wiring::App;

/// The most effects that are told one by one.
const AT_ONCE: u32 = 20;
/// How long an effect that was told is not told again.
const AGAIN_MINUTES: u32 = 10;

/// When each effect was last told.
#[derive(Default)]
pub(super) struct LastLogged(Mutex<BTreeMap<(QueueRef, u64), Timestamp>>);

/// Warns of the effects that have failed for long: once, and then at intervals.
pub(super) async fn tell(app: Arc<App>, told: Arc<LastLogged>) -> Result<(), Error> {
    let now = app.context.clock.now();
    let outbox = &*app.context.stores.queue.outbox;
    let failing = failing::for_long(outbox, now, AT_ONCE).await?;
    let mut told = told.0.lock().unwrap_or_else(PoisonError::into_inner);
    let fails =
        |key: &(QueueRef, u64)| failing.longest.iter().any(|it| (it.queue, it.number) == *key);
    told.retain(|key, at| fails(key) && now < at.plus(Span::minutes(AGAIN_MINUTES)));
    for it in &failing.longest {
        let key = (it.queue, it.number);
        if told.contains_key(&key) {
            continue;
        }
        told.insert(key, now);
        tracing::warn!(
            queue.id = %it.queue.id,
            effect.name = it.effect.name(),
            effect.number = it.number,
            effect.attempt = it.attempts,
            since = %it.since,
            error = it.error,
            failing = failing.count,
            "an effect has been failing for long; it is tried again"
        );
    }
    Ok(())
}

/// Removes the locks that a git which was killed has left in the repositories of plain hosts.
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
                        "removed a lock of git that no process holds"
                    );
                }
            }
            // Whatever needs the repository says so.
            Err(error) => tracing::debug!(repository = %repository.name, %error, "locks"),
        }
    }
    Ok(())
}
