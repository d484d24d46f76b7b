//! The properties that hold after every step and at the end of a history.

use std::collections::BTreeSet;

use signalbox_domain::ids::PrNumber;
use signalbox_domain::queue::{
    Awaited, Decision, Effect, Entry, EntryState, Fact, FailureCause, FreezeState, LinePosition,
    Mode, PrState, Queue, QueueState, RequestedState, SettingsPatch, Targets, TestRun, awaited,
    check_invariants,
};
use signalbox_domain::testing::World;
use signalbox_domain::time::Span;

use crate::ops::{Op, apply};

/// The state before a step.
pub(crate) struct Before {
    queue: Queue,
    landed: usize,
}

impl Before {
    pub(crate) fn of(world: &World) -> Self {
        Self { queue: world.queue.clone(), landed: world.landed.len() }
    }
}

/// Checks the properties of one step.
pub(crate) fn check_step(before: &Before, after: &World, op: &Op) {
    let violations = check_invariants(&after.queue);
    assert!(violations.is_empty(), "{violations:?} after {op:?}");
    // Q10: every answer that the queue awaits is pending.
    for wanted in awaited(&after.queue) {
        assert!(is_pending(after, wanted), "Q10: nothing answers {wanted:?} after {op:?}");
    }
    let new_effects: Vec<&Effect> = after
        .outbox
        .iter()
        .filter(|it| it.number > before.queue.header.sequence)
        .map(|it| &it.effect)
        .collect();
    // Every step that changes anything has a number of its own in the journal.
    if before.queue != after.queue {
        let (was, is) = (before.queue.header.sequence, after.queue.header.sequence);
        assert!(is > was, "the journal has no number for {op:?}");
    }
    // Q1: what the queue landed passes.
    if after.landed.len() > before.landed {
        assert!(after.target_is_green(), "Q1: the target is red after {op:?}");
        let unique: BTreeSet<_> = after.landed.iter().collect();
        assert_eq!(unique.len(), after.landed.len(), "Q1: landed twice");
    }
    // Q2: no run starts above the limit.
    let ((was, bisected), (is, bisects)) = (before.queue.slots_used(), after.queue.slots_used());
    let settings = &after.queue.header.settings;
    let (limit, of_bisections) = (after.queue.slots_of_line().1, settings.bisection_concurrency);
    assert!((1..=settings.concurrency).contains(&limit), "{limit} slots after {op:?}");
    if of_bisections == 0 {
        let (was, is) = (was + bisected, is + bisects);
        assert!(is <= limit.max(was), "Q2: {is} of {limit} shared slots, {was} before {op:?}");
    } else {
        assert!(is <= limit.max(was), "Q2: {is} of {limit} slots, {was} before {op:?}");
        assert!(bisects <= of_bisections.max(bisected), "Q2: {bisects} bisections after {op:?}");
    }
    // A retry is within the budgets, and never for a new failure.
    for decision in &after.decisions {
        let Decision::Retried { run, prs, retry } = decision else { continue };
        for entry in prs.iter().filter_map(|pr| after.queue.entry_of(*pr)) {
            let (used, budget) = (entry.retries.of(retry.class), retry.class.budget(settings));
            assert!(used <= budget, "#{}: {used} of {budget} retries after {op:?}", entry.pr);
        }
        let hour_ago = after.at.minus(Span::hours(1));
        let within_hour = after.queue.header.retried.iter().filter(|at| **at > hour_ago).count();
        assert!(within_hour <= usize::try_from(settings.retries_per_hour).expect("small"));
        let run = before.queue.run(*run).expect("it was under test");
        let causes = retry.failed.iter().filter_map(|check| run.cause_of(check));
        for cause in causes {
            assert!(!matches!(cause, FailureCause::New { .. }), "{cause:?} after {op:?}");
        }
    }
    // Q3: no entry vanishes: a live entry stays live or ends.
    for entry in before.queue.entries_in_order() {
        if after.queue.entry(entry.id).is_none() {
            assert!(after.ended.contains(&entry.pr), "Q3: #{} is lost by {op:?}", entry.pr);
        }
    }
    // Q5: a paused queue starts and merges nothing; entries are admitted only in RUNNING.
    let paused = |queue: &Queue| matches!(queue.header.state, QueueState::Paused { .. });
    if paused(&before.queue) && paused(&after.queue) {
        let starts =
            |effect: &&&Effect| matches!(effect, Effect::BuildCandidate(_) | Effect::Land(_));
        assert_eq!(new_effects.iter().filter(starts).count(), 0, "Q5 after {op:?}");
    }
    check_freeze(after, &new_effects, op);
    check_capacities(after, &new_effects, op);
    if after.queue.header.state != QueueState::Running {
        for entry in after.queue.entries_in_order() {
            let was = before.queue.entry(entry.id).map(|it| it.state.name());
            let entered = was == Some(PrState::NotReady) && entry.state.name() == PrState::Pending;
            assert!(!entered, "Q5: #{} entered by {op:?}", entry.pr);
        }
    }
}

/// No run starts that needs more of a target than its capacity.
fn check_capacities(after: &World, new_effects: &[&Effect], op: &Op) {
    if after.queue.mode() != Mode::Parallel {
        return;
    }
    for rule in &after.queue.header.settings.target_capacities {
        let (pattern, limit) = rule.split_once(' ').expect("a rule");
        let needs_it = |run: &TestRun| {
            let names = pattern.strip_suffix('*');
            let matches = |name: &str| names.map_or(name == pattern, |it| name.starts_with(it));
            let members = run.group.iter().filter_map(|member| after.queue.entry(member.entry));
            let mut targets = members.map(|entry| entry.applied_targets().map(|it| &it.targets));
            targets.any(|targets| match targets {
                None | Some(Targets::All) => true,
                Some(Targets::Only(targets)) => targets.iter().any(matches),
            })
        };
        let starts = new_effects.iter().any(|effect| match effect {
            Effect::BuildCandidate(build) => after.queue.run(build.run).is_some_and(needs_it),
            _ => false,
        });
        let running = after.queue.runs().filter(|run| run.status.is_running() && needs_it(run));
        let limit: usize = limit.parse().expect("a number");
        assert!(!starts || running.count() <= limit, "{rule} after {op:?}");
    }
}

/// Whether the scope of a freeze covers an entry.
fn is_covered(scope: &str, entry: &Entry) -> bool {
    let targets: Option<Vec<&str>> = match entry.applied_targets().map(|it| &it.targets) {
        Some(Targets::Only(targets)) => Some(targets.iter().collect()),
        Some(Targets::All) | None => None,
    };
    let fits = |pattern: &str, target: &str| match pattern.strip_suffix('*') {
        Some(start) => target.starts_with(start),
        None => pattern == target,
    };
    let has_label = |name: &str| {
        entry.pull_request.labels.iter().any(|label| label.to_lowercase() == name.to_lowercase())
    };
    let (mut is_limited, mut is_named) = (false, false);
    for term in scope.split("; ") {
        if let Some(name) = term.strip_prefix("!label:") {
            if has_label(name) {
                return false;
            }
        } else if let Some(pattern) = term.strip_prefix("!target:") {
            let others = |it: &Vec<&str>| it.iter().any(|target| !fits(pattern, target));
            if !targets.as_ref().is_none_or(others) {
                return false;
            }
        } else {
            let (kind, name) = term.split_once(':').expect("a term");
            is_limited = true;
            is_named |= match kind {
                "label" => has_label(name),
                _ => targets.as_ref().is_none_or(|it| it.iter().any(|target| fits(name, target))),
            };
        }
    }
    is_named || !is_limited
}

/// During a freeze only urgent pull requests start to land and, with `testWhileFrozen` off, to be
/// tested. At each step, the queue is frozen exactly if a rule covers the time of that step.
fn check_freeze(after: &World, new_effects: &[&Effect], op: &Op) {
    let (header, at) = (&after.queue.header, after.journal.last().map(|(at, _)| *at));
    let by_rules = at.map(|at| FreezeState::at(&header.settings.freezes, at));
    if let Some(by_rules) = by_rules {
        let is_frozen = header.freeze.in_force.is_some();
        assert_eq!(is_frozen, by_rules.in_force.is_some(), "{:?} after {op:?}", header.freeze);
        assert_eq!(header.freeze.partial, by_rules.partial, "after {op:?}");
    }
    let landing = |entry: &Entry| {
        let landing = header.landing.as_ref().map(|landing| &landing.runs);
        landing.zip(entry.state.run()).is_some_and(|(runs, run)| runs.contains(&run))
    };
    let in_line = after.queue.entries_in_order().filter(|it| it.place != LinePosition::Outside);
    for entry in in_line.filter(|it| !it.priority.is_urgent() && !landing(it)) {
        for freeze in &header.freeze.partial {
            let scope = freeze.scope.to_string();
            assert!(!is_covered(&scope, entry), "#{} in {scope} after {op:?}", entry.pr);
        }
    }
    if header.freeze.in_force.is_none() {
        return;
    }
    let is_urgent =
        |pr: &PrNumber| after.queue.entry_of(*pr).is_some_and(|entry| entry.priority.is_urgent());
    for effect in new_effects {
        match effect {
            Effect::Land(land) => {
                let all = land.changes.iter().all(|change| is_urgent(&change.pr));
                assert!(all, "{land:?} in a freeze after {op:?}");
            }
            Effect::BuildCandidate(build) if !header.settings.test_while_frozen => {
                let run = after.queue.run(build.run).expect("it has just started");
                let all = run.group.iter().all(|member| is_urgent(&member.pr));
                assert!(all, "{build:?} in a freeze after {op:?}");
            }
            _ => {}
        }
    }
}

/// Whether a waiting effect or fact answers what the queue waits for.
fn is_pending(world: &World, wanted: Awaited) -> bool {
    let effects = || world.outbox.iter().map(|it| &it.effect);
    match wanted {
        Awaited::Candidate(run) => {
            effects().any(|it| matches!(it, Effect::BuildCandidate(it) if it.run == run))
                || world.facts.iter().any(|fact| match fact {
                    Fact::CandidateBuilt { run: of, .. }
                    | Fact::CandidateConflict { run: of, .. }
                    | Fact::CandidateMismatch { run: of, .. }
                    | Fact::CandidateRefused { run: of, .. } => *of == run,
                    _ => false,
                })
        }
        Awaited::Landing(run) => {
            effects().any(|it| matches!(it, Effect::Land(it) if it.run == run))
                || world.facts.iter().any(|fact| match fact {
                    Fact::Landed { run: of, .. } | Fact::LandRefused { run: of, .. } => *of == run,
                    _ => false,
                })
        }
    }
}

/// During a freeze without an end, urgent pull requests merge or leave whatever else is in the line.
pub(crate) fn check_urgent_during_freeze(world: &mut World, urgent: &BTreeSet<u32>) {
    apply(world, &Op::HostBack);
    if let Some(first) = urgent.first() {
        apply(world, &Op::Submit(*first, Some(0), None));
    }
    let freezes = Some(vec!["2026-01-01T00:00/..[UTC]".to_owned()]);
    apply(world, &Op::Set(Box::new(SettingsPatch { freezes, ..SettingsPatch::default() })));
    for pr in urgent {
        apply(world, &Op::Submit(*pr, Some(0), None));
    }
    for _ in 0..12 {
        apply(world, &Op::State(RequestedState::Running));
        world.settle();
        apply(world, &Op::Wait(100));
        world.reconcile();
    }
    world.settle();
    for entry in world.queue.entries_in_order().filter(|entry| entry.priority.is_urgent()) {
        let readiness = entry.readiness(&world.queue.header);
        // A mode switch ends only after the freeze, and admits none until then.
        let is_outside = entry.state == EntryState::NotReady
            && (!readiness.is_ready() || world.queue.header.state != QueueState::Running);
        assert!(is_outside, "#{} stays {:?}", entry.pr, entry.state);
    }
}

/// The minutes after which each quota is restored.
const RESTORED: u32 = 29 * 60;

/// Q8: when the host answers, every check ends and the queue runs, the line empties.
pub(crate) fn check_liveness(world: &mut World) {
    apply(world, &Op::HostBack);
    for _ in 0..12 {
        // A wrong composition that is still reported pauses it.
        apply(world, &Op::State(RequestedState::Running));
        let FreezeState { in_force, partial, .. } = &world.queue.header.freeze;
        let is_endless = in_force.as_ref().is_some_and(|freeze| freeze.until.is_none());
        if is_endless || partial.iter().any(|freeze| freeze.until.is_none()) {
            let freezes = Some(Vec::new());
            apply(world, &Op::Set(Box::new(SettingsPatch { freezes, ..SettingsPatch::default() })));
        }
        world.settle();
        // Longer than any batch waits to fill, and than a red target holds the line.
        let settings = &world.queue.header.settings;
        let has_quota = settings.author_hourly_limit + settings.author_daily_minutes > 0;
        apply(world, &Op::Wait(if has_quota { RESTORED } else { 100 }));
        world.reconcile();
    }
    world.settle();
    for entry in world.queue.clone().entries_in_order() {
        for it in &entry.dependencies {
            assert_eq!(it.state, world.dependency_state(&it.on), "#{} on {}", entry.pr, it.on);
        }
        if let Some(Fact::TargetsComputed { computed, .. }) = world.computed_targets(entry.pr) {
            let known = entry.known_targets(&world.queue.header).expect("every effect has run");
            let is_current = known.origin.is_reported() || known.targets == computed.targets;
            assert!(is_current, "#{}: {known:?}, not {computed:?}", entry.pr);
        }
        let readiness = entry.readiness(&world.queue.header);
        assert!(
            entry.state == EntryState::NotReady && !readiness.is_ready(),
            "Q8: #{} stays {:?}",
            entry.pr,
            entry.state
        );
    }
}
