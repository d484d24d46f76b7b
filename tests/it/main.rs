//! The whole system: a real server process over HTTP, a real bare repository, real checks.

mod api;
mod commands;
mod endings;
mod harness;
mod operations;
mod receiver;
mod restart;
mod story;
mod strategies;
mod uploads;
mod webhooks;
