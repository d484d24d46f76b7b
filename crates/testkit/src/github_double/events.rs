//! Webhook deliveries: signed as GitHub signs them, and lost, repeated or delayed as the test sets.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::state::State;

/// The receiver of deliveries.
#[derive(Clone, Debug)]
pub(super) struct Listener {
    pub(super) url: String,
    pub(super) secret: String,
    pub(super) carelessness: Carelessness,
}

/// How unreliable deliveries are: one in this many, 0 for none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Carelessness {
    /// One delivery in this many is lost.
    pub lose: u64,
    /// One delivery in this many is repeated.
    pub double: u64,
    /// One delivery in this many arrives after the next ten.
    pub delay: u64,
}

/// The header `X-Hub-Signature-256`.
pub(super) fn signature(secret: &str, body: &[u8]) -> String {
    let mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("any length");
    let bytes = mac.chain_update(body).finalize().into_bytes();
    format!("sha256={}", HEXLOWER.encode(&bytes))
}

/// Delivers events, in order, until the double is dropped.
pub(super) async fn deliver(state: Arc<Mutex<State>>, listener: Arc<Mutex<Option<Listener>>>) {
    let http = reqwest::Client::builder().timeout(Duration::from_secs(10)).build();
    let http = http.expect("a client");
    let mut number = 0_u64;
    let mut late: VecDeque<(u64, String, String)> = VecDeque::new();
    loop {
        let due = late.front().is_some_and(|(sent, ..)| number >= sent + 10);
        if let Some((sent, event, body)) = due.then(|| late.pop_front()).flatten() {
            let to = listener.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some(to) = to {
                send(&http, &to, sent, &event, &body).await;
            }
        }
        let next = state.lock().unwrap_or_else(PoisonError::into_inner).events.pop_front();
        let Some((event, payload)) = next else {
            tokio::time::sleep(Duration::from_millis(5)).await;
            continue;
        };
        let to = listener.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(to) = to else { continue };
        number += 1;
        let is_one_in = |of: u64| of > 0 && number.is_multiple_of(of);
        let body = payload.to_string();
        if is_one_in(to.carelessness.lose) {
            continue;
        }
        if is_one_in(to.carelessness.delay) {
            late.push_back((number, event, body));
            continue;
        }
        for _ in 0..=u32::from(is_one_in(to.carelessness.double)) {
            send(&http, &to, number, &event, &body).await;
        }
    }
}

async fn send(http: &reqwest::Client, to: &Listener, number: u64, event: &str, body: &str) {
    let sent = http
        .post(&to.url)
        .header("content-type", "application/json")
        .header("x-github-event", event)
        .header("x-github-delivery", format!("delivery-{number}"))
        .header("x-hub-signature-256", signature(&to.secret, body.as_bytes()))
        .body(body.to_owned())
        .send()
        .await;
    // As on GitHub, failed deliveries are not retried.
    drop(sent);
}
