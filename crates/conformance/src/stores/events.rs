//! The contract of the event log.

use std::sync::Arc;

use signalbox_domain::ids::{OrgId, QueueId};
use signalbox_domain::ports::{PublicEvent, QueueRef, Stores, Version};
use signalbox_domain::queue::{Mode, Settings};
use signalbox_domain::testing::{Rules, World};
use signalbox_domain::time::Span;
use uuid::Uuid;

use super::Sample;
use super::sample::shared;

fn kinds(events: &[PublicEvent]) -> Vec<&str> {
    events.iter().map(|it| it.kind.as_str()).collect()
}

/// Everything after a position, two at a time.
async fn all(stores: &Stores, org: OrgId, mut after: i64) -> Vec<PublicEvent> {
    let mut seen = Vec::new();
    loop {
        let page = stores.webhook.event_log.after(org, after, None, 2).await.expect("a page");
        let Some(last) = page.last() else { return seen };
        assert!(page.len() <= 2 && last.position > after);
        after = last.position;
        seen.extend(page);
    }
}

/// Events come in the order of their commits, page by page, with their payloads.
pub async fn events_are_paged_in_order(stores: &Stores) {
    let mut sample = Sample::new(stores).await;
    assert_eq!(stores.webhook.event_log.newest(sample.queue.org).await.expect("a read"), 0);
    sample.submit(1).await;
    sample.settle().await;
    let events = all(stores, sample.queue.org, 0).await;
    let told = ["submitted", "queued", "testing", "merged"];
    assert_eq!(kinds(&events), told.map(|word| format!("pull_request.{word}")));
    assert!(events.is_sorted_by_key(|it| (it.position, it.at)));
    assert!(events.iter().all(|it| it.repo == Some(sample.repository.id)));
    assert_eq!(events[3].payload, "pull_request.merged 1 for main of git.local/acme/calc");
    let newest = stores.webhook.event_log.newest(sample.queue.org).await.expect("a read");
    assert_eq!(newest, events[3].position);
    let after = stores.webhook.event_log.after(sample.queue.org, newest, None, 2).await;
    assert_eq!(after.expect("a page"), []);
}

/// Events are found by kind, and each by its id.
pub async fn events_are_found_by_kind_and_id(stores: &Stores) {
    let mut sample = Sample::new(stores).await;
    let org = sample.queue.org;
    for pr in 1..=2 {
        sample.submit(pr).await;
    }
    sample.settle().await;
    let asked = ["pull_request.merged".to_owned(), "no.such_event".to_owned()];
    let merged = stores.webhook.event_log.after(org, 0, Some(&asked), 9).await.expect("a page");
    assert_eq!(kinds(&merged), ["pull_request.merged", "pull_request.merged"]);
    let one = stores.webhook.event_log.after(org, 0, Some(&asked), 1).await.expect("a page");
    assert_eq!(one, merged[..1]);
    assert_eq!(stores.webhook.event_log.after(org, 0, Some(&[]), 9).await.expect("a page"), []);
    let found = stores.webhook.event_log.event(org, merged[1].id).await.expect("a read");
    assert_eq!(found.as_ref(), Some(&merged[1]));
    assert_eq!(stores.webhook.event_log.event(org, Uuid::new_v4()).await.expect("a read"), None);
}

/// Old events are deleted, oldest first, and later events still get higher positions.
pub async fn old_events_are_deleted_and_positions_are_not_reused(stores: &Stores) {
    let mut sample = Sample::new(stores).await;
    let (org, log) = (sample.queue.org, stores.webhook.event_log.clone());
    sample.submit(1).await;
    let events = all(stores, org, 0).await;
    assert_eq!(log.prune(sample.world.at, 9).await.expect("pruned"), 0);
    sample.world.wait(Span::hours(1));
    assert_eq!(log.prune(sample.world.at, 2).await.expect("pruned"), 2);
    assert_eq!(all(stores, org, 0).await, events[2..]);
    assert_eq!(log.prune(sample.world.at, 9).await.expect("pruned"), 1);
    assert_eq!(log.newest(org).await.expect("a read"), 0);
    sample.settle().await;
    let later = all(stores, org, events[2].position).await;
    assert_eq!(kinds(&later), ["pull_request.merged"]);
}

/// Another organization sees no event by any method.
pub async fn events_are_for_their_own_organization(stores: &Stores) {
    let mut sample = Sample::new(stores).await;
    sample.submit(1).await;
    let (log, foreign) = (&stores.webhook.event_log, Sample::org(stores, "other").await.id);
    let mine = all(stores, sample.queue.org, 0).await;
    assert_eq!(mine.len(), 3);
    assert_eq!(log.after(foreign, 0, None, 9).await.expect("a page"), []);
    assert_eq!(log.newest(foreign).await.expect("a read"), 0);
    assert_eq!(log.event(foreign, mine[0].id).await.expect("a read"), None);
}

/// While eight queues of an organization commit concurrently, a reader that continues from its last
/// position misses no event.
pub async fn a_reader_misses_no_event_during_concurrent_commits(stores: &Stores) {
    const WRITERS: usize = 8;
    const EACH: u32 = 6;
    let sample = Sample::new(stores).await;
    let (org, repository) = (sample.queue.org, sample.repository.clone());
    let mut writers = Vec::new();
    for writer in 0..WRITERS {
        let mut world =
            World::new(Settings::new(Mode::Single, 2).expect("valid settings"), Rules::default());
        let header = &mut world.queue.header;
        header.branch = sample.new_queue(&format!("branch-{writer}")).header.branch;
        (header.id, header.org, header.repo) = (QueueId(Uuid::new_v4()), org, repository.id);
        let queue = QueueRef { org, id: header.id };
        stores.queue.queues.create(&world.queue).await.expect("a new queue");
        let (stores, repository) = (shared(stores), repository.clone());
        writers.push(tokio::spawn(async move {
            let mut sample =
                Sample { stores: &stores, repository, queue, world, version: Version(0) };
            for pr in 1..=EACH {
                sample.submit(pr).await;
            }
        }));
    }
    let done = Arc::new(tokio::sync::Notify::new());
    let reader = {
        let (stores, done) = (shared(stores), done.clone());
        tokio::spawn(async move {
            let (mut seen, mut last) = (Vec::new(), 0);
            let mut ended = std::pin::pin!(done.notified());
            loop {
                let over = tokio::select! {
                    biased;
                    () = &mut ended => true,
                    () = std::future::ready(()) => false,
                };
                seen.extend(all(&stores, org, last).await);
                last = seen.last().map_or(last, |it: &PublicEvent| it.position);
                if over {
                    return seen;
                }
                tokio::task::yield_now().await;
            }
        })
    };
    for writer in writers {
        writer.await.expect("a writer");
    }
    done.notify_one();
    let seen = reader.await.expect("a reader");
    assert_eq!(seen, all(stores, org, 0).await);
    let submitted = seen.iter().filter(|it| it.kind == "pull_request.submitted").count();
    assert_eq!(submitted, WRITERS * usize::try_from(EACH).expect("small"));
}
