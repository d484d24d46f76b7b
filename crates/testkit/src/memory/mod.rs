//! Every store port in memory, on one database.
//!
//! The stores keep all promises of the ports' docs but one: what they hold is gone with the
//! process. They are for tests of everything above a store; nothing here imitates SQL.

mod agenda;
mod announcement_store;
mod audit_log;
mod blobs;
mod check_log;
mod database;
mod event_log;
mod flaky_reads;
mod flaky_store;
mod flaky_tables;
mod history_store;
mod inbound_delivery_store;
mod job_store;
mod org_store;
mod outbox;
mod pull_request_store;
mod queue_store;
mod read_store;
mod repo_store;
mod retention;
mod session_store;
mod tables;
mod token_store;
mod upload_store;
mod webhook_store;

pub use blobs::MemoryBlobs;
pub use database::MemoryDatabase;
