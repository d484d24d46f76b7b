//! Webhooks: signed as the host signs them, and lost, doubled or late as the test says.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::state::State;

/// Where events go.
#[derive(Clone, Debug)]
pub(super) struct Listener {
    pub(super) url: String,
    pub(super) secret: String,
    /// One of so many is lost; 0 for none.
    pub(super) lose_one_in: u64,
    /// One of so many comes twice; 0 for none.
    pub(super) double_one_in: u64,
}

/// What `X-Hub-Signature-256` says.
pub(super) fn signature(secret: &str, body: &[u8]) -> String {
    let mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("any length");
    let bytes = mac.chain_update(body).finalize().into_bytes();
    bytes.iter().fold("sha256=".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

/// Delivers what has happened, in order, until the double is dropped.
pub(super) async fn deliver(state: Arc<Mutex<State>>, listener: Arc<Mutex<Option<Listener>>>) {
    let http = reqwest::Client::builder().timeout(Duration::from_secs(10)).build();
    let http = http.expect("a client");
    let mut number = 0_u64;
    loop {
        let next = state.lock().unwrap_or_else(PoisonError::into_inner).events.pop_front();
        let Some((event, payload)) = next else {
            tokio::time::sleep(Duration::from_millis(5)).await;
            continue;
        };
        let to = listener.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(to) = to else { continue };
        number += 1;
        let is_one_in = |of: u64| of > 0 && number.is_multiple_of(of);
        if is_one_in(to.lose_one_in) {
            continue;
        }
        let body = payload.to_string();
        for _ in 0..=u32::from(is_one_in(to.double_one_in)) {
            let sent = http
                .post(&to.url)
                .header("content-type", "application/json")
                .header("x-github-event", &event)
                .header("x-github-delivery", format!("delivery-{number}"))
                .header("x-hub-signature-256", signature(&to.secret, body.as_bytes()))
                .body(body.clone())
                .send()
                .await;
            // As with the host itself: who does not listen has missed it.
            drop(sent);
        }
    }
}
