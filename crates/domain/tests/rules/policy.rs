//! Policies of a team's own.

use signalbox_domain::ids::PrNumber;
use signalbox_domain::queue::{
    Decision, Entry, Fact, Mode, Policy, PolicyId, PolicyView, PrState, Queue, ReparentingMode,
    Settings, SettingsPatch, SharedPolicy, Standard, TestRun, WaitReason, estimate, next_deadline,
};
use signalbox_domain::testing::{Rules, World};
use signalbox_domain::time::Span;

use crate::{bad, build_all, checks_end, decisions, in_batches, states, submit, update, waits};

/// Answers with what is given, and as by default otherwise.
#[derive(Clone, Copy, Debug, Default)]
struct Given {
    version: u32,
    failing: Option<u32>,
    reparents: Option<bool>,
    batch_size: Option<u32>,
    window: Option<u32>,
}

impl Policy for Given {
    fn id(&self) -> PolicyId {
        PolicyId::new("given", self.version)
    }

    fn can_estimate(&self, view: &PolicyView<'_>) -> bool {
        self.failing.is_some() || Standard.can_estimate(view)
    }

    fn failing(&self, view: &PolicyView<'_>, entry: &Entry) -> u32 {
        let of_ada = entry.pull_request.author == "ada";
        self.failing.filter(|_| of_ada).unwrap_or_else(|| view.failing(entry))
    }

    fn reparents(&self, view: &PolicyView<'_>, failed: &TestRun) -> bool {
        self.reparents.unwrap_or_else(|| Standard.reparents(view, failed))
    }

    fn batch_size(&self, view: &PolicyView<'_>, _first: &Entry) -> u32 {
        self.batch_size.unwrap_or(view.settings().batching_min_size)
    }

    fn window_after_failure(&self, view: &PolicyView<'_>, failed: &TestRun, window: u32) -> u32 {
        self.window.unwrap_or_else(|| Standard.window_after_failure(view, failed, window))
    }
}

fn world(settings: Settings, rules: Rules, policy: Given) -> World {
    World::new(settings, rules).with_policy(policy)
}

fn single() -> Settings {
    Settings::new(Mode::Single, 4).expect("valid settings")
}

/// The changes of the policy in the last step.
fn changes(world: &World) -> Vec<(String, String)> {
    let changed = |decision: Decision| match decision {
        Decision::PolicyChanged { from, to } => Some((from.to_string(), to.to_string())),
        _ => None,
    };
    world.decisions.iter().cloned().filter_map(changed).collect()
}

#[test]
fn the_journal_has_the_name_and_the_version_of_each_policy() {
    let mut world = World::new(single(), Rules::default());
    submit(&mut world, [1]);
    assert_eq!(changes(&world), [], "the standard policy is not named");
    let named = |from: &str, to: &str| vec![(from.to_owned(), to.to_owned())];
    for (version, expected) in
        [(1, named("standard 1", "given 1")), (1, vec![]), (2, named("given 1", "given 2"))]
    {
        world = world.with_policy(Given { version, ..Given::default() });
        let is_due = next_deadline(&world.queue).is_some_and(|due| due <= world.at);
        assert_eq!(is_due, !expected.is_empty(), "the other policy acts without an event");
        world.take_in(&Fact::TimePassed);
        assert_eq!(changes(&world), expected);
        assert!(!world.queue.has_other_policy());
    }
    // A stored queue knows the policy of its last step.
    let Queue { header, .. } = world.queue.clone();
    world.queue = Queue::restore(
        header,
        world.queue.entries_in_order().cloned(),
        world.queue.runs().cloned(),
    );
    world.take_in(&Fact::TimePassed);
    assert_eq!(changes(&world), named("given 2", "standard 1"));
    assert_eq!(SharedPolicy::default(), SharedPolicy::from(Standard));
}

#[test]
fn a_policy_estimates_which_pull_requests_fail() {
    // Ada has submitted the odd ones.
    let policy = Given { failing: Some(700_000), ..Given::default() };
    let mut world = world(single(), Rules::default(), policy);
    submit(&mut world, 1..=3);
    build_all(&mut world);
    let pretested = |world: &World| {
        let one = |decision: Decision| match decision {
            Decision::Pretested { prs, percent, .. } => Some((prs[0].0, percent)),
            _ => None,
        };
        decisions(world).into_iter().filter_map(one).collect::<Vec<_>>()
    };
    assert_eq!(pretested(&world), [(1, 30), (3, 30)]);
    world.settle();
    let mut landed = world.landed.clone();
    landed.sort_unstable();
    assert_eq!(landed, [1, 2, 3]);
    // More than certain is certain, and without the setting nothing is pretested.
    let policy = Given { failing: Some(u32::MAX), ..policy };
    let mut certain = world.clone().with_policy(policy);
    submit(&mut certain, [5]);
    assert_eq!(pretested(&certain)[2..], [(5, 0)]);
    update(
        &mut world,
        SettingsPatch { pretest_threshold: Some(0), ..SettingsPatch::default() },
        None,
    );
    submit(&mut world, [5]);
    assert_eq!(pretested(&world).len(), 2);
}

#[test]
fn a_policy_chooses_the_size_of_batches_within_its_bounds() {
    for (wanted, tested) in [(0, 1), (2, 2), (3, 3), (u32::MAX, 4)] {
        let policy = Given { batch_size: Some(wanted), ..Given::default() };
        let mut world = world(single(), Rules::default(), policy);
        update(&mut world, in_batches(4), None);
        update(
            &mut world,
            SettingsPatch { concurrency: Some(1), ..SettingsPatch::default() },
            None,
        );
        submit(&mut world, 1..=4);
        if wanted == u32::MAX {
            let most = |it| matches!(it, WaitReason::BatchFilling { have: 4, target: 1_000, .. });
            assert!(most(waits(&world, 4)), "{:?}", waits(&world, 4));
        }
        for pr in 1..=4 {
            let history = [Span::minutes(30)];
            let estimate = estimate(&world.queue, PrNumber(pr), &history, world.at);
            assert!(estimate.time.is_some(), "#{pr} with {wanted}");
        }
        world.wait(Span::minutes(10));
        world.take_in(&Fact::TimePassed);
        build_all(&mut world);
        let testing = states(&world).iter().filter(|(_, it)| *it == PrState::Testing).count();
        assert_eq!(testing, tested, "{wanted}");
    }
}

#[test]
fn a_policy_decides_what_leaves_the_line() {
    for (setting, answer, expected) in [
        (ReparentingMode::Off, Some(true), vec![2]),
        (ReparentingMode::All, Some(false), vec![]),
        (ReparentingMode::All, None, vec![2]),
    ] {
        let policy = Given { reparents: answer, ..Given::default() };
        let mut world = world(single(), bad(&[2]), policy);
        let mode = SettingsPatch { reparenting_mode: Some(setting), ..SettingsPatch::default() };
        update(&mut world, mode, None);
        submit(&mut world, 1..=3);
        checks_end(&mut world, 2);
        let left = |decision: Decision| match decision {
            Decision::Reparented { prs, .. } => Some(prs),
            _ => None,
        };
        let left: Vec<PrNumber> =
            decisions(&world).into_iter().filter_map(left).flatten().collect();
        assert_eq!(left, expected.into_iter().map(PrNumber).collect::<Vec<_>>(), "{answer:?}");
        world.settle();
        assert_eq!(world.landed, [1, 3]);
    }
}

#[test]
fn a_policy_resizes_the_window_within_its_bounds() {
    for (wanted, window) in [(0, 3), (5, 5), (u32::MAX, 8)] {
        let settings = Settings::builder().concurrency(8_u32).adaptive_window(true);
        let settings = settings.build().expect("valid settings");
        let policy = Given { window: Some(wanted), ..Given::default() };
        let mut world = world(settings, bad(&[1]), policy);
        submit(&mut world, 1..=4);
        checks_end(&mut world, 1);
        assert_eq!(world.queue.slots_of_line().1, window, "{wanted}");
    }
}
