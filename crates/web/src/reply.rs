//! Pages as replies: the only file of this crate that knows status codes, and the headers that
//! every page carries.

use actix_web::http::StatusCode;
use actix_web::http::header::{
    CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue,
    LOCATION, REFERRER_POLICY, RETRY_AFTER,
};
use actix_web::{HttpResponse, HttpResponseBuilder};

/// Only content of this server is loaded or run; nothing inline, and no framing.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; \
    frame-ancestors 'none'";

/// The status of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Shown,
    SignIn,
    Invalid,
    Forbidden,
    Missing,
    Conflict,
    /// A concurrent change came first.
    Changed,
    TooMany,
    Internal,
    Unavailable,
}

impl Status {
    pub(crate) const fn code(self) -> StatusCode {
        match self {
            Self::Shown => StatusCode::OK,
            Self::SignIn => StatusCode::UNAUTHORIZED,
            Self::Invalid => StatusCode::BAD_REQUEST,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::Missing => StatusCode::NOT_FOUND,
            Self::Conflict => StatusCode::CONFLICT,
            Self::Changed => StatusCode::PRECONDITION_FAILED,
            Self::TooMany => StatusCode::TOO_MANY_REQUESTS,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// The beginning of a reply, with the headers of every page.
    pub(crate) fn reply(self) -> HttpResponseBuilder {
        let mut reply = HttpResponse::build(self.code());
        harden(&mut reply);
        if matches!(self, Self::TooMany | Self::Unavailable) {
            reply.insert_header((RETRY_AFTER, "30"));
        }
        reply
    }
}

fn harden(reply: &mut HttpResponseBuilder) {
    reply
        .insert_header((CONTENT_SECURITY_POLICY, POLICY))
        .insert_header((REFERRER_POLICY, "same-origin"))
        .insert_header(header("x-frame-options", "DENY"))
        .insert_header(header("cross-origin-opener-policy", "same-origin"))
        .insert_header(header("permissions-policy", "camera=(), geolocation=(), microphone=()"))
        .insert_header(header("cache-control", "no-store"));
}

fn header(name: &'static str, value: &'static str) -> (HeaderName, HeaderValue) {
    (HeaderName::from_static(name), HeaderValue::from_static(value))
}

/// A page.
pub(crate) fn html(status: Status, body: String) -> HttpResponse {
    status.reply().content_type("text/html; charset=utf-8").body(body)
}

/// A page that is compressed with gzip.
pub(crate) fn packed_html(status: Status, body: Vec<u8>) -> HttpResponse {
    let mut reply = status.reply();
    reply.content_type("text/html; charset=utf-8").insert_header((CONTENT_ENCODING, "gzip"));
    reply.body(body)
}

/// The same page for programs.
pub(crate) fn data(status: Status, kind: &'static str, body: String) -> HttpResponse {
    of_kind(status, kind).body(body)
}

/// A table that a browser saves in a file of that name.
pub(crate) fn table(status: Status, file: &str, csv: String) -> HttpResponse {
    of_kind(status, "text/csv; charset=utf-8")
        .insert_header((CONTENT_DISPOSITION, format!("attachment; filename=\"{file}\"")))
        .body(csv)
}

fn of_kind(status: Status, kind: &'static str) -> HttpResponseBuilder {
    let mut reply = status.reply();
    reply.insert_header(header("x-content-type-options", "nosniff")).content_type(kind);
    reply
}

/// Sends the browser on with a GET.
pub(crate) fn go_to(address: &str) -> HttpResponseBuilder {
    let mut reply = HttpResponse::build(StatusCode::SEE_OTHER);
    harden(&mut reply);
    reply.insert_header((LOCATION, address));
    reply
}
