//! All endpoints, and a form for a new one.

use signalbox_domain::time::Timestamp;
use signalbox_domain::webhook::{Endpoint, Message, MessageState};

use super::{endpoint_path, fields, menu, named, state};
use crate::model::{Block, Cell, Form, Page, Section, Table};
use crate::text::{ago, plain};
use crate::visitor::Visitor;

/// An endpoint with its latest messages.
pub(crate) struct Listed {
    pub(crate) endpoint: Endpoint,
    /// Newest first.
    pub(crate) last: Vec<Message>,
}

/// The page.
pub(crate) fn page(listed: &[Listed], kinds: &[String], visitor: &Visitor, now: Timestamp) -> Page {
    let org = visitor.org();
    let heads = ["Endpoint", "State", "Events", "Last delivered", "Recent failures", "Created"];
    let mut table = Table::new("endpoints", "Endpoints", &heads)
        .empty("No endpoints yet. Create one below to receive events.");
    for Listed { endpoint, last } in listed {
        let ended = last.iter().filter(|it| it.state != MessageState::Pending);
        let failed = ended.clone().filter(|it| it.state != MessageState::Delivered).count();
        let delivered = last.iter().find(|it| it.state == MessageState::Delivered);
        let waiting = last.iter().filter(|it| it.state == MessageState::Pending).count();
        let numbers = match ended.count() {
            0 => "none ended".to_owned(),
            of => format!("{failed} of {of} failed"),
        };
        let waiting = if waiting == 0 { String::new() } else { format!("{waiting} waiting") };
        let kinds = match endpoint.settings.kinds.len() {
            0..=3 => named(&endpoint.settings.kinds),
            more => format!("{more} events"),
        };
        table.push(
            endpoint.id,
            vec![
                Cell::text(plain(&endpoint.settings.url, 200))
                    .link(endpoint_path(org, endpoint.id))
                    .sub(plain(&endpoint.settings.description, 200)),
                state(&endpoint.health),
                Cell::text(kinds),
                delivered
                    .and_then(|it| it.ended_at)
                    .map_or_else(|| Cell::text("–"), |at| ago(at, now)),
                Cell::text(numbers).sub(waiting),
                ago(endpoint.created_at, now),
            ],
        );
    }
    let mut sections = vec![Section::plain("list").with(Block::Table(table))];
    if visitor.session.is_some() {
        let form = Form {
            id: "create".to_owned(),
            action: format!("/{org}/webhooks/do"),
            post: true,
            title: "Create an endpoint".to_owned(),
            note: "It receives events from now on. Its secret is shown only once.".to_owned(),
            hidden: vec![("action", "create".to_owned())],
            fields: fields(kinds, None),
            button: "Create".to_owned(),
            ..Form::default()
        };
        sections.push(Section::new("make", "New endpoint").with(Block::Forms(vec![form])));
    }
    Page {
        title: "Webhooks".to_owned(),
        menu: menu(org, "webhooks"),
        sections,
        curl: super::super::curl("webhooks/list", "{}"),
        ..Page::default()
    }
}
