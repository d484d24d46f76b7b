//! Announcements and draft pull requests of a transition, and late check results.

use signalbox_domain::ids::PrNumber;
use signalbox_domain::queue::{
    Command, Effect, EntryState, Fact, Input, RequestedState, SettingsPatch, absorb, decide,
};
use signalbox_domain::testing::{Rules, World};
use signalbox_domain::time::Span;

use crate::{is_checks, run_until, update, world};

/// The pull requests that the last transition names.
fn shown_last(world: &World) -> Vec<u32> {
    let mut queue = world.new_queue.clone();
    let mut shown = Vec::new();
    for (at, input) in &world.journal {
        let transition = match input {
            Input::Command(command) => decide(&queue, command, *at).expect("it was not refused"),
            Input::Fact(fact) => absorb(&queue, fact, *at),
        };
        shown = transition.shown.iter().map(|pr| pr.0).collect();
        queue = transition.queue;
    }
    shown
}

#[test]
fn only_changed_pull_requests_are_shown_unless_a_setting_affects_all() {
    let mut world = world(1, Rules::default());
    for pr in 1..=3 {
        world.submit(pr, None).expect("submitted");
    }
    assert_eq!(shown_last(&world), [3]);
    update(&mut world, SettingsPatch::default(), Some(RequestedState::Paused));
    assert_eq!(shown_last(&world), [0; 0], "a pause is not shown on pull requests");
    let off = SettingsPatch { comments_enabled: Some(false), ..SettingsPatch::default() };
    update(&mut world, off, None);
    assert_eq!(shown_last(&world), [1, 2, 3]);
    let by = world.caller();
    world.ask(Command::Cancel { pr: PrNumber(2), by }).expect("not refused");
    assert!(shown_last(&world).contains(&2), "an ended pull request is shown");
}

#[test]
fn a_draft_pull_request_is_opened_on_a_forge_if_the_setting_is_on() {
    for (has_people, setting, opens) in
        [(true, true, true), (true, false, false), (false, true, false)]
    {
        let mut world = world(1, Rules::default());
        let patch = SettingsPatch {
            create_prs_for_testing_branches: Some(setting),
            ..SettingsPatch::default()
        };
        update(&mut world, patch, None);
        world.submit(1, None).expect("submitted");
        run_until(&mut world, |effect| matches!(effect, Effect::BuildCandidate(_)));
        let build = world.outbox.remove(0).effect;
        world.run(&build);
        let Some(Fact::CandidateBuilt { has_forge, .. }) = world.facts.last_mut() else {
            panic!("{:?}", world.facts)
        };
        *has_forge = has_people;
        let fact = world.facts.remove(0);
        world.take_in(&fact);
        let effects: Vec<&Effect> = world.outbox.iter().map(|it| &it.effect).collect();
        let opened = |effect: &&&Effect| matches!(effect, Effect::OpenTestPullRequest { prs, .. } if *prs == [PrNumber(1)]);
        assert_eq!(effects.iter().filter(opened).count(), usize::from(opens), "{effects:?}");
        assert!(effects.iter().any(|effect| is_checks(effect)), "it is tested in any case");
    }
}

#[test]
fn a_result_counts_although_another_runner_has_started_the_check() {
    let mut world = world(1, Rules::default());
    world.submit(1, None).expect("submitted");
    run_until(&mut world, is_checks);
    let effect = world.outbox.remove(0).effect;
    world.run(&effect);
    let result = world.facts.pop().expect("a result");
    let begun = world.facts.pop().expect("a beginning");
    world.take_in(&begun);
    // A runner that has lost its lease starts the check again before it notices.
    let mut again = begun.clone();
    let Fact::ChecksReported { checks, .. } = &mut again else { panic!("{again:?}") };
    checks[0].at = world.at.plus(Span::minutes(1));
    world.wait(Span::minutes(1));
    world.take_in(&again);
    world.take_in(&result);
    let entry = world.queue.entry_of(PrNumber(1)).expect("it is live");
    assert!(matches!(entry.state, EntryState::TestsPassed { .. }), "{:?}", entry.state);
}
