//! Mode switches combined with pauses and drains.

use signalbox_domain::ids::PrNumber;
use signalbox_domain::queue::{
    ChangeSource, Command, Mode, PrState, QueueState, Refusal, RequestedState, SettingsPatch,
};
use signalbox_domain::testing::{Rules, World};

use super::{states, update, world};

#[test]
fn a_pause_outlasts_a_mode_switch() {
    let paused = |world: &World| matches!(world.queue.header.state, QueueState::Paused { .. });
    let to = |mode| SettingsPatch { mode: Some(mode), ..SettingsPatch::default() };
    // The mode is changed while the queue is paused, together with the pause, or just before it.
    for order in 0..3 {
        let mut world = world(1, Rules::default());
        world.submit(1, None).expect("submitted");
        let pause = Some(RequestedState::Paused);
        match order {
            0 => {
                update(&mut world, SettingsPatch::default(), pause);
                update(&mut world, to(Mode::Parallel), None);
            }
            1 => update(&mut world, to(Mode::Parallel), pause),
            _ => {
                update(&mut world, to(Mode::Parallel), None);
                update(&mut world, SettingsPatch::default(), pause);
            }
        }
        world.settle();
        assert!(paused(&world) && world.landed.is_empty(), "order {order}");
        assert_eq!(world.queue.mode(), Mode::Single, "the old mode is in force");
        let (settings, by) = (Box::new(to(Mode::Single)), world.caller());
        let back = Command::Update {
            settings,
            state: None,
            reason: None,
            by,
            source: ChangeSource::Direct,
        };
        assert_eq!(world.ask(back), Err(Refusal::ModeChangeInProgress));
        update(&mut world, SettingsPatch::default(), Some(RequestedState::Running));
        assert_eq!(world.queue.header.state.name().as_str(), "SWITCHING_MODES");
        world.settle();
        assert_eq!(world.landed, [1]);
        assert_eq!(world.queue.header.state.name().as_str(), "RUNNING");
        assert_eq!(world.queue.mode(), Mode::Parallel);
    }
}

#[test]
fn a_paused_queue_switches_modes_when_the_line_is_empty() {
    let mut world = world(1, Rules::default());
    let parallel = || SettingsPatch { mode: Some(Mode::Parallel), ..SettingsPatch::default() };
    world.submit(1, None).expect("submitted");
    update(&mut world, parallel(), Some(RequestedState::Paused));
    let (pr, by) = (PrNumber(1), world.caller());
    world.ask(Command::Cancel { pr, by }).expect("not refused");
    world.settle();
    assert_eq!(world.queue.header.state.name().as_str(), "PAUSED");
    assert_eq!(world.queue.mode(), Mode::Parallel);
}

#[test]
fn a_drain_outlasts_a_mode_switch() {
    let to = |mode| SettingsPatch { mode: Some(mode), ..SettingsPatch::default() };
    let state = |world: &World| world.queue.header.state.name().as_str();
    // The mode is changed while the queue drains, or together with the drain.
    for order in 0..2 {
        let mut world = world(1, Rules::default());
        world.submit(1, None).expect("submitted");
        if order == 0 {
            update(&mut world, SettingsPatch::default(), Some(RequestedState::Draining));
            update(&mut world, to(Mode::Parallel), None);
        } else {
            update(&mut world, to(Mode::Parallel), Some(RequestedState::Draining));
        }
        assert_eq!(state(&world), "SWITCHING_MODES", "order {order}");
        world.submit(2, None).expect("submitted");
        world.settle();
        assert_eq!((world.landed.as_slice(), state(&world)), (&[1][..], "DRAINING"));
        assert_eq!(world.queue.mode(), Mode::Parallel);
        assert_eq!(states(&world), [(2, PrState::NotReady)]);
        update(&mut world, SettingsPatch::default(), Some(RequestedState::Running));
        assert_eq!(state(&world), "RUNNING");
    }
}

#[test]
fn requesting_running_during_a_mode_switch_ends_the_drain() {
    let mut world = world(1, Rules::default());
    world.submit(1, None).expect("submitted");
    let parallel = SettingsPatch { mode: Some(Mode::Parallel), ..SettingsPatch::default() };
    update(&mut world, parallel, Some(RequestedState::Draining));
    update(&mut world, SettingsPatch::default(), Some(RequestedState::Running));
    assert_eq!(world.queue.header.state.name().as_str(), "SWITCHING_MODES");
    world.settle();
    assert_eq!(world.queue.header.state.name().as_str(), "RUNNING");
}
