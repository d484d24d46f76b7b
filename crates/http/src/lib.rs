#![doc = include_str!("../README.md")]

mod api;
mod body;
mod dto;
mod openapi;
mod problem;
mod request_id;
mod routes;

pub use api::{Api, Readiness, configure};
pub use openapi::document as openapi_document;
pub use problem::{Code, error_table};
pub use request_id::{RequestId, with_request_id};
