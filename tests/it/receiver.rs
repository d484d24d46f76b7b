//! A receiver of webhooks that is as bad as receivers are.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use signalbox_webhooks::SigningSecret;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The reply of a receiver to a new message.
#[derive(Clone, Copy, Debug)]
enum Mood {
    Takes,
    Fails,
    Redirects,
    Resets,
    Hangs,
}

impl Mood {
    fn of(number: usize) -> Self {
        match number % 40 {
            7 => Self::Fails,
            17 => Self::Redirects,
            27 => Self::Resets,
            37 if number < 200 => Self::Hangs,
            _ => Self::Takes,
        }
    }
}

#[derive(Default)]
struct Seen {
    /// The body of each id that came.
    bodies: BTreeMap<String, String>,
    /// Ids that were answered with 2xx, and how often.
    taken: BTreeMap<String, u32>,
    /// The errors.
    complaints: Vec<String>,
    /// Requests as they came, for other verifiers.
    recorded: Vec<Value>,
    secrets: Vec<String>,
}

/// A receiver.
#[derive(Clone)]
pub(crate) struct Receiver {
    address: SocketAddr,
    moody: bool,
    seen: Arc<Mutex<Seen>>,
}

impl Receiver {
    /// One that takes everything, or one that fails, redirects, resets and hangs now and then.
    pub(crate) async fn new(moody: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let receiver = Self { address, moody, seen: Arc::default() };
        let serving = receiver.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let serving = serving.clone();
                tokio::spawn(async move { serving.serve(stream).await });
            }
        });
        receiver
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hooks", self.address)
    }

    /// From now on signatures are checked with these secrets: each must have made one.
    pub(crate) fn knows(&self, secrets: &[&str]) {
        let secrets = secrets.iter().map(|it| (*it).to_owned()).collect();
        self.seen.lock().expect("not poisoned").secrets = secrets;
    }

    /// Ids that were taken, and how often each.
    pub(crate) fn taken(&self) -> BTreeMap<String, u32> {
        self.seen.lock().expect("not poisoned").taken.clone()
    }

    /// Bodies that came, each under how many ids.
    pub(crate) fn bodies(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut bodies: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (id, body) in &self.seen.lock().expect("not poisoned").bodies {
            bodies.entry(body.clone()).or_default().insert(id.clone());
        }
        bodies
    }

    pub(crate) fn complaints(&self) -> Vec<String> {
        self.seen.lock().expect("not poisoned").complaints.clone()
    }

    /// Everything that came, one JSON object a line.
    pub(crate) fn recorded(&self) -> String {
        let seen = self.seen.lock().expect("not poisoned");
        seen.recorded.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    async fn serve(&self, mut stream: TcpStream) {
        while let Some((headers, body)) = read(&mut stream).await {
            let (mood, id) = self.look(&headers, &body);
            let answer = match mood {
                Mood::Takes => "HTTP/1.1 204 No Content\r\n\r\n",
                Mood::Fails => "HTTP/1.1 500 No\r\ncontent-length: 5\r\n\r\nsorry",
                Mood::Redirects => {
                    "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n"
                }
                Mood::Resets => return,
                Mood::Hangs => return std::future::pending().await,
            };
            if matches!(mood, Mood::Takes) {
                let mut seen = self.seen.lock().expect("not poisoned");
                *seen.taken.entry(id).or_default() += 1;
            }
            if stream.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    }

    /// Verifies a message, and returns the reply to it.
    fn look(&self, headers: &BTreeMap<String, String>, body: &str) -> (Mood, String) {
        let mut seen = self.seen.lock().expect("not poisoned");
        let header = |name: &str| headers.get(name).cloned().unwrap_or_default();
        let (id, time) = (header("webhook-id"), header("webhook-timestamp"));
        for name in ["id", "timestamp", "signature"] {
            if header(&format!("svix-{name}")) != header(&format!("webhook-{name}")) {
                seen.complaints.push(format!("{id}: the sets of headers differ in {name}"));
            }
        }
        let signatures = header("webhook-signature");
        for secret in seen.secrets.clone() {
            let secret = SigningSecret::parse(&secret).expect("a secret");
            let good = secret.sign(&id, time.parse().unwrap_or(0), body.as_bytes());
            if !signatures.split(' ').any(|it| it == good) {
                seen.complaints.push(format!("{id}: no signature by a known secret"));
            }
        }
        if let Some(secret) = seen.secrets.first().cloned() {
            let recorded = json!({ "secret": secret, "headers": headers, "body": body });
            seen.recorded.push(recorded);
        }
        let number = seen.bodies.len();
        let known = seen.bodies.insert(id.clone(), body.to_owned());
        if known.as_ref().is_some_and(|known| known != body) {
            seen.complaints.push(format!("{id}: another body under the same id"));
        }
        let mood = if self.moody && known.is_none() { Mood::of(number) } else { Mood::Takes };
        (mood, id)
    }
}

/// A request: its headers with lower-case names, and its body.
async fn read(stream: &mut TcpStream) -> Option<(BTreeMap<String, String>, String)> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|it| it == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let text = String::from_utf8_lossy(&bytes[..head]).into_owned();
    let headers: BTreeMap<String, String> = text
        .lines()
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let length: usize = headers.get("content-length")?.parse().ok()?;
    while bytes.len() < head + length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    let body = String::from_utf8(bytes[head..head + length].to_vec()).ok()?;
    Some((headers, body))
}
