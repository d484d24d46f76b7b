//! Checks that every waiting pull request has a known wait reason.

use signalbox_domain::ports::{Loaded, Stores};
use signalbox_domain::queue::{SharedPolicy, unjustified};
use signalbox_terminal::chain;
use signalbox_wording::settings_warning;

use super::Finding;

/// Checks every stored queue.
pub(super) async fn waits(stores: &Stores, policy: &SharedPolicy) -> Vec<Finding> {
    let name = "queues";
    let keys = match stores.queue.queues.list(None, None).await {
        Ok(keys) => keys,
        Err(error) => return vec![Finding::bad(name, chain("queues", &error))],
    };
    let mut found = Vec::new();
    for key in &keys {
        match stores.queue.queues.load(key.queue, None).await {
            Ok(Some(Loaded::Fresh(queue, _))) => {
                let queue = queue.with_policy(policy.clone());
                found.extend(unjustified(&queue).into_iter().map(|(pr, why)| {
                    let words = format!(
                        "branch `{}`: #{pr} waits for no known reason; please report this: {why}",
                        key.branch
                    );
                    Finding::warning(name, words)
                }));
                found.extend(queue.header.settings.warnings().into_iter().map(|warning| {
                    let warning = settings_warning(warning);
                    Finding::warning(name, format!("branch `{}`: {warning}", key.branch))
                }));
            }
            Ok(Some(Loaded::Current) | None) => {}
            Err(error) => found.push(Finding::bad(name, chain("a queue", &error))),
        }
    }
    if found.is_empty() {
        found.push(Finding::good(
            name,
            format!("every wait in {} queues has a known reason", keys.len()),
        ));
    }
    found
}
