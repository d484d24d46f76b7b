//! A git host that answers as GitHub's REST API does, on a real bare repository: merges, conflicts
//! and object ids are git's own.
//!
//! What it answers follows the published description of the API (operation ids are named where
//! they are answered), and, where that is silent, what is known of real traffic: `mergeable` is
//! null at first and after every move of either side, refs that cannot be moved forwards are 422,
//! merges that conflict are 409, heads that have moved are 409, branches with rules are 405 or 422.

mod access;
mod auth;
mod checks;
mod contract;
mod events;
mod issues;
mod objects;
mod pulls;
mod routes;
mod server;
mod state;
mod workplace;

pub use access::Access;
pub use checks::Reported;
pub use contract::{check_requests, fetched, fetched_path};
pub use events::Carelessness;
pub use server::GitHubDouble;
pub use workplace::Workplace;

pub use crate::double::{Fault, Logged};
