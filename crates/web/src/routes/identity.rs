//! Signing in with an identity provider: leaving for it, and coming back.

use actix_web::http::header::SET_COOKIE;
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use signalbox_domain::ports::{IdentityError, Leaving};

use super::sign_in::local;
use crate::failure::Failure;
use crate::reply::go_to;
use crate::shell::answer;
use crate::visitor::{Asked, cookie, cookie_of, session_of};
use crate::{Pages, SignInWith};

/// Seconds within which the user must return from the identity provider.
const AWAY_SECONDS: u32 = 600;

const fn name(secure: bool) -> &'static str {
    if secure { "__Host-signalbox-leaving" } else { "signalbox-leaving" }
}

/// The cookie of a browser while its user is at the identity provider; without `leaving`, the
/// cookie that removes it.
fn leaving_cookie(pages: &Pages, kept: Option<(&Leaving, &str)>) -> String {
    let value = kept.map_or_else(String::new, |(leaving, next)| joined(leaving, next));
    let seconds = if kept.is_some() { AWAY_SECONDS } else { 0 };
    let secure = if pages.secure() { "; Secure" } else { "" };
    let name = name(pages.secure());
    format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}")
}

fn joined(leaving: &Leaving, next: &str) -> String {
    let Leaving { state, nonce, verifier } = leaving;
    format!("{state}.{nonce}.{verifier}.{}", crate::text::quoted(next))
}

/// The contents of that cookie.
fn kept(pages: &Pages, request: &HttpRequest) -> Option<(Leaving, String)> {
    parts(cookie_of(request, name(pages.secure()))?)
}

/// What the value of that cookie consists of.
fn parts(value: &str) -> Option<(Leaving, String)> {
    let mut parts = value.splitn(4, '.');
    let mut part = || parts.next().filter(|it| !it.is_empty()).map(ToOwned::to_owned);
    let leaving = Leaving { state: part()?, nonce: part()?, verifier: part()? };
    let next = Asked::of(format!("next={}", part()?).as_bytes());
    Some((leaving, next.text("next").to_owned()))
}

fn back(pages: &Pages) -> String {
    format!("{}/sign-in/back", pages.public_url.trim_end_matches('/'))
}

fn configured(pages: &Pages) -> Result<&SignInWith, Failure> {
    pages.sign_in_with.as_deref().ok_or(Failure::Missing)
}

impl From<IdentityError> for Failure {
    fn from(error: IdentityError) -> Self {
        match error {
            IdentityError::Unavailable(_) => {
                tracing::warn!(%error, "a user could not sign in");
                Self::Unavailable(error.to_string())
            }
            IdentityError::Refused(_) => Self::Denied(error.to_string()),
        }
    }
}

/// `GET /sign-in/with`: redirects to the provider.
pub(crate) async fn leave(pages: Data<Pages>, request: HttpRequest) -> HttpResponse {
    let left = async {
        let with = configured(&pages)?;
        let (address, leaving) = with.provider.leave(&back(&pages)).await?;
        let asked = Asked::query(&request);
        let cookie = leaving_cookie(&pages, Some((&leaving, local(asked.text("next")))));
        Ok(go_to(&address).insert_header((SET_COOKIE, cookie)).finish())
    };
    match left.await {
        Ok(reply) => reply,
        Err(failure) => answer(&pages, &request, Err(failure)),
    }
}

/// `GET /sign-in/back`: returns from the provider.
pub(crate) async fn returned(pages: Data<Pages>, request: HttpRequest) -> HttpResponse {
    match arrived(&pages, &request).await {
        Ok(reply) => reply,
        Err(failure) => {
            if let Failure::Denied(why) | Failure::Invalid(why) = &failure {
                pages.authenticator.identity_denied(why, (pages.client)(&request));
            }
            answer(&pages, &request, Err(failure))
        }
    }
}

async fn arrived(pages: &Pages, request: &HttpRequest) -> Result<HttpResponse, Failure> {
    let with = configured(pages)?;
    let asked = Asked::query(request);
    let lost = || {
        let why = "the sign-in was not started in this browser, or took longer than ten minutes: sign in again";
        Failure::Invalid(why.to_owned())
    };
    let (leaving, next) = kept(pages, request).ok_or_else(lost)?;
    if asked.text("state") != leaving.state {
        return Err(lost());
    }
    if asked.has("error") {
        let said = crate::text::plain(asked.text("error"), 100);
        return Err(Failure::Denied(format!("the identity provider refused: {said}")));
    }
    let who = with.provider.returned(&back(pages), &leaving, asked.text("code")).await?;
    let role = with.policy.role(&who).map_err(|denied| {
        tracing::warn!(identity.subject = %who.subject, %denied, "sign-in denied");
        Failure::Denied(denied.to_string())
    })?;
    let session = pages.sessions.sign_in_as(&with.org, &who, role).await?;
    let session = session.ok_or_else(|| {
        tracing::error!(org.slug = %with.org, "the organization of oidc does not exist");
        Failure::Internal
    })?;
    if let Some(old) = session_of(pages, request) {
        pages.sessions.sign_out(&old).await?;
    }
    tracing::info!(identity.subject = %who.subject, role = role.as_str(), "signed in");
    Ok(go_to(local(&next))
        .append_header((SET_COOKIE, leaving_cookie(pages, None)))
        .append_header((SET_COOKIE, cookie(pages, Some(&session))))
        .finish())
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::{COOKIE, HeaderValue};
    use actix_web::test::TestRequest;
    use signalbox_domain::session::SessionText;
    use signalbox_testkit::fuzz::{committed, fuzz};

    use super::*;

    /// What is read from a cookie is written as a cookie that is read the same.
    #[test]
    fn fuzz_cookies() {
        let words = ["; ", "=", ".", "%2F", "%", "+", "&next=", "__Host-signalbox=", "..", "\t"];
        fuzz("cookie", &committed("web-cookie"), &words, |input| {
            let Ok(value) = HeaderValue::from_bytes(input) else { return };
            let request = TestRequest::default().insert_header((COOKIE, value)).to_http_request();
            if let Some((leaving, next)) = cookie_of(&request, name(true)).and_then(parts) {
                assert!(next.len() <= 3 * input.len());
                let Some((again, other)) = parts(&joined(&leaving, &next)) else {
                    assert!(next.is_empty(), "{next:?}");
                    return;
                };
                assert_eq!((again.state, again.nonce), (leaving.state, leaving.nonce));
                assert_eq!((again.verifier, other), (leaving.verifier, next));
            }
            let session = cookie_of(&request, crate::visitor::cookie_name(true));
            if let Some(session) = session.and_then(SessionText::parse) {
                assert!(session.reveal().bytes().all(|it| it.is_ascii_hexdigit()));
            }
        });
    }
}
