//! The commands, one file each.

mod flaky_tests;
mod hook;
mod migrate;
mod offline;
mod org;
mod pr;
mod queue;
mod repo;
mod tests;
mod token;
mod webhooks;

use flaky_tests::{FlakyTests, flaky_tests};
pub(crate) use hook::{Hook, hook};
pub(crate) use migrate::{Migrate, migrate};
pub(crate) use org::{Org, org};
pub(crate) use pr::{Pr, pr};
pub(crate) use queue::{Queue, post, queue};
pub(crate) use repo::{Repo, repo};
pub(crate) use tests::{Tests, tests};
pub(crate) use token::{Token, create as create_token, token};
pub(crate) use webhooks::{Webhooks, webhooks};
