//! Requests with an `Idempotency-Key`: a repeat is not carried out again, and gets the reply of the
//! first one.

use actix_web::body::{EitherBody, MessageBody, to_bytes};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::CONTENT_TYPE;
use actix_web::middleware::Next;
use actix_web::web::{Bytes, Data};
use actix_web::{Error, HttpMessage, HttpRequest};
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use signalbox_domain::ports::{KeptReply, KeyClaim, KeyedRequest};
use signalbox_domain::token::Caller;

use crate::admission::only_reads;
use crate::api::Api;
use crate::problem::{Code, Problem, Stopped};

/// The header with the key.
pub(crate) const KEY: &str = "idempotency-key";
/// The most characters of a key.
pub(crate) const MOST: usize = 255;
/// Operations whose replies contain a secret that is shown once.
const SECRET: [&str; 2] = ["createWebhook", "rotateWebhookSecret"];
/// The largest reply that is kept.
const LARGEST: usize = 256 * 1024;

/// The request that holds its key until it has been carried out.
struct Claimed(KeyedRequest);

/// Claims the key of a request, if it has one and changes something.
pub(crate) async fn claim(
    request: &HttpRequest,
    api: &Api,
    caller: &Caller,
    body: &[u8],
) -> Result<(), Stopped> {
    let Some(key) = request.headers().get(KEY) else { return Ok(()) };
    if request.match_name().is_none_or(only_reads) {
        return Ok(());
    }
    let (claimed, found) =
        api.idempotency.claim(caller, key_of(key.as_bytes())?, of(request, body)).await?;
    let problem = match found {
        KeyClaim::Claimed => {
            request.extensions_mut().insert(Claimed(claimed));
            return Ok(());
        }
        KeyClaim::Replied(reply) if reply.body.is_some() => return Err(Stopped::Replied(reply)),
        KeyClaim::Replied(_) => Problem::new(
            Code::ReplyNotKept,
            "a request with this idempotency key was carried out, and its reply was not kept",
        ),
        KeyClaim::Running => Problem::new(
            Code::RequestInProgress,
            "a request with this idempotency key is being carried out",
        ),
        KeyClaim::OtherRequest => Problem::new(
            Code::IdempotencyKeyReused,
            "the idempotency key was used for another request, with another operation or body",
        ),
    };
    Err(problem.into())
}

/// A key: 1 to 255 visible characters, in quotes or not.
fn key_of(given: &[u8]) -> Result<&str, Problem> {
    let text = std::str::from_utf8(given).unwrap_or_default().trim();
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let key = inner.unwrap_or(text);
    if key.is_empty() || key.len() > MOST || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        let rule =
            format!("the header Idempotency-Key must be 1 to {MOST} visible ASCII characters");
        return Err(Problem::new(Code::Invalid, rule));
    }
    Ok(key)
}

/// A hash of the operation and the body.
fn of(request: &HttpRequest, body: &[u8]) -> String {
    let mut hash = Sha256::new();
    hash.update(request.match_name().unwrap_or_default());
    hash.update([0]);
    hash.update(body);
    HEXLOWER.encode(&hash.finalize())
}

/// Keeps the reply to a request that holds a key; gives the key back if it was refused or failed.
pub(crate) async fn keep_reply<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B, Bytes>>, Error> {
    let reply = next.call(request).await?;
    let claimed = reply.request().extensions_mut().remove::<Claimed>();
    let (Some(Claimed(claimed)), Some(api)) =
        (claimed, reply.request().app_data::<Data<Api>>().cloned())
    else {
        return Ok(reply.map_into_left_body());
    };
    let (request, reply) = reply.into_parts();
    let (head, body) = reply.into_parts();
    let body = to_bytes(body).await.map_err(Into::into)?;
    let kept = if head.status().is_success() {
        let text = std::str::from_utf8(&body).ok().filter(|text| text.len() <= LARGEST);
        let is_secret = request.match_name().is_some_and(|name| SECRET.contains(&name));
        let content_type = head.headers().get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
        let kept = KeptReply {
            status: head.status().as_u16(),
            content_type: content_type.unwrap_or_default().to_owned(),
            body: text.filter(|_| !is_secret).map(ToOwned::to_owned),
        };
        api.idempotency.keep(&claimed, &kept).await
    } else {
        api.idempotency.release(&claimed).await
    };
    if let Err(error) = kept {
        tracing::warn!(%error, "could not store the reply for an idempotency key; it expires");
    }
    Ok(ServiceResponse::new(request, head.set_body(body).map_into_right_body()))
}

#[cfg(test)]
mod tests {
    use super::{MOST, key_of};

    #[test]
    fn a_key_is_visible_ascii_with_or_without_quotes() {
        let long = "x".repeat(MOST);
        for (given, key) in [("a-1", "a-1"), ("\"a-1\"", "a-1"), ("\"", "\""), (&*long, &*long)] {
            assert_eq!(key_of(given.as_bytes()).ok(), Some(key), "{given}");
        }
        let too_long = "x".repeat(MOST + 1);
        for given in ["", " ", "\"\"", "a b", "a\tb", "\u{e9}", &*too_long] {
            assert!(key_of(given.as_bytes()).is_err(), "{given}");
        }
    }
}
