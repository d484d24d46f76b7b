//! Restarts a loop after a panic.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use signalbox_domain::ports::{Observed, Observer};
use tokio::sync::watch;

use crate::Backoff;

/// Runs a loop until it returns. A panic is logged and counted, and the loop is restarted after a
/// growing `pause`, unless the server stops. The process continues: leases of the loop expire and
/// are taken again, and other loops and requests are unaffected.
pub async fn supervise<F, R>(
    name: &'static str,
    observer: Arc<dyn Observer>,
    pause: Duration,
    mut stopped: watch::Receiver<bool>,
    mut start: F,
) where
    F: FnMut() -> R,
    R: Future<Output = ()>,
{
    let mut backoff = Backoff::new(pause);
    loop {
        // State that loops share is behind locks and in the database, which survive a panic.
        let Err(panic) = AssertUnwindSafe(start()).catch_unwind().await else { return };
        observer.observe(&Observed::Panicked { what: name });
        tracing::error!(name, panic = words(panic.as_ref()), "a loop panicked; it is restarted");
        let pause = backoff.pause();
        backoff.failed();
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = stopped.wait_for(|stopped| *stopped) => return,
        }
    }
}

fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// Counts panics.
    #[derive(Default)]
    struct Panics(AtomicU32);

    impl Observer for Panics {
        fn observe(&self, seen: &Observed<'_>) {
            if let Observed::Panicked { what: "test" } = seen {
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }
    }

    #[tokio::test]
    async fn a_loop_that_panics_is_restarted_until_it_returns() {
        let (_stop, stopped) = watch::channel(false);
        let starts = Cell::new(0);
        let panics = Arc::new(Panics::default());
        supervise("test", panics.clone(), Duration::from_millis(1), stopped, || {
            starts.set(starts.get() + 1);
            let number = starts.get();
            async move { assert!(number == 3, "start {number}") }
        })
        .await;
        assert_eq!((starts.get(), panics.0.load(Ordering::SeqCst)), (3, 2));
    }

    #[tokio::test]
    async fn a_loop_that_panics_is_not_restarted_when_the_server_stops() {
        let (_stop, stopped) = watch::channel(true);
        let (panics, pause) = (Arc::new(Panics::default()), Duration::from_millis(1));
        supervise("test", panics, pause, stopped, || async { panic!("always") }).await;
    }
}
