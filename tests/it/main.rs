//! The whole system: a real server process over HTTP, a real bare repository, real checks.

mod api;
mod audit;
mod backup;
mod commands;
mod doctor;
mod endings;
mod events;
mod excuse;
mod flaky_scale;
mod harness;
mod hostile;
mod operations;
mod prometheus;
mod receiver;
mod requests;
mod restart;
mod scrape;
mod secrets;
mod story;
mod strategies;
mod streams;
mod telemetry;
mod uploader;
mod uploader_bundle;
mod uploads;
mod webhooks;
