//! The commands, one file each.

mod audit;
mod backup;
mod doctor;
mod hook;
mod migrate;
mod offline;
mod org;
mod pr;
mod repo;
mod token;

pub(crate) use audit::{Audit, audit};
pub(crate) use backup::{backup, restore};
pub(crate) use doctor::doctor;
pub(crate) use hook::{Hook, hook};
pub(crate) use migrate::{Migrate, migrate};
pub(crate) use org::{Org, org};
pub(crate) use pr::{Pr, pr};
pub(crate) use repo::{Repo, repo};
pub(crate) use token::{Token, token};
