//! Pages of webhooks, and their forms.

use actix_web::web::{Bytes, Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use signalbox_domain::ports::MessageFilter;
use signalbox_domain::time::{Span, Timestamp, Window};
use signalbox_domain::webhook::{EndpointId, EndpointSettings, MessageState};
use signalbox_services::{CreatedEndpoint, EndpointChange, Replay};

use crate::Pages;
use crate::failure::Failure;
use crate::shell::{Done, Shown, answer, follow};
use crate::view::webhooks as view;
use crate::visitor::{Asked, Visitor, member, sender};

/// Messages of each endpoint that the list counts.
const COUNTED: u32 = 20;
/// Messages on a page of the log.
const PAGE: u32 = 50;
/// The longest overlap of two secrets that the form offers, in hours.
const MAX_OVERLAP: u32 = 168;

/// `GET /{org}/webhooks`.
pub(crate) async fn list(
    pages: Data<Pages>,
    request: HttpRequest,
    org: Path<String>,
) -> HttpResponse {
    let shown = show_list(&pages, &request, &org).await;
    answer(&pages, &request, shown)
}

async fn show_list(pages: &Pages, request: &HttpRequest, org: &str) -> Shown {
    let visitor = member(pages, request, org).await?;
    let mut listed = Vec::new();
    for endpoint in pages.webhooks.endpoints(&visitor.caller).await? {
        let any = MessageFilter::default();
        let last = pages.webhooks.deliveries(&visitor.caller, endpoint.id, &any, None, COUNTED);
        let last = last.await?.messages.into_iter().map(|(message, _)| message).collect();
        listed.push(view::Listed { endpoint, last });
    }
    let page = view::list(&listed, &pages.webhooks.kinds(), &visitor, pages.reads.now());
    Ok((Some(visitor), page))
}

/// `GET /{org}/webhooks/endpoint`.
pub(crate) async fn endpoint(
    pages: Data<Pages>,
    request: HttpRequest,
    org: Path<String>,
) -> HttpResponse {
    let shown = show_endpoint(&pages, &request, &org).await;
    answer(&pages, &request, shown)
}

async fn show_endpoint(pages: &Pages, request: &HttpRequest, org: &str) -> Shown {
    let visitor = member(pages, request, org).await?;
    let asked = Asked::query(request);
    let id = EndpointId(asked.uuid("id")?);
    let endpoint = pages.webhooks.endpoint(&visitor.caller, id).await?;
    let kinds = pages.webhooks.kinds();
    let state = MessageState::parse(asked.text("state"));
    let kind = asked.text("event").to_owned();
    let filter = MessageFilter {
        state,
        kind: Some(kind.clone()).filter(|it| !it.is_empty()),
        made: Window::default(),
    };
    let after = asked.text("at").parse().ok().zip(asked.uuid("after").ok());
    let after = after.map(|(at, id)| (Timestamp::from_unix_micros(at), id));
    let found = pages.webhooks.deliveries(&visitor.caller, id, &filter, after, PAGE).await?;
    let next = found.messages.last().filter(|_| found.more).map(|(last, _)| {
        format!(
            "{}&state={}&event={}&at={}&after={}",
            view::endpoint_path(org, id),
            state.map_or("", |it| it.as_str()),
            crate::text::quoted(&kind),
            last.created_at.unix_micros(),
            last.id
        )
    });
    let log = view::Log { messages: found.messages, state, kind, next };
    let page = view::endpoint(&endpoint, &log, &kinds, &visitor, pages.reads.now());
    Ok((Some(visitor), page))
}

/// `GET /{org}/webhooks/message`.
pub(crate) async fn message(
    pages: Data<Pages>,
    request: HttpRequest,
    org: Path<String>,
) -> HttpResponse {
    let shown = async {
        let visitor = member(&pages, &request, &org).await?;
        let asked = Asked::query(&request);
        let id = EndpointId(asked.uuid("endpoint")?);
        let endpoint = pages.webhooks.endpoint(&visitor.caller, id).await?;
        let found = pages.webhooks.delivery(&visitor.caller, id, asked.uuid("id")?).await?;
        let (message, attempts) = found;
        let page = view::message(&endpoint, &message, &attempts, &visitor, pages.reads.now());
        Ok((Some(visitor), page))
    };
    answer(&pages, &request, shown.await)
}

/// `GET /{org}/webhooks/events`.
pub(crate) async fn events(
    pages: Data<Pages>,
    request: HttpRequest,
    org: Path<String>,
) -> HttpResponse {
    let shown = async {
        let visitor = member(&pages, &request, &org).await?;
        let asked = Asked::query(&request);
        let page = if asked.has("event") {
            let event = pages.events.iter().find(|it| it.kind == asked.text("event"));
            view::event(&org, event.ok_or(Failure::Missing)?)
        } else {
            view::catalog(&org, &pages.events)
        };
        Ok((Some(visitor), page))
    };
    answer(&pages, &request, shown.await)
}

/// `POST /{org}/webhooks/do`.
pub(crate) async fn act(
    pages: Data<Pages>,
    request: HttpRequest,
    org: Path<String>,
    body: Bytes,
) -> HttpResponse {
    let done = done(&pages, &request, &org, &Asked::of(&body)).await;
    follow(&pages, &request, done)
}

fn settings(sent: &Asked) -> EndpointSettings {
    EndpointSettings {
        url: sent.text("url").to_owned(),
        description: sent.text("description").to_owned(),
        kinds: sent.all("kind").to_vec(),
    }
}

fn secret(visitor: Visitor, org: &str, created: &CreatedEndpoint, title: &str) -> Done {
    let back = view::endpoint_path(org, created.endpoint.id);
    let next = "The receiver verifies the signature of every message with it.";
    Done::Once(Box::new((visitor, view::secret(title, &created.secret, next, &back))))
}

async fn done(
    pages: &Pages,
    request: &HttpRequest,
    org: &str,
    sent: &Asked,
) -> Result<Done, Failure> {
    let visitor = sender(pages, request, org, sent).await?;
    let (hooks, caller) = (&pages.webhooks, visitor.caller.clone());
    let hours = sent.number("hours").unwrap_or(24);
    if sent.text("action") == "create" {
        let created = hooks.create_endpoint(&caller, settings(sent), true).await?;
        return Ok(secret(visitor, org, &created, "Endpoint created"));
    }
    let id = EndpointId(sent.uuid("endpoint")?);
    let mut address = view::endpoint_path(org, id);
    let change = async |change: EndpointChange| hooks.update_endpoint(&caller, id, &change).await;
    let said = match sent.text("action") {
        "update" => {
            let EndpointSettings { url, description, kinds } = settings(sent);
            change(EndpointChange {
                url: Some(url),
                description: Some(description),
                kinds: Some(kinds),
                ..EndpointChange::default()
            })
            .await?;
            "hook-changed"
        }
        "enable" => {
            let catch_up = sent.text("catch_up") == "yes";
            let enabled = Some(true);
            change(EndpointChange { enabled, catch_up, ..EndpointChange::default() }).await?;
            "hook-on"
        }
        "disable" => {
            change(EndpointChange { enabled: Some(false), ..EndpointChange::default() }).await?;
            "hook-off"
        }
        "rotate" => {
            let overlap = Span::hours(hours.min(MAX_OVERLAP));
            let created = hooks.rotate_secret(&caller, id, overlap).await?;
            return Ok(secret(visitor, org, &created, "New secret created"));
        }
        "delete" => {
            hooks.delete_endpoint(&caller, id).await?;
            address = format!("/{org}/webhooks");
            "hook-deleted"
        }
        "test" => {
            let kind = Some(sent.text("event")).filter(|it| !it.is_empty());
            let message = hooks.send_test(&caller, id, kind).await?;
            address = view::message_path(org, id, message.id);
            "hook-test"
        }
        "resend" => {
            let message = sent.uuid("message")?;
            hooks.replay(&caller, id, Replay::One(message)).await?;
            address = view::message_path(org, id, message);
            "hook-resent"
        }
        "replay" => {
            let since = pages.reads.now().minus(Span::hours(hours));
            let made = Window { since: Some(since), until: None };
            let replayed = hooks.replay(&caller, id, Replay::Failed(made)).await?;
            if replayed.messages == 0 { "hook-none" } else { "hook-replayed" }
        }
        _ => return Err(Failure::Invalid("unknown action".to_owned())),
    };
    let joined = if address.contains('?') { '&' } else { '?' };
    Ok(Done::GoTo(format!("{address}{joined}said={said}")))
}
