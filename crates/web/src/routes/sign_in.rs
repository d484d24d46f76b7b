//! Signing in and out.

use actix_web::http::header::SET_COOKIE;
use actix_web::web::{Bytes, Data};
use actix_web::{HttpRequest, HttpResponse};
use signalbox_services::Attempt;

use crate::Pages;
use crate::failure::Failure;
use crate::model::{Block, Cell, Field, Form, Page, Section};
use crate::reply::go_to;
use crate::shell::{answer, refused};
use crate::visitor::{Asked, cookie, from_here, session_holder, session_of};

/// The sign-in page; afterwards the browser is redirected to `next`.
pub(crate) fn page(pages: &Pages, next: &str, keep: bool, wrong: &str) -> Page {
    let next = if keep { local(next) } else { "/" };
    let mut section = Section::plain("sign-in");
    if !wrong.is_empty() {
        let notice = Block::notice(signalbox_wording::Tone::Bad, "cross", "Not signed in.", wrong);
        section = section.with(notice);
    }
    if let Some(with) = &pages.sign_in_with {
        let href = format!("/sign-in/with?next={}", crate::text::quoted(next));
        let link = Cell::text(format!("Sign in with {}", with.label)).link(href);
        section = section.with(Block::Links(vec![link]));
    }
    let form = Form {
        id: "sign-in-form".to_owned(),
        action: "/sign-in".to_owned(),
        // Without a session there is no form token: the origin is checked instead.
        post: true,
        hidden: vec![("next", next.to_owned())],
        fields: vec![Field {
            name: "token",
            label: "API token".to_owned(),
            kind: "password",
            hint: "It starts with sbx_; `signalbox token create` prints one. You may do here what \
                 the token allows, until it is revoked."
                .to_owned(),
            required: true,
            ..Field::default()
        }],
        button: "Sign in".to_owned(),
        ..Form::default()
    };
    Page {
        title: "Sign in".to_owned(),
        sections: vec![section.with(Block::Forms(vec![form]))],
        ..Page::default()
    }
}

/// An address of this server; home for every other one.
pub(crate) fn local(next: &str) -> &str {
    let fine = next.starts_with('/')
        && !next.starts_with("//")
        && !next.contains(|it: char| it == '\\' || it.is_control())
        && !next.starts_with("/sign-");
    if fine { next } else { "/" }
}

/// `GET /sign-in`.
pub(crate) async fn show(pages: Data<Pages>, request: HttpRequest) -> HttpResponse {
    let next = Asked::query(&request).text("next").to_owned();
    answer(&pages, &request, Ok((None, page(&pages, &next, true, ""))))
}

/// `POST /sign-in`.
pub(crate) async fn sign_in(pages: Data<Pages>, request: HttpRequest, body: Bytes) -> HttpResponse {
    let sent = Asked::of(&body);
    match exchange(&pages, &request, &sent).await {
        Ok(reply) => reply,
        Err(Failure::SignIn) => {
            let wrong = "This token is unknown, expired or revoked.";
            let page = page(&pages, sent.text("next"), true, wrong);
            refused(&pages, &request, page)
        }
        Err(failure) => answer(&pages, &request, Err(failure)),
    }
}

async fn exchange(
    pages: &Pages,
    request: &HttpRequest,
    sent: &Asked,
) -> Result<HttpResponse, Failure> {
    if !from_here(request, &pages.public_url) {
        let why = "the form was not sent from a page of this server";
        return Err(Failure::Forbidden(why.to_owned()));
    }
    let attempt = pages.sessions.sign_in(sent.text("token"), (pages.client)(request)).await?;
    let (session, caller) = match attempt {
        Attempt::Accepted(accepted) => accepted,
        Attempt::Refused => return Err(Failure::SignIn),
        Attempt::Throttled => return Err(Failure::TooMany),
    };
    if let Some(old) = session_of(pages, request) {
        pages.sessions.sign_out(&old).await?;
    }
    tracing::info!(token.name = %caller.name, org.slug = %caller.org_slug, "signed in");
    Ok(go_to(local(sent.text("next")))
        .insert_header((SET_COOKIE, cookie(pages, Some(&session))))
        .finish())
}

/// `POST /sign-out`.
pub(crate) async fn sign_out(
    pages: Data<Pages>,
    request: HttpRequest,
    body: Bytes,
) -> HttpResponse {
    let out = async {
        let visitor = session_holder(&pages, &request, &Asked::of(&body)).await?;
        if let Some(session) = &visitor.session {
            pages.sessions.sign_out(session).await?;
        }
        Ok(go_to("/sign-in").insert_header((SET_COOKIE, cookie(&pages, None))).finish())
    };
    match out.await {
        Ok(reply) => reply,
        Err(failure) => answer(&pages, &request, Err(failure)),
    }
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;
    use signalbox_testkit::fuzz::{committed, fuzz};
    use url::Url;

    use super::*;

    /// Whatever `next` is, a browser that follows the redirect stays on this server, and the header is
    /// valid.
    #[test]
    fn fuzz_redirects() {
        let words = [
            "next=",
            "%2F",
            "//",
            "/\\",
            "%5C",
            "%09",
            "%0A",
            "@",
            ":",
            "/sign-",
            "https:",
            "/.",
            "%E2%80%AE",
        ];
        let here = Url::parse("https://box.test/sign-in/back").expect("a URL");
        fuzz("redirect", &committed("web-form"), &words, |input| {
            let sent = Asked::of(input.get(..4_096).unwrap_or(input));
            for next in sent.all("next").iter().map(String::as_str).chain([sent.text("next")]) {
                let next = local(next);
                let there = here.join(next).expect("a URL");
                assert_eq!(there.origin(), here.origin(), "{next:?}");
                let reply = go_to(next).finish();
                let header = reply.headers().get("location").map(HeaderValue::as_bytes);
                assert_eq!(header, Some(next.as_bytes()));
            }
        });
    }

    #[test]
    fn sign_in_redirects_to_this_server_only() {
        for elsewhere in
            ["//evil", "https://evil", "/\\evil", "", "evil", "/sign-out", "/a\nb", "/\u{1}"]
        {
            assert_eq!(local(elsewhere), "/", "{elsewhere:?}");
        }
        assert_eq!(local("/acme/queue?repo=x"), "/acme/queue?repo=x");
    }
}
