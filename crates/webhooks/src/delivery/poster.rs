//! One POST: signed, guarded, and never longer than it may be.

use std::error::Error as _;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, Response};
use signalbox_domain::ports::{Outgoing, Posted, SecretError, WebhookSender};
use signalbox_domain::time::Span;
use signalbox_domain::webhook::{LONGEST_WAIT, MAX_RESPONSE, Sent};
use tokio::time::{Instant, timeout_at};

use crate::guard::{Guard, GuardedResolver, Lookup, Refused};
use crate::vault::Vault;

/// Names the sender.
const AGENT: &str = concat!("Signalbox-Webhooks/", env!("CARGO_PKG_VERSION"));
/// The response of a receiver that declines a message.
const ABORT: &str = "abort-message";
/// Replaces a signature in stored headers.
const HIDDEN: &str = "v1,hidden";
/// The same headers under both names.
const NAMES: [[&str; 3]; 2] = [
    ["webhook-id", "webhook-timestamp", "webhook-signature"],
    ["svix-id", "svix-timestamp", "svix-signature"],
];

/// The time limits of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PosterLimits {
    /// To connect, with looking the name up and the handshake.
    pub connect: Duration,
    /// In all, up to the answer's headers.
    pub total: Duration,
    /// To read the beginning of the answer's body after that, within `total`.
    pub body: Duration,
}

impl Default for PosterLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            total: Duration::from_secs(15),
            body: Duration::from_secs(2),
        }
    }
}

/// Posts messages.
pub struct Poster {
    client: Client,
    guard: Guard,
    vault: Arc<Vault>,
    limits: PosterLimits,
}

impl Poster {
    /// A sender that looks names up by `lookup`. An error is the TLS library's.
    pub fn new(
        guard: Guard,
        lookup: Arc<dyn Lookup>,
        vault: Arc<Vault>,
        limits: PosterLimits,
    ) -> Result<Self, reqwest::Error> {
        // An earlier caller has installed the same one.
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let resolver = GuardedResolver { guard: guard.clone(), lookup };
        let client = Client::builder()
            .dns_resolver(resolver)
            .redirect(Policy::none())
            .no_proxy()
            .referer(false)
            .connect_timeout(limits.connect)
            .timeout(limits.total)
            .pool_idle_timeout(Duration::from_secs(20))
            .pool_max_idle_per_host(4)
            .build()?;
        Ok(Self { client, guard, vault, limits })
    }

    /// The headers of a message, and the same as they are kept.
    fn headers(&self, outgoing: &Outgoing<'_>) -> Result<(HeaderMap, Kept), SecretError> {
        let id = outgoing.id.to_string();
        let seconds = outgoing.at.unix_micros().div_euclid(1_000_000);
        let mut signatures = Vec::with_capacity(outgoing.secrets.len());
        for sealed in outgoing.secrets {
            let secret = self.vault.unseal(outgoing.endpoint, sealed)?;
            signatures.push(secret.sign(&id, seconds, outgoing.payload.as_bytes()));
        }
        let hidden = vec![HIDDEN; signatures.len()].join(" ");
        let (signatures, seconds) = (signatures.join(" "), seconds.to_string());
        let (mut headers, mut kept) = (HeaderMap::new(), Vec::new());
        let mut add = |name: &'static str, value: &str, shown: &str| {
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(HeaderName::from_static(name), value);
            }
            kept.push((name.to_owned(), shown.to_owned()));
        };
        add("content-type", "application/json", "application/json");
        add("user-agent", AGENT, AGENT);
        for [id_name, time_name, signature_name] in NAMES {
            add(id_name, &id, &id);
            add(time_name, &seconds, &seconds);
            add(signature_name, &signatures, &hidden);
        }
        Ok((headers, kept))
    }

    async fn send(&self, outgoing: &Outgoing<'_>, headers: HeaderMap) -> Sent {
        // Addresses in a URL pass no resolver: they are checked here, each time.
        let url = match self.guard.check_url(outgoing.url) {
            Ok(url) => url,
            Err(refused) => return Sent::Forbidden(refused.to_string()),
        };
        let start = Instant::now();
        let end = start + self.limits.total;
        let request = self.client.post(url).headers(headers).body(outgoing.payload.to_owned());
        match timeout_at(end, request.send()).await {
            Err(_) => Sent::TimedOut,
            Ok(Err(error)) => failed(&error),
            Ok(Ok(response)) => {
                let status = response.status().as_u16();
                let asks = response.headers().get("webhook-delivery");
                let abort =
                    asks.is_some_and(|it| it.as_bytes().eq_ignore_ascii_case(ABORT.as_bytes()));
                let begun = u64::try_from(outgoing.at.unix_micros()).unwrap_or(0);
                let now = UNIX_EPOCH + Duration::from_micros(begun) + start.elapsed();
                let retry_after = retry_after(status, response.headers(), now);
                let body = beginning(response, end.min(Instant::now() + self.limits.body)).await;
                Sent::Answered { status, abort, retry_after, body }
            }
        }
    }
}

/// The delay that a receiver requests, in seconds or as a date; at most [`LONGEST_WAIT`].
fn retry_after(status: u16, headers: &HeaderMap, now: SystemTime) -> Option<Span> {
    if !matches!(status, 429 | 503) {
        return None;
    }
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let digits = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    let wait = if digits {
        text.parse().map_or(Duration::MAX, Duration::from_secs)
    } else {
        httpdate::parse_http_date(text).ok()?.duration_since(now).unwrap_or_default()
    };
    let micros = i64::try_from(wait.as_micros()).unwrap_or(i64::MAX);
    Some(Span::from_micros(micros).min(LONGEST_WAIT))
}

/// Headers as they are kept.
type Kept = Vec<(String, String)>;

/// Why there was no answer. Never with the URL, which may have a secret in it.
fn failed(error: &reqwest::Error) -> Sent {
    let mut source = error.source();
    let mut words = "the connection failed".to_owned();
    while let Some(cause) = source {
        if let Some(refused) = cause.downcast_ref::<Refused>() {
            return Sent::Forbidden(refused.to_string());
        }
        words = cause.to_string();
        source = cause.source();
    }
    if error.is_timeout() {
        return if error.is_connect() {
            Sent::Unreachable("connection timed out".to_owned())
        } else {
            Sent::TimedOut
        };
    }
    Sent::Unreachable(words.chars().take(200).collect())
}

/// The beginning of a body, as far as it arrives in time. Invalid text is replaced.
async fn beginning(mut response: Response, end: Instant) -> String {
    let mut bytes = Vec::new();
    while bytes.len() < MAX_RESPONSE {
        match timeout_at(end, response.chunk()).await {
            Ok(Ok(Some(chunk))) => {
                let room = MAX_RESPONSE - bytes.len();
                bytes.extend_from_slice(chunk.get(..room.min(chunk.len())).unwrap_or_default());
            }
            Ok(Ok(None) | Err(_)) | Err(_) => break,
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[async_trait]
impl WebhookSender for Poster {
    async fn post(&self, outgoing: &Outgoing<'_>) -> Result<Posted, SecretError> {
        let (headers, kept) = self.headers(outgoing)?;
        Ok(Posted { headers: kept, sent: self.send(outgoing, headers).await })
    }

    fn check_url(&self, url: &str) -> Result<(), String> {
        self.guard.check_url(url).map(drop).map_err(|refused| refused.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_dates_are_read_and_bounded() {
        let now = UNIX_EPOCH + Duration::from_secs(784_111_777);
        let read = |status, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_str(value).expect("a value"));
            retry_after(status, &headers, now)
        };
        for (value, wait) in [
            ("0", Some(Span::ZERO)),
            (" 120 ", Some(Span::seconds(120))),
            ("36001", Some(LONGEST_WAIT)),
            ("99999999999999999999999", Some(LONGEST_WAIT)),
            ("Sun, 06 Nov 1994 08:51:37 GMT", Some(Span::minutes(2))),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(Span::ZERO)),
            ("Fri, 31 Dec 9999 23:59:59 GMT", Some(LONGEST_WAIT)),
            ("", None),
            ("-5", None),
            ("1.5", None),
            ("soon", None),
        ] {
            for status in [429, 503] {
                assert_eq!(read(status, value), wait, "{status} {value:?}");
            }
            for status in [200, 302, 400, 500] {
                assert_eq!(read(status, value), None, "{status} {value:?}");
            }
        }
        assert_eq!(retry_after(503, &HeaderMap::new(), now), None);
    }
}
