//! Webhooks: endpoints, their deliveries, and the catalog of events.

mod endpoint;
mod events;
mod list;
mod message;
mod secret;

use signalbox_domain::webhook::{Endpoint, EndpointId, Health};
use signalbox_wording::Named;
use uuid::Uuid;

use crate::model::{Cell, Field, Form, MenuItem};

pub(crate) use endpoint::{Log, page as endpoint};
pub(crate) use events::{catalog, event};
pub(crate) use list::{Listed, page as list};
pub(crate) use message::page as message;
pub(crate) use secret::page as secret;

/// The address of the page of an endpoint.
pub(crate) fn endpoint_path(org: &str, id: EndpointId) -> String {
    format!("/{org}/webhooks/endpoint?id={id}")
}

/// The address of the page of a message.
pub(crate) fn message_path(org: &str, endpoint: EndpointId, id: Uuid) -> String {
    format!("/{org}/webhooks/message?endpoint={endpoint}&id={id}")
}

fn menu(org: &str, current: &str) -> Vec<MenuItem> {
    let item = |label: &str, page: &str| MenuItem {
        label: label.to_owned(),
        href: format!("/{org}/{page}"),
        current: page == current,
    };
    vec![item("Endpoints", "webhooks"), item("Events", "webhooks/events")]
}

/// The state of an endpoint.
fn state(health: &Health) -> Cell {
    match (health.off, health.failing_since) {
        (Some(off), _) => Cell::named(&off.reason),
        (None, Some(_)) => Cell { icon: Some("warning"), tone: "warning", ..Cell::text("Failing") },
        (None, None) => Cell { icon: Some("check"), tone: "good", ..Cell::text("On") },
    }
}

/// The state as a sentence.
fn meaning(health: &Health) -> &'static str {
    match (health.off, health.failing_since) {
        (Some(off), _) => off.reason.named().sentence,
        (None, Some(_)) => {
            "recent attempts failed; after five days without a success it is turned off"
        }
        (None, None) => "events that match its filter are sent",
    }
}

/// The fields of an endpoint; filled in for an existing one.
fn fields(kinds: &[String], endpoint: Option<&Endpoint>) -> Vec<Field> {
    let settings = endpoint.map(|it| &it.settings);
    vec![
        Field {
            name: "url",
            label: "URL".to_owned(),
            kind: "url",
            value: settings.map(|it| it.url.clone()).unwrap_or_default(),
            hint: "Messages are sent here by POST. Its name must resolve to a public address."
                .to_owned(),
            required: true,
            ..Field::default()
        },
        Field {
            name: "description",
            label: "Description".to_owned(),
            kind: "text",
            value: settings.map(|it| it.description.clone()).unwrap_or_default(),
            ..Field::default()
        },
        Field {
            name: "kind",
            label: "Events".to_owned(),
            kind: "boxes",
            value: settings.map(|it| it.kinds.join("\n")).unwrap_or_default(),
            options: kinds.iter().map(|it| (it.clone(), it.clone())).collect(),
            hint: "None selected: the pull request and test events of the public API.".to_owned(),
            ..Field::default()
        },
    ]
}

/// The names of an endpoint's events, if there are any.
fn named(kinds: &[String]) -> String {
    if kinds.is_empty() { "of the public API".to_owned() } else { kinds.join(", ") }
}

/// A form about an endpoint.
fn form(org: &str, id: EndpointId, action: &str, title: &str, button: &str) -> Form {
    Form {
        id: action.to_owned(),
        action: format!("/{org}/webhooks/do"),
        post: true,
        title: title.to_owned(),
        hidden: vec![("action", action.to_owned()), ("endpoint", id.to_string())],
        button: button.to_owned(),
        ..Form::default()
    }
}
