//! The visitor of a page, and the check that their forms come from a page of this server.

use std::collections::BTreeMap;
use std::sync::Arc;

use actix_web::HttpRequest;
use actix_web::http::header::{COOKIE, HOST, ORIGIN};
use signalbox_domain::ids::{BranchName, PrNumber, RepoName};
use signalbox_domain::session::{ABSOLUTE_DAYS, SessionText};
use signalbox_domain::token::{Caller, Scope};
use uuid::Uuid;

use crate::Pages;
use crate::failure::Failure;

/// The visitor of a page.
#[derive(Clone, Debug)]
pub(crate) struct Visitor {
    pub(crate) caller: Arc<Caller>,
    /// Their session; `None` when a token is sent with each request.
    pub(crate) session: Option<SessionText>,
}

impl Visitor {
    pub(crate) fn may(&self, scope: Scope) -> bool {
        self.caller.may(scope)
    }

    /// Whether forms are shown: sending them needs a session.
    pub(crate) fn may_send(&self, scope: Scope) -> bool {
        self.session.is_some() && self.may(scope)
    }

    /// Whether they see webhooks, tokens and the audit log.
    pub(crate) fn administers(&self) -> bool {
        self.may(Scope::QueueAdmin) && self.caller.repos.is_empty()
    }

    /// Their role, shown in the menu.
    pub(crate) fn role(&self) -> &'static str {
        if self.may(Scope::QueueAdmin) {
            "admin"
        } else if self.may(Scope::QueueSubmit) {
            "submitter"
        } else {
            "viewer"
        }
    }

    pub(crate) fn org(&self) -> &str {
        self.caller.org_slug.as_str()
    }
}

/// The name of the cookie. With https it is bound to this host.
pub(crate) const fn cookie_name(secure: bool) -> &'static str {
    if secure { "__Host-signalbox" } else { "signalbox" }
}

/// The cookie of a session, as a header; without one, the cookie that removes it.
pub(crate) fn cookie(pages: &Pages, session: Option<&SessionText>) -> String {
    let secure = pages.secure();
    let (name, value) = (cookie_name(secure), session.map_or("", SessionText::reveal));
    let seconds = session.map_or(0, |_| u64::from(ABSOLUTE_DAYS) * 24 * 60 * 60);
    let secure = if secure { "; Secure" } else { "" };
    format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}")
}

/// The session that a browser sends, valid or not.
pub(crate) fn session_of(pages: &Pages, request: &HttpRequest) -> Option<SessionText> {
    SessionText::parse(cookie_of(request, cookie_name(pages.secure()))?)
}

/// The value of the first cookie of that name. Another cookie may contain any bytes: every site of the
/// same domain can set one.
pub(crate) fn cookie_of<'a>(request: &'a HttpRequest, name: &str) -> Option<&'a str> {
    let headers = request.headers().get_all(COOKIE);
    let cookies = headers.flat_map(|value| value.as_bytes().split(|byte| *byte == b';'));
    let mut cookies =
        cookies.filter_map(|it| std::str::from_utf8(it).ok()).filter_map(|it| it.split_once('='));
    cookies.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim())
}

/// The visitor, if they are signed in.
pub(crate) async fn visitor(pages: &Pages, request: &HttpRequest) -> Result<Visitor, Failure> {
    let token = request.headers().get("x-api-token").and_then(|value| value.to_str().ok());
    if let Some(token) = token {
        let caller = pages.authenticator.authenticate(token, (pages.client)(request)).await?;
        // A job of CI sees no pages.
        let caller = caller.filter(|caller| caller.source.is_none());
        return Ok(Visitor { caller: caller.ok_or(Failure::SignIn)?, session: None });
    }
    let Some(session) = session_of(pages, request) else { return Err(Failure::SignIn) };
    let caller = pages.sessions.resume(&session).await?.ok_or(Failure::SignIn)?;
    Ok(Visitor { caller, session: Some(session) })
}

/// The visitor of a page of that organization. For other visitors it does not exist.
pub(crate) async fn member(
    pages: &Pages,
    request: &HttpRequest,
    org: &str,
) -> Result<Visitor, Failure> {
    let visitor = visitor(pages, request).await?;
    if visitor.org() == org { Ok(visitor) } else { Err(Failure::Missing) }
}

/// Whether a form was sent from a page of this server, according to the browser's headers.
pub(crate) fn from_here(request: &HttpRequest, public_url: &str) -> bool {
    let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
    let Some(origin) = header(ORIGIN) else { return false };
    if origin == public_url {
        return true;
    }
    let Some(host) = header(HOST) else { return false };
    origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://")) == Some(host)
}

/// The sender of a form. It must come from this server, in a session, with the form token of that
/// session.
pub(crate) async fn session_holder(
    pages: &Pages,
    request: &HttpRequest,
    sent: &Asked,
) -> Result<Visitor, Failure> {
    let visitor = visitor(pages, request).await?;
    if sent.has_nul() {
        return Err(Failure::Invalid("a field contains the character U+0000".to_owned()));
    }
    let token = sent.text("form_token");
    let own = visitor.session.as_ref().is_some_and(|session| session.is_form_token(token));
    if own && from_here(request, &pages.public_url) {
        return Ok(visitor);
    }
    Err(Failure::Forbidden("the form was not sent from a page of this server".to_owned()))
}

/// The sender of a form about that organization. For other visitors it does not exist.
pub(crate) async fn sender(
    pages: &Pages,
    request: &HttpRequest,
    org: &str,
    sent: &Asked,
) -> Result<Visitor, Failure> {
    let visitor = session_holder(pages, request, sent).await?;
    if visitor.org() == org { Ok(visitor) } else { Err(Failure::Missing) }
}

/// The values of a query or a form.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked(BTreeMap<String, Vec<String>>);

impl Asked {
    pub(crate) fn of(text: &[u8]) -> Self {
        let mut asked: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in url::form_urlencoded::parse(text).into_owned() {
            asked.entry(name).or_default().push(value);
        }
        Self(asked)
    }

    pub(crate) fn query(request: &HttpRequest) -> Self {
        Self::of(request.query_string().as_bytes())
    }

    /// A value, the last one of that name; empty when there is none.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(|all| all.last()).map_or("", |value| value.trim())
    }

    /// Whether any value contains the character U+0000, which PostgreSQL cannot store.
    fn has_nul(&self) -> bool {
        let values = self.0.iter().flat_map(|(name, values)| values.iter().chain([name]));
        values.into_iter().any(|it| it.contains('\0'))
    }

    /// Every value of that name.
    pub(crate) fn all(&self, name: &str) -> &[String] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn uuid(&self, name: &str) -> Result<Uuid, Failure> {
        Uuid::try_parse(self.text(name)).map_err(|_| Failure::Missing)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(crate) fn number(&self, name: &str) -> Option<u32> {
        self.text(name).parse().ok()
    }

    pub(crate) fn repo(&self) -> Result<RepoName, Failure> {
        RepoName::parse(self.text("repo")).map_err(|_| Failure::Missing)
    }

    pub(crate) fn branch(&self) -> Result<BranchName, Failure> {
        BranchName::new(self.text("branch")).map_err(|_| Failure::Missing)
    }

    pub(crate) fn pr(&self) -> Result<PrNumber, Failure> {
        let pr = self.number("pr").filter(|pr| *pr > 0);
        pr.map(PrNumber).ok_or(Failure::Missing)
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;
    use signalbox_testkit::fuzz::{committed, fuzz};

    use super::*;

    /// The values of a form are no longer than it is, and what is printed again is read the same.
    #[test]
    fn fuzz_forms() {
        let words = ["&", "=", "%", "+", "%00", "pr=", "repo=", "%F0%28", "\u{feff}", ";", "[]="];
        fuzz("form", &committed("web-form"), &words, |input| {
            let input = input.get(..8_192).unwrap_or(input);
            let asked = Asked::of(input);
            let values =
                asked.0.iter().flat_map(|(name, all)| all.iter().map(move |it| (name, it)));
            let length: usize = values.clone().map(|(name, value)| name.len() + value.len()).sum();
            assert!(length <= 3 * input.len());
            let printed =
                url::form_urlencoded::Serializer::new(String::new()).extend_pairs(values).finish();
            assert_eq!(Asked::of(printed.as_bytes()).0, asked.0);
            assert!(
                asked.pr().is_ok_and(|pr| pr.0 > 0) || asked.number("pr").is_none_or(|it| it == 0)
            );
            assert!(
                asked.repo().is_ok_and(|it| !it.to_string().contains('\0'))
                    || asked.repo().is_err()
            );
            drop((asked.branch().ok(), asked.uuid("id").ok(), asked.has_nul()));
        });
    }

    #[test]
    fn of_a_repeated_field_the_last_value_counts() {
        let asked = Asked::of(b"priority=1&pr=7&priority=%202%20&pr=");
        assert_eq!((asked.text("priority"), asked.number("priority")), ("2", Some(2)));
        assert!(asked.pr().is_err(), "an empty value is no number");
        assert_eq!(asked.all("priority"), ["1", " 2 "]);
    }

    #[test]
    fn forms_are_accepted_from_pages_of_this_server_only() {
        let asked = |origin: Option<&str>| {
            let mut request = TestRequest::post().insert_header((HOST, "box.example:8080"));
            if let Some(origin) = origin {
                request = request.insert_header((ORIGIN, origin));
            }
            from_here(&request.to_http_request(), "https://queue.example")
        };
        assert!(asked(Some("http://box.example:8080")));
        assert!(asked(Some("https://queue.example")));
        for wrong in ["null", "http://box.example", "https://evil.example", ""] {
            assert!(!asked(Some(wrong)), "{wrong}");
        }
        assert!(!asked(None));
    }
}
