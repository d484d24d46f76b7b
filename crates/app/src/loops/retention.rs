//! Deletes records that are older than their configured retention.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use signalbox_domain::time::Span;
use signalbox_services::Error;

use crate::wiring::App;

/// Rows per transaction, few enough that other writers do not wait long.
const AT_ONCE: u32 = 500;

/// Deletes old records of the audit log, of journals and of the log of events, step by step.
pub(super) async fn forget(app: Arc<App>) -> Result<(), Error> {
    let (stores, kept) = (&app.context.stores, &app.config.retention);
    let now = app.context.clock.now();
    let before = |days: u32| now.minus(Span::days(days));
    let goes_on = |gone: u64| gone > 0 && !app.stopping.load(Ordering::SeqCst);
    while goes_on(stores.account.audit.prune(before(kept.audit_days), AT_ONCE).await?) {}
    let journal = before(kept.journal_days);
    while goes_on(stores.runtime.retention.prune_journal(journal, AT_ONCE).await?) {}
    while goes_on(stores.webhook.event_log.prune(before(kept.events_days), AT_ONCE).await?) {}
    Ok(())
}
