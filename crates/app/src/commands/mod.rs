//! The commands, one file each.

mod audit;
mod backup;
mod doctor;
mod events;
mod flaky_tests;
mod hook;
mod migrate;
mod offline;
mod org;
mod pr;
mod queue;
mod queue_set;
mod repo;
mod tests;
mod token;
mod webhooks;

pub(crate) use audit::{Audit, audit};
pub(crate) use backup::{backup, restore};
pub(crate) use doctor::doctor;
pub(crate) use events::{Events, events};
use flaky_tests::{FlakyTests, flaky_tests};
pub(crate) use hook::{Hook, hook};
pub(crate) use migrate::{Migrate, migrate};
pub(crate) use org::{Org, org};
pub(crate) use pr::{Pr, pr};
pub(crate) use queue::{Queue, post, queue};
pub(crate) use repo::{Repo, repo};
pub(crate) use tests::{Tests, tests};
pub(crate) use token::{Token, token};
pub(crate) use webhooks::{Webhooks, webhooks};
