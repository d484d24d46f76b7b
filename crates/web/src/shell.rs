//! The frame of every page: menu, notice and footer.

use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use signalbox_services::RefusalReason;

use crate::Pages;
use crate::assets::path;
use crate::failure::Failure;
use crate::model::{Block, MenuItem, Page};
use crate::packing;
use crate::reply::{Status, data, go_to, html, packed_html, table};
use crate::text::plain;
use crate::twin::{self, Form};
use crate::visitor::{Asked, Visitor};

/// The frame of a page.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shell {
    pub(crate) css: String,
    pub(crate) icon: String,
    pub(crate) scripts: Vec<String>,
    pub(crate) menu: Vec<MenuItem>,
    pub(crate) who: String,
    pub(crate) role: &'static str,
    pub(crate) form_token: String,
    /// The address of this page.
    pub(crate) here: String,
    /// The notice about the last action.
    pub(crate) said: &'static str,
    pub(crate) request: String,
    /// The addresses of the page as JSON and as CSV.
    pub(crate) twins: Option<(String, String)>,
}

#[derive(Template)]
#[template(path = "page.html")]
struct Whole<'a> {
    shell: &'a Shell,
    page: &'a Page,
}

/// A page as text.
pub(crate) fn render(shell: &Shell, page: &Page) -> Result<String, askama::Error> {
    Whole { shell, page }.render()
}

impl Shell {
    /// The frame for a visitor; `None` when they are not signed in.
    pub(crate) fn new(visitor: Option<&Visitor>, here: &str, said: &str) -> Self {
        let mut shell = Self {
            css: path("signalbox.css"),
            icon: path("icon.svg"),
            scripts: ["htmx.js", "sse.js", "idiomorph.js", "live.js", "keys.js"].map(path).to_vec(),
            here: here.to_owned(),
            said: done(said),
            ..Self::default()
        };
        let Some(visitor) = visitor else { return shell };
        let org = visitor.org();
        let item = |label: &str, href: String| {
            let own = href.split('?').next().unwrap_or_default().to_owned();
            let at = here.split('?').next().unwrap_or_default();
            let current = if own == "/" { at == "/" } else { at.starts_with(&own) };
            MenuItem { label: label.to_owned(), href, current }
        };
        shell.menu =
            vec![item("Queues", "/".to_owned()), item("Tests", format!("/{org}/flaky-tests"))];
        if visitor.administers() {
            shell.menu.push(item("Webhooks", format!("/{org}/webhooks")));
            shell.menu.push(item("Tokens", format!("/{org}/tokens")));
            shell.menu.push(item("Audit", format!("/{org}/audit")));
        }
        shell.menu.push(item("Server", "/status".to_owned()));
        shell.menu.push(item("API", "/reference".to_owned()));
        shell.who = format!("{} · {org}", plain(&visitor.caller.name, 60));
        shell.role = visitor.role();
        shell
    }
}

/// The notice after an action. An address can show only these sentences.
fn done(word: &str) -> &'static str {
    match word {
        "submitted" => "The pull request was submitted.",
        "some-removed" => "The pull requests were removed from the queue.",
        "removed" => "The pull request was removed from the queue.",
        "restarted" => "The tests were restarted.",
        "priority" => "The priority was changed.",
        "paused" => "The queue is paused.",
        "draining" => "The queue is draining.",
        "running" => "The queue is running.",
        "settings" => "The settings were changed.",
        "quarantine" => "The quarantine of the test was changed.",
        "quarantine-settings" => "The quarantine settings were changed.",
        "some-changed" => "The tests were changed.",
        "flagged" => "The test was flagged.",
        "unflagged" => "The flag was removed.",
        "monitor-created" => "The monitor was created.",
        "monitor-changed" => "The parameters of the monitor were changed.",
        "monitor-on" => "The monitor was turned on.",
        "monitor-off" => "The monitor was turned off.",
        "monitor-deleted" => "The monitor was deleted.",
        "incident" => "The decision about the incident was saved.",
        "ticket" => "The ticket was linked.",
        "revoked" => "The token was revoked.",
        "hook-changed" => "The endpoint was changed.",
        "hook-on" => "The endpoint was turned on.",
        "hook-off" => "The endpoint was turned off.",
        "hook-deleted" => "The endpoint was deleted.",
        "hook-test" => "The test message is queued.",
        "hook-resent" => "The message is queued again.",
        "hook-replayed" => "The failed messages are queued again.",
        "hook-none" => "No message has failed in that time.",
        _ => "",
    }
}

/// The result of a handler: a page and its visitor.
pub(crate) type Shown = Result<(Option<Visitor>, Page), Failure>;

/// The result of a form.
pub(crate) enum Done {
    /// The browser is redirected there.
    GoTo(String),
    /// A page that is shown once: its content is not stored.
    Once(Box<(Visitor, Page)>),
}

/// The reply to a form.
pub(crate) fn follow(
    pages: &Pages,
    request: &HttpRequest,
    done: Result<Done, Failure>,
) -> HttpResponse {
    match done {
        Ok(Done::GoTo(address)) => go_to(&address).finish(),
        Ok(Done::Once(shown)) => {
            let (visitor, page) = *shown;
            answer(pages, request, Ok((Some(visitor), page)))
        }
        Err(failure) => answer(pages, request, Err(failure)),
    }
}

/// The reply to a request for a page.
pub(crate) fn answer(pages: &Pages, request: &HttpRequest, shown: Shown) -> HttpResponse {
    let reason = shown.as_ref().err().map(Failure::reason);
    let mut reply = answered(pages, request, shown);
    if let Some(reason) = reason {
        reply.extensions_mut().insert(RefusalReason(reason));
    }
    reply
}

/// The sign-in page again, for a visitor who could not sign in.
pub(crate) fn refused(pages: &Pages, request: &HttpRequest, page: Page) -> HttpResponse {
    let mut reply = answered(pages, request, Ok((None, page)));
    *reply.status_mut() = Status::SignIn.code();
    reply.extensions_mut().insert(RefusalReason(Failure::SignIn.reason()));
    reply
}

fn answered(pages: &Pages, request: &HttpRequest, shown: Shown) -> HttpResponse {
    let (status, visitor, page) = match shown {
        Ok((visitor, page)) => (Status::Shown, visitor, page),
        Err(Failure::SignIn) => {
            let here = request.uri().path_and_query().map_or("/", |it| it.as_str());
            let page = crate::routes::sign_in::page(pages, here, request.method() == "GET", "");
            (Status::SignIn, None, page)
        }
        Err(Failure::Changed(shown)) => (Status::Changed, Some(shown.0), shown.1),
        Err(failure) => (failure.status(), None, failure.page(&(pages.request_id)(request))),
    };
    match Form::of(request) {
        Form::Html => {}
        Form::Json => return data(status, "application/json", twin::json(&page)),
        Form::Csv => return table(status, &file_name(request.path()), twin::csv(&page)),
    }
    let said = Asked::query(request).text("said").to_owned();
    let mut shell = Shell::new(visitor.as_ref(), &without_said(request), &said);
    shell.request = (pages.request_id)(request);
    if let Some(session) = visitor.as_ref().and_then(|visitor| visitor.session.as_ref()) {
        shell.form_token = pages.sessions.form_token(session);
    }
    if status == Status::Shown && visitor.is_some() && request.method() == "GET" {
        let joined = if shell.here.contains('?') { '&' } else { '?' };
        let twin = |form: &str| format!("{}{joined}format={form}", shell.here);
        shell.twins = Some((twin("json"), twin("csv")));
    }
    match render(&shell, &page) {
        Ok(body) => packed_if_taken(request, status, &shell, body),
        Err(error) => {
            tracing::error!(%error, "could not render a page");
            data(
                Status::Internal,
                "text/plain; charset=utf-8",
                "The page could not be rendered.".into(),
            )
        }
    }
}

/// The name of the file that a browser saves the table of a page in: the end of the page's address.
fn file_name(path: &str) -> String {
    let last = path.rsplit('/').find(|part| !part.is_empty()).unwrap_or_default();
    let is_plain = |it: &char| it.is_ascii_alphanumeric() || *it == '-';
    let name: String = last.chars().filter(is_plain).take(64).collect();
    format!("{}.csv", if name.is_empty() { "page" } else { &name })
}

/// A page in the encoding that the browser accepts. The reply to a form is never compressed: it may
/// show a secret.
fn packed_if_taken(
    request: &HttpRequest,
    status: Status,
    shell: &Shell,
    body: String,
) -> HttpResponse {
    if request.method() == "GET" && packing::takes_gzip(request) {
        let padding = shell.form_token.get(..2).and_then(|it| u8::from_str_radix(it, 16).ok());
        let packed = packing::page(&body, padding.unwrap_or_default());
        if !packed.is_empty() {
            return packed_html(status, packed);
        }
    }
    html(status, body)
}

/// The address of a request without the notice of the last form.
fn without_said(request: &HttpRequest) -> String {
    let kept: Vec<&str> = request
        .query_string()
        .split('&')
        .filter(|it| !it.starts_with("said=") && !it.is_empty())
        .collect();
    let path = request.path();
    if kept.is_empty() { path.to_owned() } else { format!("{path}?{}", kept.join("&")) }
}
