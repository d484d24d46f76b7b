//! Authenticated requests: the caller is known before anything of the body is read.

use std::pin::Pin;
use std::sync::Arc;

use actix_web::dev::Payload;
use actix_web::http::header::AUTHORIZATION;
use actix_web::web::Data;
use actix_web::{FromRequest, HttpRequest};
use signalbox_domain::token::Caller;

use crate::api::Api;
use crate::body::{check_headers, parse, read};
use crate::dto::{Form, Request};
use crate::problem::{Code, Problem};

/// The ways in which a caller can authenticate.
pub(crate) trait Credentials: Sized + 'static {
    /// The caller, or 401 when the request has no credentials.
    fn authenticate(request: &HttpRequest) -> impl Future<Output = Result<Self, Problem>>;
}

/// A caller who is known.
pub(crate) struct Authenticated<C = Arc<Caller>>(pub(crate) C);

/// A caller who is known, and the checked JSON of the body.
pub(crate) struct AuthenticatedJson<T: Request, C = Arc<Caller>> {
    pub(crate) caller: C,
    pub(crate) body: T::Checked,
}

/// Other credentials count only without a token: a caller with an invalid token gets an error.
pub(crate) fn has_token(request: &HttpRequest) -> bool {
    header(request, "x-api-token").is_some() || header(request, AUTHORIZATION.as_str()).is_some()
}

/// The value of a header, unless it is empty.
pub(crate) fn header<'a>(request: &'a HttpRequest, name: &str) -> Option<&'a str> {
    let value = request.headers().get(name)?.to_str().ok()?.trim();
    Some(value).filter(|value| !value.is_empty())
}

/// A token in `x-api-token`, or in `authorization` as a bearer.
impl Credentials for Arc<Caller> {
    async fn authenticate(request: &HttpRequest) -> Result<Self, Problem> {
        let refused = || Problem::new(Code::Unauthorized, "");
        let api = request.app_data::<Data<Api>>().ok_or_else(refused)?;
        let bearer = || {
            let (scheme, token) = header(request, AUTHORIZATION.as_str())?.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        };
        let token = header(request, "x-api-token").or_else(bearer).ok_or_else(refused)?;
        let caller = api.authenticator.authenticate(token).await?.ok_or_else(refused)?;
        tracing::Span::current()
            .record("org.slug", caller.org_slug.as_str())
            .record("token.name", caller.name.as_str());
        Ok(caller)
    }
}

impl<C: Credentials> FromRequest for Authenticated<C> {
    type Error = Problem;
    type Future = Pin<Box<dyn Future<Output = Result<Self, Problem>>>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move { C::authenticate(&request).await.map(Self) })
    }
}

impl<T: Request + Form + 'static, C: Credentials> FromRequest for AuthenticatedJson<T, C> {
    type Error = Problem;
    type Future = Pin<Box<dyn Future<Output = Result<Self, Problem>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, payload) = (request.clone(), payload.take());
        Box::pin(async move {
            let caller = C::authenticate(&request).await?;
            check_headers(&request)?;
            let bytes = read(payload).await?;
            Ok(Self { caller, body: parse::<T>(&bytes)? })
        })
    }
}
