#![doc = include_str!("../README.md")]

mod connected;
mod kind;
mod local;
mod measured;
mod message;
mod push;
mod recomputer;
mod registry;
mod repository_file;
mod settings;
mod trunk_file;

pub use connected::{ConnectedHost, HostParts};
pub use kind::{HostKind, Kinds};
pub use local::{HookError, LocalRepositories, OpenRequest, Problem, StaleLock};
pub use message::{Authored, message, squash_message};
pub use push::{
    InvalidPushOption, PushAnswer, PushCommand, PushOptions, PushRequest, PushedPullRequest,
};
pub use recomputer::{Recomputation, Recomputed, Recomputer, Remote};
pub use registry::{ConnectedHosts, NamedSettings};
pub use repository_file::{CONFIG_FILE, read_config};
pub use settings::{ConnectError, HostSettings, SettingError, parse, table};
pub use toml::{Table, Value};
pub use trunk_file::{MAX_STATUSES, TRUNK_FILE, check_statuses, trunk_statuses};
