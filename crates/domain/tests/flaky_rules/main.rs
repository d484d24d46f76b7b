//! Rules of flaky tests, one at a time.

mod intake;
mod monitors;
mod people;
mod scenario;
mod settings;
mod texts;
