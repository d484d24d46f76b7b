//! A client with a few keep-alive connections. It does almost no work, so that what is measured
//! is the server; floor and product get the same one.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::failure::{During, Failure};

/// Connections, each of which waits for a reply before it sends the next request.
pub(crate) const CONNECTIONS: usize = 4;

/// How often a request is sent while the server is busy.
const ATTEMPTS: usize = 100;

/// A request as it is sent.
pub(crate) type Request = Arc<[u8]>;

/// A request with a JSON body.
pub(crate) fn post(path: &str, token: &str, body: &Value) -> Request {
    post_as("application/json", path, token, &body.to_string())
}

/// A request with a body of that media type.
pub(crate) fn post_as(media: &str, path: &str, token: &str, body: &str) -> Request {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nx-api-token: {token}\r\n\
         content-type: {media}\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
    .into()
}

/// A request without a body.
pub(crate) fn get(path: &str, token: &str) -> Request {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nx-api-token: {token}\r\n\r\n")
        .into_bytes()
        .into()
}

/// Sends one request over a connection of its own; the status of the reply, and how long both took.
pub(crate) async fn answer(
    address: SocketAddr,
    request: Request,
) -> Result<(u16, Duration), Failure> {
    let begun = Instant::now();
    let stream = TcpStream::connect(address).await.during("a connection")?;
    stream.set_nodelay(true).during("a connection")?;
    let mut connection = Connection { stream, buffer: Vec::new() };
    let (status, _, _) = connection.send(&request).await?;
    Ok((status, begun.elapsed()))
}

/// Open connections to one server.
pub(crate) struct Client(Vec<Connection>);

struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    /// Opens [`CONNECTIONS`] connections.
    pub(crate) async fn to(address: SocketAddr) -> Result<Self, Failure> {
        Self::with(CONNECTIONS, address).await
    }

    /// Opens a number of connections.
    pub(crate) async fn with(number: usize, address: SocketAddr) -> Result<Self, Failure> {
        let mut connections = Vec::new();
        for _ in 0..number {
            let stream = TcpStream::connect(address).await.during("a connection")?;
            stream.set_nodelay(true).during("a connection")?;
            connections.push(Connection { stream, buffer: Vec::with_capacity(1 << 20) });
        }
        Ok(Self(connections))
    }

    /// Sends one request and returns the reply's body.
    pub(crate) async fn one(&mut self, request: &Request) -> Result<Vec<u8>, Failure> {
        let Some(connection) = self.0.first_mut() else {
            return Err(Failure::new("a client", "has no connection"));
        };
        let (start, end) = connection.exchange(request).await?;
        Ok(connection.buffer.get(start..end).unwrap_or_default().to_vec())
    }

    /// Sends one request repeatedly over one connection. Returns the total time.
    pub(crate) async fn repeat(
        &mut self,
        request: &Request,
        times: usize,
    ) -> Result<Duration, Failure> {
        let begun = Instant::now();
        if let Some(connection) = self.0.first_mut() {
            for _ in 0..times {
                connection.exchange(request).await?;
            }
        }
        Ok(begun.elapsed())
    }

    /// Sends all requests over all connections, each of which takes the same share. Returns the time from the first request to the last reply.
    pub(crate) async fn all(&mut self, requests: &[Request]) -> Result<Duration, Failure> {
        let begun = Instant::now();
        let (mut tasks, step) = (Vec::new(), self.0.len().max(1));
        for (number, mut connection) in self.0.drain(..).enumerate() {
            let own: Vec<Request> = requests.iter().skip(number).step_by(step).cloned().collect();
            tasks.push(tokio::spawn(async move {
                for request in &own {
                    connection.exchange(request).await?;
                }
                Ok::<_, Failure>(connection)
            }));
        }
        for task in tasks {
            let connection = task.await.during("a client")??;
            self.0.push(connection);
        }
        Ok(begun.elapsed())
    }
}

impl Connection {
    /// Sends a request that must succeed and reads the reply into the buffer; returns where its
    /// body is. A request that a busy server refuses is repeated, which counts as its time.
    async fn exchange(&mut self, request: &[u8]) -> Result<(usize, usize), Failure> {
        for _ in 0..ATTEMPTS {
            let (status, body, end) = self.send(request).await?;
            match status {
                200..300 => return Ok((body, end)),
                503 => {}
                _ => break,
            }
        }
        let text = String::from_utf8_lossy(&self.buffer).into_owned();
        Err(Failure::new("a reply", text))
    }

    /// Sends a request and reads the reply into the buffer; returns its status and where its body
    /// is.
    async fn send(&mut self, request: &[u8]) -> Result<(u16, usize, usize), Failure> {
        self.stream.write_all(request).await.during("a request")?;
        self.buffer.clear();
        let body = loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                break end + 4;
            }
            self.read_more().await?;
        };
        let head =
            String::from_utf8_lossy(self.buffer.get(..body).unwrap_or_default()).into_owned();
        let end = body + content_length(&head)?;
        while self.buffer.len() < end {
            self.read_more().await?;
        }
        let status = head.split(' ').nth(1).and_then(|it| it.parse().ok());
        let status = status.ok_or_else(|| Failure::new("a reply", "has no status"))?;
        Ok((status, body, end))
    }

    async fn read_more(&mut self) -> Result<(), Failure> {
        match self.stream.read_buf(&mut self.buffer).await.during("a reply")? {
            0 => Err(Failure::new("a reply", "the server hung up")),
            _ => Ok(()),
        }
    }
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

fn content_length(head: &str) -> Result<usize, Failure> {
    let mut lengths = head.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    lengths.next_back().ok_or_else(|| Failure::new("a reply", "has no content-length"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_read_whatever_its_case() {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 12\r\ndate: x\r\n\r\n";
        assert_eq!(content_length(head).expect("a length"), 12);
        assert!(content_length("HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
