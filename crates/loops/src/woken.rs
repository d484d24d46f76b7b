//! Work that starts when it is due: the agenda or a commit of this process rings its bell.

use std::time::Duration;

use signalbox_services::Error;
use signalbox_terminal::chain;
use tokio::sync::watch;

use crate::Backoff;

/// How long a worker waits for its bell before it checks for work anyway.
pub const FALLBACK: Duration = Duration::from_secs(30);
/// The shortest time between two checks: rings in between are merged.
const TOGETHER: Duration = Duration::from_millis(50);
/// The first pause after a failure.
pub const RETRY: Duration = Duration::from_millis(500);

/// Runs a job each time the bell rings until the server stops. An error is logged, and the job is
/// retried after a pause that grows with repeated errors.
pub async fn woken<F, R>(
    name: &'static str,
    mut bell: watch::Receiver<()>,
    mut stopped: watch::Receiver<bool>,
    mut job: F,
) where
    F: FnMut() -> R,
    R: Future<Output = Result<(), Error>>,
{
    let mut backoff = Backoff::new(RETRY);
    while !*stopped.borrow() {
        let pause = match job().await {
            Ok(()) => {
                backoff.succeeded();
                tokio::time::sleep(TOGETHER).await;
                FALLBACK
            }
            Err(error) => {
                backoff.failed();
                let error = chain(name, &error);
                tracing::warn!(%error, "a background job failed; it is retried");
                backoff.pause()
            }
        };
        tokio::select! {
            Ok(()) = bell.changed(), if !backoff.is_failing() => {}
            () = tokio::time::sleep(pause) => {}
            _ = stopped.wait_for(|stopped| *stopped) => return,
        }
    }
}
