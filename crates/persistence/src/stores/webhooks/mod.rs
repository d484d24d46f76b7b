//! The store of webhooks: endpoints, messages and attempts.

mod endpoints;
mod leases;
mod messages;
mod rows;
mod store;
