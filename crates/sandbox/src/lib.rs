#![doc = include_str!("../README.md")]

mod agent;
mod archive;
mod bubblewrap;
mod container;
mod folder;
mod leftovers;
mod local;
mod output;
mod process;
mod remote;
mod reports;
mod sandbox;
mod settings;
mod supervisor;
mod users;

pub use agent::{AGENT_SOCKET, Agent, AgentSandbox};
pub use folder::{JobFolder, clear};
pub use local::LocalSandbox;
pub use output::Output;
pub use process::{Ended, NotRun};
pub use reports::{Collected, report_pattern_problem};
pub use sandbox::{Job, NotReady, Ran, Ready, Sandbox, sandbox};
pub use settings::{Backend, SandboxSettings, SettingProblem};
pub use supervisor::supervise;
