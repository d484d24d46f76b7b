//! The watch over waiting entries (Q10): on a running server, too, each of them must wait for
//! something that exists and will end.

use std::collections::BTreeSet;

use signalbox_domain::ids::{PrNumber, RunId};
use signalbox_domain::ports::{Observed, QueueKey};
use signalbox_domain::queue::{Awaited, Fact, Queue, awaited, unjustified};

use super::{Error, QueueContext, QueueService};

/// An entry that waits for nothing that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unexplained {
    /// Its queue.
    pub queue: QueueKey,
    /// Its pull request.
    pub pr: PrNumber,
    /// What was seen.
    pub why: String,
}

/// What one look has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Looked {
    /// Entries that wait for nothing that is known, also after the queue was let go on.
    pub unexplained: Vec<Unexplained>,
    /// Runs whose effects were gone without an answer; they were asked for again.
    pub lost: Vec<RunId>,
}

/// Looks at queues with entries.
pub struct Watch {
    context: QueueContext,
    queues: std::sync::Arc<QueueService>,
}

impl Watch {
    /// A watch on these adapters.
    pub fn new(context: impl Into<QueueContext>, queues: std::sync::Arc<QueueService>) -> Self {
        Self { context: context.into(), queues }
    }

    /// Looks at every queue with entries once. A queue in which an entry waits for nothing goes on as far as it
    /// can, and an answer of the host that will not come is asked for again; both are counted.
    pub async fn look(&self) -> Result<Looked, Error> {
        let mut looked = Looked::default();
        // Without entries nothing waits.
        for (key, queue) in self.queues.states(true).await? {
            looked.lost.extend(self.ask_again(&key, &queue).await?);
            looked.unexplained.extend(self.let_go_on(&key).await?);
        }
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        self.context.observer.observe(&Observed::Waits {
            unexplained: count(looked.unexplained.len()),
            lost: count(looked.lost.len()),
        });
        Ok(looked)
    }

    async fn let_go_on(&self, key: &QueueKey) -> Result<Vec<Unexplained>, Error> {
        let Some(queue) = self.queues.state(key.queue).await? else { return Ok(Vec::new()) };
        if unjustified(&queue).is_empty() {
            return Ok(Vec::new());
        }
        self.queues.absorb(key.queue, Fact::TimePassed).await?;
        let Some(queue) = self.queues.state(key.queue).await? else { return Ok(Vec::new()) };
        let left = unjustified(&queue).into_iter();
        Ok(left.map(|(pr, why)| Unexplained { queue: key.clone(), pr, why }).collect())
    }

    /// An effect is removed after its answer was taken in. So what was awaited before the outbox
    /// was read, is awaited after it, and was not in it, has no effect any more.
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
