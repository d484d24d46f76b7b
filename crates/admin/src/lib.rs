#![doc = include_str!("../README.md")]

mod agent;
mod audit;
mod backup;
mod database;
mod doctor;
mod error;
mod hook;
mod init;
mod lock;
mod migrate;
mod offline;
mod org;
mod pr;
mod program;
mod repo;
mod token;
mod webhook_key;

pub use agent::{Agent, agent};
pub use audit::{Audit, audit};
pub use backup::{backup, restore, verify};
pub use database::{missing_database, open_database};
pub use doctor::{doctor, exposures, sandbox};
pub use error::AdminError;
pub use hook::{Hook, hook};
pub use init::{Init, init};
pub use lock::{Lock, take as lock};
pub use migrate::{Migrate, migrate};
pub use org::{Org, org};
pub use pr::{Pr, pr};
pub use program::{Offline, Program};
pub use repo::{Repo, repo};
pub use token::{Token, token};
pub use webhook_key::forget_key;
