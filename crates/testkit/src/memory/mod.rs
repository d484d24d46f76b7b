//! Every store port in memory, on one database.
//!
//! The stores fulfil the contracts of the ports except for durability. They are for tests of
//! everything above the stores and do not imitate SQL.

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
mod idempotency_store;
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
mod test_trend;
mod token_store;
mod upload_store;
mod webhook_store;

pub use blobs::MemoryBlobs;
pub use database::MemoryDatabase;
