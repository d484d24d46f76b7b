//! The table of every input in every state of a pull request, computed by the planner. It is part
//! of the documentation.

use std::fmt::Write;

use super::{Rules, World};
use crate::ids::PrNumber;
use crate::queue::{
    ChangeSource, Command, Decision, Effect, Fact, Mode, Moved, PrState, RequestedState, Settings,
    SettingsPatch,
};
use crate::time::Span;

/// The observed pull request; number 1 is ahead of it.
const WATCHED: PrNumber = PrNumber(2);

/// A state's name and the function that builds a world in it.
type State = (&'static str, fn() -> World);
/// An input's name and the function that applies it.
type Input = (&'static str, fn(&mut World) -> Result<(), String>);

const STATES: [State; 9] = [
    ("none", || lined_up(1)),
    ("NOT_READY", || {
        let mut world = lined_up(1);
        world.retarget(2);
        world.facts.clear();
        submitted(world)
    }),
    ("PENDING", || submitted(lined_up(1))),
    ("TESTING", || under_test(submitted(lined_up(2)))),
    ("TESTS_PASSED", || checked(under_test(submitted(lined_up(2))), PrState::TestsPassed)),
    ("PENDING_FAILURE", || {
        let mut world = lined_up(2);
        world.rules_mut().bad.insert(2);
        checked(under_test(submitted(world)), PrState::PendingFailure)
    }),
    ("MERGED", || settled(submitted(lined_up(2)))),
    ("FAILED", || {
        let mut world = lined_up(2);
        world.rules_mut().bad.insert(2);
        settled(submitted(world))
    }),
    ("CANCELLED", || {
        let mut world = submitted(lined_up(1));
        let by = world.caller();
        world.ask(Command::Cancel { pr: WATCHED, by }).expect("not refused");
        world
    }),
];

const INPUTS: [Input; 19] = [
    ("submit", |world| asked(world.submit(2, None))),
    ("submit as urgent", |world| asked(world.submit(2, Some(0)))),
    ("cancel", |world| {
        let by = world.caller();
        asked(world.ask(Command::Cancel { pr: WATCHED, by }))
    }),
    ("restart", |world| {
        let by = world.caller();
        asked(world.ask(Command::Restart { pr: WATCHED, by }))
    }),
    ("a push to it", |world| absorbed(world, |world| world.push(2))),
    ("it is closed", |world| absorbed(world, |world| world.close_or_reopen(2))),
    ("its base is changed", |world| absorbed(world, |world| world.retarget(2))),
    ("it becomes a draft", |world| absorbed(world, |world| world.redraft(2))),
    ("it is merged by hand", |world| {
        absorbed(world, |world| {
            world.merge_by_hand(2);
            // The target is read separately.
            world.facts.retain(|fact| !matches!(fact, Fact::TargetSeen { .. }));
        })
    }),
    ("the pull request ahead is cancelled", |world| {
        let by = world.caller();
        asked(world.ask(Command::Cancel { pr: PrNumber(1), by }))
    }),
    ("the target is pushed to", |world| absorbed(world, World::push_target)),
    ("its checks pass", |world| absorbed(world, |world| report(world, false))),
    ("a required check fails", |world| absorbed(world, |world| report(world, true))),
    ("its run takes too long", |world| {
        world.wait(Span::minutes(301));
        absorbed(world, |world| world.facts.push(Fact::TimePassed))
    }),
    ("not ready for a day", |world| {
        world.wait(Span::hours(24));
        absorbed(world, |world| world.facts.push(Fact::TimePassed))
    }),
    ("the host is silent", |world| absorbed(world, |world| world.facts.push(World::host_lost()))),
    ("pause", |world| state(world, RequestedState::Paused)),
    ("drain", |world| state(world, RequestedState::Draining)),
    ("change the mode", |world| {
        let patch = SettingsPatch { mode: Some(Mode::Parallel), ..SettingsPatch::default() };
        update(world, patch, None)
    }),
];

/// The table as Markdown: a row per input, a column per state.
pub fn matrix() -> String {
    let mut text = String::from("| input |");
    for (state, _) in STATES {
        let _ = write!(text, " {state} |");
    }
    text.push_str("\n|---|");
    text.push_str(&"---|".repeat(STATES.len()));
    text.push('\n');
    for (input, act) in INPUTS {
        let _ = write!(text, "| {input} |");
        for (_, reach) in STATES {
            let _ = write!(text, " {} |", cell(reach(), act));
        }
        text.push('\n');
    }
    text
}

/// The moves of the observed pull request.
fn cell(mut world: World, act: fn(&mut World) -> Result<(), String>) -> String {
    if let Err(refusal) = act(&mut world) {
        return format!("*{refusal}*");
    }
    let mut moves: Vec<String> = Vec::new();
    for decision in &world.decisions {
        if let Decision::Moved(Moved { pr: WATCHED, to, reason, .. }) = decision {
            let (name, reason) = (to.as_str(), reason.as_str());
            let started = *to == PrState::Testing;
            moves.push(if started { name.to_owned() } else { format!("{name} `{reason}`") });
        }
    }
    if moves.is_empty() { "–".to_owned() } else { moves.join(" → ") }
}

/// Number 1 is submitted and its candidate is built.
fn lined_up(concurrency: u32) -> World {
    let mut world = World::new(
        Settings::new(Mode::Single, concurrency).expect("valid settings"),
        Rules::default(),
    );
    world.submit(1, None).expect("submitted");
    build(&mut world);
    world
}

fn submitted(mut world: World) -> World {
    world.submit(2, None).expect("submitted");
    world
}

/// Runs the builds of candidates and absorbs their answers.
fn build(world: &mut World) {
    while let Some(at) =
        world.outbox.iter().position(|it| matches!(it.effect, Effect::BuildCandidate(_)))
    {
        let effect = world.outbox.remove(at);
        world.run(&effect.effect);
        absorb_all(world);
    }
}

fn under_test(mut world: World) -> World {
    build(&mut world);
    world
}

fn absorb_all(world: &mut World) {
    while !world.facts.is_empty() {
        let fact = world.facts.remove(0);
        world.take_in(&fact);
    }
}

/// Runs the checks of the observed pull request only.
fn checked(mut world: World, reached: PrState) -> World {
    let of_watched =
        |effect: &Effect| matches!(effect, Effect::RunChecks(it) if it.prs == [WATCHED]);
    let at = world.outbox.iter().position(|it| of_watched(&it.effect)).expect("its checks wait");
    let effect = world.outbox.remove(at);
    world.run(&effect.effect);
    absorb_all(&mut world);
    let state = world.queue.entry_of(WATCHED).map(|entry| entry.state.name());
    assert_eq!(state, Some(reached));
    world
}

fn settled(mut world: World) -> World {
    world.settle();
    world
}

fn asked(answer: Result<(), crate::queue::Refusal>) -> Result<(), String> {
    answer.map_err(|refusal| refusal.to_string().replace("pull request 2", "it"))
}

/// Changes something on the host and lets the queue absorb the facts.
#[expect(clippy::unnecessary_wraps, reason = "it stands where a command may be refused")]
fn absorbed(world: &mut World, act: impl FnOnce(&mut World)) -> Result<(), String> {
    world.decisions.clear();
    act(world);
    let mut decisions = Vec::new();
    while !world.facts.is_empty() {
        let fact = world.facts.remove(0);
        world.take_in(&fact);
        decisions.append(&mut world.decisions);
    }
    world.decisions = decisions;
    Ok(())
}

/// Reports a check of the observed pull request's run, if it has one.
fn report(world: &mut World, fails: bool) {
    let run = world.queue.entry_of(WATCHED).and_then(|entry| entry.state.run());
    let effect = world.outbox.iter().map(|it| it.effect.clone());
    let checks = effect
        .filter(|it| it.run() == run && run.is_some())
        .find(|it| matches!(it, Effect::RunChecks(_)));
    if let Some(checks) = checks {
        if fails {
            world.rules_mut().bad.insert(2);
        }
        world.run(&checks);
    }
}

fn state(world: &mut World, state: RequestedState) -> Result<(), String> {
    update(world, SettingsPatch::default(), Some(state))
}

fn update(
    world: &mut World,
    settings: SettingsPatch,
    state: Option<RequestedState>,
) -> Result<(), String> {
    let (settings, by) = (Box::new(settings), world.caller());
    asked(world.ask(Command::Update {
        settings,
        state,
        reason: None,
        by,
        source: ChangeSource::Direct,
    }))
}
