//! Statements that run on other threads and outlive their callers, which a disconnect, a timeout or
//! a shutdown cancels. Their connection is busy until they have ended.

use std::sync::Arc;

use tokio::sync::watch;

/// The state of a connection.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    under_way: usize,
    panicked: bool,
}

/// The running statements of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Work(Arc<watch::Sender<State>>);

impl Work {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(State::default())))
    }

    /// Registers a statement; it ends when the guard is dropped.
    pub(crate) fn begin(&self) -> UnderWay {
        self.0.send_modify(|state| state.under_way += 1);
        UnderWay(self.clone())
    }

    /// Whether no statement runs.
    pub(crate) fn is_idle(&self) -> bool {
        self.0.borrow().under_way == 0
    }

    /// Whether a statement ended in a panic.
    pub(crate) fn has_panicked(&self) -> bool {
        self.0.borrow().panicked
    }

    /// Waits until no statement runs.
    pub(crate) async fn idle(&self) {
        let mut state = self.0.subscribe();
        // `self` holds the sender, so the channel is not closed.
        state.wait_for(|state| state.under_way == 0).await.ok();
    }
}

/// The guard of a running statement.
pub(crate) struct UnderWay(Work);

impl Drop for UnderWay {
    fn drop(&mut self) {
        let panicked = std::thread::panicking();
        self.0.0.send_modify(|state| {
            state.under_way = state.under_way.saturating_sub(1);
            state.panicked |= panicked;
        });
    }
}
