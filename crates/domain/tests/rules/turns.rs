//! Fair share. Even numbers are by one author, odd ones by another; labels name agents.

use std::collections::BTreeSet;

use signalbox_domain::ids::PrNumber;
use signalbox_domain::queue::{
    Command, Decision, Mode, RequestedState, Settings, SettingsPatch, WaitReason,
};
use signalbox_domain::testing::{Rules, World};

use crate::{build_all, decisions, in_line, submit, update, waits};

fn world(concurrency: u32, change: impl FnOnce(&mut Settings)) -> World {
    let mut settings = Settings::new(Mode::Single, concurrency).expect("valid settings");
    settings.fair_share = true;
    settings.agent_labels = vec!["agent:*".to_owned()];
    change(&mut settings);
    World::new(settings, Rules::default())
}

/// Submits a pull request of an agent.
fn submit_of(world: &mut World, agent: &str, pr: u32) {
    world.relabel(pr, vec!["docs".to_owned(), agent.to_owned()]);
    submit(world, [pr]);
}

fn fair_share(on: bool) -> SettingsPatch {
    SettingsPatch { fair_share: Some(on), ..SettingsPatch::default() }
}

/// Runs effects until this many pull requests have landed.
fn land(world: &mut World, number: usize) {
    while world.landed.len() < number && world.step() {}
}

#[test]
fn the_first_of_an_author_goes_ahead_of_later_ones_of_another() {
    let mut world = world(1, |_| {});
    submit(&mut world, [2, 4, 6, 8, 10, 1, 3]);
    // The first is tested, and keeps its place.
    assert_eq!(in_line(&world), [2, 4, 1, 6, 3, 8, 10]);
    let overtook = decisions(&world).into_iter().filter_map(|decision| match decision {
        Decision::Overtook { pr, overtaken } => Some((pr.0, overtaken.0)),
        _ => None,
    });
    assert_eq!(overtook.collect::<Vec<_>>(), [(1, 6), (3, 8)]);
    world.settle();
    assert_eq!(world.landed, [2, 4, 1, 6, 3, 8, 10]);
}

#[test]
fn what_is_tested_is_not_overtaken() {
    let mut world = world(4, |_| {});
    submit(&mut world, [2, 4, 6, 8]);
    build_all(&mut world);
    submit(&mut world, [10, 12, 14, 1]);
    assert_eq!(in_line(&world), [2, 4, 6, 8, 10, 1, 12, 14]);
}

#[test]
fn an_entry_is_overtaken_only_until_its_turn_is_next() {
    let mut world = world(1, |_| {});
    submit(&mut world, [2, 4, 6, 8]);
    for number in 1..=6_u32 {
        // Two of new agents for each that lands.
        for pr in [100 + 2 * number, 101 + 2 * number] {
            submit_of(&mut world, &format!("agent:{pr}"), pr);
        }
        land(&mut world, usize::try_from(number).expect("few"));
    }
    world.settle();
    let rounds = [[2, 4, 102, 103], [6, 104, 105, 106], [107, 108, 109, 8], [110, 111, 112, 113]];
    assert_eq!(world.landed, rounds.concat());
}

#[test]
fn the_setting_orders_waiting_entries_again() {
    let mut world = world(1, |settings| settings.fair_share = false);
    submit(&mut world, [2, 4, 6, 8, 1, 3]);
    assert_eq!(in_line(&world), [2, 4, 6, 8, 1, 3]);
    update(&mut world, fair_share(true), None);
    assert_eq!(in_line(&world), [2, 4, 1, 6, 3, 8]);
    submit(&mut world, [5]);
    assert_eq!(in_line(&world), [2, 4, 1, 6, 3, 8, 5]);
    update(&mut world, fair_share(false), None);
    assert_eq!(in_line(&world), [2, 4, 6, 8, 1, 3, 5]);
    submit(&mut world, [7]);
    assert_eq!(in_line(&world), [2, 4, 6, 8, 1, 3, 5, 7]);
}

#[test]
fn turns_are_taken_within_a_priority() {
    let mut world = world(1, |_| {});
    submit(&mut world, [2, 4, 6, 8, 1]);
    world.submit(8, Some(10)).expect("a better priority");
    assert_eq!(in_line(&world), [2, 8, 4, 1, 6]);
    world.submit(4, Some(10)).expect("a better priority");
    world.submit(3, Some(10)).expect("a better priority");
    assert_eq!(in_line(&world), [2, 8, 3, 4, 1, 6]);
    world.submit(8, Some(100)).expect("the usual priority");
    assert_eq!(in_line(&world), [2, 3, 4, 1, 6, 8]);
}

#[test]
fn one_that_was_urgent_waits_for_a_turn_of_its_own() {
    let mut world = world(1, |_| {});
    submit(&mut world, [2, 4, 6, 8, 1]);
    assert_eq!(in_line(&world), [2, 4, 1, 6, 8]);
    update(&mut world, SettingsPatch::default(), Some(RequestedState::Paused));
    world.submit(8, Some(0)).expect("urgent");
    assert_eq!(in_line(&world), [8, 2, 4, 1, 6]);
    world.submit(8, Some(100)).expect("ordinary");
    assert_eq!(in_line(&world), [2, 4, 1, 6, 8]);
}

#[test]
fn turns_continue_while_a_conflict_holds_the_first() {
    let mut settings = Settings::new(Mode::Single, 2).expect("valid settings");
    settings.fair_share = true;
    settings.agent_labels = vec!["agent:*".to_owned()];
    let rules = Rules { conflict: BTreeSet::from([(2, 4)]), ..Rules::default() };
    let mut world = World::new(settings, rules);
    submit(&mut world, [2, 4]);
    build_all(&mut world);
    submit(&mut world, [6]);
    build_all(&mut world);
    submit(&mut world, [8, 10]);
    submit_of(&mut world, "agent:x", 101);
    submit_of(&mut world, "agent:y", 102);
    assert_eq!(waits(&world, 4), WaitReason::ConflictWithAhead { pr: PrNumber(2) });
    assert_eq!(in_line(&world), [2, 6, 4, 8, 101, 102, 10]);
    let by = world.caller();
    world.ask(Command::Cancel { pr: PrNumber(6), by }).expect("cancelled");
    assert_eq!(in_line(&world), [2, 8, 4, 101, 102, 10]);
    submit_of(&mut world, "agent:z", 103);
    assert_eq!(in_line(&world), [2, 8, 4, 101, 102, 10, 103], "the turn of 10 is the next one");
}

#[test]
fn a_label_that_changes_gives_another_turn() {
    let mut world = world(1, |_| {});
    submit(&mut world, [2, 4, 6, 8, 1]);
    assert_eq!(in_line(&world), [2, 4, 1, 6, 8]);
    let mut relabel = |labels: &[&str]| {
        world.relabel(8, labels.iter().map(|it| (*it).to_owned()).collect());
        world.absorb_all();
        in_line(&world)
    };
    assert_eq!(relabel(&["agent:x"]), [2, 4, 8, 1, 6]);
    assert_eq!(relabel(&["agent:x", "docs"]), [2, 4, 8, 1, 6]);
    assert_eq!(relabel(&[]), [2, 4, 1, 6, 8]);
}

#[test]
fn an_agent_has_limits_of_its_own() {
    let mut world = world(1, |settings| settings.author_limit = 2);
    submit(&mut world, [2, 4]);
    for pr in [6, 8, 1, 3] {
        submit_of(&mut world, "Agent:helper", pr);
    }
    submit(&mut world, [10]);
    assert_eq!(in_line(&world), [2, 4, 6, 8]);
    let limit = |author: &str, prs: &[u32]| WaitReason::AuthorLimit {
        author: author.to_owned(),
        limit: 2,
        prs: prs.iter().copied().map(PrNumber).collect(),
    };
    assert_eq!(waits(&world, 1), limit("Agent:helper", &[6, 8]));
    assert_eq!(waits(&world, 10), limit("grace", &[2, 4]));
    let by = world.caller();
    world.ask(Command::Cancel { pr: PrNumber(6), by }).expect("cancelled");
    assert_eq!(in_line(&world), [2, 4, 8, 1], "another one of the agent");
    world.relabel(8, Vec::new());
    world.absorb_all();
    assert_eq!(in_line(&world), [2, 4, 8, 1, 3], "one counts for its author now, and makes room");
    let none = SettingsPatch { agent_labels: Some(Vec::new()), ..SettingsPatch::default() };
    update(&mut world, none, None);
    assert_eq!(waits(&world, 10), limit("grace", &[2, 4, 8]));
}
