//! The indexes answer like scans of the whole queue, in random histories.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::super::batch::gather;
use super::super::{
    ChangeSource, Command, Dependency, DependencyState, Entry, EntryState, LinePosition, Mode,
    Queue, RequestedState, Settings, SettingsPatch, TestRun, next_deadline,
};
use super::*;
use crate::ids::{PrNumber, RunId};
use crate::testing::{Rules, World};
use crate::time::{Span, Timestamp};

/// One operation on a queue and its surroundings.
#[derive(Clone, Debug)]
enum Op {
    Submit(u32, Option<u32>),
    Cancel(u32),
    Restart(u32),
    Push(u32),
    Depend(u32, u32),
    Retouch(u32, BTreeSet<u32>),
    MergeByHand(u32),
    Relabel(u32, bool),
    Set(Box<SettingsPatch>),
    State(RequestedState),
    PushTarget,
    HostLost,
    HostBack,
    Run(usize),
    Refuse(usize),
    Tell(usize),
    Wait,
}

/// One more than the highest number of a pull request.
const PRS: u32 = 16;

fn op() -> impl Strategy<Value = Op> {
    let pr = || 1..PRS;
    prop_oneof![
        8 => (pr(), prop::option::weighted(0.2, prop_oneof![Just(0), Just(10)])).prop_map(|(pr, rank)| Op::Submit(pr, rank)),
        1 => pr().prop_map(Op::Cancel),
        1 => pr().prop_map(Op::Restart),
        1 => pr().prop_map(Op::Push),
        1 => (pr(), pr()).prop_map(|(pr, on)| Op::Depend(pr, on)),
        1 => (pr(), targets()).prop_map(|(pr, targets)| Op::Retouch(pr, targets)),
        1 => pr().prop_map(Op::MergeByHand),
        2 => (pr(), any::<bool>()).prop_map(|(pr, agent)| Op::Relabel(pr, agent)),
        2 => patch().prop_map(|patch| Op::Set(Box::new(patch))),
        1 => prop_oneof![
            3 => Just(RequestedState::Running),
            1 => Just(RequestedState::Paused),
            1 => Just(RequestedState::Draining)
        ].prop_map(Op::State),
        1 => prop_oneof![Just(Op::PushTarget), Just(Op::HostLost), Just(Op::HostBack)],
        1 => (0..3_usize).prop_map(Op::Refuse),
        16 => (0..3_usize).prop_map(Op::Run),
        16 => (0..3_usize).prop_map(Op::Tell),
        1 => Just(Op::Wait),
    ]
}

/// A few targets, or more than are indexed.
fn targets() -> impl Strategy<Value = BTreeSet<u32>> {
    prop_oneof![
        8 => prop::collection::btree_set(1..8_u32, 0..3),
        1 => prop::sample::subsequence((1..40_u32).collect::<Vec<_>>(), 15..19)
            .prop_map(BTreeSet::from_iter),
    ]
}

fn rules() -> impl Strategy<Value = Rules> {
    let few = || prop::collection::btree_set(1..PRS, 0..3);
    let pairs = || {
        prop::collection::btree_set((1..PRS, 1..PRS), 0..3)
            .prop_map(|pairs| pairs.into_iter().filter(|(one, two)| one != two).collect())
    };
    let targets = prop::collection::btree_map(1..PRS, targets(), 0..24);
    (few(), pairs(), few(), targets).prop_map(|(bad, conflict, flaky, targets)| Rules {
        bad,
        conflict,
        flaky,
        targets,
        ..Rules::default()
    })
}

/// One setting that changes what is tested together.
fn patch() -> impl Strategy<Value = SettingsPatch> {
    let none = SettingsPatch::default;
    prop_oneof![
        (1..8_u32).prop_map(move |it| SettingsPatch { concurrency: Some(it), ..none() }),
        (0..3_u32).prop_map(move |it| SettingsPatch { bisection_concurrency: Some(it), ..none() }),
        (0..4_u32).prop_map(move |it| SettingsPatch { pending_failure_depth: Some(it), ..none() }),
        any::<bool>()
            .prop_map(move |it| SettingsPatch { can_optimistically_merge: Some(it), ..none() }),
        any::<bool>().prop_map(move |it| SettingsPatch { batch: Some(it), ..none() }),
        (1..6_u32).prop_map(move |it| SettingsPatch { batching_min_size: Some(it), ..none() }),
        (0..4_u32)
            .prop_map(move |it| SettingsPatch { testing_timeout_minutes: Some(it), ..none() }),
        any::<bool>().prop_map(move |it| SettingsPatch { fair_share: Some(it), ..none() }),
        prop::collection::vec(Just("agent*".to_owned()), 0..2)
            .prop_map(move |it| SettingsPatch { agent_labels: Some(it), ..none() }),
        prop_oneof![Just(Mode::Single), Just(Mode::Parallel)]
            .prop_map(move |it| SettingsPatch { mode: Some(it), ..none() }),
    ]
}

fn settings() -> impl Strategy<Value = Settings> {
    let mode = prop_oneof![1 => Just(Mode::Single), 2 => Just(Mode::Parallel)];
    let patch = (any::<bool>(), 2..5_u32, any::<bool>(), 0..4_u32);
    (mode, 1..8_u32, patch).prop_map(|(mode, slots, (batch, size, optimistic, depth))| {
        let patch = SettingsPatch {
            batch: Some(batch),
            batching_min_size: Some(size),
            fair_share: Some(true),
            batching_max_wait_time_minutes: Some(1),
            can_optimistically_merge: Some(optimistic),
            pending_failure_depth: Some(depth),
            ..SettingsPatch::default()
        };
        let settings = Settings::new(mode, slots).expect("valid settings");
        patch.applied_to(&settings).expect("within its bounds")
    })
}

fn apply(world: &mut World, op: &Op) {
    let by = world.caller();
    let update = |world: &mut World, patch: SettingsPatch, state| {
        let (by, settings) = (world.caller(), Box::new(patch));
        world
            .ask(Command::Update {
                settings,
                state,
                reason: None,
                by,
                source: ChangeSource::Direct,
            })
            .ok();
    };
    match op {
        Op::Submit(pr, priority) => drop(world.submit(*pr, *priority)),
        Op::Cancel(pr) => drop(world.ask(Command::Cancel { pr: PrNumber(*pr), by })),
        Op::Restart(pr) => drop(world.ask(Command::Restart { pr: PrNumber(*pr), by })),
        Op::Push(pr) => world.push(*pr),
        Op::Depend(pr, on) => world.depend(*pr, [Dependency::Own(PrNumber(*on))]),
        Op::Retouch(pr, targets) => {
            if world.queue.header.landing.is_none() && !world.landed.contains(pr) {
                world.retouch(*pr, targets.clone());
            }
        }
        Op::MergeByHand(pr) => world.merge_by_hand(*pr),
        Op::Relabel(pr, agent) => {
            let label = if *agent { "agent" } else { "docs" };
            world.relabel(*pr, vec![label.to_owned()]);
        }
        Op::Set(patch) => update(world, patch.as_ref().clone(), None),
        Op::State(state) => update(world, SettingsPatch::default(), Some(*state)),
        Op::PushTarget => world.push_target(),
        Op::HostLost => world.take_in(&World::host_lost()),
        Op::HostBack => world.take_in(&super::super::Fact::HostReachable),
        Op::Refuse(at) if *at < world.outbox.len() => {
            let next = world.outbox.remove(*at);
            world.refuse(&next.effect);
        }
        Op::Run(at) if *at < world.outbox.len() => {
            let next = world.outbox.remove(*at);
            world.run(&next.effect);
        }
        Op::Tell(at) if *at < world.facts.len() => {
            let fact = world.facts.remove(*at);
            world.take_in(&fact);
        }
        Op::Run(_) | Op::Refuse(_) | Op::Tell(_) => {}
        Op::Wait => {
            world.wait(Span::minutes(2));
            world.take_in(&super::super::Fact::TimePassed);
        }
    }
    world.wait(Span::seconds(1));
}

/// The direct dependencies of an entry, nearest first, or the nearest one that cannot be built on.
fn scanned_dependencies<'a>(queue: &'a Queue, entry: &Entry) -> Result<Vec<&'a Entry>, PrNumber> {
    let before = queue.before(OrderKey::of(entry));
    let met = before.filter(|other| meet(queue.mode(), other, entry));
    met.map(|other| can_be_built_on(queue, other, entry).then_some(other).ok_or(other.pr)).collect()
}

/// What a candidate on these entries contains, found by comparing every entry with those ahead.
fn scanned_contents(queue: &Queue, on: Vec<&Entry>) -> Vec<(RunId, PrNumber)> {
    let mut found = BTreeMap::new();
    let mut open = on;
    while let Some(entry) = open.pop() {
        let key = OrderKey::of(entry);
        let Some(run) = entry.state.run() else { continue };
        if found.insert(key, (run, entry.pr)).is_none() {
            open.extend(queue.before(key).filter(|it| meet(queue.mode(), it, entry)));
        }
    }
    found.into_values().collect()
}

/// The runs that contain the group of this one.
fn scanned_successors(queue: &Queue, run: &TestRun) -> BTreeSet<RunId> {
    let last = run.group.last().map(|member| member.pr);
    let contains = |other: &&TestRun| {
        let refers = |entry: &Entry| entry.state.run() == Some(other.id);
        last.is_some_and(|last| other.contains(last))
            && other.group.iter().any(|it| queue.entry(it.entry).is_some_and(refers))
    };
    queue.runs().filter(contains).map(|other| other.id).collect()
}

fn check_waiting(queue: &Queue) {
    let in_line = queue.entries_in_order().filter(|entry| entry.place != LinePosition::Outside);
    let urgent = in_line.filter(|entry| entry.priority.is_urgent()).count();
    assert_eq!(queue.waiting.urgent, urgent, "urgent entries in the line");
    let mut pairs = BTreeSet::new();
    let mut gated = BTreeSet::new();
    for entry in queue.entries_in_order() {
        for it in entry.unmerged_dependencies() {
            pairs.insert((it.on.clone(), entry.pr));
            if entry.place != LinePosition::Outside && it.state != DependencyState::Unread {
                gated.insert(entry.pr);
            }
        }
    }
    let names: BTreeSet<Dependency> = pairs.iter().map(|(on, _)| on.clone()).collect();
    let found = names.iter().flat_map(|on| queue.waiting.dependents(on).map(|pr| (on.clone(), pr)));
    assert_eq!(found.collect::<BTreeSet<_>>(), pairs, "what depends on what");
    assert_eq!(
        queue.dependencies().cloned().collect::<Vec<_>>(),
        names.into_iter().collect::<Vec<_>>()
    );
    assert_eq!(queue.waiting.gated().collect::<BTreeSet<_>>(), gated);
    for entry in queue.entries_in_order().filter(|entry| entry.waits_in_line()) {
        let scanned = scanned_dependencies(queue, entry);
        let blocker = obstacle(queue, entry, &[]).map(|by| by.pr);
        assert_eq!(blocker, scanned.as_ref().err().copied(), "what blocks #{}", entry.pr);
        if let Ok(on) = scanned {
            let found = contained(queue, &[entry]).entries.into_iter();
            let found: Vec<_> =
                found.map(|it| (it.entry.state.run().expect("a run"), it.entry.pr)).collect();
            assert_eq!(found, scanned_contents(queue, on), "what #{} is built on", entry.pr);
        }
    }
}

fn check_runs(queue: &Queue) {
    let running = |bisection| {
        let of_kind = |run: &&TestRun| run.status.is_running() && run.bisection == bisection;
        u32::try_from(queue.runs().filter(of_kind).count()).expect("few")
    };
    assert_eq!(queue.slots_used(), (running(false), running(true)));
    let due = queue.runs().filter(|run| run.status.is_running());
    let due: Option<Timestamp> =
        due.flat_map(|run| run.deadline.into_iter().chain(run.silence_due())).min();
    assert_eq!(queue.by_status.next_due(), due);
    assert!(next_deadline(queue) <= due || due.is_none());
    for run in queue.runs() {
        let found: BTreeSet<RunId> = successors(queue, run).map(|it| it.id).collect();
        assert_eq!(found, scanned_successors(queue, run), "behind {:?}", run.group);
        let live = |pr: &PrNumber| queue.entry_of(*pr).is_some();
        let ahead = run.ahead.iter().rev().map(|(_, pr)| *pr).filter(live);
        let found: Vec<PrNumber> = live_ahead(queue, run).map(|entry| entry.pr).collect();
        assert_eq!(found, ahead.collect::<Vec<_>>(), "ahead of {:?}", run.group);
        let of_it = queue.entries_in_order().filter(|it| it.state.run() == Some(run.id));
        let found: Vec<PrNumber> = queue.started.of_run(run.id).map(|it| it.pr).collect();
        assert_eq!(found, of_it.map(|it| it.pr).collect::<Vec<_>>());
        for (_, pr) in run.ahead.iter().filter(|(_, pr)| !live(pr)) {
            assert!(queue.may_contain_earlier(*pr), "#{pr} has left and is contained");
        }
    }
    let failed =
        queue.runs().filter(|run| matches!(run.status, super::super::RunStatus::Failed { .. }));
    let found: BTreeSet<RunId> = queue.by_status.failed().collect();
    assert_eq!(found, failed.map(|run| run.id).collect());
}

/// The pull requests that would start with an entry, or what it waits for.
fn start_of(queue: &Queue, entry: &Entry) -> Result<Vec<PrNumber>, Option<PrNumber>> {
    match group_from(queue, entry, queue.header.created_at) {
        Ok(Next::Start(group)) => Ok(group.iter().map(|it| it.pr).collect()),
        Ok(Next::Wait(_)) => Err(None),
        Err(by) => Err(Some(by.pr)),
    }
}

fn check_lanes(queue: &Queue, restored: &Queue) {
    assert_eq!(queue.lanes, restored.lanes);
    let mut searched = queue.clone();
    searched.forget_lanes();
    for entry in in_line(queue) {
        let pr = entry.pr;
        let found = dependencies(queue, entry, &[]);
        assert_eq!(found, dependencies(&searched, entry, &[]), "what #{pr} depends on");
        if entry.waits_in_line() {
            assert_eq!(start_of(queue, entry), start_of(&searched, entry), "starts with #{pr}");
            let gathered = |queue: &Queue| {
                let (group, until) = gather(queue, entry, queue.header.created_at);
                (group.iter().map(|it| it.pr).collect::<Vec<_>>(), until)
            };
            assert_eq!(gathered(queue), gathered(&searched), "the batch of #{pr}");
        }
    }
    for run in queue.runs() {
        assert_eq!(may_be_absolved(queue, run), may_be_absolved(&searched, run));
    }
}

fn check_turns(queue: &Queue) {
    let mut rebuilt = queue.clone();
    crate::queue::turns::rebuild(&mut rebuilt);
    assert_eq!(queue.turns, rebuilt.turns);
}

fn check_landing(queue: &Queue) {
    let aside = |run: &TestRun| {
        let mut of_it = queue.entries_in_order().filter(|it| it.state.run() == Some(run.id));
        of_it.any(|entry| entry.aside().is_some())
    };
    let ready = |run: &&TestRun| {
        run.status == super::super::RunStatus::Passed
            && !aside(run)
            && run.ahead.iter().filter_map(|(_, pr)| queue.entry_of(*pr)).all(|entry| {
                matches!(entry.state, EntryState::TestsPassed { .. })
            })
            && run.prs().filter_map(|pr| queue.entry_of(pr)).any(|entry| {
                matches!(entry.state, EntryState::TestsPassed { run: by, .. } if by == run.id)
            })
    };
    let live = |run: &TestRun| run.prs().filter(|pr| queue.entry_of(*pr).is_some()).count();
    let first = queue.runs().filter(ready).min_by_key(|run| (live(run), run.number));
    let found = super::super::plan::first_to_land(queue);
    assert_eq!(found, first.map(|run| run.id), "what lands next");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn indexes_answer_like_scans(
        rules in rules(),
        settings in settings(),
        ops in prop::collection::vec(op(), 1..120),
    ) {
        let mut world = World::new(settings, rules);
        for op in &ops {
            apply(&mut world, op);
            let queue = &world.queue;
            let parts = (queue.entries_in_order().cloned(), queue.runs().cloned());
            let restored = Queue::restore(queue.header.clone(), parts.0, parts.1);
            check_lanes(queue, &restored);
            for queue in [queue, &restored] {
                check_waiting(queue);
                check_runs(queue);
                check_landing(queue);
                check_turns(queue);
            }
        }
    }
}
