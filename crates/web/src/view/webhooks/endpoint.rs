//! An endpoint: its state, its forms, and its deliveries.

use signalbox_domain::time::Timestamp;
use signalbox_domain::webhook::{Attempt, Endpoint, Message, MessageState};
use signalbox_wording::{Named, Tone};

use super::{endpoint_path, fields, form, meaning, menu, message_path, named, state};
use crate::model::{Block, Cell, Field, Form, Page, Section, Table};
use crate::text::{ago, plain, sentence, span};
use crate::visitor::Visitor;

/// The deliveries, and their filter.
pub(crate) struct Log {
    /// Newest first, each with its delivery attempts.
    pub(crate) messages: Vec<(Message, Vec<Attempt>)>,
    pub(crate) state: Option<MessageState>,
    pub(crate) kind: String,
    pub(crate) next: Option<String>,
}

/// The page.
pub(crate) fn page(
    endpoint: &Endpoint,
    log: &Log,
    kinds: &[String],
    visitor: &Visitor,
    now: Timestamp,
) -> Page {
    let org = visitor.org();
    let mut above = Section::plain("facts");
    if let Some(off) = endpoint.health.off {
        let word = off.reason.named();
        let text = format!("{} Since {}.", sentence(word.sentence), ago(off.at, now).text);
        above = above.with(Block::notice(word.tone, word.icon, "No messages are sent.", &text));
    } else if let Some(since) = endpoint.health.failing_since {
        let text =
            format!("Since {}. {}", span(now.since(since)), sentence(meaning(&endpoint.health)));
        above = above.with(Block::notice(Tone::Warning, "warning", "Deliveries fail.", &text));
    }
    above = above.with(Block::Details(facts(endpoint, now)));
    if visitor.session.is_some() {
        above = above.with(Block::Forms(forms(org, endpoint, kinds)));
    }
    let body = format!("{{\"webhookId\": \"{}\", \"pageSize\": 100}}", endpoint.id);
    Page {
        title: format!("Webhook {}", plain(&endpoint.settings.url, 120)),
        above: vec![Cell::text("Webhooks").link(format!("/{org}/webhooks"))],
        beside: vec![
            state(&endpoint.health),
            Cell::text(plain(&endpoint.settings.description, 500)),
        ],
        menu: menu(org, ""),
        sections: vec![above, deliveries(org, endpoint, log, kinds, now)],
        curl: super::super::curl("webhooks/deliveries", &body),
        ..Page::default()
    }
}

fn facts(endpoint: &Endpoint, now: Timestamp) -> Vec<(&'static str, Cell)> {
    let kinds = named(&endpoint.settings.kinds);
    let secrets: Vec<String> = endpoint
        .secrets
        .iter()
        .filter(|it| it.until.is_none_or(|until| now < until))
        .map(|it| match it.until {
            None => format!("one created {}", ago(it.created_at, now).text),
            Some(until) => format!("the previous one for {} more", span(until.since(now))),
        })
        .collect();
    vec![
        ("State", state(&endpoint.health).sub(sentence(meaning(&endpoint.health)))),
        ("Events", Cell::text(kinds)),
        ("Secrets", Cell::text(secrets.join(", and "))),
        ("Made", ago(endpoint.created_at, now)),
        ("Changed", ago(endpoint.updated_at, now)),
        ("Id", Cell::to_copy(endpoint.id.to_string())),
    ]
}

fn choice(name: &'static str, label: &str, options: Vec<(String, String)>, value: &str) -> Field {
    Field {
        name,
        label: label.to_owned(),
        kind: "select",
        options,
        value: value.to_owned(),
        ..Field::default()
    }
}

fn forms(org: &str, endpoint: &Endpoint, kinds: &[String]) -> Vec<Form> {
    let id = endpoint.id;
    let plain_options = || kinds.iter().map(|it| (it.clone(), it.clone())).collect::<Vec<_>>();
    let hours = |all: &[(u32, &str)]| {
        all.iter().map(|(hours, label)| (hours.to_string(), (*label).to_owned())).collect()
    };
    let mut forms = Vec::new();
    if endpoint.health.is_on() {
        forms.push(Form {
            fields: vec![choice("event", "Event", plain_options(), "pull_request.merged")],
            note: "An example is signed and delivered like any other message.".to_owned(),
            ..form(org, id, "test", "Send a test message", "Send")
        });
        let since = hours(&[(1, "hour"), (24, "day"), (168, "7 days"), (720, "30 days")]);
        forms.push(Form {
            fields: vec![choice("hours", "Created in the last", since, "24")],
            note: "Receivers get them with the same ids as before.".to_owned(),
            ..form(org, id, "replay", "Resend failed messages", "Resend")
        });
    } else {
        forms.push(Form {
            fields: vec![Field {
                name: "catch_up",
                label: "Events while it was off".to_owned(),
                kind: "boxes",
                options: vec![("yes".to_owned(), "send them too".to_owned())],
                ..Field::default()
            }],
            ..form(org, id, "enable", "Turn on", "Turn on")
        });
    }
    forms.push(Form {
        fields: fields(kinds, Some(endpoint)),
        ..form(org, id, "update", "Change settings", "Change")
    });
    let overlap =
        hours(&[(0, "immediately"), (1, "in an hour"), (24, "in a day"), (168, "in 7 days")]);
    forms.push(Form {
        fields: vec![choice("hours", "The old secret expires", overlap, "24")],
        note: "Until then messages are signed with both. The new secret is shown only once."
            .to_owned(),
        ..form(org, id, "rotate", "Rotate the secret", "Create a new secret")
    });
    if endpoint.health.is_on() {
        forms.push(Form {
            note: "No messages are sent until it is turned on.".to_owned(),
            ..form(org, id, "disable", "Turn off", "Turn off")
        });
    }
    forms.push(Form {
        note: "Its deliveries are deleted too.".to_owned(),
        danger: true,
        ..form(org, id, "delete", "Delete the endpoint", "Delete")
    });
    forms
}

fn deliveries(
    org: &str,
    endpoint: &Endpoint,
    log: &Log,
    kinds: &[String],
    now: Timestamp,
) -> Section {
    let heads =
        ["Event", "State", "Created", "#Attempts", "Next attempt", "Last response", "#Duration"];
    let filtered = log.state.is_some() || !log.kind.is_empty();
    let empty = if filtered {
        "No deliveries match this filter."
    } else {
        "No deliveries yet. Send a test message to try the endpoint."
    };
    let mut table = Table::new("deliveries", "Deliveries", &heads).empty(empty);
    for (message, attempts) in &log.messages {
        let last = attempts.last();
        let answer = last.map_or_else(
            || Cell::text("–"),
            |it| match it.status {
                Some(status) => Cell::text(status.to_string()),
                None => Cell::named(&it.outcome),
            },
        );
        table.push(
            message.id,
            vec![
                Cell::text(plain(&message.kind, 100))
                    .link(message_path(org, endpoint.id, message.id))
                    .sub(if message.position == 0 { "a test" } else { "" }),
                Cell::named(&message.state),
                ago(message.created_at, now),
                Cell::number(message.tries),
                message.next_at.map_or_else(|| Cell::text("–"), |at| ago(at, now)),
                answer,
                last.map_or_else(
                    || Cell::number("–"),
                    |it| Cell::number(format!("{} ms", it.took.millis())),
                ),
            ],
        );
    }
    table.more.clone_from(&log.next);
    let mut states = vec![(String::new(), "any".to_owned())];
    let word = |it: &MessageState| (it.as_str().to_owned(), it.named().label.to_owned());
    states.extend(MessageState::ALL.iter().map(word));
    let mut events = vec![(String::new(), "any".to_owned())];
    events.extend(kinds.iter().map(|it| (it.clone(), it.clone())));
    let filter = Form {
        id: "filter".to_owned(),
        action: format!("/{org}/webhooks/endpoint"),
        hidden: vec![("id", endpoint.id.to_string())],
        fields: vec![
            choice("state", "State", states, log.state.map_or("", |it| it.as_str())),
            choice("event", "Event", events, &log.kind),
        ],
        button: "Show".to_owned(),
        ..Form::default()
    };
    let mut section = Section::new("deliveries-part", "Deliveries")
        .with(Block::Forms(vec![filter]))
        .with(Block::Table(table));
    if filtered {
        let all = Cell::text("Show all deliveries").link(endpoint_path(org, endpoint.id));
        section = section.with(Block::Links(vec![all]));
    }
    section
}
