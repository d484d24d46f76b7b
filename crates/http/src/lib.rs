#![doc = include_str!("../README.md")]
// The example of a queue in the description has many keys.
#![recursion_limit = "256"]

mod admission;
mod api;
mod authenticated;
mod body;
mod causes;
mod change_source;
mod client;
mod connections;
mod dto;
mod encoding;
mod event_hub;
mod failures;
#[cfg(test)]
mod fuzz;
mod gate;
mod holding;
mod idempotency;
mod json_guard;
mod openapi;
mod pace;
mod page;
mod paging;
mod problem;
mod queue_replies;
mod request_id;
mod routes;
mod sender;
mod stream;
mod targets_reporter;

pub use admission::{Admission, Share, admit, to_the_end};
pub use api::{
    Api, DescribedEvents, EventDescription, EventsApi, FlakyApi, Readiness, app, configure,
};
pub use client::{TrustedProxies, client_address};
pub use connections::{ConnectionLimits, Connections, in_use};
pub use dto::tests::TestLinks;
pub use event_hub::EventHub;
pub use gate::{Admitted, Party};
pub use openapi::document as openapi_document;
pub use paging::PageTokens;
pub use problem::{Code, error_page};
pub use queue_replies::QueueReplies;
pub use request_id::{RequestId, current_request_id, on_behalf_of, with_request_id};
