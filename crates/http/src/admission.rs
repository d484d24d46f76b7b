//! Limits the requests that are handled at the same time. A request beyond the limit waits briefly,
//! and is then refused with 503 instead of slowing down the others. Reads, writes, uploads and
//! events of git hosts have separate shares, so that none of them starves another.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::error::PayloadError;
use actix_web::http::Method;
use actix_web::http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use actix_web::middleware::Next;
use actix_web::web::{Bytes, BytesMut, Data};
use actix_web::{Error, HttpMessage, ResponseError};
use futures_util::StreamExt;
use signalbox_domain::ports::Observed;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::api::Api;
use crate::problem::{Code, Problem};

/// Bodies up to this size are read before a request counts as work: a slow sender takes no place.
const SMALL: u64 = 64 * 1024;
/// How long a sender may take for a small body.
const SENDING: Duration = Duration::from_secs(10);
/// How long a caller waits for a place. With the time that so many requests take together it stays
/// below the second after which users retry.
const MOMENT: Duration = Duration::from_millis(250);
/// The same for requests of machines.
const WHILE: Duration = Duration::from_secs(5);

/// The share that a request belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// It changes nothing.
    Read,
    /// It changes something.
    Write,
    /// It sends test results, or another large body.
    Upload,
    /// An event of a git host.
    Hook,
}

impl Share {
    const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Upload, Self::Hook];

    /// Its name in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Upload => "upload",
            Self::Hook => "hook",
        }
    }

    /// The share of a request; `None`: it is always let in.
    fn of(request: &ServiceRequest) -> Option<Self> {
        let name = request.match_name().unwrap_or_default();
        match name {
            "healthz" | "readyz" => return None,
            "receiveBundle" | "createBundleUpload" | "uploadMetrics" | "uploadReports"
            | "importTestReports" => {
                return Some(Self::Upload);
            }
            _ => {}
        }
        let method = request.method();
        if method == Method::GET || method == Method::HEAD || method == Method::OPTIONS {
            return Some(Self::Read);
        }
        if !is_small(request) {
            return Some(Self::Upload);
        }
        let reads = ["get", "list", "preview"].iter().any(|verb| name.starts_with(verb));
        Some(match name {
            "hooks" => Self::Hook,
            _ if reads => Self::Read,
            _ => Self::Write,
        })
    }
}

/// Whether a body is known to be small.
fn is_small(request: &ServiceRequest) -> bool {
    let headers = request.headers();
    let length = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    match length.map(str::parse::<u64>) {
        Some(Ok(length)) => length <= SMALL,
        Some(Err(_)) => false,
        None => !headers.contains_key(TRANSFER_ENCODING),
    }
}

/// The places of a share, and the line in front of them.
#[derive(Debug)]
struct Gate {
    places: Arc<Semaphore>,
    most: usize,
    waiting: Arc<AtomicUsize>,
    wait: Duration,
}

/// A waiting request.
struct InLine(Arc<AtomicUsize>);

impl Drop for InLine {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Gate {
    fn new(most: usize, wait: Duration) -> Self {
        let places = Arc::new(Semaphore::new(most));
        Self { places, most, waiting: Arc::default(), wait }
    }

    /// A slot, immediately or after a short wait. As many requests may wait as there are slots.
    async fn enter(&self) -> Option<Admitted> {
        if let Ok(place) = self.places.clone().try_acquire_owned() {
            return Some(Admitted { _place: place });
        }
        let before = self.waiting.fetch_add(1, Ordering::SeqCst);
        let in_line = InLine(self.waiting.clone());
        if before >= self.most {
            return None;
        }
        let place = timeout(self.wait, self.places.clone().acquire_owned()).await;
        drop(in_line);
        Some(Admitted { _place: place.ok()?.ok()? })
    }

    fn in_flight(&self) -> u64 {
        let free = self.places.available_permits();
        u64::try_from(self.most.saturating_sub(free)).unwrap_or(u64::MAX)
    }
}

/// A place that a request has until this is dropped.
#[derive(Debug)]
pub struct Admitted {
    _place: OwnedSemaphorePermit,
}

/// Decides which requests are worked on.
#[derive(Debug)]
pub struct Admission {
    reads: Gate,
    writes: Gate,
    uploads: Gate,
    hooks: Gate,
}

impl Admission {
    /// So many reads at the same time, and half as many writes: they cost more, and those of one
    /// queue can only be decided one after the other.
    pub fn new(most: usize) -> Self {
        Self {
            reads: Gate::new(most, MOMENT),
            writes: Gate::new((most / 2).max(1), MOMENT),
            uploads: Gate::new(2 * most, WHILE),
            hooks: Gate::new(most, WHILE),
        }
    }

    /// As much as a machine with so many cores does without making callers wait for long.
    pub fn for_cores(cores: usize) -> Self {
        Self::new(cores.saturating_mul(4).clamp(16, 64))
    }

    const fn gate(&self, share: Share) -> &Gate {
        match share {
            Share::Read => &self.reads,
            Share::Write => &self.writes,
            Share::Upload => &self.uploads,
            Share::Hook => &self.hooks,
        }
    }

    /// A place in a share; `None` when there is none and the line is full, or the wait was too
    /// long.
    pub async fn enter(&self, share: Share) -> Option<Admitted> {
        self.gate(share).enter().await
    }

    /// Requests that are worked on, by share.
    pub fn in_flight(&self) -> Vec<(&'static str, u64)> {
        Share::ALL.iter().map(|share| (share.as_str(), self.gate(*share).in_flight())).collect()
    }
}

/// Reads a small body before the request counts as work.
async fn receive(request: &mut ServiceRequest) {
    let mut payload = request.take_payload();
    let mut body = BytesMut::new();
    let whole = timeout(SENDING, async {
        while let Some(chunk) = payload.next().await {
            let chunk: Bytes = chunk?;
            body.extend_from_slice(&chunk);
        }
        Ok::<_, PayloadError>(())
    });
    match whole.await {
        Ok(Ok(())) => request.set_payload(Payload::from(body.freeze())),
        Ok(Err(error)) => request.set_payload(cut_off(error)),
        Err(_) => {
            let late = std::io::Error::new(
                std::io::ErrorKind::TimedOut,
                format!("it did not come within {} s", SENDING.as_secs()),
            );
            request.set_payload(cut_off(late.into()));
        }
    }
}

/// A body that ends with this error.
fn cut_off(error: PayloadError) -> Payload {
    let rest = futures_util::stream::once(std::future::ready(Err(error)));
    Payload::Stream { payload: Box::pin(rest) }
}

/// Admits a request, or refuses it. Its slot is free again when the reply begins: what a
/// stream sends later is no work.
pub async fn admit<B: MessageBody>(
    mut request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, Error> {
    let api = request.app_data::<Data<Api>>().cloned();
    let (Some(api), Some(share)) = (api, Share::of(&request)) else {
        return next.call(request).await.map(ServiceResponse::map_into_left_body);
    };
    if share != Share::Upload && is_small(&request) {
        receive(&mut request).await;
    }
    let Some(admitted) = api.admission.enter(share).await else {
        api.observer.observe(&Observed::RequestShed { share: share.as_str() });
        let problem = Problem::new(Code::Unavailable, "the server is busy; try again later");
        let reply = problem.error_response();
        return Ok(request.into_response(reply).map_into_right_body());
    };
    let reply = next.call(request).await;
    drop(admitted);
    reply.map(ServiceResponse::map_into_left_body)
}

/// Handles a request to completion, also when its caller disconnects: no work stays half done, and
/// its slot is held until then. A panic is counted, and the reply is an error.
pub async fn to_the_end<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<B>, Error> {
    let api = request.app_data::<Data<Api>>().cloned();
    let work = actix_web::rt::spawn(next.call(request));
    work.await.unwrap_or_else(|error| {
        tracing::error!(%error, "the task of a request panicked or was cancelled");
        if let Some(api) = api {
            api.observer.observe(&Observed::Panicked { what: "request" });
        }
        let words = "the server failed; its log has the cause under the request id";
        Err(Problem::new(Code::Internal, words).into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn narrow() -> Admission {
        let hour = Duration::from_hours(1);
        let gate = || Gate::new(1, hour);
        Admission { reads: gate(), writes: gate(), uploads: gate(), hooks: gate() }
    }

    #[tokio::test]
    async fn one_request_runs_one_waits_and_the_next_is_refused() {
        let admission = Arc::new(narrow());
        let first = admission.enter(Share::Write).await.expect("a place");
        let second = {
            let admission = admission.clone();
            tokio::spawn(async move { admission.enter(Share::Write).await })
        };
        while admission.writes.waiting.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        assert!(admission.enter(Share::Write).await.is_none(), "the line is full");
        drop(first);
        assert!(second.await.expect("a task").is_some(), "who has waited is next");
    }

    #[tokio::test]
    async fn writes_do_not_block_reads() {
        let admission = narrow();
        let _write = admission.enter(Share::Write).await.expect("a place");
        let read = admission.enter(Share::Read).await;
        assert!(read.is_some());
        let counts = [("read", 1), ("write", 1), ("upload", 0), ("hook", 0)];
        assert_eq!(admission.in_flight(), counts);
    }

    #[tokio::test]
    async fn who_gives_up_leaves_the_line() {
        let admission = narrow();
        let first = admission.enter(Share::Write).await.expect("a place");
        {
            let mut waiting = std::pin::pin!(admission.enter(Share::Write));
            let polled = futures_util::poll!(&mut waiting);
            assert!(polled.is_pending());
        }
        assert_eq!(admission.writes.waiting.load(Ordering::SeqCst), 0);
        drop(first);
        assert!(admission.enter(Share::Write).await.is_some());
    }

    #[tokio::test]
    async fn no_request_waits_for_long() {
        let admission = Admission { writes: Gate::new(1, Duration::from_millis(1)), ..narrow() };
        let _first = admission.enter(Share::Write).await.expect("a place");
        assert!(admission.enter(Share::Write).await.is_none());
    }
}
