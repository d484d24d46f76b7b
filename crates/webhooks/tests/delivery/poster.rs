//! Posted requests, and the interpretation of responses.

use std::sync::Arc;

use signalbox_domain::time::Span;
use signalbox_domain::webhook::{LONGEST_WAIT, MAX_RESPONSE, Outcome, Sent, Verdict};
use signalbox_webhooks::{Guard, SigningSecret};

use crate::support::{Names, PAYLOAD, Receiver, post, poster, send};

fn guard() -> Guard {
    Guard::new(vec!["127.0.0.0/8".parse().expect("a network")], true)
}

async fn answered(answer: &str) -> Sent {
    let receiver = Receiver::answering(answer).await;
    send(&poster(guard(), Arc::new(Names::new(Vec::new()))), &receiver.url("127.0.0.1")).await
}

#[tokio::test]
async fn a_message_is_signed_in_both_sets_of_headers() {
    let receiver = Receiver::answering("HTTP/1.1 204 No Content\r\n\r\n").await;
    let poster = poster(guard(), Arc::new(Names::new(Vec::new())));
    let (secret, outcome) = post(&poster, &receiver.url("127.0.0.1")).await;
    assert_eq!(outcome.sent.verdict(), Verdict::Delivered);
    let request = receiver.requests().remove(0);
    let (head, body) = request.split_once("\r\n\r\n").expect("a head and a body");
    assert!(head.starts_with("POST /hook HTTP/1.1\r\n"), "{head}");
    assert_eq!(body, PAYLOAD);
    let header = |name: &str| {
        let mut lines = head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(it, _)| it.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
    };
    let (id, time) = ("00000000-0000-0000-0000-000000000002", "1767225600");
    let secret = SigningSecret::parse(&secret).expect("a secret");
    let signature = secret.sign(id, 1_767_225_600, PAYLOAD.as_bytes());
    for set in ["webhook", "svix"] {
        assert_eq!(header(&format!("{set}-id")).as_deref(), Some(id));
        assert_eq!(header(&format!("{set}-timestamp")).as_deref(), Some(time));
        assert_eq!(header(&format!("{set}-signature")), Some(signature.clone()));
    }
    assert_eq!(header("content-type").as_deref(), Some("application/json"));
    assert!(header("user-agent").expect("an agent").starts_with("Signalbox-Webhooks/"));
    let kept = format!("{:?}", outcome.headers);
    assert!(kept.contains("webhook-id") && kept.contains(id), "{kept}");
    assert!(!kept.contains(&signature), "{kept}");
}

#[tokio::test]
async fn statuses_decide() {
    for (status, verdict) in [
        ("200 OK", Verdict::Delivered),
        ("202 Accepted", Verdict::Delivered),
        ("400 Bad Request", Verdict::Retry),
        ("410 Gone", Verdict::Gone),
        ("500 Internal Server Error", Verdict::Retry),
    ] {
        let sent = answered(&format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\nok")).await;
        assert_eq!(sent.verdict(), verdict, "{status} {sent:?}");
        let Sent::Answered { body, .. } = sent else { panic!("{sent:?}") };
        assert_eq!(body, "ok");
    }
    let abort = "HTTP/1.1 400 No\r\nwebhook-delivery: Abort-Message\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(answered(abort).await.verdict(), Verdict::Abort);
}

#[tokio::test]
async fn a_receiver_can_request_a_delay() {
    for (answer, wait) in [
        ("429 Slow\r\nretry-after: 90", Some(Span::seconds(90))),
        ("503 Busy\r\nRetry-After: 999999999", Some(LONGEST_WAIT)),
        ("500 No\r\nretry-after: 90", None),
        ("503 Busy", None),
    ] {
        let sent = answered(&format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\n\r\n")).await;
        assert_eq!(sent.verdict(), Verdict::Retry);
        let Sent::Answered { retry_after, .. } = sent else { panic!("{sent:?}") };
        assert_eq!(retry_after, wait, "{answer}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let inside = Receiver::answering("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    for status in ["301 Moved", "302 Found", "303 Other", "307 Temporary", "308 Permanent"] {
        let to = inside.url("127.0.0.1");
        let answer = format!("HTTP/1.1 {status}\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n");
        let sent = answered(&answer).await;
        assert_eq!(
            (sent.outcome(), sent.verdict()),
            (Outcome::Rejected, Verdict::Retry),
            "{sent:?}"
        );
    }
    assert_eq!(inside.connections(), 0);
}

#[tokio::test]
async fn a_receiver_that_hangs_or_breaks_off_is_a_failure() {
    assert_eq!(answered("").await, Sent::TimedOut);
    assert_eq!(answered("nonsense\r\n\r\n").await.outcome(), Outcome::Unreachable);
    let closed = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        listener.local_addr().expect("an address").port()
    };
    let poster = poster(guard(), Arc::new(Names::new(Vec::new())));
    let sent = send(&poster, &format!("http://127.0.0.1:{closed}/secret-path")).await;
    assert_eq!(sent.outcome(), Outcome::Unreachable);
    assert!(!format!("{sent:?}").contains("secret-path"), "{sent:?}");
}

#[tokio::test]
async fn of_an_answer_the_beginning_is_kept_and_a_body_that_never_ends_delays_nothing() {
    let long = format!("HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n{}", "x".repeat(100_000));
    let Sent::Answered { status, body, .. } = answered(&long).await else { panic!("no answer") };
    assert_eq!((status, body.len()), (200, MAX_RESPONSE));
    let slow = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nbegun";
    let Sent::Answered { status, body, .. } = answered(slow).await else { panic!("no answer") };
    assert_eq!((status, body.as_str()), (200, "begun"));
}
