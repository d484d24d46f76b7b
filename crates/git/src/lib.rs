#![doc = include_str!("../README.md")]

mod candidate;
mod checkout;
mod checks;
mod config;
mod done;
mod git;
mod hooks;
mod host;
mod land;
mod landed;
mod leftovers;
mod locks;
mod output;
mod process;
mod pull_requests;
mod push;
mod reports;
mod snapshot;
mod statuses;
mod supervisor;
mod trunk_config;

pub use checks::{ChecksConfig, LocalChecksRunner};
pub use config::{CONFIG_FILE, CheckConfig, RepositoryConfig};
pub use hooks::{HookError, POST_RECEIVE};
pub use host::{HostConfig, PlainGitHost};
pub use locks::{StaleLock, stale_locks};
pub use pull_requests::OpenRequest;
pub use push::{PushAnswer, PushCommand, PushRequest, answer_push, read_push};
pub use supervisor::supervise;
pub use trunk_config::TRUNK_FILE;
