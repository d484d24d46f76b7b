#![doc = include_str!("../README.md")]

mod adapters;
mod cli;
mod error;
mod hosts;
mod loops;
mod manuals;
mod pages;
mod probe;
mod program;
mod scrape;
mod serve;
mod server_facts;
mod uploads;
mod webhooks;
mod wiring;

pub use cli::{command, run, run_with};

use std::path::Path;

use signalbox_config::{Config, ConfigError, Flags};

/// The example configuration: every setting and its default, and a host of each kind.
pub fn example() -> String {
    signalbox_config::example(hosts::KINDS)
}

/// The OpenAPI description of the API.
pub fn openapi_document() -> String {
    signalbox_http::openapi_document(&wiring::catalog().collect::<Vec<_>>())
}

/// Reads a configuration file alone, without the environment and without the checks that need the whole
/// configuration. The error names the file and the key.
pub fn read_configuration(path: &Path) -> Result<(), ConfigError> {
    let flags = Flags { config: Some(path.to_owned()), ..Flags::default() };
    Config::in_file(&flags, hosts::KINDS).map(drop)
}
