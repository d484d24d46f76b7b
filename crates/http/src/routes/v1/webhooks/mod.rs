//! Webhooks: one operation a file.

pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod list_deliveries;
pub(crate) mod replay;
pub(crate) mod rotate_secret;
pub(crate) mod send_test;
pub(crate) mod update;
