//! The contract of the queue store.

use std::collections::BTreeMap;

use signalbox_domain::ids::{BranchName, OrgId, PrNumber, RepoName, Sha};
use signalbox_domain::ports::{
    CommitError, CreateError, Loaded, Located, MetricsScope, QueueRef, Stores, Version,
};
use signalbox_domain::queue::{
    Actor, Check, CheckConclusion, CheckStatus, Command, Decision, Effect, EffectClass,
    ExternalReport, Fact, Input, Policy, PolicyId, ReportedTargets, absorb,
};
use signalbox_domain::testing::{AnyPolicy, Rules};
use signalbox_domain::time::Span;
use uuid::Uuid;

use super::Sample;
use super::sample::{at, shared};

/// A second queue for a branch is refused; another branch is another queue.
pub async fn a_branch_has_one_queue(stores: &Stores) {
    let sample = Sample::new(stores).await;
    let again = stores.queue.queues.create(&sample.new_queue("main")).await;
    assert!(matches!(again, Err(CreateError::Exists)), "{again:?}");
    stores.queue.queues.create(&sample.new_queue("release/1")).await.expect("another branch");
    let list = stores.queue.queues.list(Some(sample.queue.org), Some(sample.repository.id)).await;
    assert_eq!(list.expect("a list").len(), 2);
}

/// Of concurrent creations of the same queue exactly one succeeds.
pub async fn of_concurrent_creations_one_succeeds(stores: &Stores) {
    let sample = Sample::new(stores).await;
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let (stores, queue) = (shared(stores), sample.new_queue("race"));
            tokio::spawn(async move { stores.queue.queues.create(&queue).await })
        })
        .collect();
    let mut created = 0;
    for task in tasks {
        match task.await.expect("a task") {
            Ok(()) => created += 1,
            Err(CreateError::Exists) => {}
            Err(CreateError::Store(error)) => panic!("{error:?}"),
        }
    }
    assert_eq!(created, 1);
}

/// State, journal, effects and events of a commit are written together.
pub async fn a_commit_is_atomic(stores: &Stores) {
    let mut sample = Sample::new(stores).await;
    sample.submit(1).await;
    let (kept, version) = sample.load().await;
    assert_eq!(kept, sample.world.queue);
    assert_eq!(version, Version(1));
    let journal = stores.queue.reads.journal(sample.queue, 0, 10).await.expect("a journal");
    assert_eq!(journal.len(), 1);
    assert!(matches!(journal[0].input, Input::Command(Command::Submit(_))));
    let events =
        stores.webhook.event_log.after(sample.queue.org, 0, None, 10).await.expect("events");
    assert_eq!(events.len(), 3, "submitted, queued, testing");
    let due = stores
        .queue
        .outbox
        .backlog(EffectClass::Host, sample.world.at)
        .await
        .expect("a backlog")
        .due;
    assert_eq!(due, 1, "the build of the candidate is due");
    sample.settle().await;
    assert_eq!(sample.load().await.0, sample.world.queue);
    assert_eq!(sample.world.landed, [1]);
}

/// Consecutive steps are written as if each was committed alone: of a row that several of them change the
/// last state, and the records, effects, events and announcements of all of them, in order.
pub async fn consecutive_steps_are_committed_together(stores: &Stores) {
    let mut alone = Sample::new(stores).await;
    let mut together = Sample::of(stores, "globex", Rules::default()).await;
    let targets = |name: &str| ReportedTargets::only(None, [name.to_owned()]);
    let commands = |sample: &mut Sample<'_>| {
        let report = |pr, name| Command::SetTargets { pr: PrNumber(pr), targets: targets(name) };
        let cancel = Command::Cancel { pr: PrNumber(2), by: Actor::Queue };
        let submissions = [1, 2, 3].map(|pr| sample.submission(pr, |_| ()));
        let [one, two, three] = submissions;
        vec![
            report(1, "a"),
            one,
            two.clone(),
            report(1, "b"),
            cancel,
            three,
            two,
            report(9, "c"),
            report(1, "d"),
        ]
    };
    for command in commands(&mut alone) {
        alone.world.wait(Span::seconds(1));
        alone.ask(command).await;
    }
    let steps = commands(&mut together);
    together.ask_together(steps).await.expect("a commit");
    assert_eq!(together.version, alone.version);
    let (kept, version) = together.load().await;
    assert_eq!(kept, together.world.queue);
    assert_eq!(version, Version(9));
    let mut written = Vec::new();
    for sample in [&alone, &together] {
        let journal = stores.queue.reads.journal(sample.queue, 0, 100).await.expect("a journal");
        let journal: Vec<_> =
            journal.iter().map(|it| (it.number, it.input.name(), it.decisions.len())).collect();
        let org = sample.queue.org;
        let events = stores.webhook.event_log.after(org, 0, None, 100).await.expect("events");
        let events: Vec<_> = events.into_iter().map(|it| (it.kind, it.payload, it.at)).collect();
        let (mut states, mut reported) = (Vec::new(), Vec::new());
        for pr in [1, 2, 3, 9].map(PrNumber) {
            let entry = stores.queue.reads.entry(sample.queue, pr).await.expect("a read");
            states.push(entry.map(|it| it.state.name()));
            reported.push(stores.queue.queues.targets(sample.queue, pr).await.expect("a read"));
        }
        let moves = stores.queue.reads.moves_since(sample.queue, at(0)).await.expect("moves");
        let moves: Vec<_> = moves.iter().map(|it| it.at).collect();
        let scope = MetricsScope { org, repo: None };
        let stays = stores.queue.reads.stays_since(scope, at(0)).await.expect("stays");
        let stays: Vec<_> = stays.into_iter().map(|(_, stay)| stay).collect();
        written.push((journal, events, states, reported, moves, stays));
    }
    // What is due when: the first commit that names a pull request decides.
    for after in 0..15 {
        let now = alone.world.at.plus(Span::seconds(after)).minus(Span::seconds(9));
        let (until, holder) = (now.plus(Span::hours(1)), Uuid::from_u128(1));
        let effects = stores.queue.outbox.lease(EffectClass::Host, 50, holder, now, until).await;
        let effects = effects.expect("leases");
        let announced = stores.queue.announcements.lease(50, holder, now, until).await;
        let announced = announced.expect("leases");
        let of = |queue: QueueRef| {
            let effects = effects.iter().filter(|it| it.queue == queue);
            let effects = effects.map(|it| it.effect.name()).collect::<Vec<_>>();
            let announced = announced.iter().filter(|it| it.queue == queue);
            (effects, announced.map(|it| it.pr).collect::<Vec<_>>())
        };
        assert_eq!(of(alone.queue), of(together.queue), "{after}");
    }
    assert_eq!(written[0], written[1]);
    for sample in [&mut alone, &mut together] {
        sample.settle().await;
        assert_eq!(sample.load().await.0, sample.world.queue);
    }
    assert_eq!(together.world.landed, alone.world.landed);
}

/// Steps on an old version fail together and write nothing.
pub async fn steps_on_an_old_version_write_nothing(stores: &Stores) {
    let mut sample = Sample::new(stores).await;
    sample.submit(1).await;
    let before = sample.load().await;
    sample.version = Version(0);
    let commands = [2, 3].map(|pr| sample.submission(pr, |_| ())).to_vec();
    let refused = sample.ask_together(commands.clone()).await;
    assert!(matches!(refused, Err(CommitError::Conflict)), "{refused:?}");
    assert_eq!(sample.load().await, before);
    let journal = stores.queue.reads.journal(sample.queue, 0, 10).await.expect("a journal");
    assert_eq!(journal.len(), 1);
    sample.version = Version(1);
    sample.ask_together(commands).await.expect("a commit");
    assert_eq!(sample.load().await, (sample.world.queue.clone(), Version(3)));
    // Without a step nothing is committed.
    assert!(stores.queue.queues.commit(&[]).await.is_err());
}

/// A commit on an old version fails and writes nothing.
pub async fn a_commit_on_an_old_version_writes_nothing(stores: &Stores) {
    let mut sample = Sample::new(stores).await;
    sample.submit(1).await;
    let before = sample.load().await;
    let events =
        stores.webhook.event_log.after(sample.queue.org, 0, None, 100).await.expect("events").len();
    sample.version = Version(0);
    let fact = Fact::TargetMissing;
    let transition = absorb(&sample.world.queue, &fact, sample.world.at);
    let refused = sample.commit(&transition, Input::Fact(fact)).await;
    assert!(matches!(refused, Err(CommitError::Conflict)), "{refused:?}");
    assert_eq!(sample.load().await, before);
    let after =
        stores.webhook.event_log.after(sample.queue.org, 0, None, 100).await.expect("events").len();
    assert_eq!(after, events);
    let journal = stores.queue.reads.journal(sample.queue, 0, 10).await.expect("a journal");
    assert_eq!(journal.len(), 1);
}

/// A load with the latest version returns `Current`.
pub async fn a_known_version_is_not_loaded_again(stores: &Stores) {
    let mut sample = Sample::new(stores).await;
    sample.submit(1).await;
    let queues = &stores.queue.queues;
    let current = queues.load(sample.queue, Some(Version(1))).await.expect("a load");
    assert!(matches!(current, Some(Loaded::Current)), "{current:?}");
    let fresh = queues.load(sample.queue, Some(Version(0))).await.expect("a load");
    assert!(matches!(fresh, Some(Loaded::Fresh(_, Version(1)))), "{fresh:?}");
}

/// Reports of external checks are stored with their run, which can still be read after its end.
pub async fn external_checks_are_stored_with_their_run(stores: &Stores) {
    let mut sample = Sample::with(stores, Rules { external: true, ..Rules::default() }).await;
    sample.submit(1).await;
    sample.settle().await;
    let (kept, _) = sample.load().await;
    assert_eq!(kept, sample.world.queue);
    let run = kept.runs().next().expect("a run").clone();
    assert_eq!(run.external(), ["test"]);
    let report = |conclusion: Option<CheckConclusion>| {
        let status =
            if conclusion.is_some() { CheckStatus::Completed } else { CheckStatus::InProgress };
        let check = Check {
            name: "test".to_owned(),
            status,
            conclusion,
            url: "https://ci.example/1".to_owned(),
            summary: Some("12 tests".to_owned()),
            at: at(60),
            excused: Vec::new(),
        };
        let sha = run.candidate.as_ref().expect("a candidate").sha.clone();
        ExternalReport { run: run.id, sha, check, by: Actor::Token("ci".to_owned()) }
    };
    for conclusion in [None, Some(CheckConclusion::Success)] {
        sample.ask(Command::ReportCheck(Box::new(report(conclusion)))).await;
        assert_eq!(sample.load().await.0, sample.world.queue);
    }
    sample.settle().await;
    assert_eq!(sample.world.landed, [1]);
    let ended = stores.queue.reads.run(sample.queue, run.id).await.expect("a read");
    let ended = ended.expect("the ended run");
    assert_eq!(ended.checks, [report(Some(CheckConclusion::Success)).check]);
    assert_eq!(ended.accepts(&report(Some(CheckConclusion::Success))), Ok(false));
    assert!(ended.accepts(&report(Some(CheckConclusion::Failure))).is_err());
}

/// A queue knows the policy of its last step, and the journal has every change of it.
pub async fn the_policy_of_a_queue_is_stored(stores: &Stores) {
    let mut sample = Sample::new(stores).await;
    let mut policies = Vec::new();
    for number in [7, 8] {
        sample.world.queue = sample.world.queue.clone().with_policy(AnyPolicy(number).into());
        sample.tell(Fact::TimePassed).await;
        let (kept, _) = sample.load().await;
        assert_eq!(kept, sample.world.queue);
        assert!(kept.has_other_policy(), "a store knows no policies");
        assert!(!kept.with_policy(AnyPolicy(number).into()).has_other_policy());
        policies.push(AnyPolicy(number).id());
    }
    let journal = stores.queue.reads.journal(sample.queue, 0, 1_000).await.expect("a journal");
    let of_policy = |decision: &Decision| match decision {
        Decision::PolicyChanged { from, to } => Some((from.clone(), to.clone())),
        _ => None,
    };
    let changes = journal.iter().flat_map(|record| record.decisions.iter().filter_map(of_policy));
    let [seven, eight] = [policies[0].clone(), policies[1].clone()];
    let expected = [(PolicyId::default(), seven.clone()), (seven, eight)];
    assert_eq!(changes.collect::<Vec<_>>(), expected);
}

/// Ended entries are not part of the state, and neither are their runs.
pub async fn only_live_entries_and_runs_that_matter_are_loaded(stores: &Stores) {
    let mut sample = Sample::new(stores).await;
    sample.submit(1).await;
    sample.submit(2).await;
    assert_eq!(sample.load().await.0.live(), 2);
    assert!(!sample.kept_runs().await.is_empty());
    sample.settle().await;
    assert_eq!(sample.load().await.0.live(), 0);
    assert!(sample.kept_runs().await.is_empty());
}

/// Targets are stored before a submission, and are read with the entry.
pub async fn targets_are_stored_apart_and_before_a_submission(stores: &Stores) {
    let mut sample = Sample::new(stores).await;
    let pr = PrNumber(7);
    assert_eq!(stores.queue.queues.targets(sample.queue, pr).await.expect("a read"), None);
    let sha = Some(Sha::new("a".repeat(40)).expect("a commit"));
    let names = (0..120_000).map(|number| format!("//lib:{number}"));
    let targets = ReportedTargets::only(sha, names);
    sample.ask(Command::SetTargets { pr, targets: targets.clone() }).await;
    assert_eq!(
        stores.queue.queues.targets(sample.queue, pr).await.expect("a read").as_ref(),
        Some(&targets)
    );
    for known in [None, Some(Version(0)), Some(sample.version)] {
        let queues = &stores.queue.queues;
        let loaded = queues.load_with_targets(sample.queue, known, &[pr]).await.expect("a load");
        let (loaded, found) = loaded.expect("a queue");
        assert_eq!(found, BTreeMap::from([(pr, targets.clone())]));
        assert_eq!(matches!(loaded, Loaded::Current), known == Some(sample.version));
        let loaded = queues.load_with_targets(sample.queue, known, &[PrNumber(8)]).await;
        assert_eq!(loaded.expect("a load").expect("a queue").1, BTreeMap::new());
        let other = QueueRef { org: OrgId(Uuid::new_v4()), id: sample.queue.id };
        assert!(queues.load_with_targets(other, known, &[pr]).await.expect("a load").is_none());
    }
    sample.submit(7).await;
    sample.ask(Command::SetTargets { pr, targets: targets.clone() }).await;
    let kept = sample.load().await.0.entry_of(pr).and_then(|entry| entry.targets.clone());
    assert_eq!(kept.as_deref(), Some(&targets));
    let entry =
        stores.queue.reads.entry(sample.queue, pr).await.expect("a read").expect("an entry");
    assert_eq!(entry.targets.as_deref(), Some(&targets));
}

/// A deleted queue is invisible to every read, and its branch can have another one.
pub async fn a_deleted_queue_frees_its_branch(stores: &Stores) {
    let mut sample = Sample::new(stores).await;
    let new = sample.new_queue("main");
    sample.ask(Command::Delete).await;
    let (org, repo) = (sample.queue.org, sample.repository.id);
    assert!(stores.queue.queues.load(sample.queue, None).await.expect("a load").is_none());
    assert!(
        stores.queue.queues.load(sample.queue, Some(Version(1))).await.expect("a load").is_none()
    );
    let branch = &new.header.branch;
    assert_eq!(stores.queue.queues.find(org, repo, branch).await.expect("a look-up"), None);
    stores.queue.queues.create(&new).await.expect("a new queue for the branch");
    let found = stores.queue.queues.find(org, repo, branch).await.expect("a look-up");
    assert_eq!(found, Some(QueueRef { org, id: new.header.id }));
}

/// A queue is located by the names of its repository and branch, with the latest version, and the targets
/// of a pull request.
pub async fn a_queue_is_located_by_names(stores: &Stores) {
    let mut sample = Sample::new(stores).await;
    sample.tell(Fact::TargetMissing).await;
    let (pr, targets) = (PrNumber(7), ReportedTargets::only(None, ["lib".to_owned()]));
    sample.ask(Command::SetTargets { pr, targets: targets.clone() }).await;
    let (org, repository) = (sample.queue.org, sample.repository.clone());
    let name = repository.name.clone();
    let main = sample.world.queue.header.branch.clone();
    let locate = async |org: OrgId, name: &RepoName, any_case: bool, branch: &BranchName| {
        stores.queue.queues.locate(org, name, any_case, branch, None).await.expect("a look-up")
    };
    let queue = Some((sample.queue, sample.version));
    let located = Located { repository: repository.clone(), queue, targets: None };
    for (pr, targets) in [(pr, Some(targets)), (PrNumber(8), None)] {
        let queues = &stores.queue.queues;
        let found = queues.locate(org, &name, false, &main, Some(pr)).await.expect("a look-up");
        assert_eq!(found, Some(Located { targets, ..located.clone() }));
    }
    assert_eq!(locate(org, &name, false, &main).await, Some(located.clone()));
    let upper = RepoName::new(name.host.as_str(), name.owner.to_uppercase(), name.name.clone());
    let upper = upper.expect("a name");
    assert_eq!(locate(org, &upper, true, &main).await, Some(located));
    assert_eq!(locate(org, &upper, false, &main).await, None);
    assert_eq!(locate(OrgId(Uuid::new_v4()), &name, false, &main).await, None);
    let without = Some(Located { repository, queue: None, targets: None });
    let other = BranchName::new("release").expect("a branch");
    assert_eq!(locate(org, &name, false, &other).await, without);
    sample.ask(Command::Delete).await;
    assert_eq!(locate(org, &name, false, &main).await, without);
}

/// Another organization sees nothing by any method.
pub async fn another_organization_sees_nothing(stores: &Stores) {
    let mut sample = Sample::new(stores).await;
    sample.submit(1).await;
    sample.settle().await;
    let org = OrgId(Uuid::new_v4());
    let queue = QueueRef { org, id: sample.queue.id };
    let repo = sample.repository.id;
    let branch = sample.world.queue.header.branch.clone();
    let (queues, reads) = (&stores.queue.queues, &stores.queue.reads);
    assert_eq!(queues.find(org, repo, &branch).await.expect("a look-up"), None);
    assert!(queues.load(queue, None).await.expect("a load").is_none());
    assert_eq!(queues.targets(queue, PrNumber(1)).await.expect("a read"), None);
    assert!(queues.list(Some(org), None).await.expect("a list").is_empty());
    assert!(reads.entry(queue, PrNumber(1)).await.expect("a read").is_none());
    assert!(reads.journal(queue, 0, 10).await.expect("a read").is_empty());
    assert!(stores.webhook.event_log.after(org, 0, None, 10).await.expect("a read").is_empty());
    let scope = MetricsScope { org, repo: None };
    assert!(reads.depths(scope).await.expect("a read").is_empty());
    let long_ago = sample.world.at.minus(Span::hours(100));
    assert!(reads.moves_since(queue, long_ago).await.expect("a read").is_empty());
    assert!(stores.account.repos.find(org, repo).await.expect("a read").is_none());
    let before = sample.load().await.1;
    let mine = sample.queue;
    sample.queue = queue;
    let transition = absorb(&sample.world.queue, &Fact::TargetMissing, sample.world.at);
    let refused = sample.commit(&transition, Input::Fact(Fact::TargetMissing)).await;
    assert!(matches!(refused, Err(CommitError::Conflict)), "{refused:?}");
    sample.queue = mine;
    assert_eq!(sample.load().await.1, before);
}

/// Queues are due by their next deadline, most overdue first.
pub async fn due_queues_are_found_most_overdue_first(stores: &Stores) {
    let mut sample = Sample::new(stores).await;
    sample.submit(1).await;
    let deadline = sample.world.at.plus(Span::minutes(300));
    let just_before = deadline.minus(Span::seconds(1));
    assert!(stores.queue.queues.due(just_before, 10).await.expect("a read").is_empty());
    assert_eq!(stores.queue.queues.due(deadline, 10).await.expect("a read"), [sample.queue]);
    sample.settle().await;
    assert!(stores.queue.queues.due(deadline, 10).await.expect("a read").is_empty());
    let building = |effect: &Effect| matches!(effect, Effect::BuildCandidate(_));
    assert!(!sample.world.outbox.iter().any(|it| building(&it.effect)));
}

/// Versions are read for all queues, or only for watched ones.
pub async fn versions_are_read_for_all_or_watched_queues(stores: &Stores) {
    let mut sample = Sample::new(stores).await;
    let idle = sample.new_queue("idle");
    stores.queue.queues.create(&idle).await.expect("a queue");
    let versions = async |watched_at| {
        let found = stores.queue.queues.versions(watched_at).await.expect("versions");
        found.into_iter().map(|(key, version)| (key.queue.id, version.0)).collect::<Vec<_>>()
    };
    sample.submit(1).await;
    let (busy, now) = (sample.queue.id, sample.world.at);
    let version = sample.load().await.1;
    assert_eq!(versions(Some(now)).await, [(busy, version.0)]);
    let mut all = vec![(busy, version.0), (idle.header.id, 0)];
    all.sort_unstable();
    assert_eq!(versions(None).await, all);
    sample.settle().await;
    assert_eq!(versions(Some(sample.world.at)).await, []);
    assert_eq!(versions(None).await.len(), 2);
}
