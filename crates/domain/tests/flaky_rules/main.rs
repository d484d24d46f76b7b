//! Rules of flaky tests, one at a time.

mod bounds;
mod delays;
mod evidence;
mod incidents;
mod intake;
mod invariants;
mod known_failures;
mod monitors;
mod names;
mod people;
mod scenario;
mod settings;
mod texts;
