//! A double of GitHub's REST API on a real bare repository: merges, conflicts and object ids are
//! git's own.
//!
//! The answers follow the published description of the API (comments name the operation ids) and,
//! where that is silent, observed behavior: `mergeable` is null at first and after every move of
//! either side, updates of refs that are not fast-forward are 422, merges that conflict are 409,
//! heads that have moved are 409, branches with rules are 405 or 422.

mod access;
mod auth;
mod checks;
mod contract;
mod events;
mod issues;
mod limits;
mod objects;
mod pulls;
mod routes;
mod server;
mod smart_http;
mod state;
mod workplace;

pub use access::Access;
pub use checks::Reported;
pub use contract::{check_requests, fetched, fetched_path};
pub use events::Carelessness;
pub use server::GitHubDouble;
pub use state::WrongMerge;
pub use workplace::Workplace;

pub use crate::double::{Fault, Logged};
