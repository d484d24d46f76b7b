//! The catalog of events, with the JSON Schema of each.

use super::menu;
use crate::EventInfo;
use crate::model::{Block, Cell, Page, Section, Table};

/// All events.
pub(crate) fn catalog(org: &str, events: &[EventInfo]) -> Page {
    let mut table = Table::new("events", "Events", &["Event", "When"]).empty("No events.");
    for event in events {
        let path = format!("/{org}/webhooks/events?event={}", event.kind);
        table.push(
            &event.kind,
            vec![
                Cell { code: true, ..Cell::text(&event.kind).link(path) },
                Cell::text(&event.description),
            ],
        );
    }
    Page {
        title: "Events".to_owned(),
        above: vec![Cell::text("Webhooks").link(format!("/{org}/webhooks"))],
        menu: menu(org, "webhooks/events"),
        sections: vec![Section::plain("list").with(Block::Table(table))],
        curl: "curl \"$SIGNALBOX_URL/v1/events/schemas\" -H \"x-api-token: $SIGNALBOX_TOKEN\""
            .to_owned(),
        ..Page::default()
    }
}

/// One event, with the schema of its payload.
pub(crate) fn event(org: &str, event: &EventInfo) -> Page {
    Page {
        title: event.kind.clone(),
        above: vec![
            Cell::text("Webhooks").link(format!("/{org}/webhooks")),
            Cell::text("Events").link(format!("/{org}/webhooks/events")),
        ],
        sections: vec![
            Section::plain("what").with(Block::Text(event.description.clone())),
            Section::new("schema", "JSON Schema of its payload")
                .with(Block::Pre(event.schema.clone())),
        ],
        curl: format!(
            "curl \"$SIGNALBOX_URL/v1/events/schemas/{}\" -H \"x-api-token: $SIGNALBOX_TOKEN\"",
            event.kind
        ),
        ..Page::default()
    }
}
