//! Webhooks: endpoints, messages, tries.

mod endpoints;
mod leases;
mod messages;
mod rows;
mod store;
