//! Bodies of requests: JSON, and how much of it.

use actix_web::HttpRequest;
use actix_web::dev::Payload;
use actix_web::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use actix_web::web::{Bytes, BytesMut};
use futures_util::StreamExt;

use crate::dto::{Errors, Field, Form, Request, shown};
use crate::holding::Held;
use crate::pace::cut_off;
use crate::problem::{Code, Problem};

/// The most bytes of a request body.
pub(crate) const MAX_BODY: usize = 20 * 1024 * 1024;
/// The same for a sender whose credential can only be verified when the body has come.
pub(crate) const MAX_UNPROVEN_BODY: usize = 1024 * 1024;

pub(crate) fn check_headers(request: &HttpRequest) -> Result<(), Problem> {
    let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
    let length = header(CONTENT_LENGTH).and_then(|length| length.parse::<u64>().ok());
    if length.is_some_and(|length| length > MAX_BODY as u64) {
        return Err(too_large(MAX_BODY));
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

fn too_large(most: usize) -> Problem {
    Problem::new(Code::TooLarge, format!("the body may have at most {most} bytes"))
}

/// Reads a whole body into memory; its bytes are counted in `held`.
pub(crate) async fn read(
    mut payload: Payload,
    most: usize,
    held: &mut Held,
) -> Result<Bytes, Problem> {
    let mut body = BytesMut::new();
    while let Some(chunk) = payload.next().await {
        let chunk = chunk.map_err(|error| cut_off(&error))?;
        if body.len() + chunk.len() > most {
            return Err(too_large(most));
        }
        held.add(chunk.len())?;
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

fn malformed(detail: impl Into<String>) -> Problem {
    Problem::new(Code::MalformedBody, detail)
}

/// Parses JSON. Malformed JSON and fields that break a rule are different errors.
pub(crate) fn parse<T: Request + Form>(bytes: &[u8]) -> Result<T::Checked, Problem> {
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
