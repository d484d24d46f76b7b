//! Requests: who asks is settled first, then what is asked is read.

use std::pin::Pin;
use std::sync::Arc;

use actix_web::dev::Payload;
use actix_web::http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use actix_web::web::{Bytes, BytesMut, Data};
use actix_web::{FromRequest, HttpRequest};
use futures_util::StreamExt;
use signalbox_domain::token::Caller;

use crate::api::Api;
use crate::dto::{Errors, Field, Form, Request, shown};
use crate::problem::{Code, Problem};

/// The most bytes of a request body.
pub(crate) const MAX_BODY: usize = 20 * 1024 * 1024;

/// A caller who is known.
pub(crate) struct Authenticated(pub(crate) Arc<Caller>);

/// A caller who is known, and what they ask. The body is not looked at before the token.
pub(crate) struct Asked<T: Request> {
    pub(crate) caller: Arc<Caller>,
    pub(crate) asked: T::Asked,
}

pub(crate) async fn authenticate(request: &HttpRequest) -> Result<Arc<Caller>, Problem> {
    let refused = || Problem::new(Code::Unauthorized, "");
    let api = request.app_data::<Data<Api>>().ok_or_else(refused)?;
    let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
    let token = header("x-api-token").filter(|token| !token.is_empty());
    let bearer = || {
        let (scheme, token) = header(AUTHORIZATION.as_str())?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    };
    let token = token.or_else(bearer).ok_or_else(refused)?;
    let caller = api.authenticator.authenticate(token).await?.ok_or_else(refused)?;
    let span = tracing::Span::current();
    span.record("org.slug", caller.org_slug.as_str()).record("token.name", caller.name.as_str());
    Ok(caller)
}

impl FromRequest for Authenticated {
    type Error = Problem;
    type Future = Pin<Box<dyn Future<Output = Result<Self, Problem>>>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move { authenticate(&request).await.map(Self) })
    }
}

impl<T: Request + Form + 'static> FromRequest for Asked<T> {
    type Error = Problem;
    type Future = Pin<Box<dyn Future<Output = Result<Self, Problem>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, payload) = (request.clone(), payload.take());
        Box::pin(async move {
            let caller = authenticate(&request).await?;
            check_headers(&request)?;
            let bytes = read(payload).await?;
            Ok(Self { caller, asked: parse::<T>(&bytes)? })
        })
    }
}

pub(crate) fn check_headers(request: &HttpRequest) -> Result<(), Problem> {
    let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
    let length = header(CONTENT_LENGTH).and_then(|length| length.parse::<u64>().ok());
    if length.is_some_and(|length| length > MAX_BODY as u64) {
        return Err(too_large());
    }
    let encoding = header(CONTENT_ENCODING).unwrap_or("identity");
    if !encoding.eq_ignore_ascii_case("identity") {
        let detail = format!("the body must not be compressed, but is {}", shown(encoding));
        return Err(Problem::new(Code::WrongContentType, detail));
    }
    let given = header(CONTENT_TYPE);
    let essence = given.unwrap_or_default().split(';').next().unwrap_or_default();
    let essence = essence.trim().to_ascii_lowercase();
    let json = essence == "application/json"
        || (essence.starts_with("application/") && essence.ends_with("+json"));
    if json {
        return Ok(());
    }
    let detail = match given {
        None => "the content type must be application/json, but there is none".to_owned(),
        Some(given) => {
            format!("the content type must be application/json, but is {}", shown(given))
        }
    };
    Err(Problem::new(Code::WrongContentType, detail))
}

fn too_large() -> Problem {
    Problem::new(Code::TooLarge, format!("the body may have at most {MAX_BODY} bytes"))
}

pub(crate) async fn read(mut payload: Payload) -> Result<Bytes, Problem> {
    let mut body = BytesMut::new();
    while let Some(chunk) = payload.next().await {
        let chunk = chunk.map_err(|error| malformed(format!("the body was cut off: {error}")))?;
        if body.len() + chunk.len() > MAX_BODY {
            return Err(too_large());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

fn malformed(detail: impl Into<String>) -> Problem {
    Problem::new(Code::MalformedBody, detail)
}

/// Reads JSON. What is no JSON at all is told apart from fields that break a rule.
pub(crate) fn parse<T: Request + Form>(bytes: &[u8]) -> Result<T::Asked, Problem> {
    if bytes.is_empty() {
        return Err(malformed("the body is empty"));
    }
    let text =
        std::str::from_utf8(bytes).map_err(|error| malformed(format!("the body is {error}")))?;
    let body: Field<T> = serde_json::from_str(text).map_err(|error| {
        if error.is_data() {
            malformed(format!("the body cannot be used: {error}"))
        } else {
            malformed(format!("the body is not valid JSON: {error}"))
        }
    })?;
    let mut errors = Errors::default();
    let asked = errors.required("", body).and_then(|body| body.check(&mut errors));
    errors.finish(asked)
}
