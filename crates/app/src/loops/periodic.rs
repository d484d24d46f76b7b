//! Something that is done again and again.

use std::time::Duration;

use signalbox_services::Error;
use tokio::sync::watch;

use super::backoff::Backoff;
use crate::wiring::chain;

/// Does a job, pauses, and does it again until the server stops. An error is logged; the pauses
/// grow while there are errors.
pub(super) async fn every<F, R>(
    name: &'static str,
    pause: Duration,
    mut stopped: watch::Receiver<bool>,
    mut job: F,
) where
    F: FnMut() -> R,
    R: Future<Output = Result<(), Error>>,
{
    let mut backoff = Backoff::new(pause);
    while !*stopped.borrow() {
        match job().await {
            Ok(()) => backoff.succeeded(),
            Err(error) => {
                backoff.failed();
                let error = chain(name, &error);
                tracing::warn!(%error, "background work failed; it is repeated");
            }
        }
        tokio::select! {
            () = tokio::time::sleep(backoff.pause()) => {}
            _ = stopped.wait_for(|stopped| *stopped) => return,
        }
    }
}
