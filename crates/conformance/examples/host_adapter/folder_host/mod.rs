//! The adapter: `git` runs git, `candidate` builds candidates, `host` is the git host, `checks`
//! runs checks and `webhook` decodes deliveries.

mod candidate;
mod checks;
mod git;
mod host;
mod webhook;

pub(crate) use checks::FolderChecks;
pub(crate) use host::FolderHost;
pub(crate) use webhook::{FolderWebhooks, signature};
