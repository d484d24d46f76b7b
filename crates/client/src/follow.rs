//! Events as they happen.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::{Stream, stream};
use reqwest::Response;
use reqwest::header::CONTENT_TYPE;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::client::{accepted, unreachable};
use crate::{Client, ClientError, Event, EventsQuery, Reply};

/// Without a byte for so long, a connection is dead: the server sends one every 15 seconds.
const SILENCE: Duration = Duration::from_secs(45);
/// The first and the longest pause before a stream is opened again.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));
/// The most attempts to open it again; about five minutes.
const ATTEMPTS: u32 = 60;

/// Which events are followed.
#[derive(Clone, Debug, Default)]
pub struct FollowQuery {
    /// Start after this position; without one with new events.
    pub after: Option<String>,
    /// Only events with these names, separated by commas.
    pub kinds: Option<String>,
}

/// What is heard while events are followed.
#[derive(Debug)]
pub enum Heard {
    /// An event. Its JSON has the fields `position`, `type`, `timestamp` and `payload`.
    Event(Box<Reply<Event>>),
    /// The connection is lost; the stream opens it again, and misses nothing.
    Lost(ClientError),
}

impl Client {
    /// Follows the log of events. The stream survives restarts of the server: it connects again
    /// with the position of the last event, and ends with an error only if the server refuses it or
    /// stays away for about five minutes.
    pub fn follow_events(
        &self,
        query: FollowQuery,
    ) -> impl Stream<Item = Result<Heard, ClientError>> + use<> {
        let follower = Follower {
            client: self.clone(),
            query,
            connection: None,
            failures: 0,
            pause: Duration::ZERO,
            has_connected: false,
            has_ended: false,
        };
        stream::unfold(follower, async |mut follower| {
            if follower.has_ended {
                return None;
            }
            let heard = follower.next().await;
            follower.has_ended = heard.is_err();
            Some((heard, follower))
        })
    }
}

struct Follower {
    client: Client,
    query: FollowQuery,
    connection: Option<Connection>,
    /// Connections that failed in a row.
    failures: u32,
    /// The pause before the next connection.
    pause: Duration,
    has_connected: bool,
    has_ended: bool,
}

impl Follower {
    async fn next(&mut self) -> Result<Heard, ClientError> {
        loop {
            let heard = match &mut self.connection {
                Some(connection) => connection.next().await,
                None => match self.connect_after_pause().await {
                    Ok(connection) => {
                        (self.connection, self.has_connected) = (Some(connection), true);
                        continue;
                    }
                    Err(error) => Err(error),
                },
            };
            match heard {
                Ok(Some(Piece::Alive)) => self.failures = 0,
                Ok(Some(Piece::Event(event))) => {
                    self.failures = 0;
                    self.query.after = Some(event.value.position.clone());
                    return Ok(Heard::Event(event));
                }
                // It ends after 15 minutes, and when the server stops.
                Ok(None) => {
                    (self.connection, self.pause) = (None, PAUSES.0);
                }
                Err(error) => {
                    self.connection = None;
                    self.failures += 1;
                    let may_pass = error.is_transient() && self.has_connected;
                    if !may_pass || self.failures > ATTEMPTS {
                        return Err(error);
                    }
                    self.pause = PAUSES.0.saturating_mul(self.failures).min(PAUSES.1);
                    if self.failures == 1 {
                        return Ok(Heard::Lost(error));
                    }
                }
            }
        }
    }

    async fn connect_after_pause(&mut self) -> Result<Connection, ClientError> {
        tokio::time::sleep(std::mem::take(&mut self.pause)).await;
        self.connect().await
    }

    async fn connect(&mut self) -> Result<Connection, ClientError> {
        let after = if let Some(after) = self.query.after.clone() {
            after
        } else {
            // A position from the start on: a connection that is lost before the first event
            // misses nothing either.
            let query = EventsQuery { after: "0".into(), limit: 1, kinds: None };
            let newest = self.client.events(&query).await?.value.newest;
            self.query.after.insert(newest.unwrap_or_else(|| "0".into())).clone()
        };
        let url = self.client.url("events/stream");
        let kinds: Vec<_> = self.query.kinds.iter().map(|kinds| ("type", kinds)).collect();
        let request = self.client.http.get(&url).query(&kinds);
        let request = self.client.with_token(request.header("last-event-id", after));
        let reply = tokio::time::timeout(SILENCE, accepted(request, &url)).await;
        let reply = reply.unwrap_or_else(|_| Err(ClientError::Silent { url: url.clone() }))?;
        let kind = reply.headers().get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
        if !kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
            let problem = "it is not a stream of events".to_owned();
            return Err(ClientError::Unreadable { url, problem });
        }
        Ok(Connection { url, reply, lines: Lines::default(), ready: VecDeque::new() })
    }
}

struct Connection {
    url: String,
    reply: Response,
    lines: Lines,
    ready: VecDeque<Reply<Event>>,
}

/// What came over a connection.
enum Piece {
    Event(Box<Reply<Event>>),
    /// Bytes without an event: the connection works.
    Alive,
}

impl Connection {
    /// The next piece; nothing when the server has ended the stream.
    async fn next(&mut self) -> Result<Option<Piece>, ClientError> {
        if self.ready.is_empty() {
            let chunk = tokio::time::timeout(SILENCE, self.reply.chunk()).await;
            let silent = |_| ClientError::Silent { url: self.url.clone() };
            let chunk = chunk.map_err(silent)?.map_err(unreachable(&self.url))?;
            let Some(chunk) = chunk else { return Ok(None) };
            for message in self.lines.add(&chunk) {
                let unreadable = |error: serde_json::Error| ClientError::Unreadable {
                    url: self.url.clone(),
                    problem: error.to_string(),
                };
                self.ready.push_back(message.event().map_err(unreadable)?);
            }
        }
        Ok(Some(self.ready.pop_front().map_or(Piece::Alive, |it| Piece::Event(Box::new(it)))))
    }
}

/// A server-sent event.
#[derive(Debug, Default, PartialEq, Eq)]
struct Message {
    id: String,
    name: String,
    data: String,
}

impl Message {
    /// The event as the log has it.
    fn event(self) -> serde_json::Result<Reply<Event>> {
        let payload: Value = serde_json::from_str(&self.data)?;
        let timestamp = payload["timestamp"].clone();
        let json = json!({
            "position": self.id, "type": self.name, "timestamp": timestamp, "payload": payload,
        });
        Reply::deserialize(json)
    }
}

/// Bytes of server-sent events.
#[derive(Default)]
struct Lines {
    /// The beginning of a line.
    rest: Vec<u8>,
    message: Message,
}

impl Lines {
    /// Adds bytes; returns the events that are complete.
    fn add(&mut self, bytes: &[u8]) -> Vec<Message> {
        let mut complete = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.rest.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.rest);
                complete.extend(
                    self.line(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n'])),
                );
            }
        }
        complete
    }

    fn line(&mut self, line: &str) -> Option<Message> {
        if line.is_empty() {
            let message = std::mem::take(&mut self.message);
            return Some(message).filter(|message| !message.data.is_empty());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => value.clone_into(&mut self.message.id),
            "event" => value.clone_into(&mut self.message.name),
            "data" if self.message.data.is_empty() => value.clone_into(&mut self.message.data),
            "data" => self.message.data.extend(["\n", value]),
            // A comment keeps the connection open.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;

    use futures_util::StreamExt as _;

    use super::*;

    #[test]
    fn events_are_read_from_pieces_of_any_size() {
        let text =
            ": events\nretry: 1000\n\nid: 7\r\nevent: a.b\ndata: {\"x\":\"ü\"}\n\n:\n\nid: 8\n";
        for size in [1, 2, 7, 1000] {
            let mut lines = Lines::default();
            let found: Vec<Message> =
                text.as_bytes().chunks(size).flat_map(|piece| lines.add(piece)).collect();
            let expected =
                Message { id: "7".into(), name: "a.b".into(), data: "{\"x\":\"ü\"}".into() };
            assert_eq!(found, [expected], "pieces of {size}");
        }
    }

    /// A server that sends these streams one after the other. Returns its address, and the position
    /// of each request.
    fn server(streams: &'static [&'static str]) -> (String, std::thread::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("an address");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let serve = move || {
            let mut positions = Vec::new();
            for events in streams {
                let (mut connection, _) = listener.accept().expect("a connection");
                let lines = BufReader::new(connection.try_clone().expect("the same")).lines();
                for line in lines.map(|line| line.expect("a line")).take_while(|it| !it.is_empty())
                {
                    positions.extend(line.strip_prefix("last-event-id: ").map(str::to_owned));
                }
                let head =
                    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close";
                write!(connection, "{head}\r\nContent-Length: 1000\r\n\r\n{events}").expect("sent");
            }
            positions
        };
        (url, std::thread::spawn(serve))
    }

    #[tokio::test]
    async fn a_lost_connection_is_opened_again_after_the_last_event() {
        let (url, served) = server(&[
            "id: 7\nevent: a.b\ndata: {\"timestamp\":\"t\"}\n\nid: 8\nevent: cut",
            "id: 8\nevent: c.d\ndata: {\"timestamp\":\"t\"}\n\n",
        ]);
        let client = Client::new(&url, "t").expect("a client");
        let query = FollowQuery { after: Some("6".into()), kinds: None };
        let mut heard = std::pin::pin!(client.follow_events(query));
        let mut kinds = Vec::new();
        while kinds.len() < 3 {
            kinds.push(match heard.next().await.expect("no end").expect("no error") {
                Heard::Event(event) => event.value.kind,
                Heard::Lost(_) => "lost".to_owned(),
            });
        }
        assert_eq!(kinds, ["a.b", "lost", "c.d"]);
        assert_eq!(served.join().expect("positions"), ["6", "7"]);
    }

    #[tokio::test]
    async fn a_page_instead_of_a_stream_is_an_error() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("an address");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let served = std::thread::spawn(move || {
            let (mut connection, _) = listener.accept().expect("a connection");
            let lines = BufReader::new(connection.try_clone().expect("the same")).lines();
            lines.map(|line| line.expect("a line")).take_while(|it| !it.is_empty()).for_each(drop);
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close";
            write!(connection, "{head}\r\nContent-Length: 6\r\n\r\n<html>").expect("sent");
        });
        let client = Client::new(&url, "t").expect("a client");
        let query = FollowQuery { after: Some("6".into()), kinds: None };
        let heard: Vec<_> = client.follow_events(query).collect().await;
        served.join().expect("served");
        assert!(matches!(heard.as_slice(), [Err(ClientError::Unreadable { .. })]), "{heard:?}");
    }

    #[tokio::test]
    async fn a_server_that_cannot_be_reached_at_first_is_an_error() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("an address");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        drop(listener);
        let client = Client::new(&url, "t").expect("a client");
        let heard = client.follow_events(FollowQuery::default());
        let heard: Vec<_> = heard.collect().await;
        assert!(matches!(heard.as_slice(), [Err(ClientError::Unreachable { .. })]), "{heard:?}");
    }
}
