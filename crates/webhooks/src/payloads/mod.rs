//! Payloads of public events, as they leave the house.

mod queues;
mod test_case;
mod tests;

use signalbox_domain::ports::{EventWriter, QueuePlace, TestSnapshot};
use signalbox_domain::{flaky, queue};

/// Where pages of tests and tickets are.
#[derive(Clone, Debug, Default)]
pub struct Links {
    /// The address of this server, without a slash at the end.
    pub public_url: String,
    /// The address of a ticket, with `{id}` in it.
    pub ticket_url: Option<String>,
}

/// Writes the payloads of events.
#[derive(Clone, Debug, Default)]
pub struct EventPayloads(
    /// Where pages of tests and tickets are.
    pub Links,
);

impl EventWriter for EventPayloads {
    fn queue_event(&self, place: &QueuePlace, event: &queue::Event) -> String {
        queues::payload(place, event).to_string()
    }

    fn test_event(&self, snapshot: &TestSnapshot, event: &flaky::Event) -> String {
        tests::payload(&self.0, snapshot, event).to_string()
    }
}
