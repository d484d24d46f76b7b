//! Checks that no effect has been failing for more than a minute.

use signalbox_domain::ports::{FailingEffect, QueueKey, Stores};
use signalbox_domain::time::Timestamp;
use signalbox_services::failing;
use signalbox_terminal::chain;

use super::Finding;

/// The most effects that are listed one by one.
const LISTED: u32 = 5;

pub(super) async fn failing(stores: &Stores, now: Timestamp) -> Vec<Finding> {
    let name = "effects";
    let failing = match failing::for_long(&*stores.queue.outbox, now, LISTED).await {
        Ok(failing) => failing,
        Err(error) => return vec![Finding::bad(name, chain("outbox", &error))],
    };
    if failing.count == 0 {
        return vec![Finding::good(name, "none has been failing for more than a minute")];
    }
    let queues = stores.queue.queues.list(None, None).await.unwrap_or_default();
    let mut found = Vec::new();
    for it in &failing.longest {
        let queue = match queues.iter().find(|key| key.queue == it.queue) {
            Some(key) => place(stores, key).await,
            None => format!("queue {}", it.queue.id),
        };
        found.push(Finding::bad(name, words(&queue, it)));
    }
    let listed = u64::try_from(failing.longest.len()).unwrap_or(u64::MAX);
    if failing.count > listed {
        let more = failing.count - listed;
        found.push(Finding::bad(
            name,
            format!("{more} more have been failing for more than a minute"),
        ));
    }
    found
}

fn words(queue: &str, it: &FailingEffect) -> String {
    let (effect, since, attempts, error) = (it.effect.name(), it.since, it.attempts, &it.error);
    format!(
        "{queue}: {effect} has been failing since {since}, {attempts} attempts, last error: {error}"
    )
}

/// The repository and the branch of a queue.
async fn place(stores: &Stores, key: &QueueKey) -> String {
    let found = stores.account.repos.find(key.queue.org, key.repo).await.ok().flatten();
    let repository = found.map_or_else(|| "unknown repository".into(), |it| it.name.to_string());
    format!("{repository} {}", key.branch)
}
