#![doc = include_str!("../README.md")]

mod bounded;
mod candidate;
mod changes;
mod checkout;
mod checks;
mod commit;
mod config;
mod connect;
mod create;
mod diagnose;
mod done;
#[cfg(test)]
mod fuzz;
mod git;
mod hooks;
mod host;
mod land;
mod landed;
mod limited;
mod locks;
mod mirror;
mod processes;
mod proof;
mod pull_requests;
mod push;
mod recompute;
mod remote;
mod snapshot;
mod statuses;
mod verify;

pub use checks::{ChecksConfig, LocalChecksRunner};
pub use config::{CheckConfig, RepositoryConfig};
pub use connect::KIND;
pub use create::BareRepository;
pub use hooks::{POST_RECEIVE, shell_quoted};
pub use host::{HostConfig, PlainGitHost};
pub use locks::stale_locks;
pub use mirror::Limits;
pub use push::{answer_push, read_push};
pub use recompute::Mirrors;
pub use signalbox_hosts::{
    HookError, OpenRequest, PushAnswer, PushCommand, PushOptions, PushRequest, StaleLock,
};
pub use verify::{LandingRecord, VerifiedStep, verify_landing};
