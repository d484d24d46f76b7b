//! A receiver with scripted replies, and a resolver with scripted addresses.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use signalbox_domain::ports::{Outgoing, Posted, WebhookSecrets, WebhookSender};
use signalbox_domain::time::Timestamp;
use signalbox_domain::webhook::{EndpointId, Sent};
use signalbox_webhooks::{Guard, Lookup, Poster, PosterLimits, Vault};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use uuid::Uuid;

/// Answers of a resolver, one after the other; then none.
pub(crate) struct Names {
    answers: Mutex<VecDeque<Vec<IpAddr>>>,
    asked: AtomicUsize,
}

impl Names {
    pub(crate) fn new(answers: Vec<Vec<IpAddr>>) -> Self {
        Self { answers: Mutex::new(answers.into()), asked: AtomicUsize::new(0) }
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Lookup for Names {
    async fn addresses(&self, _: &str) -> std::io::Result<Vec<IpAddr>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let next = self.answers.lock().expect("not poisoned").pop_front();
        next.ok_or_else(|| std::io::Error::other("no answer is left"))
    }
}

/// A server that gives every connection the same answer.
pub(crate) struct Receiver {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Receiver {
    /// Replies with these bytes and keeps listening; without any it never replies.
    pub(crate) async fn answering(answer: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let (connections, requests) =
            (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let (counted, kept, answer) = (connections.clone(), requests.clone(), answer.to_owned());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                let (kept, answer) = (kept.clone(), answer.clone());
                tokio::spawn(async move {
                    let mut bytes = vec![0; 64 * 1024];
                    let mut seen = 0;
                    while let Ok(count @ 1..) = stream.read(&mut bytes[seen..]).await {
                        seen += count;
                        let text = String::from_utf8_lossy(&bytes[..seen]).into_owned();
                        if text.ends_with('}') {
                            kept.lock().expect("not poisoned").push(text);
                            if answer.is_empty() {
                                std::future::pending::<()>().await;
                            }
                            stream.write_all(answer.as_bytes()).await.expect("written");
                            seen = 0;
                        }
                    }
                });
            }
        });
        Self { address, connections, requests }
    }

    pub(crate) fn url(&self, name: &str) -> String {
        format!("http://{name}:{}/hook", self.address.port())
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// The requests as they came.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("not poisoned").clone()
    }
}

pub(crate) const PAYLOAD: &str = r#"{"type":"pull_request.merged","title":"ä"}"#;

pub(crate) fn vault() -> Vault {
    Vault::with_key([7; 32])
}

pub(crate) fn poster(guard: Guard, names: Arc<Names>) -> Poster {
    let quick = Duration::from_millis(300);
    let limits = PosterLimits { connect: quick, total: quick, body: Duration::from_millis(100) };
    Poster::new(guard, names, Arc::new(vault()), limits).expect("a sender")
}

pub(crate) async fn post(poster: &Poster, url: &str) -> (String, Posted) {
    let endpoint = EndpointId(Uuid::from_u128(1));
    let secret = vault().create(endpoint).expect("a secret");
    let outgoing = Outgoing {
        endpoint,
        url,
        secrets: &[secret.sealed],
        id: Uuid::from_u128(2),
        at: Timestamp::from_unix_seconds(1_767_225_600),
        payload: PAYLOAD,
    };
    (secret.text, poster.post(&outgoing).await.expect("secrets can be read"))
}

pub(crate) async fn send(poster: &Poster, url: &str) -> Sent {
    post(poster, url).await.1.sent
}
