//! Requests whose length is not clear: a proxy and the server could disagree on where they end, and
//! the rest would count as another request.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::harness::{On, System};

/// Long enough for a reply on a slow machine, after which no other is expected.
const PATIENCE: Duration = Duration::from_secs(20);

/// Everything that the server sends back until it closes the connection.
async fn answered(system: &System, headers: &str, body: &str) -> String {
    let url = system.url();
    let address = url.trim_start_matches("http://");
    let mut connection = TcpStream::connect(address).await.expect("connected");
    let head = format!("POST /v1/listQueues HTTP/1.1\r\nhost: x\r\n{headers}\r\n\r\n");
    connection.write_all(format!("{head}{body}").as_bytes()).await.expect("sent");
    let mut reply = Vec::new();
    // A connection that is reset has been closed, too.
    let read = tokio::time::timeout(PATIENCE, connection.read_to_end(&mut reply)).await;
    let text = String::from_utf8_lossy(&reply).into_owned();
    assert!(read.is_ok(), "{headers:?} leaves the connection open: {text}");
    text
}

/// Each is refused, and the connection closed: the request behind it is never answered.
#[tokio::test(flavor = "multi_thread")]
async fn requests_of_unclear_length_are_refused_and_nothing_behind_them_is_answered() {
    let system = System::new(On::Sqlite, "exit 0\n", 1).await;
    let hidden = "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n";
    let chunked = format!("2\r\n{{}}\r\n0\r\n\r\n{hidden}");
    for (headers, body) in [
        ("content-length: 2\r\ncontent-length: 40", format!("{{}}{hidden}")),
        ("content-length: 2, 40", format!("{{}}{hidden}")),
        ("content-length: +2", format!("{{}}{hidden}")),
        ("content-length: 0x2", format!("{{}}{hidden}")),
        ("content-length: -1", format!("{{}}{hidden}")),
        ("content-length: 99999999999999999999", format!("{{}}{hidden}")),
        ("content-length: 2\r\ntransfer-encoding: chunked", chunked.clone()),
        ("transfer-encoding: chunked\r\ncontent-length: 2", chunked.clone()),
        ("transfer-encoding: chunked, identity", chunked.clone()),
        ("transfer-encoding: identity", chunked.clone()),
        ("transfer-encoding: xchunked", chunked.clone()),
        ("transfer-encoding: gzip, chunked", chunked.clone()),
        ("transfer-encoding: chunked\r\ntransfer-encoding: identity", chunked.clone()),
        ("transfer-encoding: chunked", format!("0x2\r\n{{}}\r\n0\r\n\r\n{hidden}")),
        ("transfer-encoding: chunked", format!("-2\r\n{{}}\r\n0\r\n\r\n{hidden}")),
        ("transfer-encoding: chunked", format!("2\r\n{{}}0\r\n\r\n{hidden}")),
        ("transfer-encoding: chunked", format!("2\n{{}}\n0\n\n{hidden}")),
        ("transfer-encoding: chunked", format!("fffffffffffffffff\r\n{{}}\r\n0\r\n\r\n{hidden}")),
        ("content-length : 2", format!("{{}}{hidden}")),
        ("x: y\r\n content-length: 2", format!("{{}}{hidden}")),
    ] {
        let reply = answered(&system, headers, &body).await;
        let statuses: Vec<_> = reply.lines().filter(|it| it.starts_with("HTTP/1.1 ")).collect();
        // Where only a chunk is damaged, there is no reply.
        let refused: &[&str] = if headers == "transfer-encoding: chunked" {
            &[]
        } else {
            &["HTTP/1.1 400 Bad Request"]
        };
        assert_eq!(statuses, refused, "{headers:?} {body:?}: {reply}");
    }
}
