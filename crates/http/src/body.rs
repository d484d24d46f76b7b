//! Requests: who asks is settled first, then what is asked is read.

use std::pin::Pin;
use std::sync::Arc;

use actix_web::dev::Payload;
use actix_web::http::header::{AUTHORIZATION, CONTENT_TYPE};
use actix_web::web::{Bytes, BytesMut, Data};
use actix_web::{FromRequest, HttpRequest};
use futures_util::StreamExt;
use serde::de::DeserializeOwned;
use signalbox_domain::token::Caller;

use crate::api::Api;
use crate::problem::{Code, Problem};

/// The most bytes of a request body.
pub(crate) const MAX_BODY: usize = 20 * 1024 * 1024;

/// A caller who is known.
pub(crate) struct Authenticated(pub(crate) Arc<Caller>);

/// A caller who is known, and what they ask. The body is not looked at before the token.
pub(crate) struct Asked<T> {
    pub(crate) caller: Arc<Caller>,
    pub(crate) body: T,
}

async fn authenticate(request: &HttpRequest) -> Result<Arc<Caller>, Problem> {
    let refused = || Problem::new(Code::Unauthorized, "");
    let api = request.app_data::<Data<Api>>().ok_or_else(refused)?;
    let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
    let token = header("x-api-token").filter(|token| !token.is_empty());
    let bearer = || {
        let (scheme, token) = header(AUTHORIZATION.as_str())?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    };
    let token = token.or_else(bearer).ok_or_else(refused)?;
    api.authenticator.authenticate(token).await?.ok_or_else(refused)
}

impl FromRequest for Authenticated {
    type Error = Problem;
    type Future = Pin<Box<dyn Future<Output = Result<Self, Problem>>>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move { authenticate(&request).await.map(Self) })
    }
}

impl<T: DeserializeOwned> FromRequest for Asked<T> {
    type Error = Problem;
    type Future = Pin<Box<dyn Future<Output = Result<Self, Problem>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, payload) = (request.clone(), payload.take());
        Box::pin(async move {
            let caller = authenticate(&request).await?;
            check_content_type(&request)?;
            let bytes = read(payload).await?;
            Ok(Self { caller, body: parse(&bytes)? })
        })
    }
}

fn check_content_type(request: &HttpRequest) -> Result<(), Problem> {
    let given = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = given.unwrap_or_default().split(';').next().unwrap_or_default();
    let essence = essence.trim().to_ascii_lowercase();
    let json = essence == "application/json"
        || (essence.starts_with("application/") && essence.ends_with("+json"));
    if json {
        return Ok(());
    }
    let given = given.map_or_else(|| "none".to_owned(), |given| format!("{given:?}"));
    let detail = format!("the content type must be application/json, but is {given}");
    Err(Problem::new(Code::WrongContentType, detail))
}

async fn read(mut payload: Payload) -> Result<Bytes, Problem> {
    let mut body = BytesMut::new();
    while let Some(chunk) = payload.next().await {
        let chunk = chunk.map_err(|error| {
            Problem::new(Code::MalformedBody, format!("the body cannot be read: {error}"))
        })?;
        if body.len() + chunk.len() > MAX_BODY {
            let detail = format!("the body has more than {MAX_BODY} bytes");
            return Err(Problem::new(Code::TooLarge, detail));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

/// Reads JSON. What is no JSON at all is told apart from a field that breaks a rule.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let read = serde_path_to_error::deserialize(&mut reader);
    let value = read.map_err(|error| {
        let pointer = pointer(error.path());
        let error = error.into_inner();
        if error.is_data() {
            let words = error.to_string();
            let words = words.split(" at line ").next().unwrap_or(&words);
            Problem::invalid(pointer, words)
        } else {
            Problem::new(Code::MalformedBody, format!("the body is not valid JSON: {error}"))
        }
    })?;
    reader.end().map_err(|error| {
        Problem::new(Code::MalformedBody, format!("the body is not valid JSON: {error}"))
    })?;
    Ok(value)
}

fn pointer(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    let mut pointer = String::new();
    for segment in path {
        match segment {
            Segment::Seq { index } => {
                pointer.push('/');
                pointer.push_str(&index.to_string());
            }
            Segment::Map { key } | Segment::Enum { variant: key } => {
                pointer.push('/');
                pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
            }
            Segment::Unknown => {}
        }
    }
    pointer
}
