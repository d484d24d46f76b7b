//! Request ids: taken from the caller or created here, and part of every reply, log line and
//! problem.

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{HeaderName, HeaderValue, STRICT_TRANSPORT_SECURITY};
use actix_web::middleware::Next;
use actix_web::web::Data;
use actix_web::{Error, HttpMessage, HttpResponse};
use signalbox_domain::ports::Observed;
use signalbox_services::RefusalReason;
use tracing::Instrument;

use crate::api::Api;
use crate::client::{client_address, note_client};
use crate::page::POLICY;
use crate::problem::{CallersMistake, Code, Problem};

const HEADER: HeaderName = HeaderName::from_static("x-request-id");
/// The headers of every reply that does not set its own.
const HEADERS: [(&str, &str); 4] = [
    ("x-content-type-options", "nosniff"),
    ("cache-control", "no-store"),
    ("content-security-policy", POLICY),
    ("referrer-policy", "no-referrer"),
];

tokio::task_local! {
    static CURRENT: String;
}

/// The id of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId(pub String);

/// The id of the current request, or of the request that caused the current work.
pub fn current_request_id() -> Option<String> {
    CURRENT.try_with(Clone::clone).ok()
}

/// Runs work that a request has caused, under its id.
pub async fn on_behalf_of<F: Future>(request: Option<String>, work: F) -> F::Output {
    match request {
        Some(request) => CURRENT.scope(request, work).await,
        None => work.await,
    }
}

fn acceptable(id: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    !id.is_empty() && id.len() <= 128 && id.chars().all(plain)
}

/// Why a request was refused: the code of the problem, or the name of the status.
fn reason<B>(reply: &HttpResponse<B>) -> String {
    let code = reply.extensions().get::<RefusalReason>().map(|it| it.0.to_owned());
    code.unwrap_or_else(|| {
        let words = reply.status().canonical_reason().unwrap_or("unknown");
        words.to_lowercase().replace(' ', "_")
    })
}

/// The most bytes of a path. Matching and logging it costs time for each.
const MAX_PATH: usize = 2_048;

/// Whether the address contains an encoded U+0000: no valid name has it, and PostgreSQL cannot
/// store it. This is its only form: unencoded it is not allowed in an address.
fn names_nul(request: &ServiceRequest) -> bool {
    let uri = request.uri();
    uri.path().contains("%00") || uri.query().is_some_and(|query| query.contains("%00"))
}

/// Gives each request an id, logs it and counts it. It also sets the headers of every reply,
/// and refuses requests that no route can handle.
pub async fn with_request_id(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let api = request.app_data::<Data<Api>>().cloned();
    let given = request.headers().get(HEADER).and_then(|value| value.to_str().ok());
    let id = match (given.filter(|id| acceptable(id)), &api) {
        (Some(id), _) => id.to_owned(),
        (None, Some(api)) => api.ids.new_id().to_string(),
        (None, None) => "unknown".to_owned(),
    };
    request.extensions_mut().insert(RequestId(id.clone()));
    if let Some(api) = &api {
        note_client(&request, &api.admission.proxies);
    }
    let path = request.path();
    let path = path.get(..path.floor_char_boundary(MAX_PATH)).unwrap_or_default().to_owned();
    let method = request.method().clone();
    // The token is filled in once it is known.
    let span = tracing::info_span!(
        "request",
        request.id = %id,
        org.slug = tracing::field::Empty,
        token.name = tracing::field::Empty,
    );
    let started = api.as_ref().map(|api| api.clock.now());
    let answered = async {
        if request.uri().path().len() > MAX_PATH {
            let words = format!("the path of the address may have at most {MAX_PATH} bytes");
            let problem = Problem::new(Code::AddressTooLong, words);
            return Ok(request.error_response(problem).map_into_right_body());
        }
        if names_nul(&request) {
            let words = "the address must not contain the character U+0000";
            let problem = Problem::new(Code::Invalid, words);
            return Ok(request.error_response(problem).map_into_right_body());
        }
        next.call(request).await.map(ServiceResponse::map_into_left_body)
    };
    let answer = CURRENT.scope(id.clone(), answered).instrument(span.clone()).await;
    let mut response = answer?;
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(&id) {
        headers.insert(HEADER, value);
    }
    for (name, value) in HEADERS {
        let name = HeaderName::from_static(name);
        if !headers.contains_key(&name) {
            headers.insert(name, HeaderValue::from_static(value));
        }
    }
    let is_https =
        |api: &Data<Api>| api.public_url.as_ref().is_some_and(|url| url.starts_with("https://"));
    if api.as_ref().is_some_and(is_https) {
        let year = HeaderValue::from_static("max-age=31536000");
        headers.insert(STRICT_TRANSPORT_SECURITY, year);
    }
    if let (Some(api), Some(started)) = (api, started) {
        let took = api.clock.now().since(started);
        let mistake = response.response().extensions().contains::<CallersMistake>();
        let status = if mistake { CallersMistake::COUNTED_AS } else { response.status().as_u16() };
        // The path is the caller's text; the operation is one of a few names.
        let operation = response.request().match_name().unwrap_or("unknown").to_owned();
        api.observer.observe(&Observed::Request { operation: &operation, status, took });
        let duration_ms = took.millis();
        let client = client_address(response.request());
        let answer = response.status();
        if answer.is_client_error() || answer.is_server_error() {
            let refusals = api.admission.refusals.add(client, api.clock.now());
            let reason = reason(response.response());
            span.in_scope(|| {
                tracing::info!(
                    %method, path, operation, status, duration_ms, client.address = %client, reason,
                    refusals, "answered a request"
                );
            });
        } else {
            span.in_scope(|| {
                tracing::info!(
                    %method, path, operation, status, duration_ms, client.address = %client,
                    "answered a request"
                );
            });
        }
    }
    Ok(response)
}
