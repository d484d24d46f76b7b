//! A message: its payload, every delivery attempt, and the responses.

use signalbox_domain::time::Timestamp;
use signalbox_domain::webhook::{Attempt, Endpoint, Message, MessageState};
use signalbox_wording::Named;

use super::{endpoint_path, form};
use crate::model::{Block, Cell, Page, Section};
use crate::text::{ago, plain, sentence, span};
use crate::visitor::Visitor;

/// The most characters of a payload that a page shows.
const MOST: usize = 65_536;

/// The page.
pub(crate) fn page(
    endpoint: &Endpoint,
    message: &Message,
    attempts: &[Attempt],
    visitor: &Visitor,
    now: Timestamp,
) -> Page {
    let org = visitor.org();
    let word = message.state.named();
    let next = match message.next_at {
        Some(at) if at > now => format!("The next attempt is in {}.", span(at.since(now))),
        Some(_) => "The next attempt is due now.".to_owned(),
        None => String::new(),
    };
    let mut first = Section::plain("facts").with(Block::Answer {
        icon: word.icon,
        tone: word.tone.name(),
        label: word.label.to_owned(),
        text: sentence(word.sentence),
        next,
    });
    let test = if message.position == 0 { "a test" } else { "" };
    first = first.with(Block::Details(vec![
        ("Event", Cell::text(plain(&message.kind, 100)).sub(test)),
        (
            "To",
            Cell::text(plain(&endpoint.settings.url, 300)).link(endpoint_path(org, endpoint.id)),
        ),
        ("Made", ago(message.created_at, now)),
        ("Tries", Cell::text(message.tries.to_string())),
        ("Message id", Cell::to_copy(message.id.to_string())),
        ("Event id", Cell::to_copy(message.event.to_string())),
    ]));
    let waits = message.state == MessageState::Pending;
    if visitor.session.is_some() && endpoint.health.is_on() && !waits {
        let mut again = form(org, endpoint.id, "resend", "", "Resend");
        again.hidden.push(("message", message.id.to_string()));
        first = first.with(Block::Forms(vec![again]));
    }
    let mut sections = vec![first];
    if attempts.is_empty() {
        let none = Section::new("tries", "Delivery attempts");
        sections.push(none.with(Block::Text("No attempts yet.".to_owned())));
    }
    for attempt in attempts.iter().rev().take(super::super::ROWS) {
        sections.push(tried(attempt, now));
    }
    sections.push(
        Section::new("payload", "Payload")
            .note("exactly as it is sent")
            .with(Block::Pre(plain(&message.payload, MOST))),
    );
    let signed = format!("{}.<webhook-timestamp>.<payload>", message.id);
    let signed = Section::new("signed", "Signed content")
        .note("with HMAC-SHA256 and the secret of the endpoint")
        .with(Block::Pre(signed));
    sections.push(signed);
    let body = format!("{{\"webhookId\": \"{}\", \"messageId\": \"{}\"}}", endpoint.id, message.id);
    Page {
        title: format!("{} to {}", message.kind, plain(&endpoint.settings.url, 80)),
        above: vec![
            Cell::text("Webhooks").link(format!("/{org}/webhooks")),
            Cell::text("Endpoint").link(endpoint_path(org, endpoint.id)),
        ],
        sections,
        curl: super::super::curl("webhooks/replay", &body),
        ..Page::default()
    }
}

fn tried(attempt: &Attempt, now: Timestamp) -> Section {
    let word = attempt.outcome.named();
    let status = attempt.status.map(|it| it.to_string()).unwrap_or_default();
    let heading = format!("Attempt {}: {} {status}", attempt.number, word.label);
    let mut section = Section::new(&format!("try-{}", attempt.number), heading.trim())
        .note(sentence(word.sentence))
        .with(Block::Details(vec![
            ("When", ago(attempt.at, now)),
            ("Duration", Cell::text(format!("{} ms", attempt.took.millis()))),
            ("Status", Cell::text(if status.is_empty() { "–" } else { &status })),
        ]));
    if let Some(error) = &attempt.error {
        section = section.with(Block::Text(sentence(&plain(error, 1_000))));
    }
    let headers: Vec<String> = attempt
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {}", plain(value, 500)))
        .collect();
    if !headers.is_empty() {
        section = section.with(Block::Part("Headers, signatures hidden", headers.join("\n")));
    }
    if attempt.response.is_empty() {
        section
    } else {
        let shown = plain(&attempt.response, signalbox_domain::webhook::MAX_RESPONSE);
        section.with(Block::Part("Response body, first 4 KiB", shown))
    }
}
