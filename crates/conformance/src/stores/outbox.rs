//! The contract of the outbox.

use std::collections::BTreeSet;

use signalbox_domain::ids::{BranchName, Sha, TreeId};
use signalbox_domain::ids::{PrNumber, QueueId, RunId};
use signalbox_domain::ports::{Failing, Leased, QueueRef, Stores};
use signalbox_domain::queue::{Candidate, Effect, EffectClass, RunChecks};
use signalbox_domain::time::Span;
use uuid::Uuid;

use super::Sample;
use super::sample::shared;

async fn lease(sample: &Sample<'_>, class: EffectClass, limit: u32, holder: Uuid) -> Vec<Leased> {
    let now = sample.world.at;
    let until = now.plus(Span::seconds(30));
    sample.stores.queue.outbox.lease(class, limit, holder, now, until).await.expect("a lease")
}

/// Effects are leased oldest first, and not again while the lease is valid.
pub async fn an_effect_is_leased_once_and_in_order(stores: &Stores) {
    let mut sample = Sample::new(stores).await;
    sample.put_effects((1..=3).map(Sample::inspect).collect()).await;
    let holder = Uuid::new_v4();
    let first = lease(&sample, EffectClass::Host, 2, holder).await;
    let effects: Vec<&Effect> = first.iter().map(|it| &it.effect).collect();
    assert_eq!(effects, [&Sample::inspect(1), &Sample::inspect(2)]);
    assert!(first.iter().all(|it| it.queue == sample.queue && it.attempts == 0));
    let second = lease(&sample, EffectClass::Host, 10, holder).await;
    assert_eq!(second.len(), 1);
    assert!(lease(&sample, EffectClass::Host, 10, holder).await.is_empty());
    assert!(lease(&sample, EffectClass::Checks, 10, holder).await.is_empty());
    for leased in first.iter().chain(&second) {
        assert!(stores.queue.outbox.finish(leased.token).await.expect("finished"));
    }
    sample.world.wait(Span::hours(1));
    assert!(lease(&sample, EffectClass::Host, 10, holder).await.is_empty());
}

/// No effect has two valid leases.
pub async fn eight_workers_take_a_thousand_effects_once_each(stores: &Stores) {
    let mut sample = Sample::new(stores).await;
    sample.put_effects((1..=1_000).map(Sample::inspect).collect()).await;
    let now = sample.world.at;
    let workers: Vec<_> = (0..8)
        .map(|_| {
            let stores = shared(stores);
            tokio::spawn(async move {
                let (holder, mut taken) = (Uuid::new_v4(), Vec::new());
                loop {
                    let until = now.plus(Span::seconds(30));
                    let leased =
                        stores.queue.outbox.lease(EffectClass::Host, 20, holder, now, until).await;
                    let leased = leased.expect("a lease");
                    if leased.is_empty() {
                        return taken;
                    }
                    taken.extend(leased.iter().map(|it| it.number));
                }
            })
        })
        .collect();
    let mut taken = Vec::new();
    for worker in workers {
        taken.extend(worker.await.expect("a worker"));
    }
    assert_eq!(taken.len(), 1_000);
    assert_eq!(taken.iter().collect::<BTreeSet<_>>().len(), 1_000);
}

/// An expired lease that was taken over can be neither renewed nor finished nor retried.
pub async fn a_lost_lease_has_no_effect(stores: &Stores) {
    let mut sample = Sample::new(stores).await;
    sample.put_effects(vec![Sample::inspect(1)]).await;
    let holder = Uuid::new_v4();
    let lost = lease(&sample, EffectClass::Host, 1, holder).await.remove(0);
    let until = sample.world.at.plus(Span::seconds(60));
    assert!(stores.queue.outbox.renew(lost.token, until).await.expect("a renewal"));
    sample.world.wait(Span::seconds(59));
    assert!(lease(&sample, EffectClass::Host, 1, holder).await.is_empty(), "it was renewed");
    sample.world.wait(Span::seconds(1));
    let taken = lease(&sample, EffectClass::Host, 1, holder).await.remove(0);
    assert_eq!(taken.attempts, 1);
    let outbox = &stores.queue.outbox;
    assert!(!outbox.renew(lost.token, until).await.expect("a renewal"));
    assert!(!outbox.retry(lost.token, until, until, "late").await.expect("a retry"));
    assert!(!outbox.finish(lost.token).await.expect("a finish"));
    assert!(outbox.finish(taken.token).await.expect("a finish"));
    assert!(!outbox.finish(taken.token).await.expect("a finish"));
}

/// A retried effect is due again at its time, and keeps the time of its first failure.
pub async fn a_retried_effect_is_leased_again_when_it_is_due(stores: &Stores) {
    let mut sample = Sample::new(stores).await;
    sample.put_effects(vec![Sample::inspect(1)]).await;
    let holder = Uuid::new_v4();
    let leased = lease(&sample, EffectClass::Host, 1, holder).await.remove(0);
    let since = sample.world.at;
    let due = since.plus(Span::seconds(5));
    assert!(
        stores.queue.outbox.retry(leased.token, due, since, "no answer").await.expect("a retry")
    );
    assert!(lease(&sample, EffectClass::Host, 1, holder).await.is_empty());
    sample.world.wait(Span::seconds(5));
    let again = lease(&sample, EffectClass::Host, 1, holder).await.remove(0);
    assert_eq!((again.attempts, again.failing_since), (1, Some(since)));
}

/// Failing effects are listed with their last error, longest first, until they are done.
pub async fn failing_effects_are_listed_longest_first(stores: &Stores) {
    let mut sample = Sample::new(stores).await;
    sample.put_effects((1..=3).map(Sample::inspect).collect()).await;
    let begun = sample.world.at;
    let failing = async |queue, before, limit| {
        stores.queue.outbox.failing(queue, before, limit).await.expect("an answer")
    };
    let (queue, outbox) = (Some(sample.queue), &stores.queue.outbox);
    assert_eq!(failing(queue, begun, 10).await, Failing::default());
    let leased = lease(&sample, EffectClass::Host, 2, Uuid::new_v4()).await;
    let since = [begun.plus(Span::seconds(5)), begun];
    for (leased, since) in leased.iter().zip(since) {
        // A host's message may contain NUL, which PostgreSQL does not store.
        let words = format!("no\0 answer to {}", leased.number);
        assert!(outbox.retry(leased.token, begun, since, &words).await.expect("a retry"));
    }
    let all = failing(queue, since[0], 10).await;
    let told: Vec<_> = all.longest.iter().map(|it| (it.effect.clone(), it.since)).collect();
    assert_eq!(told, [(Sample::inspect(2), begun), (Sample::inspect(1), since[0])]);
    assert_eq!((all.count, all.longest[0].attempts), (2, 1));
    assert_eq!(all.longest[0].error, format!("no answer to {}", leased[1].number));
    let (few, early) = (failing(queue, since[0], 1).await, failing(queue, begun, 10).await);
    assert_eq!((few.count, few.longest.len()), (2, 1));
    assert_eq!((early.count, &early.longest), (1, &few.longest));
    let other = QueueRef { id: QueueId(Uuid::new_v4()), ..sample.queue };
    assert_eq!(failing(Some(other), since[0], 10).await.count, 0);
    assert!(failing(None, since[0], 10).await.count >= 2);

    let again = lease(&sample, EffectClass::Host, 3, Uuid::new_v4()).await;
    assert_eq!(again.len(), 3);
    assert_eq!(failing(queue, since[0], 10).await.count, 2, "also while they are retried");
    for leased in again {
        assert!(outbox.finish(leased.token).await.expect("finished"));
    }
    assert_eq!(failing(queue, since[0], 10).await, Failing::default());
}

/// Revoked checks are removed, even under a lease.
pub async fn revoked_checks_end_their_lease(stores: &Stores) {
    let mut sample = Sample::new(stores).await;
    let (run, other) = (RunId(Uuid::new_v4()), RunId(Uuid::new_v4()));
    let checks = |run| {
        Effect::RunChecks(RunChecks {
            run,
            candidate: Candidate {
                sha: Sha::new("a".repeat(40)).expect("a commit"),
                tree: TreeId::new("b".repeat(40)).expect("a tree"),
            },
            branch: BranchName::new("signalbox-merge/pr-1/x").expect("a branch"),
            target: BranchName::new("main").expect("a branch"),
            config_from: Sha::new("c".repeat(40)).expect("a commit"),
            prs: vec![PrNumber(1)],
            again: Vec::new(),
            required: vec!["test".into()],
        })
    };
    sample
        .put_effects(vec![checks(run), checks(other), Effect::CancelChecks { run, on_host: None }])
        .await;
    let leased = lease(&sample, EffectClass::Checks, 10, Uuid::new_v4()).await;
    assert_eq!(leased.len(), 2);
    assert_eq!(stores.queue.outbox.revoke_checks(sample.queue, run).await.expect("revoked"), 1);
    let until = sample.world.at.plus(Span::seconds(30));
    assert!(!stores.queue.outbox.renew(leased[0].token, until).await.expect("a renewal"));
    assert!(stores.queue.outbox.renew(leased[1].token, until).await.expect("a renewal"));
    assert_eq!(
        lease(&sample, EffectClass::Host, 10, Uuid::new_v4()).await.len(),
        1,
        "only checks are removed"
    );
}

/// The runs that wait for an answer of the host are those with a build or a landing in the outbox.
pub async fn runs_with_a_build_or_landing_in_the_outbox_are_listed(stores: &Stores) {
    let mut sample = Sample::new(stores).await;
    let run = RunId(Uuid::new_v4());
    sample.put_effects(vec![Effect::CancelChecks { run, on_host: None }, Sample::inspect(1)]).await;
    assert_eq!(stores.queue.outbox.answering(sample.queue).await.expect("an answer"), []);
    sample.put_effects(vec![Sample::land(run)]).await;
    assert_eq!(stores.queue.outbox.answering(sample.queue).await.expect("an answer"), [run]);
    let leased = lease(&sample, EffectClass::Host, 10, Uuid::new_v4()).await;
    assert_eq!(stores.queue.outbox.answering(sample.queue).await.expect("an answer"), [run]);
    for it in &leased {
        stores.queue.outbox.finish(it.token).await.expect("finished");
    }
    assert_eq!(stores.queue.outbox.answering(sample.queue).await.expect("an answer"), []);
}

/// The effects of ended leases are due immediately; other holders keep their leases.
pub async fn a_holder_ends_all_of_its_leases(stores: &Stores) {
    let mut sample = Sample::new(stores).await;
    sample.put_effects((1..=3).map(Sample::inspect).collect()).await;
    let (leaving, staying) = (Uuid::new_v4(), Uuid::new_v4());
    assert_eq!(lease(&sample, EffectClass::Host, 2, leaving).await.len(), 2);
    assert_eq!(lease(&sample, EffectClass::Host, 2, staying).await.len(), 1);
    assert_eq!(stores.queue.outbox.hand_back(Some(leaving)).await.expect("handed back"), 2);
    assert_eq!(lease(&sample, EffectClass::Host, 10, staying).await.len(), 2);
    assert_eq!(stores.queue.outbox.hand_back(None).await.expect("handed back"), 3);
}
