//! `GET /.well-known/security.txt`: where to report a vulnerability (RFC 9116).

use actix_web::HttpResponse;
use actix_web::http::header::ContentType;
use signalbox_domain::time::Span;

use crate::api::Api;

/// The address that RFC 9116 prescribes.
pub(crate) const PATH: &str = "/.well-known/security.txt";
/// Days after which a copy of the file should not be relied on; the RFC recommends less than 365.
const VALID_DAYS: u32 = 180;

/// The file, made for each request, so that its expiry is always ahead.
pub(crate) fn reply(api: &Api, contact: &str) -> HttpResponse {
    let expires = api.clock.now().plus(Span::days(VALID_DAYS));
    // The RFC allows only https here.
    let url = api.public_url.as_ref().filter(|url| url.starts_with("https://"));
    let canonical = url.map_or_else(String::new, |url| format!("Canonical: {url}{PATH}\n"));
    let text = format!("Contact: {contact}\nExpires: {expires}\n{canonical}");
    HttpResponse::Ok().content_type(ContentType::plaintext()).body(text)
}
