#![doc = include_str!("../README.md")]

mod announce;
mod branches;
mod candidate;
mod changes;
mod checks;
mod client;
mod complaints;
mod composition;
mod connect;
mod diagnose;
mod forge;
mod forks;
#[cfg(test)]
mod fuzz;
mod host;
mod job_log;
mod land;
mod markdown;
mod prose;
mod pull_requests;
mod recomputed;
mod reporters;
mod rerun;
mod runner;
mod scratch_branch;
mod scratch_branches;
mod statuses;
mod webhook;
mod wire;

pub use client::{Credentials, CredentialsError};
pub use composition::Verify;
pub use connect::KIND;
pub use host::{ConfigError, GitHubConfig, GitHubHost};
pub use markdown::neutral;
pub use runner::GitHubChecks;
