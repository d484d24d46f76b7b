//! The adapter. `git` calls the program, `candidate` builds, `host` is the git host, `checks` runs
//! checks and `webhook` reads deliveries.

mod candidate;
mod checks;
mod git;
mod host;
mod webhook;

pub(crate) use checks::FolderChecks;
pub(crate) use host::FolderHost;
pub(crate) use webhook::{FolderWebhooks, signature};
