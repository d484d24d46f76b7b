//! The contract of the job store and of the agenda.

use signalbox_domain::ports::{JobLease, LeasedJob, SHOWN_AFTER, Stores, Work};
use signalbox_domain::time::Span;
use uuid::Uuid;

use super::{Sample, at};

const ONE: Uuid = Uuid::from_u128(1);
const TWO: Uuid = Uuid::from_u128(2);

async fn lease(stores: &Stores, server: Uuid, now: u32) -> Option<JobLease> {
    let leased = stores.runtime.jobs.lease(&["sweep"], server, at(now), at(now + 15)).await;
    leased.expect("an answer").pop().map(|LeasedJob { token, .. }| token)
}

async fn finish(stores: &Stores, token: &JobLease, now: u32, next: u32) -> bool {
    let finished = stores.runtime.jobs.finish(token, at(now), at(next), None).await;
    finished.expect("an answer")
}

async fn declare(stores: &Stores, kind: &str, now: u32) {
    let jobs = [(kind, at(now + 60))];
    stores.runtime.jobs.declare(&jobs, at(now)).await.expect("declared");
}

/// A new job is due immediately, leased once, and due again at the time that its run sets; failures
/// are counted.
pub async fn a_job_is_leased_once_and_is_due_again_after_its_run(stores: &Stores) {
    declare(stores, "sweep", 10).await;
    declare(stores, "other", 10).await;
    let first = lease(stores, ONE, 10).await.expect("due immediately");
    assert_eq!(lease(stores, ONE, 11).await, None, "it is leased");
    assert!(stores.runtime.jobs.renew(&first, at(40)).await.expect("an answer"));
    assert_eq!(lease(stores, ONE, 30).await, None, "the lease was extended");
    let failed = stores.runtime.jobs.finish(&first, at(31), at(40), Some("no")).await;
    assert!(failed.expect("an answer"));
    assert!(!finish(stores, &first, 32, 33).await, "the lease has ended");
    let again =
        stores.runtime.jobs.lease(&["sweep"], ONE, at(40), at(55)).await.expect("an answer");
    let [LeasedJob { token, failures: 1 }] = again.as_slice() else { panic!("{again:?}") };
    assert!(finish(stores, token, 41, 9_000).await);
    // A shorter period than the present delay.
    declare(stores, "sweep", 50).await;
    assert_eq!(lease(stores, ONE, 109).await, None);
    assert!(lease(stores, ONE, 110).await.is_some());
}

/// Another server leases a job only if the last server is late.
pub async fn a_job_stays_with_its_server_until_that_is_late(stores: &Stores) {
    declare(stores, "sweep", 0).await;
    let token = lease(stores, ONE, 0).await.expect("due");
    assert!(finish(stores, &token, 1, 10).await);
    assert_eq!(lease(stores, TWO, 14).await, None);
    let token = lease(stores, ONE, 14).await.expect("the last server leases it on time");
    assert!(finish(stores, &token, 15, 20).await);
    assert!(lease(stores, TWO, 25).await.is_some(), "late by five seconds");
}

/// An expired lease is taken over, and a stopping server ends its leases.
pub async fn the_job_of_a_dead_server_is_taken_over(stores: &Stores) {
    declare(stores, "sweep", 0).await;
    let dead = lease(stores, ONE, 0).await.expect("due");
    assert_eq!(lease(stores, TWO, 14).await, None);
    let token = lease(stores, TWO, 15).await.expect("the lease has run out");
    assert!(!stores.runtime.jobs.renew(&dead, at(99)).await.expect("an answer"));
    assert!(!finish(stores, &dead, 16, 17).await);
    assert!(finish(stores, &token, 16, 20).await);
    assert_eq!(stores.runtime.jobs.hand_back(Some(ONE)).await.expect("an answer"), 0);
    assert_eq!(stores.runtime.jobs.hand_back(Some(TWO)).await.expect("an answer"), 1);
    lease(stores, ONE, 20).await.expect("immediately");
    assert_eq!(stores.runtime.jobs.hand_back(None).await.expect("an answer"), 1);
    assert!(lease(stores, TWO, 21).await.is_some());
}

/// Of several concurrent calls, one leases the job.
pub async fn one_of_eight_servers_leases_the_job(stores: &Stores) {
    declare(stores, "sweep", 0).await;
    let mut asking = Vec::new();
    for server in 0..8 {
        let stores = stores.clone();
        let asked = async move { lease(&stores, Uuid::from_u128(100 + server), 1).await };
        asking.push(tokio::spawn(asked));
    }
    let mut got = 0;
    for asked in asking {
        got += usize::from(asked.await.expect("it ends").is_some());
    }
    assert_eq!(got, 1);
}

/// One read returns when each kind of work is due, and the newest positions of the event logs.
pub async fn the_agenda_names_what_is_due(stores: &Stores) {
    let agenda = async |server| stores.runtime.agenda.agenda(server).await.expect("an agenda");
    let empty = agenda(ONE).await;
    assert!(empty.due.is_empty() && empty.newest_events.is_empty(), "{empty:?}");
    let mut sample = Sample::new(stores).await;
    sample.submit(1).await;
    let now = sample.world.at;
    declare(stores, "sweep", 10).await;
    let token = lease(stores, ONE, 10).await.expect("due");
    assert_eq!(agenda(TWO).await.due.get(&Work::Jobs), Some(&at(25)), "when the lease ends");
    assert!(finish(stores, &token, 11, 50).await);
    assert_eq!(agenda(ONE).await.due.get(&Work::Jobs), Some(&at(50)));
    assert_eq!(
        agenda(TWO).await.due.get(&Work::Jobs),
        Some(&at(55)),
        "it waits for the last server"
    );
    let seen = agenda(ONE).await;
    assert_eq!(seen.due.get(&Work::Deadlines), Some(&now.plus(Span::minutes(300))));
    assert_eq!(seen.due.get(&Work::HostEffects), Some(&now));
    assert_eq!(seen.due.get(&Work::Checks), None);
    assert_eq!(seen.due.get(&Work::Announcements), Some(&now.plus(SHOWN_AFTER)));
    let newest = stores.webhook.event_log.newest(sample.queue.org).await.expect("a position");
    assert_eq!(seen.newest_events.get(&sample.queue.org), Some(&newest));
    assert_eq!(seen.next_after(now), Some(now.plus(SHOWN_AFTER)));
    assert!(seen.due_at(now).any(|work| work == Work::HostEffects));
    // Leased work is due when the lease ends.
    let until = now.plus(Span::seconds(12));
    let class = signalbox_domain::queue::EffectClass::Host;
    let leased = stores.queue.outbox.lease(class, 9, ONE, now, until).await.expect("effects");
    assert!(!leased.is_empty());
    assert_eq!(agenda(ONE).await.due.get(&Work::HostEffects), Some(&until));
}
