//! Pages on stores in memory: their content for different visitors, and their forms.

mod access;
mod graph;
mod headers;
mod identity;
mod monitors;
mod output;
mod packing;
mod pull_request;
mod quarantine;
mod queue;
mod reports;
mod settings;
mod snapshots;
mod support;
mod test_owners;
mod tokens;
mod twins;
mod webhooks;
