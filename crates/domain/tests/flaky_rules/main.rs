//! Rules of flaky tests, one at a time.

mod bounds;
mod evidence;
mod incidents;
mod intake;
mod invariants;
mod monitors;
mod names;
mod people;
mod scenario;
mod settings;
mod texts;
