//! Rules of flaky tests, one at a time.

mod intake;
mod lab;
mod monitors;
mod people;
mod settings;
mod texts;
