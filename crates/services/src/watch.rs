//! The watch over waiting entries: checks on a running server that each waits for something that
//! exists and will end (Q10).

use std::collections::BTreeSet;

use signalbox_domain::ids::{PrNumber, RunId};
use signalbox_domain::ports::{Observed, QueueKey};
use signalbox_domain::queue::{Awaited, Fact, Queue, awaited, unjustified};

use super::{Error, QueueContext, QueueService};

/// An entry whose wait has no explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unexplained {
    /// Its queue.
    pub queue: QueueKey,
    /// Its pull request.
    pub pr: PrNumber,
    /// A description of the violation.
    pub why: String,
}

/// The findings of one pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Looked {
    /// Entries whose wait has no explanation, even after another step of the queue.
    pub unexplained: Vec<Unexplained>,
    /// Runs whose effects were lost without an answer and repeated.
    pub lost: Vec<RunId>,
}

/// Checks the queues with entries.
pub struct Watch {
    context: QueueContext,
    queues: std::sync::Arc<QueueService>,
}

impl Watch {
    /// Creates the watch.
    pub fn new(context: impl Into<QueueContext>, queues: std::sync::Arc<QueueService>) -> Self {
        Self { context: context.into(), queues }
    }

    /// Checks every queue with entries once. A queue with an unexplained wait, or with another policy than at
    /// its last step, takes another step, and a lost call to the host is repeated; both are reported.
    pub async fn look(&self) -> Result<Looked, Error> {
        let mut looked = Looked::default();
        // A queue without entries has no waits.
        for (key, queue) in self.queues.states(true).await? {
            looked.lost.extend(self.ask_again(&key, &queue).await?);
            looked.unexplained.extend(self.step_again(&key).await?);
        }
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        self.context.observer.observe(&Observed::Waits {
            unexplained: count(looked.unexplained.len()),
            lost: count(looked.lost.len()),
        });
        Ok(looked)
    }

    async fn step_again(&self, key: &QueueKey) -> Result<Vec<Unexplained>, Error> {
        let Some(queue) = self.queues.state(key.queue).await? else { return Ok(Vec::new()) };
        if unjustified(&queue).is_empty() && !queue.has_other_policy() {
            return Ok(Vec::new());
        }
        self.queues.absorb(key.queue, Fact::TimePassed).await?;
        let Some(queue) = self.queues.state(key.queue).await? else { return Ok(Vec::new()) };
        let left = unjustified(&queue).into_iter();
        Ok(left.map(|(pr, why)| Unexplained { queue: key.clone(), pr, why }).collect())
    }

    /// An effect is removed after its answer was absorbed. So an answer that is awaited both before
    /// and after a read of the outbox, and whose effect is not in it, is lost.
    async fn ask_again(&self, key: &QueueKey, queue: &Queue) -> Result<Vec<RunId>, Error> {
        let wanted: BTreeSet<Awaited> = awaited(queue).into_iter().collect();
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let answering: BTreeSet<RunId> =
            self.context.stores.outbox.answering(key.queue).await?.into_iter().collect();
        let missing: BTreeSet<Awaited> =
            wanted.into_iter().filter(|it| !answering.contains(&it.run())).collect();
        if missing.is_empty() {
            return Ok(Vec::new());
        }
        let still = self.awaited(key).await?;
        let lost: Vec<RunId> = still.intersection(&missing).map(|wanted| wanted.run()).collect();
        for run in &lost {
            self.queues.absorb(key.queue, Fact::AnswerLost { run: *run }).await?;
        }
        Ok(lost)
    }

    async fn awaited(&self, key: &QueueKey) -> Result<BTreeSet<Awaited>, Error> {
        let queue = self.queues.state(key.queue).await?;
        let of = |queue: &Queue| awaited(queue).into_iter().collect();
        Ok(queue.as_deref().map(of).unwrap_or_default())
    }
}
