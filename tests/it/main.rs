//! The whole system: a real server process over HTTP, a real bare repository, real checks.

mod api;
mod commands;
mod endings;
mod events;
mod harness;
mod operations;
mod restart;
mod story;
mod strategies;
mod uploads;
