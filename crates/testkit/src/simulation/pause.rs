//! Pauses of tasks, and calls that do not pause.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use signalbox_domain::queue::EffectClass;
use signalbox_domain::time::Timestamp;

use super::schedule::{Schedule, ServerId};

/// Pauses a task once. The schedule polls it again at its time.
pub(super) struct Pause {
    pub(super) schedule: Arc<Schedule>,
    pub(super) until: Timestamp,
    /// A wake-up of this server and effect class ends it early.
    pub(super) class: Option<(ServerId, EffectClass)>,
    /// Whether the task may hold its server's turn meanwhile.
    pub(super) in_turn: bool,
    pub(super) begun: bool,
}

impl Future for Pause {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        if this.begun {
            this.schedule.resumed();
            return Poll::Ready(());
        }
        this.begun = true;
        this.schedule.stopped(this.until, this.class, this.in_turn);
        Poll::Pending
    }
}

/// Blocks on a call to a store. Nothing else runs until it answers, so that the order of events is
/// the same on stores in memory and on stores with threads of their own.
pub(super) fn block_on<T>(call: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let (mut call, mut context) = (pin!(call), Context::from_waker(&waker));
    loop {
        match call.as_mut().poll(&mut context) {
            Poll::Ready(answer) => return answer,
            Poll::Pending => std::thread::park(),
        }
    }
}
