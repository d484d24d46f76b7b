//! The planner of a test case: commands and facts in, transitions out.
//!
//! Both entry points change what the input says in a [`builder::TransitionBuilder`], then let it
//! settle: what is over ends, monitors that are gone resolve, labels and status follow.

mod builder;
mod commands;
mod facts;
mod settle;

use crate::time::Timestamp;

use super::{Command, Fact, Refusal, Settings, TestCase, Transition};

use builder::TransitionBuilder;

/// Answers a command, or refuses it with the rule that it breaks.
pub fn decide(
    test: &TestCase,
    settings: &Settings,
    command: &Command,
    at: Timestamp,
) -> Result<Transition, Refusal> {
    if let Some(to) = test.renamed_to() {
        return Err(Refusal::Renamed { to });
    }
    let mut builder = TransitionBuilder::of(test, settings, at);
    settle::end_what_is_over(&mut builder);
    commands::carry_out(&mut builder, command)?;
    Ok(concluded(builder))
}

/// Absorbs a fact. A stale or repeated one changes nothing, and the decision records that.
pub fn absorb(test: &TestCase, settings: &Settings, fact: &Fact, at: Timestamp) -> Transition {
    let mut builder = TransitionBuilder::of(test, settings, at);
    settle::end_what_is_over(&mut builder);
    facts::take_in(&mut builder, fact);
    concluded(builder)
}

fn concluded(mut builder: TransitionBuilder<'_>) -> Transition {
    settle::settle(&mut builder);
    let settings = builder.settings;
    let transition = builder.finish();
    debug_assert_eq!(super::check_invariants(&transition.test, settings), Vec::new());
    transition
}

/// When time alone next changes something: a mute, an override or a suspicion is over. `None`: never.
///
/// Monitors resolve by measurements; see [`super::MEASURE_EVERY_MINUTES`].
pub fn next_deadline(test: &TestCase) -> Option<Timestamp> {
    let mutes = test.monitors.values().filter_map(|it| it.mute.as_ref().and_then(|it| it.until));
    let suspicion = test.suspicion.as_ref().map(|suspicion| suspicion.until);
    mutes.chain(test.quarantining().expires_at).chain(suspicion).min()
}
