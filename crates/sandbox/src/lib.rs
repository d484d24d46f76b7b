#![doc = include_str!("../README.md")]

mod bubblewrap;
mod folder;
mod leftovers;
mod local;
mod output;
mod process;
mod sandbox;
mod settings;
mod supervisor;
mod users;

pub use folder::{JobFolder, clear};
pub use local::LocalSandbox;
pub use output::Output;
pub use process::{Ended, NotRun};
pub use sandbox::{Job, NotReady, Sandbox};
pub use settings::{Backend, SandboxSettings, SettingProblem};
pub use supervisor::supervise;
