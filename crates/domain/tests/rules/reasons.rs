//! Reasons in events: each cause has its reason.

use signalbox_domain::ids::PrNumber;
use signalbox_domain::queue::{
    Actor, Command, DirectMergeMode, Effect, Event, Fact, HostStatuses, Input, LandRefusal,
    Mergeability, Mode, OptimizationMode, PrState, RequestedState, Settings, SettingsPatch,
    Subject, absorb, decide,
};
use signalbox_domain::testing::{Rules, World};
use signalbox_domain::time::Span;

use crate::{bad, is_checks, run_until, update, world};

/// All events since the queue was created.
pub(crate) fn events(world: &World) -> Vec<Event> {
    let mut queue = world.new_queue.clone();
    let mut events = Vec::new();
    for (at, input) in &world.journal {
        let transition = match input {
            Input::Command(command) => decide(&queue, command, *at).expect("it was not refused"),
            Input::Fact(fact) => absorb(&queue, fact, *at),
        };
        events.extend(transition.events);
        queue = transition.queue;
    }
    events
}

/// The events of a pull request: the last part of each name, and the reason.
pub(crate) fn emitted(world: &World, pr: u32) -> Vec<(&'static str, String)> {
    let of_it =
        |event: &Event| matches!(event.subject, Subject::PullRequest { pr: it, .. } if it.0 == pr);
    let short = |event: Event| {
        let name = event.kind.as_str().trim_start_matches("pull_request.");
        (name, event.reason.unwrap_or_default())
    };
    events(world).into_iter().filter(of_it).map(short).collect()
}

pub(crate) fn submitted(concurrency: u32, rules: Rules, prs: u32) -> World {
    let mut world = world(concurrency, rules);
    for pr in 1..=prs {
        world.submit(pr, None).expect("submitted");
    }
    world
}

/// Two pull requests, the first of them under test and the second behind it.
fn two() -> World {
    let mut world = submitted(2, Rules::default(), 2);
    run_until(&mut world, is_checks);
    world
}

pub(crate) fn set(world: &mut World, patch: SettingsPatch) {
    update(world, patch, None);
}

fn batch_of(size: u32, rules: Rules, mode: OptimizationMode) -> World {
    let mut world = world(4, rules);
    let patch = SettingsPatch {
        batch: Some(true),
        batching_min_size: Some(size),
        optimization_mode: Some(mode),
        ..SettingsPatch::default()
    };
    set(&mut world, patch);
    for pr in 1..=size {
        world.submit(pr, None).expect("submitted");
    }
    world.settle();
    world
}

/// Answers the first effect of a kind with a given fact.
fn answered(
    mut world: World,
    stop: fn(&Effect) -> bool,
    answer: impl Fn(&Effect) -> Fact,
) -> World {
    run_until(&mut world, stop);
    let effect = world.outbox.remove(0).effect;
    world.take_in(&answer(&effect));
    world.settle();
    world
}

pub(crate) const fn is_build(effect: &Effect) -> bool {
    matches!(effect, Effect::BuildCandidate(_))
}

pub(crate) const fn is_land(effect: &Effect) -> bool {
    matches!(effect, Effect::Land(_))
}

fn refused_landing(because: &LandRefusal) -> World {
    answered(submitted(1, Rules::default(), 1), is_land, |effect| {
        let Effect::Land(land) = effect else { panic!("{effect:?}") };
        Fact::LandRefused { run: land.run, because: because.clone() }
    })
}

/// A candidate that the host has built, with these statuses.
fn built_with(statuses: &HostStatuses) -> World {
    let mut world = submitted(1, Rules::default(), 1);
    run_until(&mut world, is_build);
    let effect = world.outbox.remove(0).effect;
    world.run(&effect);
    let Some(Fact::CandidateBuilt { statuses: own, .. }) = world.facts.last_mut() else {
        panic!("{:?}", world.facts)
    };
    own.clone_from(statuses);
    world.settle();
    world
}

fn changed_by_host(change: impl Fn(&mut World)) -> World {
    let mut world = two();
    change(&mut world);
    world.settle();
    world
}

#[test]
fn queued_reasons_of_a_returned_entry() {
    let asked = |by: Actor| {
        let mut world = two();
        world.ask(Command::Restart { pr: PrNumber(1), by }).expect("not refused");
        world
    };
    let cancelled = || {
        let mut world = two();
        let by = world.caller();
        world.ask(Command::Cancel { pr: PrNumber(1), by }).expect("not refused");
        world
    };
    let merged_by_hand = || {
        changed_by_host(|world| {
            world.merge_by_hand(1);
            // The host reports the pull request before the target.
            world.facts.reverse();
        })
    };
    let urgent = || {
        let mut world = two();
        world.submit(3, Some(0)).expect("submitted");
        world
    };
    let targets = || {
        let mut world =
            World::new(Settings::new(Mode::Parallel, 2).expect("valid settings"), Rules::default());
        world.submit(1, None).expect("submitted");
        world.submit(2, None).expect("submitted");
        run_until(&mut world, is_checks);
        world.retouch(1, [7].into());
        world
    };
    let conflict = || {
        let rules = Rules { conflict: [(1, 2)].into(), ..Rules::default() };
        let mut world = submitted(2, rules, 2);
        run_until(&mut world, is_checks);
        let checks = world.outbox.remove(0);
        run_until(&mut world, is_checks);
        world.outbox.push(checks);
        world
    };
    let settled = |mut world: World| {
        world.settle();
        world
    };
    let split = || batch_of(2, bad(&[1]), OptimizationMode::Off);
    for (pr, world, reason) in vec![
        (1, two(), "MERGE_ITEM_NOW_READY"),
        (1, changed_by_host(World::push_target), "MANUAL_PUSH_TO_TARGET_BRANCH"),
        (2, cancelled(), "PREREQUISITE_MERGE_ITEM_CANCELLED"),
        (2, settled(submitted(2, bad(&[1]), 2)), "PREREQUISITE_MERGE_ITEM_FAILED"),
        (2, merged_by_hand(), "PREREQUISITE_MERGE_ITEM_MANUALLY_MERGED"),
        (1, asked(Actor::Token("ci".into())), "TESTS_RESTARTED_BY_API_REQUEST"),
        (1, asked(Actor::User("ada".into())), "TESTS_RESTARTED_BY_USER"),
        (1, urgent(), "SKIP_THE_LINE_INTERRUPTED"),
        (2, split(), "BISECTION_REQUIRED"),
        (2, targets(), "IMPACTED_TARGETS_CHANGED"),
        (2, conflict(), "CONFLICT_WITH_PULL_REQUEST_AHEAD"),
    ] {
        let sent = emitted(&world, pr);
        assert_eq!(sent[0], ("submitted", "API_REQUESTED".to_owned()));
        let queued: Vec<&str> =
            sent.iter().filter(|it| it.0 == "queued").map(|it| it.1.as_str()).collect();
        let first = reason == "MERGE_ITEM_NOW_READY";
        assert_eq!(queued.get(usize::from(!first)), Some(&reason), "#{pr}: {sent:?}");
    }
}

#[test]
fn fail_reasons_and_culprits() {
    let timeout = || {
        let mut world = submitted(1, Rules::default(), 1);
        run_until(&mut world, is_checks);
        world.wait(Span::minutes(300));
        world.take_in(&Fact::TimePassed);
        world
    };
    let conflict = || {
        let rules = Rules { conflict: [(1, 2)].into(), ..Rules::default() };
        let mut world = submitted(1, rules, 1);
        world.settle();
        world.submit(2, None).expect("submitted");
        world.settle();
        world
    };
    let failing = || {
        let mut world = submitted(1, bad(&[1]), 1);
        world.settle();
        world
    };
    let refused = || {
        answered(submitted(1, Rules::default(), 1), is_build, |effect| {
            let Effect::BuildCandidate(build) = effect else { panic!("{effect:?}") };
            Fact::CandidateRefused { run: build.run, words: "no".into() }
        })
    };
    let broken =
        HostStatuses { repository_error: Some("line 3".into()), ..HostStatuses::default() };
    let words = LandRefusal::Refused { words: "protected".into() };
    let skipped = || batch_of(8, bad(&[8]), OptimizationMode::BisectionSkipRedundantTests);
    for (pr, world, reason) in vec![
        (1, failing(), "TEST_RUN_REQUIRED_STATUS_FAILED"),
        (1, timeout(), "TEST_RUN_TIMEOUT"),
        (8, skipped(), "TEST_RUN_REQUIRED_STATUS_FAILED"),
        (2, conflict(), "START_TEST_RUN_MERGE_CONFLICT"),
        (1, refused(), "START_TEST_RUN_RETRY_EXHAUSTED"),
        (1, built_with(&HostStatuses::default()), "START_TEST_RUN_NO_REQUIRED_STATUSES"),
        (1, built_with(&broken), "START_TEST_RUN_CONFIG_PARSING_FAILURE"),
        (
            1,
            refused_landing(&LandRefusal::HeadMoved { pr: PrNumber(1) }),
            "PR_UPDATED_AT_MERGE_TIME",
        ),
        (1, refused_landing(&words), "GITHUB_API_MERGE_PR_FAILED"),
    ] {
        let sent = emitted(&world, pr);
        assert_eq!(sent.last(), Some(&("failed", reason.to_owned())), "#{pr}: {sent:?}");
    }
}

#[test]
fn cancel_reasons() {
    let asked = || {
        let mut world = two();
        let by = world.caller();
        world.ask(Command::Cancel { pr: PrNumber(1), by }).expect("not refused");
        world
    };
    let waited = || {
        let mut world = world(1, Rules::default());
        world.retarget(1);
        world.facts.clear();
        world.submit(1, None).expect("submitted");
        world.wait(Span::hours(24));
        world.take_in(&Fact::TimePassed);
        world
    };
    let elsewhere = || {
        changed_by_host(|world| {
            let mut merged = world.pull_request(1);
            merged.state = signalbox_domain::queue::PullRequestState::Merged;
            merged.base = signalbox_domain::ids::BranchName::new("other").expect("a branch");
            let (pull_request, read_at) = (Box::new(merged), world.at);
            world.facts.push(Fact::PullRequestSeen { pull_request, read_at });
        })
    };
    let worlds = vec![
        (asked(), "USER_REQUESTED"),
        (changed_by_host(|world| world.close_or_reopen(1)), "PR_CLOSED"),
        (changed_by_host(|world| world.push(1)), "PR_PUSHED_TO"),
        (changed_by_host(|world| world.retarget(1)), "PR_BASE_BRANCH_CHANGED"),
        (changed_by_host(|world| world.redraft(1)), "PR_CONVERTED_TO_DRAFT"),
        (elsewhere(), "PR_MERGED_INTO_OTHER_BRANCH"),
        (waited(), "NOT_READY_TIMEOUT_EXPIRED"),
    ];
    for (world, reason) in worlds {
        let sent = emitted(&world, 1);
        assert_eq!(sent.last(), Some(&("canceled", reason.to_owned())), "{sent:?}");
    }
}

#[test]
fn merge_reasons() {
    let merged = || {
        let mut world = submitted(1, Rules::default(), 1);
        world.settle();
        world
    };
    let direct = || {
        let mut world = world(1, Rules::default());
        let mode = Some(DirectMergeMode::Always);
        set(&mut world, SettingsPatch { direct_merge_mode: mode, ..SettingsPatch::default() });
        world.submit(1, None).expect("submitted");
        run_until(&mut world, is_build);
        let effect = world.outbox.remove(0).effect;
        world.run(&effect);
        let Some(Fact::CandidateBuilt { head_checks, .. }) = world.facts.last_mut() else {
            panic!("{:?}", world.facts)
        };
        *head_checks = vec![signalbox_domain::queue::Check {
            name: "test".into(),
            status: signalbox_domain::queue::CheckStatus::Completed,
            conclusion: Some(signalbox_domain::queue::CheckConclusion::Success),
            url: String::new(),
            summary: None,
            at: world.at,
            excused: Vec::new(),
        }];
        world.settle();
        world
    };
    let already = || {
        let mut world = submitted(1, Rules::default(), 1);
        run_until(&mut world, is_build);
        let effect = world.outbox.remove(0).effect;
        world.run(&effect);
        let tree = world.queue.header.target.tree.clone().expect("the target was seen");
        let Some(Fact::CandidateBuilt { candidate, .. }) = world.facts.last_mut() else {
            panic!("{:?}", world.facts)
        };
        candidate.tree = tree;
        world.settle();
        world
    };
    for (world, reason) in [
        (already(), "ALREADY_MERGED"),
        (merged(), "MERGE_GRAPH_MERGE"),
        (changed_by_host(|world| world.merge_by_hand(1)), "MANUAL_MERGE"),
        (direct(), "MERGE_GRAPH_DIRECT_MERGE"),
    ] {
        let sent = emitted(&world, 1);
        assert_eq!(sent.last(), Some(&("merged", reason.to_owned())), "{sent:?}");
    }
}

#[test]
fn queue_events_name_the_actor_and_both_states() {
    let mut world = two();
    let parallel = SettingsPatch { mode: Some(Mode::Parallel), ..SettingsPatch::default() };
    set(&mut world, parallel);
    world.settle();
    update(&mut world, SettingsPatch::default(), Some(RequestedState::Paused));
    let moved: Vec<String> = events(&world)
        .into_iter()
        .filter(|event| event.kind.as_str() == "queue.state_changed")
        .map(|event| match event.subject {
            Subject::Queue { by, from, to } => {
                format!("{by}: {} to {}", from.as_str(), to.as_str())
            }
            other @ (Subject::PullRequest { .. }
            | Subject::Batch { .. }
            | Subject::TestRun { .. }
            | Subject::Composition { .. }) => panic!("{other:?}"),
        })
        .collect();
    let (token, queue) = (world.caller(), Actor::Queue);
    let wanted = [
        format!("{token}: RUNNING to SWITCHING_MODES"),
        format!("{queue}: SWITCHING_MODES to RUNNING"),
        format!("{token}: RUNNING to PAUSED"),
    ];
    assert_eq!(moved, wanted);
}

/// A batch absolved by the batch behind it lands with that one and has a merged event.
#[test]
fn an_absolved_batch_has_events_until_it_is_merged() {
    let absolved = || {
        let mut world = world(4, Rules { flaky: [1].into(), ..Rules::default() });
        let patch = SettingsPatch {
            batch: Some(true),
            batching_min_size: Some(2),
            can_optimistically_merge: Some(true),
            pending_failure_depth: Some(1),
            ..SettingsPatch::default()
        };
        set(&mut world, patch);
        for pr in 1..=4 {
            world.submit(pr, None).expect("submitted");
        }
        world
    };
    let of_batches = |world: &World| -> Vec<(&'static str, Vec<u32>, String)> {
        let mut sent = Vec::new();
        for event in events(world) {
            let Subject::Batch { prs, together } = event.subject else { continue };
            let run = event.run.expect("a run");
            assert!(run.batched && run.sha.is_some());
            assert!(prs.iter().all(|pr| together.contains(pr)), "{prs:?} of {together:?}");
            let name = event.kind.as_str().trim_start_matches("pull_request_batch.");
            sent.push((name, prs.iter().map(|pr| pr.0).collect(), run.id.to_string()));
        }
        sent
    };
    let mut world = absolved();
    world.settle();
    assert_eq!(world.landed, [1, 2, 3, 4]);
    let sent = of_batches(&world);
    let run = |name: &str, prs: &[u32]| {
        let found = sent.iter().find(|it| it.0 == name && it.1 == prs);
        found.unwrap_or_else(|| panic!("{name} {prs:?}: {sent:#?}")).2.clone()
    };
    for prs in [[1, 2], [3, 4]] {
        assert_eq!(run("merged", &prs), run("submitted", &prs), "of the same batch");
    }
    assert_eq!(sent.iter().filter(|it| it.0 == "merged").count(), 2, "{sent:#?}");
    // A member that leaves before the landing leaves the batch that it was tested in.
    let mut world = absolved();
    run_until(&mut world, is_land);
    world.outbox.clear();
    let refused = LandRefusal::HeadMoved { pr: PrNumber(2) };
    let landing = world.queue.header.landing.as_ref().expect("a landing").run;
    world.take_in(&Fact::LandRefused { run: landing, because: refused });
    let sent = of_batches(&world);
    let failed = sent.iter().filter(|it| it.0 == "failed").collect::<Vec<_>>();
    assert_eq!(failed.len(), 1, "{sent:#?}");
    assert_eq!(failed[0].1, [2]);
    let own = sent
        .iter()
        .find(|it| it.0 == "submitted" && it.1 == [1, 2])
        .expect("the event was emitted");
    assert_eq!(failed[0].2, own.2);
}

/// A restarted pull request keeps its place, so others are tested on it. If it stops being
/// mergeable before its new run starts, they are tested without it.
#[test]
fn candidates_on_a_restarted_pull_request_that_is_no_longer_mergeable_are_rebuilt() {
    let mut world = submitted(2, Rules::default(), 2);
    // Both candidates are built, one on the other, and their checks have not begun.
    while let Some(at) = world.outbox.iter().position(|it| !is_checks(&it.effect)) {
        let effect = world.outbox.remove(at);
        world.run(&effect.effect);
        while let Some(fact) = world.facts.pop() {
            world.take_in(&fact);
        }
    }
    world.take_in(&Fact::TargetMissing);
    let by = world.caller();
    world.ask(Command::Restart { pr: PrNumber(1), by }).expect("not refused");
    world.judge(1, Mergeability::NotMergeable("a review is missing".into()));
    let seen = world.facts.pop().expect("the host reports it");
    world.take_in(&seen);
    assert_eq!(crate::states(&world), [(2, PrState::Pending), (1, PrState::NotReady)]);
    world.reconcile();
    world.settle();
    assert_eq!(world.landed, [2]);
}
