//! Repeats calls that may succeed later. The idempotency key makes that safe.

use std::time::Duration;

use reqwest::StatusCode;
use uuid::Uuid;

use crate::{Client, ClientError};

/// How often a call is made at most.
pub(crate) const ATTEMPTS: u32 = 4;
/// The first pause; each next one is twice as long.
const FIRST: Duration = Duration::from_millis(500);
/// The longest of these pauses.
const LONGEST: Duration = Duration::from_secs(10);
/// The longest that a call pauses altogether. A server that asks for a longer pause is not asked
/// again.
const BUDGET: Duration = Duration::from_mins(1);

impl Client {
    /// Makes a call until it succeeds, fails for good, or was made often enough. The key only spreads the
    /// pauses of several clients.
    pub(crate) async fn repeated(
        &self,
        key: Uuid,
        call: impl AsyncFn() -> Result<String, ClientError>,
    ) -> Result<String, ClientError> {
        let mut left = BUDGET;
        let mut attempt = 1;
        loop {
            let error = match call().await {
                Ok(text) => return Ok(text),
                Err(error) => error,
            };
            let usual = FIRST.saturating_mul(1 << (attempt - 1).min(8)).min(LONGEST);
            let part = 500 + u32::try_from(key.as_u128() % 500).unwrap_or_default();
            let pause = pause_before_another(&error, usual * part / 1_000);
            let pause = pause.filter(|_| attempt < self.attempts);
            let after = pause.and_then(|pause| Some((pause, left.checked_sub(pause)?)));
            let Some((pause, rest)) = after else { return Err(error) };
            tokio::time::sleep(pause).await;
            (left, attempt) = (rest, attempt + 1);
        }
    }
}

/// A new idempotency key.
#[expect(clippy::disallowed_methods, reason = "this program has no source of ids")]
pub(crate) fn new_key() -> Uuid {
    Uuid::new_v4()
}

/// The pause before the same call may succeed: the requested one, or the usual one. `None`: it does not
/// succeed soon. A server that cannot be connected to is reported immediately: its address may be
/// wrong.
fn pause_before_another(error: &ClientError, usual: Duration) -> Option<Duration> {
    match error {
        ClientError::Unreachable { error, .. } => {
            let is_cut_off = !error.is_connect() && !error.is_timeout() && !error.is_builder();
            is_cut_off.then_some(usual)
        }
        ClientError::Refused { status, code, retry_after, .. } => {
            let is_busy = matches!(
                *status,
                StatusCode::TOO_MANY_REQUESTS
                    | StatusCode::BAD_GATEWAY
                    | StatusCode::SERVICE_UNAVAILABLE
                    | StatusCode::GATEWAY_TIMEOUT
            ) || code.as_deref() == Some("request_in_progress");
            let requested = retry_after.map(|seconds| Duration::from_secs(seconds.into()));
            is_busy.then(|| requested.unwrap_or(usual))
        }
        ClientError::Server { .. }
        | ClientError::Token
        | ClientError::Setup(_)
        | ClientError::Silent { .. }
        | ClientError::Redirected { .. }
        | ClientError::Unreadable { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use serde_json::json;

    use super::*;

    /// A server that sends these replies, each on a connection of its own; nothing for an empty one.
    /// Returns its address, and the key of each request.
    fn server(replies: &'static [&'static str]) -> (String, std::thread::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("an address");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let serve = move || {
            let mut keys = Vec::new();
            for reply in replies {
                let (mut stream, _) = listener.accept().expect("a connection");
                let (mut request, mut piece) = (Vec::new(), [0; 4096]);
                while !request.ends_with(b"}") {
                    let read = stream.read(&mut piece).expect("a request");
                    request.extend_from_slice(&piece[..read]);
                }
                let request = String::from_utf8(request).expect("text");
                let key = request.lines().find_map(|line| line.strip_prefix("idempotency-key: "));
                keys.push(key.expect("a key").to_owned());
                stream.write_all(reply.as_bytes()).expect("written");
            }
            keys
        };
        (url, std::thread::spawn(serve))
    }

    const BUSY: &str = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 0\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    const LATER: &str = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 600\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    const MOVED: &str = "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    const REFUSED: &str =
        "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    const DONE: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}";

    #[tokio::test]
    async fn a_call_to_a_busy_server_and_one_without_an_answer_are_repeated_with_the_same_key() {
        let (url, served) = server(&[BUSY, "", DONE]);
        let client = Client::new(&url, "t").expect("a client");
        client.post("cancelPullRequest", &json!({"pr": 1})).await.expect("an answer");
        let keys = served.join().expect("keys");
        assert_eq!(keys.len(), 3);
        assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
    }

    #[tokio::test]
    async fn a_token_is_not_sent_to_the_server_that_a_redirect_names() {
        let (url, served) = server(&[MOVED]);
        let client = Client::new(&url, "t").expect("a client");
        let error = client.post("cancelPullRequest", &json!({"pr": 1})).await.expect_err("moved");
        let ClientError::Redirected { to, .. } = error else { panic!("{error}") };
        assert_eq!((to.as_str(), served.join().expect("keys").len()), ("http://127.0.0.1:1/x", 1));
    }

    #[tokio::test]
    async fn a_server_that_asks_for_a_long_pause_is_not_asked_earlier() {
        let (url, served) = server(&[LATER]);
        let client = Client::new(&url, "t").expect("a client");
        let error = client.post("cancelPullRequest", &json!({"pr": 1})).await.expect_err("busy");
        let ClientError::Refused { retry_after, .. } = error else { panic!("{error}") };
        assert_eq!((retry_after, served.join().expect("keys").len()), (Some(600), 1));
    }

    #[tokio::test]
    async fn a_refusal_is_final_and_so_is_the_last_attempt() {
        let (url, served) = server(&[REFUSED, BUSY, BUSY]);
        let client = Client::new(&url, "t").expect("a client");
        let call =
            async |client: &Client| client.post("cancelPullRequest", &json!({"pr": 1})).await;
        for (client, status) in [
            (client.clone(), StatusCode::NOT_FOUND),
            (client.with_attempts(2), StatusCode::SERVICE_UNAVAILABLE),
        ] {
            let error = call(&client).await.expect_err("no answer");
            assert!(matches!(error, ClientError::Refused { status: it, .. } if it == status));
        }
        let keys = served.join().expect("keys");
        assert!(keys[0] != keys[1] && keys[1] == keys[2], "{keys:?}");
    }
}
