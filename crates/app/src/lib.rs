#![doc = include_str!("../README.md")]

mod adapters;
mod cli;
mod commands;
mod config;
mod demo;
mod github;
mod hosts;
mod limited;
mod logs;
mod loops;
mod results;
mod serve;
mod terminal;
mod wiring;

pub use cli::run;
pub use config::{Config, example};
