//! Misbehaving receivers: slow, endless, or without HTTP.

use std::sync::Arc;
use std::time::{Duration, Instant};

use signalbox_domain::webhook::{MAX_RESPONSE, Outcome, Sent};
use signalbox_webhooks::Guard;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::support::{Names, poster, send};

/// How much the system may hold between a receiver that writes and a sender that does not read.
const BUFFERED: usize = 16 * 1024 * 1024;

/// The outcome of a post to a receiver that does this after it has read the request, and what the
/// receiver returned.
async fn posted<F, R, T>(act: F) -> (Sent, Duration, JoinHandle<T>)
where
    F: FnOnce(TcpStream) -> R + Send + 'static,
    R: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url =
        format!("http://127.0.0.1:{}/hook", listener.local_addr().expect("an address").port());
    let receiver = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut request = Vec::new();
        while !request.ends_with(b"}") {
            assert!(stream.read_buf(&mut request).await.expect("a request") > 0);
        }
        act(stream).await
    });
    let guard = Guard::new(vec!["127.0.0.0/8".parse().expect("a network")], true);
    let poster = poster(guard, Arc::new(Names::new(Vec::new())));
    let begun = Instant::now();
    let sent = send(&poster, &url).await;
    (sent, begun.elapsed(), receiver)
}

/// Writes a head and then the same piece repeatedly until the peer stops reading; returns the bytes
/// written.
async fn without_end(mut stream: TcpStream, head: &str, piece: &[u8], pause: Duration) -> usize {
    stream.write_all(head.as_bytes()).await.expect("written");
    let mut written = head.len();
    while stream.write_all(piece).await.is_ok() {
        written += piece.len();
        tokio::time::sleep(pause).await;
    }
    written
}

#[tokio::test]
async fn of_a_body_without_end_the_beginning_is_kept_and_the_connection_is_closed() {
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: identity\r\nconnection: close\r\n\r\n";
    let piece = vec![b'x'; 64 * 1024];
    let act = async move |stream| without_end(stream, head, &piece, Duration::ZERO).await;
    let (sent, _, receiver) = posted(act).await;
    let Sent::Answered { status, body, .. } = sent else { panic!("{sent:?}") };
    assert_eq!((status, body.len()), (200, MAX_RESPONSE));
    let written = receiver.await.expect("the peer stops reading");
    assert!(written < BUFFERED, "{written} bytes were taken");
}

#[tokio::test]
async fn a_body_that_drips_is_cut_in_time_and_the_connection_is_closed() {
    let head = "HTTP/1.1 500 No\r\ncontent-length: 100000\r\n\r\n";
    let drip = Duration::from_millis(10);
    let act = async move |stream| without_end(stream, head, b"x", drip).await;
    let (sent, took, receiver) = posted(act).await;
    let Sent::Answered { status, body, .. } = sent else { panic!("{sent:?}") };
    assert!(status == 500 && !body.is_empty() && body.len() < 100, "{body:?}");
    assert!(took < Duration::from_secs(5), "{took:?}");
    receiver.await.expect("the peer stops reading");
}

#[tokio::test]
async fn headers_that_drip_are_no_answer() {
    let drip = Duration::from_millis(10);
    let act = async move |stream| without_end(stream, "HTTP/1.1 200 OK\r\n", b"x", drip).await;
    let (sent, took, receiver) = posted(act).await;
    assert_eq!(sent, Sent::TimedOut);
    assert!(took < Duration::from_secs(5), "{took:?}");
    receiver.await.expect("the peer stops reading");
}

#[tokio::test]
async fn headers_without_end_are_no_answer_and_are_not_kept() {
    let start = "HTTP/1.1 200 OK\r\n";
    let line = b"x-more: of this and of that\r\n".repeat(1_000);
    let act = async move |stream| without_end(stream, start, &line, Duration::ZERO).await;
    let (sent, _, receiver) = posted(act).await;
    assert_eq!(sent.outcome(), Outcome::Unreachable, "{sent:?}");
    let written = receiver.await.expect("the peer stops reading");
    assert!(written < BUFFERED, "{written} bytes were taken");
}

#[tokio::test]
async fn a_reply_that_is_not_http_is_a_failure() {
    for answer in [
        "",
        "\r\n",
        "nonsense\r\n\r\n",
        "SSH-2.0-OpenSSH_9.2\r\n",
        "HTTP/9.9 200 OK\r\n\r\n",
        "HTTP/1.1 OK\r\n\r\n",
        "HTTP/1.1 9999 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\n",
    ] {
        let (sent, _, receiver) = posted(async move |mut stream: TcpStream| {
            stream.write_all(answer.as_bytes()).await.expect("written");
        })
        .await;
        assert_eq!(sent.outcome(), Outcome::Unreachable, "{answer:?}: {sent:?}");
        receiver.await.expect("it has answered");
    }
}

#[tokio::test]
async fn a_body_that_is_cut_short_is_still_an_answer() {
    let (sent, _, _receiver) = posted(async move |mut stream: TcpStream| {
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nbegun";
        stream.write_all(answer).await.expect("written");
    })
    .await;
    let Sent::Answered { status, body, .. } = sent else { panic!("{sent:?}") };
    assert_eq!((status, body.as_str()), (200, "begun"));
}
