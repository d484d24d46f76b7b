//! A job that runs periodically.

use std::time::Duration;

use signalbox_services::Error;
use signalbox_terminal::chain;
use tokio::sync::watch;

use crate::Backoff;

/// Runs a job with a pause after each run until the server stops. Errors are logged, and make
/// the pauses longer.
pub async fn every<F, R>(
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
                tracing::warn!(%error, "a background job failed; it is retried");
            }
        }
        tokio::select! {
            () = tokio::time::sleep(backoff.pause()) => {}
            _ = stopped.wait_for(|stopped| *stopped) => return,
        }
    }
}
