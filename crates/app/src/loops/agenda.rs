//! The agenda of a server: one query finds the work that is due, and wakes its workers.

use std::sync::Arc;
use std::time::Duration;

use signalbox_loops::Backoff;
use tokio::sync::watch;

use crate::wiring::{App, chain};

/// The interval of the query: the longest time until another server's work is seen.
const LOOK: Duration = Duration::from_secs(1);
/// The shortest pause between two reads.
const SOONEST: Duration = Duration::from_millis(100);

/// Reads the agenda every second, and earlier when work becomes due; wakes the workers whose work
/// is due and the streams of organizations that have new events.
pub(super) async fn keep_agenda(app: Arc<App>, mut stopped: watch::Receiver<bool>) {
    let mut backoff = Backoff::new(LOOK);
    while !*stopped.borrow() {
        let pause = match app.context.stores.runtime.agenda.agenda(app.jobs.server()).await {
            Ok(agenda) => {
                backoff.succeeded();
                let now = app.context.clock.now();
                for work in agenda.due_at(now) {
                    app.wake_ups.of(work).ring();
                }
                app.wake_ups.events.seen(&agenda.newest_events);
                let next = agenda.next_after(now).map_or(LOOK, |at| at.since(now).to_std());
                next.clamp(SOONEST, LOOK)
            }
            Err(error) => {
                backoff.failed();
                tracing::warn!(error = %chain("agenda", &error), "could not read the agenda");
                backoff.pause()
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = stopped.wait_for(|stopped| *stopped) => return,
        }
    }
}
