//! Pages on stores in memory: what is shown to whom, and what forms do.

mod identity;
mod packing;
mod pull_request;
mod reports;
mod settings;
mod snapshots;
mod support;
mod tokens;
mod twins;
mod webhooks;
