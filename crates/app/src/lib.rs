#![doc = include_str!("../README.md")]

mod adapters;
mod cli;
mod commands;
mod config;
mod demo;
mod hosts;
mod logs;
mod loops;
mod pages;
mod results;
mod serve;
mod terminal;
mod wiring;

pub use cli::run;
pub use config::{Config, example};
