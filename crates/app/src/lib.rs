#![doc = include_str!("../README.md")]

mod adapters;
mod cli;
mod error;
mod hosts;
mod loops;
mod pages;
mod probe;
mod program;
mod results;
mod scrape;
mod serve;
mod server_facts;
mod uploads;
mod webhooks;
mod wiring;

pub use cli::run;

/// The example configuration: every setting and its default, and a host of each kind.
pub fn example() -> String {
    signalbox_config::example(hosts::KINDS)
}
