//! Bodies must keep coming: a slow client is refused instead of waited for.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use actix_web::dev::Payload;
use actix_web::error::PayloadError;
use actix_web::web::Bytes;
use futures_util::Stream;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::problem::{Code, Problem};

/// The time that the server waits for a body, besides the time for its bytes.
const GRACE: Duration = Duration::from_secs(10);
/// The least bytes a second after that.
const LEAST_RATE: u64 = 16 * 1024;
/// The longest that the server waits for a body in all.
const LONGEST: Duration = Duration::from_mins(30);

/// What has come of a body, and for how long the server has waited for it. The time in which the
/// server itself works does not count.
#[derive(Debug, Default)]
struct Progress {
    received: u64,
    waited: Duration,
}

impl Progress {
    /// How long the server still waits.
    fn left(&self) -> Duration {
        let allowed = GRACE + Duration::from_secs(self.received / LEAST_RATE);
        LONGEST.min(allowed).saturating_sub(self.waited)
    }

    fn add(&mut self, bytes: usize, waited: Duration) {
        self.received += u64::try_from(bytes).unwrap_or(u64::MAX);
        self.waited += waited;
    }
}

/// A body whose client must keep sending.
struct Paced {
    body: Payload,
    progress: Progress,
    /// Since when the server waits for the next piece, and until when it does.
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
}

fn too_slow() -> PayloadError {
    PayloadError::Io(io::Error::new(io::ErrorKind::TimedOut, "the body is arriving too slowly"))
}

impl Stream for Paced {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let polled = Pin::new(&mut this.body).poll_next(context);
        if let Poll::Ready(piece) = polled {
            let waited = this.waiting.take().map_or(Duration::ZERO, |(since, _)| since.elapsed());
            let bytes = piece.as_ref().map_or(0, |it| it.as_ref().map_or(0, Bytes::len));
            this.progress.add(bytes, waited);
            return Poll::Ready(piece);
        }
        let left = this.progress.left();
        let (_, until) = this.waiting.get_or_insert_with(|| {
            let now = Instant::now();
            (now, Box::pin(sleep_until(now + left)))
        });
        until.as_mut().poll(context).map(|()| Some(Err(too_slow())))
    }
}

/// The same body, which ends with an error when it comes too slowly.
pub(crate) fn paced(body: Payload) -> Payload {
    if matches!(body, Payload::None) {
        return body;
    }
    let paced = Paced { body, progress: Progress::default(), waiting: None };
    Payload::Stream { payload: Box::pin(paced) }
}

/// The reply to a body that did not come completely.
pub(crate) fn cut_off(error: &PayloadError) -> Problem {
    match error {
        PayloadError::Io(cause) if cause.kind() == io::ErrorKind::TimedOut => Problem::new(
            Code::BodyTooSlow,
            format!(
                "the body is arriving too slowly: expected at least {LEAST_RATE} bytes a second after \
                 {} s, and at most {} minutes",
                GRACE.as_secs(),
                LONGEST.as_secs() / 60
            ),
        ),
        error => Problem::new(Code::MalformedBody, format!("the body was cut off: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;
    use futures_util::stream::unfold;

    use super::*;

    /// After how many pieces of that size, one in every interval, a body is refused; at most
    /// 10,000.
    fn refused_after(size: usize, interval: Duration) -> Option<u32> {
        let mut progress = Progress::default();
        (0..10_000).find(|_| {
            let refused = progress.left() < interval;
            progress.add(size, interval);
            refused
        })
    }

    #[test]
    fn a_body_that_stops_or_trickles_is_refused_and_one_that_keeps_coming_is_not() {
        let second = Duration::from_secs(1);
        assert_eq!(refused_after(1, second * 11), Some(0));
        assert_eq!(refused_after(1, second * 9), Some(1));
        assert_eq!(refused_after(8 * 1_024, second), Some(19));
        assert_eq!(refused_after(16 * 1_024, second), Some(1_800), "after half an hour");
        assert_eq!(refused_after(1 << 20, second / 10), None);
    }

    #[tokio::test]
    async fn a_body_in_time_comes_completely_and_a_late_one_ends_with_an_error() {
        let pieces = unfold(3, |left| async move {
            (left > 0).then(|| (Ok(Bytes::from_static(b"x")), left - 1))
        });
        let whole: Vec<_> = paced(Payload::Stream { payload: Box::pin(pieces) }).collect().await;
        assert_eq!(whole.len(), 3);
        let silent = Box::pin(futures_util::stream::pending());
        let payload: Payload = Payload::Stream { payload: silent };
        let progress = Progress { received: 0, waited: GRACE };
        let mut late = Paced { body: payload, progress, waiting: None };
        let error = late.next().await.expect("an end").expect_err("an error");
        assert!(cut_off(&error).to_string().starts_with("body_too_slow: "), "{error}");
    }
}
