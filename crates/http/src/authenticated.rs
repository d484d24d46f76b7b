//! Authenticated requests: the caller is known before anything of the body is read.

use std::pin::Pin;
use std::sync::Arc;

use actix_web::dev::Payload;
use actix_web::http::header::AUTHORIZATION;
use actix_web::web::Data;
use actix_web::{FromRequest, HttpMessage, HttpRequest};
use signalbox_domain::token::Caller;

use crate::admission::admit_known;
use crate::api::Api;
use crate::body::{MAX_BODY, check_headers, parse, read};
use crate::client::client_address;
use crate::dto::{Form, Request};
use crate::holding::{Held, Holder};
use crate::idempotency::claim;
use crate::problem::{Code, Problem, Stopped};

/// The ways in which a caller can authenticate.
pub(crate) trait Credentials: Sized + 'static {
    /// The caller, or 401 when the request has no credentials.
    fn authenticate(request: &HttpRequest) -> impl Future<Output = Result<Self, Problem>>;

    /// Whose share the caller's requests are taken from, the smallest share first.
    fn holders(&self, request: &HttpRequest) -> Vec<Holder>;

    /// The caller that idempotency keys belong to.
    fn keyed(&self) -> Option<&Caller> {
        None
    }

    /// The most bytes of the caller's body, if it is JSON.
    fn most_bytes(&self) -> usize {
        MAX_BODY
    }
}

/// The state of the routes.
pub(crate) fn api_of(request: &HttpRequest) -> Result<&Data<Api>, Problem> {
    request.app_data::<Data<Api>>().ok_or_else(|| Problem::new(Code::Unauthorized, ""))
}

/// The caller, whose request is admitted now.
async fn admitted<C: Credentials>(request: &HttpRequest) -> Result<C, Problem> {
    let caller = C::authenticate(request).await?;
    admit_known(request, api_of(request)?, &caller.holders(request)).await?;
    Ok(caller)
}

/// Counts the bytes of a known caller's body. What came before counts no longer as a stranger's.
pub(crate) fn held_by(request: &HttpRequest, holders: Vec<Holder>) -> Result<Held, Problem> {
    request.extensions_mut().remove::<Held>();
    Ok(api_of(request)?.admission.bodies.in_memory(holders))
}

/// A caller who is known.
pub(crate) struct Authenticated<C = Arc<Caller>>(pub(crate) C);

/// A caller who is known, and the checked JSON of the body.
pub(crate) struct AuthenticatedJson<T: Request, C = Arc<Caller>> {
    pub(crate) caller: C,
    pub(crate) body: T::Checked,
}

/// The caller of a request whose token was verified before its body was read, for the one that asks
/// next.
pub(crate) struct Proven(pub(crate) Arc<Caller>);

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
pub(crate) fn token_of(request: &HttpRequest) -> Option<&str> {
    let bearer = || {
        let (scheme, token) = header(request, AUTHORIZATION.as_str())?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    };
    header(request, "x-api-token").or_else(bearer)
}

impl Credentials for Arc<Caller> {
    async fn authenticate(request: &HttpRequest) -> Result<Self, Problem> {
        if let Some(Proven(caller)) = request.extensions_mut().remove() {
            return Ok(caller);
        }
        let refused = || Problem::new(Code::Unauthorized, "");
        let api = api_of(request)?;
        let token = token_of(request).ok_or_else(refused)?;
        let from = client_address(request);
        let caller = api.authenticator.authenticate(token, from).await?.ok_or_else(refused)?;
        tracing::Span::current()
            .record("org.slug", caller.org_slug.as_str())
            .record("token.name", caller.name.as_str());
        Ok(caller)
    }

    fn holders(&self, _: &HttpRequest) -> Vec<Holder> {
        vec![Holder::Organization(self.org)]
    }

    fn keyed(&self) -> Option<&Caller> {
        // A job of a CI system has no token of its own.
        Some(self.as_ref()).filter(|caller| caller.source.is_none())
    }
}

impl<C: Credentials> FromRequest for Authenticated<C> {
    type Error = Problem;
    type Future = Pin<Box<dyn Future<Output = Result<Self, Problem>>>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move { admitted(&request).await.map(Self) })
    }
}

impl<T: Request + Form + 'static, C: Credentials> FromRequest for AuthenticatedJson<T, C> {
    type Error = Stopped;
    type Future = Pin<Box<dyn Future<Output = Result<Self, Stopped>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, payload) = (request.clone(), payload.take());
        Box::pin(async move {
            let caller: C = admitted(&request).await?;
            check_headers(&request)?;
            let mut held = held_by(&request, caller.holders(&request))?;
            let bytes = read(payload, caller.most_bytes(), &mut held).await?;
            request.extensions_mut().insert(held);
            let body = parse::<T>(&bytes)?;
            if let Some(keyed) = caller.keyed() {
                claim(&request, api_of(&request)?, keyed, &bytes).await?;
            }
            Ok(Self { caller, body })
        })
    }
}
