//! Queues that Terraform manages, and changes outside Terraform.

use signalbox_domain::queue::{
    Actor, ChangeSource, Command, ManagedState, Management, Mode, RequestedState, SettingsPatch,
};
use signalbox_domain::testing::{Rules, World};

use super::{update, world};

fn concurrency(value: u32) -> SettingsPatch {
    SettingsPatch { concurrency: Some(value), ..SettingsPatch::default() }
}

/// A change by Terraform.
fn apply(world: &mut World, settings: SettingsPatch, state: Option<RequestedState>) {
    let (settings, by) = (Box::new(settings), Actor::Token("terraform".to_owned()));
    let source = ChangeSource::Terraform;
    let command = Command::Update { settings, state, reason: None, by, source };
    world.ask(command).expect("not refused");
}

/// The fields that differ from the queue that Terraform left, with their values there.
fn drift(world: &World) -> Vec<(&str, Option<&str>)> {
    let management = world.queue.header.management.as_ref().expect("managed");
    let drift = management.drift.iter();
    drift.map(|it| (it.field.as_str(), it.applied.as_deref())).collect()
}

#[test]
fn a_direct_change_alone_does_not_make_a_queue_managed() {
    let mut world = world(1, Rules::default());
    update(&mut world, concurrency(2), Some(RequestedState::Paused));
    assert_eq!(world.queue.header.management, None);
    assert_eq!(world.queue.header.managed_state(), ManagedState::Manual);
}

#[test]
fn a_change_by_terraform_that_changes_no_value_makes_a_queue_managed() {
    let mut world = world(1, Rules::default());
    apply(&mut world, concurrency(1), None);
    let expected = Management::applied(Actor::Token("terraform".to_owned()), world.at);
    assert_eq!(world.queue.header.management, Some(expected));
    assert_eq!(world.queue.header.managed_state(), ManagedState::Terraform);
}

#[test]
fn drift_has_the_applied_value_and_ends_when_the_change_is_reverted_or_terraform_applies() {
    let mut world = world(1, Rules::default());
    apply(&mut world, concurrency(5), None);
    update(&mut world, concurrency(5), Some(RequestedState::Running));
    assert_eq!(drift(&world), [], "a change of no value is no drift");
    update(&mut world, concurrency(6), None);
    update(&mut world, concurrency(7), Some(RequestedState::Draining));
    assert_eq!(drift(&world), [("state", Some("RUNNING")), ("concurrency", Some("5"))]);
    assert_eq!(world.queue.header.managed_state(), ManagedState::TerraformWithDrift);
    update(&mut world, concurrency(5), None);
    assert_eq!(drift(&world), [("state", Some("RUNNING"))]);
    apply(&mut world, SettingsPatch::default(), None);
    assert_eq!(drift(&world), []);
    update(&mut world, SettingsPatch::default(), Some(RequestedState::Running));
    assert_eq!(drift(&world), [("state", Some("DRAINING"))]);
}

#[test]
fn drift_keeps_who_changed_a_field_last() {
    let mut world = world(1, Rules::default());
    apply(&mut world, SettingsPatch::default(), None);
    let change = |world: &mut World, name: &str, settings: SettingsPatch| {
        let (settings, by) = (Box::new(settings), Actor::Token(name.to_owned()));
        let source = ChangeSource::Direct;
        let command = Command::Update { settings, state: None, reason: None, by, source };
        world.ask(command).expect("not refused");
    };
    let by = |world: &World| {
        let management = world.queue.header.management.as_ref().expect("managed");
        management.drift.iter().map(|it| it.by.to_string()).collect::<Vec<_>>()
    };
    change(&mut world, "ada", concurrency(2));
    change(&mut world, "grace", SettingsPatch { batch: Some(true), ..SettingsPatch::default() });
    assert_eq!(by(&world), ["token ada", "token grace"]);
    change(&mut world, "grace", concurrency(3));
    assert_eq!(by(&world), ["token grace", "token grace"]);
}

#[test]
fn the_end_of_a_mode_switch_is_no_drift() {
    let mut world = world(1, Rules::default());
    world.submit(1, None).expect("submitted");
    let parallel = SettingsPatch { mode: Some(Mode::Parallel), ..SettingsPatch::default() };
    apply(&mut world, parallel.clone(), Some(RequestedState::Draining));
    assert_eq!(world.queue.header.state.name().as_str(), "SWITCHING_MODES");
    // Terraform sends the whole configuration with each change.
    apply(&mut world, parallel, Some(RequestedState::Draining));
    world.settle();
    assert_eq!(world.queue.header.state.name().as_str(), "DRAINING");
    assert_eq!(world.queue.header.managed_state(), ManagedState::Terraform);
}
