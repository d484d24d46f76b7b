//! Random operations on a queue.

use std::collections::BTreeSet;

use proptest::prelude::*;
use signalbox_domain::ids::PrNumber;
use signalbox_domain::queue::{
    BisectionMode, ChangeSource, Command, ConflictWith, Dependency, DirectMergeMode, Fact,
    FailureCause, MergeMethod, Mergeability, Mode, OptimizationMode, Outcomes, ReparentingMode,
    RequestedState, RetryClass, Settings, SettingsPatch, SuccessEstimates,
};
use signalbox_domain::testing::{Rules, World};
use signalbox_domain::time::Span;

/// One more than the highest number of a pull request.
const PRS: u32 = 10;

/// One operation.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// With a priority, and whether it must be tested alone.
    Submit(u32, Option<u32>, Option<bool>),
    /// Submits this pull request and all with lower numbers that are not in the queue: enough for a
    /// batch.
    SubmitAll(u32),
    Cancel(u32),
    Restart(u32),
    Push(u32),
    CloseOrReopen(u32),
    Retarget(u32),
    /// Converts a pull request to a draft, or back.
    Redraft(u32),
    /// Changes the labels of a pull request.
    Relabel(u32, Vec<String>),
    /// Changes what a pull request depends on.
    Depend(u32, Vec<Dependency>),
    /// Changes the mergeability of a pull request.
    Judge(u32, Mergeability),
    MergeByHand(u32),
    PushTarget,
    State(RequestedState),
    Set(Box<SettingsPatch>),
    /// Changes the targets of a pull request.
    Retouch(u32, BTreeSet<u32>),
    /// Whether CI reports the targets of pull requests before they are submitted.
    Report(bool),
    /// Runs a waiting effect, or lets the external CI report; the flag keeps it, to be run again.
    Run(usize, bool),
    /// Answers a waiting effect with a refusal.
    Refuse(usize),
    /// Answers a waiting build or landing with a wrong composition.
    Miscompose(usize),
    /// Absorbs a waiting fact; the flag keeps it, to be absorbed again.
    Tell(usize, bool),
    Wait(u32),
    /// All landings are proved again; one of them may be wrong.
    Audit(usize),
    /// A fact about a run that names a pull request, and a run, that may be no part of it.
    Stray(usize, usize, u32),
    /// The target branch is missing until its next read.
    TargetGone,
    HostLost,
    HostBack,
    Reconcile,
}

pub(crate) fn op() -> impl Strategy<Value = Op> {
    let pr = 1..PRS;
    prop_oneof![
        6 => (
            pr.clone(),
            prop_oneof![8 => Just(None), 1 => Just(Some(0)), 1 => Just(Some(10)), 1 => Just(Some(200))],
            prop_oneof![8 => Just(None), 1 => any::<bool>().prop_map(Some)],
        )
            .prop_map(|(pr, priority, alone)| Op::Submit(pr, priority, alone)),
        1 => (3..PRS).prop_map(Op::SubmitAll),
        1 => (pr.clone(), targets()).prop_map(|(pr, targets)| Op::Retouch(pr, targets)),
        1 => any::<bool>().prop_map(Op::Report),
        1 => pr.clone().prop_map(Op::Cancel),
        1 => pr.clone().prop_map(Op::Restart),
        1 => pr.clone().prop_map(Op::Push),
        1 => pr.clone().prop_map(Op::CloseOrReopen),
        1 => pr.clone().prop_map(Op::Retarget),
        1 => pr.clone().prop_map(Op::Redraft),
        1 => (pr.clone(), labels()).prop_map(|(pr, labels)| Op::Relabel(pr, labels)),
        1 => (pr.clone(), mergeability()).prop_map(|(pr, says)| Op::Judge(pr, says)),
        1 => (pr.clone(), depends_on()).prop_map(|(pr, on)| Op::Depend(pr, on)),
        1 => pr.prop_map(Op::MergeByHand),
        1 => Just(Op::PushTarget),
        1 => prop_oneof![
            2 => Just(RequestedState::Running),
            1 => Just(RequestedState::Paused),
            1 => Just(RequestedState::Draining)
        ].prop_map(Op::State),
        3 => patch().prop_map(|patch| Op::Set(Box::new(patch))),
        14 => (any::<prop::sample::Index>(), prop::bool::weighted(0.1))
            .prop_map(|(at, stays)| Op::Run(at.index(64), stays)),
        14 => (any::<prop::sample::Index>(), prop::bool::weighted(0.1))
            .prop_map(|(at, stays)| Op::Tell(at.index(64), stays)),
        1 => any::<prop::sample::Index>().prop_map(|at| Op::Refuse(at.index(64))),
        1 => any::<prop::sample::Index>().prop_map(|at| Op::Miscompose(at.index(64))),
        1 => (1..400_u32).prop_map(Op::Wait),
        1 => (0..12_usize).prop_map(Op::Audit),
        1 => (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 1..PRS)
            .prop_map(|(run, other, pr)| Op::Stray(run.index(16), other.index(16), pr)),
        1 => Just(Op::TargetGone),
        1 => Just(Op::HostLost),
        1 => Just(Op::HostBack),
        1 => Just(Op::Reconcile),
    ]
}

pub(crate) fn rules() -> impl Strategy<Value = Rules> {
    let pr = || 1..PRS;
    let some = || prop::collection::btree_set(pr(), 0..3);
    let pairs = || {
        prop::collection::btree_set((pr(), pr()), 0..3)
            .prop_map(|set| set.into_iter().filter(|(a, b)| a != b).collect())
    };
    let targets = prop::collection::btree_map(pr(), targets(), 0..10);
    let causes = prop::collection::btree_map(pr(), cause(), 0..6);
    let awaited = prop::collection::btree_map(pr(), known_cause(), 0..6);
    let external = prop::bool::weighted(0.3);
    let together = (pairs(), pairs(), pairs());
    (some(), together, some(), targets, external, causes, awaited).prop_map(
        |(bad, (clash, needs, conflict), flaky, targets, external, causes, awaited)| Rules {
            bad,
            clash,
            needs,
            conflict,
            flaky,
            targets,
            external,
            causes,
            awaited,
        },
    )
}

fn cause() -> impl Strategy<Value = FailureCause> {
    prop_oneof![
        2 => known_cause(),
        1 => any::<bool>().prop_map(|is_machine| FailureCause::Awaited {
            until: None,
            otherwise: is_machine.then(|| "no space".to_owned()).into_iter().collect(),
        }),
    ]
}

/// A cause that excuses nothing, because then a target could be red.
fn known_cause() -> impl Strategy<Value = FailureCause> {
    let class = prop::sample::select(RetryClass::ALL);
    let retry = (class, any::<bool>()).prop_map(|(class, is_red)| FailureCause::Retry {
        class,
        evidence: vec!["a test".into()],
        on_target: is_red && class == RetryClass::SeenElsewhere,
    });
    prop_oneof![
        3 => retry,
        1 => Just(FailureCause::New { tests: vec!["a test".into()] }),
    ]
}

/// Up to two pull requests, which may be the dependent one or not exist, or an unknown reference.
fn depends_on() -> impl Strategy<Value = Vec<Dependency>> {
    let own = (1..=PRS).prop_map(|pr| Dependency::Own(PrNumber(pr)));
    let unknown = Just(Dependency::Unknown("#x".into()));
    let one = prop_oneof![12 => own, 1 => unknown];
    prop::collection::vec(one, 0..3)
}

fn mergeability() -> impl Strategy<Value = Mergeability> {
    prop_oneof![
        2 => Just(Mergeability::Mergeable),
        1 => Just(Mergeability::NotMergeable("a review is missing".into())),
        1 => Just(Mergeability::InProgress),
        1 => Just(Mergeability::Unspecified),
    ]
}

fn targets() -> impl Strategy<Value = BTreeSet<u32>> {
    prop_oneof![
        8 => prop::collection::btree_set(1..5_u32, 0..3),
        1 => prop::collection::btree_set(1..13_u32, 0..13),
    ]
}

/// One setting that changes what the planner does.
fn patch() -> impl Strategy<Value = SettingsPatch> {
    let none = SettingsPatch::default;
    prop_oneof![
        (1..4_u32).prop_map(move |it| SettingsPatch { concurrency: Some(it), ..none() }),
        (0..3_u32).prop_map(move |it| SettingsPatch { bisection_concurrency: Some(it), ..none() }),
        (0..3_u32).prop_map(move |it| SettingsPatch { pending_failure_depth: Some(it), ..none() }),
        (any::<bool>(), 1..4_u32).prop_map(move |(on, floor)| SettingsPatch {
            adaptive_window: Some(on),
            window_floor: Some(floor),
            ..none()
        }),
        any::<bool>()
            .prop_map(move |it| SettingsPatch { can_optimistically_merge: Some(it), ..none() }),
        any::<bool>().prop_map(move |it| SettingsPatch { batch: Some(it), ..none() }),
        (1..9_u32).prop_map(move |it| SettingsPatch { batching_min_size: Some(it), ..none() }),
        (0..9_u32).prop_map(move |it| SettingsPatch {
            batching_max_wait_time_minutes: Some(it),
            ..none()
        }),
        prop_oneof![
            Just(OptimizationMode::Off),
            Just(OptimizationMode::BisectionSkipRedundantTests)
        ]
        .prop_map(move |it| SettingsPatch { optimization_mode: Some(it), ..none() }),
        bisection_mode().prop_map(move |it| SettingsPatch { bisection_mode: Some(it), ..none() }),
        reparenting_mode()
            .prop_map(move |it| SettingsPatch { reparenting_mode: Some(it), ..none() }),
        (0..3_u32).prop_map(move |it| SettingsPatch { pretest_threshold: Some(50 * it), ..none() }),
        prop_oneof![Just(SuccessEstimates::Queue), Just(SuccessEstimates::Authors)]
            .prop_map(move |it| SettingsPatch { success_estimates: Some(it), ..none() }),
        (0..3_u32).prop_map(move |it| SettingsPatch { author_limit: Some(it), ..none() }),
        (0..4_u32).prop_map(move |it| SettingsPatch { author_hourly_limit: Some(it), ..none() }),
        (0..4_u32)
            .prop_map(move |it| SettingsPatch { author_daily_minutes: Some(20 * it), ..none() }),
        any::<bool>().prop_map(move |it| SettingsPatch { fair_share: Some(it), ..none() }),
        agent_labels().prop_map(move |it| SettingsPatch { agent_labels: Some(it), ..none() }),
        any::<bool>()
            .prop_map(move |it| SettingsPatch { dependencies_enabled: Some(it), ..none() }),
        target_rules()
            .prop_map(move |it| SettingsPatch { impacted_target_rules: Some(it), ..none() }),
        capacities().prop_map(move |it| SettingsPatch { target_capacities: Some(it), ..none() }),
        freezes().prop_map(move |it| SettingsPatch { freezes: Some(it), ..none() }),
        any::<bool>().prop_map(move |it| SettingsPatch { test_while_frozen: Some(it), ..none() }),
        prop_oneof![Just(Mode::Single), Just(Mode::Parallel)]
            .prop_map(move |it| SettingsPatch { mode: Some(it), ..none() }),
        prop_oneof![Just(DirectMergeMode::Off), Just(DirectMergeMode::Always)]
            .prop_map(move |it| SettingsPatch { direct_merge_mode: Some(it), ..none() }),
        prop_oneof![Just(0_u32), 1..400_u32]
            .prop_map(move |it| SettingsPatch { testing_timeout_minutes: Some(it), ..none() }),
        (0..3_u32)
            .prop_map(move |it| SettingsPatch { not_ready_timeout_hours: Some(it), ..none() }),
        prop_oneof![Just(MergeMethod::Squash), Just(MergeMethod::Rebase)]
            .prop_map(move |it| SettingsPatch { merge_method: Some(it), ..none() }),
        (0..3_u32).prop_map(move |it| SettingsPatch { infrastructure_retries: Some(it), ..none() }),
        (0..3_u32).prop_map(move |it| SettingsPatch { known_flaky_retries: Some(it), ..none() }),
        (0..3_u32).prop_map(move |it| SettingsPatch { seen_elsewhere_retries: Some(it), ..none() }),
        (0..4_u32).prop_map(move |it| SettingsPatch { retries_per_hour: Some(it), ..none() }),
        (0..90_u32)
            .prop_map(move |it| SettingsPatch { red_target_hold_minutes: Some(it), ..none() }),
        (0..400_u32)
            .prop_map(move |it| SettingsPatch { evidence_wait_seconds: Some(it), ..none() }),
        (0..60_u32).prop_map(move |it| SettingsPatch { start_timeout_minutes: Some(it), ..none() }),
        any::<bool>()
            .prop_map(move |it| SettingsPatch { automatic_testing_timeout: Some(it), ..none() }),
        prop_oneof![Just(Vec::new()), Just(vec!["test".to_owned()])]
            .prop_map(move |it| SettingsPatch { required_statuses: Some(it), ..none() }),
    ]
}

/// The initial settings of a history: any, or those of a queue that tests batches.
pub(crate) fn settings() -> impl Strategy<Value = Settings> {
    let mode = || prop_oneof![Just(Mode::Single), Just(Mode::Parallel)];
    let any = prop::collection::vec(patch(), 0..6);
    prop_oneof![
        2 => (mode(), 1..4_u32, any),
        1 => (mode(), 1..6_u32, batching().prop_map(|patch| vec![patch])),
    ]
    .prop_map(|(mode, slots, patches)| {
        let mut settings = Settings::new(mode, slots).expect("valid settings");
        for patch in patches {
            // The mode depends on the queue's state and does not change here.
            let mode = settings.mode;
            settings = patch.applied_to(&settings).expect("within its bounds");
            settings.mode = mode;
        }
        settings
    })
}

/// How earlier pull requests of authors ended: none did, or many failed, so that others are pretested, or
/// so that those of an author are, and soon the oldest count less.
pub(crate) fn outcomes() -> impl Strategy<Value = Vec<(&'static str, Outcomes)>> {
    let of = |author, merged, failed| (author, Outcomes { merged, failed });
    let all_alike = vec![of("eve", 60, 30)];
    let one_fails = vec![of("ada", 150, 3), of("grace", 10, 35), of("mobile", 1, 0)];
    prop::sample::select(vec![Vec::new(), all_alike, one_fails])
}

fn agent_labels() -> impl Strategy<Value = Vec<String>> {
    prop::sample::subsequence(vec!["MOB*".to_owned(), "docs".to_owned()], 0..=2)
}

fn labels() -> impl Strategy<Value = Vec<String>> {
    prop::sample::subsequence(vec!["mobile".to_owned(), "docs".to_owned()], 0..=2)
}

/// Freezes that begin and end within a history, and some without an end; of all pull requests, or of
/// some.
fn freezes() -> impl Strategy<Value = Vec<String>> {
    let rules =
        ["00:30/03:00[UTC]", "Thu 00:00/Thu 09:00[Europe/Berlin] a reason", "02:00/04:30[UTC]"];
    let partial = [
        "00:10/02:00[UTC]{label:mobile}",
        "01:00/04:00[UTC]{!label:docs; !target:t1*} a reason",
        "00:00/06:00[UTC]{target:t2; label:Mobile; !label:docs}",
    ];
    let open = "2026-01-01T00:10/..[UTC]";
    let partial_and_open = "2026-01-01T00:20/..[UTC]{target:t*}";
    prop_oneof![
        1 => Just(Vec::new()),
        3 => prop::sample::subsequence(rules.to_vec(), 1..=3),
        3 => prop::sample::subsequence(partial.to_vec(), 1..=3),
        1 => prop::sample::subsequence([rules, partial].concat(), 2..=5),
        1 => Just(vec![open]),
        1 => Just(vec![partial_and_open]),
    ]
    .prop_map(|rules| rules.into_iter().map(ToOwned::to_owned).collect())
}

/// Rules that compute the targets of the world, more than these, or all; or none.
fn target_rules() -> impl Strategy<Value = Vec<String>> {
    let own = || (1..13).map(|it| format!("t{it}/** t{it}"));
    prop_oneof![
        1 => Just(Vec::new()),
        2 => Just(own().collect()),
        1 => Just(own().chain(["t[1-3]/** low".to_owned()]).collect()),
        1 => Just(vec!["** ALL".to_owned()]),
    ]
}

fn capacities() -> impl Strategy<Value = Vec<String>> {
    prop_oneof![
        2 => Just(Vec::new()),
        1 => Just(vec!["* 1".to_owned()]),
        1 => Just(vec!["t1 1".to_owned(), "t* 2".to_owned()]),
    ]
}

fn bisection_mode() -> impl Strategy<Value = BisectionMode> {
    prop_oneof![Just(BisectionMode::InPlace), Just(BisectionMode::Aside)]
}

fn reparenting_mode() -> impl Strategy<Value = ReparentingMode> {
    prop::sample::select(ReparentingMode::ALL)
}

/// Settings under which a failing batch is split.
fn batching() -> impl Strategy<Value = SettingsPatch> {
    let skips = prop_oneof![
        1 => Just(OptimizationMode::Off),
        2 => Just(OptimizationMode::BisectionSkipRedundantTests)
    ];
    let modes = (skips, bisection_mode(), reparenting_mode());
    let pretests = prop::sample::select(vec![0_u32, 50, 100]);
    (2..9_u32, 0..4_u32, modes, prop::bool::weighted(0.3), 0..3_u32, pretests).prop_map(
        |(size, bisection, modes, optimistic, depth, pretest_threshold)| {
            let (optimization_mode, bisection_mode, reparenting_mode) = modes;
            SettingsPatch {
                batch: Some(true),
                batching_min_size: Some(size),
                batching_max_wait_time_minutes: Some(1),
                bisection_concurrency: Some(bisection),
                optimization_mode: Some(optimization_mode),
                bisection_mode: Some(bisection_mode),
                can_optimistically_merge: Some(optimistic),
                pending_failure_depth: Some(depth),
                reparenting_mode: Some(reparenting_mode),
                pretest_threshold: Some(pretest_threshold),
                ..SettingsPatch::default()
            }
        },
    )
}

pub(crate) fn apply(world: &mut World, op: &Op) {
    let by = world.caller();
    let update = |world: &mut World, patch: SettingsPatch, state| {
        let by = world.caller();
        let settings = Box::new(patch);
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
        Op::Submit(pr, priority, alone) => drop(world.submit_with(*pr, *priority, *alone)),
        Op::SubmitAll(last) => {
            let mut ended = BTreeSet::new();
            for pr in 1..=*last {
                if world.queue.entry_of(PrNumber(pr)).is_none() {
                    world.submit(pr, None).ok();
                    ended.append(&mut world.ended);
                }
            }
            world.ended = ended;
        }
        Op::Cancel(pr) => drop(world.ask(Command::Cancel { pr: PrNumber(*pr), by })),
        Op::Restart(pr) => drop(world.ask(Command::Restart { pr: PrNumber(*pr), by })),
        Op::Push(pr) => world.push(*pr),
        Op::CloseOrReopen(pr) => world.close_or_reopen(*pr),
        Op::Retarget(pr) => world.retarget(*pr),
        Op::Redraft(pr) => world.redraft(*pr),
        Op::Relabel(pr, labels) => world.relabel(*pr, labels.clone()),
        Op::Depend(pr, on) => world.depend(*pr, on.clone()),
        Op::Judge(pr, says) => world.judge(*pr, says.clone()),
        Op::MergeByHand(pr) => world.merge_by_hand(*pr),
        Op::PushTarget => world.push_target(),
        Op::State(state) => update(world, SettingsPatch::default(), Some(*state)),
        Op::Set(patch) => update(world, patch.as_ref().clone(), None),
        Op::Retouch(pr, targets) => {
            // The targets of a landing or landed pull request do not change.
            let done = world.queue.header.landing.is_some() || world.landed.contains(pr);
            if !done {
                world.retouch(*pr, targets.clone());
            }
        }
        Op::Report(reports) => world.reports_targets = *reports,
        Op::Run(at, stays) => {
            let effects = world.outbox.len();
            let at = at % (effects + world.requests.len()).max(1);
            if at < effects {
                let effect = world.outbox[at].effect.clone();
                if !stays {
                    world.outbox.remove(at);
                }
                world.run(&effect);
            } else if let Some(request) = world.requests.get(at - effects).cloned() {
                if !stays {
                    world.requests.remove(at - effects);
                }
                // Reports of ended runs are refused.
                world.report(&request).ok();
            }
        }
        Op::Refuse(at) => {
            if !world.outbox.is_empty() {
                let effect = world.outbox.remove(at % world.outbox.len()).effect;
                world.refuse(&effect);
            }
        }
        Op::Miscompose(at) => {
            if !world.outbox.is_empty() {
                let effect = world.outbox.remove(at % world.outbox.len()).effect;
                world.miscompose(&effect);
            }
        }
        Op::Tell(at, stays) => {
            if !world.facts.is_empty() {
                let at = at % world.facts.len();
                let fact = if *stays { world.facts[at].clone() } else { world.facts.remove(at) };
                world.take_in(&fact);
            }
        }
        Op::Audit(wrong) => {
            let fact = world.audited(*wrong);
            world.take_in(&fact);
        }
        Op::Wait(minutes) => {
            world.wait(Span::minutes(*minutes));
            world.take_in(&Fact::TimePassed);
        }
        Op::Stray(run, other, pr) => {
            let ids: Vec<_> = world.queue.runs().map(|run| run.id).collect();
            let Some(run) = ids.get(run % ids.len().max(1)).copied() else { return };
            let Some(other) = ids.get(other % ids.len().max(1)).copied() else { return };
            let of_it = world.queue.run(run).expect("it is live");
            // A true fact is possible, too; only strays are drawn here.
            if of_it.group.iter().any(|member| member.pr.0 == *pr) {
                return;
            }
            let (pr, paths) = (PrNumber(*pr), vec!["file".to_owned()]);
            let with = ConflictWith::Ahead(other);
            world.take_in(&Fact::CandidateConflict { run, pr, with, paths });
        }
        Op::TargetGone => world.take_in(&Fact::TargetMissing),
        Op::HostLost => world.take_in(&World::host_lost()),
        Op::HostBack => world.take_in(&Fact::HostReachable),
        Op::Reconcile => world.reconcile(),
    }
    // Every step has a time of its own, as with a real clock.
    world.wait(Span::seconds(1));
}
