#![doc = include_str!("../README.md")]

mod adapters;
mod cli;
mod commands;
mod config;
mod demo;
mod failing;
mod github;
mod hosts;
mod limited;
mod lock;
mod logs;
mod loops;
mod measured;
mod pages;
mod probe;
mod results;
mod scrape;
mod serve;
mod server_facts;
mod telemetry;
mod uploads;
mod webhooks;
mod wiring;

pub use cli::run;
pub use config::{Config, example};
