//! Live updates of open pages: one event stream per tab. An event says only that something changed;
//! the page then reloads its content and keeps what is the same.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use actix_web::web::{Bytes, Data};
use actix_web::{HttpRequest, HttpResponse};
use futures_util::stream::unfold;
use signalbox_domain::ids::{OrgId, QueueId, RepoId, RunId, TokenId};
use signalbox_domain::shares::Shares;
use signalbox_domain::token::Caller;
use signalbox_services::{PageReads, Topic};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};
use uuid::Uuid;

use crate::Pages;
use crate::failure::Failure;
use crate::reply::Status;
use crate::visitor::{Asked, Visitor, visitor};

/// The interval at which the database is polled for changes. One query serves all streams.
const POLL: Duration = Duration::from_secs(1);
/// The interval of heartbeats on a stream.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// The interval at which the session of a stream is checked.
const RECHECK: Duration = Duration::from_secs(1);
/// The most streams of one server.
const MAX_STREAMS: u64 = 2_000;
/// The most streams of one viewer, who is the holder of a token: open tabs.
const STREAMS_OF_VIEWER: u64 = 50;
/// The most streams of the viewers of one organization.
const STREAMS_OF_ORGANIZATION: u64 = 1_500;
/// The most topics of one stream.
const MAX_TOPICS: usize = 4;

type Key = (OrgId, Topic);
/// The version of a topic; `None` until it is first read.
type Version = Option<u64>;

/// Whose share a stream is taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Holder {
    Viewer(TokenId),
    Organization(OrgId),
}

/// The topics that streams listen to.
#[derive(Clone)]
pub struct Live {
    topics: Arc<Mutex<BTreeMap<Key, Weak<watch::Sender<Version>>>>>,
    streams: Arc<Mutex<Shares<Holder>>>,
}

impl Default for Live {
    fn default() -> Self {
        let streams = Arc::new(Mutex::new(Shares::new(MAX_STREAMS)));
        Self { topics: Arc::default(), streams }
    }
}

impl Live {
    /// Subscribes to the versions of a topic. The first listener starts the polling; it ends with
    /// the last one.
    fn listen(&self, reads: &Arc<PageReads>, key: Key) -> watch::Receiver<Version> {
        let mut topics = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        topics.retain(|_, sender| sender.strong_count() > 0);
        if let Some(sender) = topics.get(&key).and_then(Weak::upgrade) {
            return sender.subscribe();
        }
        let (sender, receiver) = watch::channel(None);
        let sender = Arc::new(sender);
        topics.insert(key, Arc::downgrade(&sender));
        let reads = reads.clone();
        tokio::spawn(async move {
            while sender.receiver_count() > 0 {
                match reads.version(key.0, key.1).await {
                    Ok(version) => {
                        let version = Some(version);
                        sender
                            .send_if_modified(|known| std::mem::replace(known, version) != version);
                    }
                    Err(error) => tracing::warn!(%error, "could not read changes"),
                }
                sleep(POLL).await;
            }
        });
        receiver
    }
}

/// One of the streams that are open, counted until this is dropped.
struct OpenStream {
    streams: Arc<Mutex<Shares<Holder>>>,
    holders: [(Holder, u64); 2],
}

impl OpenStream {
    fn take(streams: &Arc<Mutex<Shares<Holder>>>, caller: &Caller) -> Option<Self> {
        let holders = [
            (Holder::Viewer(caller.token), STREAMS_OF_VIEWER),
            (Holder::Organization(caller.org), STREAMS_OF_ORGANIZATION),
        ];
        let mut open = streams.lock().unwrap_or_else(PoisonError::into_inner);
        open.take(1, &holders).ok()?;
        Some(Self { streams: streams.clone(), holders })
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut open = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        open.give_back(1, self.holders.map(|(holder, _)| holder));
    }
}

/// Reads a topic as pages write it: `org`, `queue:ID`, `tests:ID` or `output:QUEUE:RUN`.
fn topic(text: &str) -> Option<Topic> {
    let id = |text: &str| Uuid::try_parse(text).ok();
    match text.split_once(':') {
        None => (text == "org").then_some(Topic::Org),
        Some(("queue", it)) => id(it).map(|it| Topic::Queue(QueueId(it))),
        Some(("tests", it)) => id(it).map(|it| Topic::Tests(RepoId(it))),
        Some(("output", it)) => {
            let (queue, run) = it.split_once(':')?;
            Some(Topic::Output(QueueId(id(queue)?), RunId(id(run)?)))
        }
        Some(_) => None,
    }
}

struct Stream {
    pages: Data<Pages>,
    visitor: Visitor,
    topics: Vec<watch::Receiver<Version>>,
    /// The version of each topic that the page shows, if it has sent one.
    shown: Vec<Version>,
    _place: OpenStream,
    number: u64,
    beat: Instant,
    greeted: bool,
}

impl Stream {
    /// Whether the session, and the token behind it, are still valid.
    async fn is_welcome(&self) -> bool {
        let Some(session) = &self.visitor.session else { return false };
        matches!(self.pages.sessions.resume(session).await, Ok(Some(_)))
    }

    /// Whether there is a version that the page does not show. Returns `true` once for each.
    fn has_news(&mut self) -> bool {
        let mut news = false;
        for (topic, shown) in self.topics.iter_mut().zip(&mut self.shown) {
            let known = *topic.borrow_and_update();
            if known.is_some() && known != *shown {
                *shown = known;
                news = true;
            }
        }
        news
    }

    /// The event that something has changed.
    fn changed_event(&mut self) -> Bytes {
        self.number += 1;
        self.beat = Instant::now() + HEARTBEAT;
        Bytes::from(format!("event: changed\nid: {0}\ndata: {0}\n\n", self.number))
    }

    /// The next bytes to send; `None` ends the stream.
    async fn next(&mut self) -> Option<Bytes> {
        if !self.greeted {
            self.greeted = true;
            return Some(Bytes::from_static(b"retry: 2000\n: hello\n\n"));
        }
        // Changes between the page and its stream are sent immediately.
        if self.has_news() {
            return Some(self.changed_event());
        }
        loop {
            let recheck = Instant::now() + RECHECK;
            let changed = {
                let changes = self.topics.iter_mut().map(|it| Box::pin(it.changed()));
                let any = futures_util::future::select_all(changes);
                tokio::select! {
                    (news, _, _) = any => Some(news),
                    () = sleep_until(recheck.min(self.beat)) => None,
                }
            };
            if !self.is_welcome().await {
                return None;
            }
            match changed {
                Some(Ok(())) => {
                    // Changes in quick succession are sent as one event.
                    sleep(Duration::from_millis(100)).await;
                    if self.has_news() {
                        return Some(self.changed_event());
                    }
                }
                Some(Err(_)) => return None,
                None if Instant::now() >= self.beat => {
                    self.beat = Instant::now() + HEARTBEAT;
                    return Some(Bytes::from_static(b"event: beat\ndata: 1\n\n"));
                }
                None => {}
            }
        }
    }
}

async fn open(pages: &Data<Pages>, request: &HttpRequest) -> Result<Stream, Failure> {
    let visitor = visitor(pages, request).await?;
    let place = OpenStream::take(&pages.live.streams, &visitor.caller);
    let place = place.ok_or_else(|| Failure::Unavailable("too many pages are open".to_owned()))?;
    let asked = Asked::query(request);
    let mut topics = Vec::new();
    let mut shown = Vec::new();
    let mut since = asked.text("since").split(',');
    for text in asked.text("topics").split(',').take(MAX_TOPICS) {
        let topic = topic(text).ok_or(Failure::Missing)?;
        if !pages.reads.may_watch(&visitor.caller, topic).await? {
            return Err(Failure::Missing);
        }
        topics.push(pages.live.listen(&pages.reads, (visitor.caller.org, topic)));
        shown.push(since.next().and_then(|it| it.parse().ok()));
    }
    let beat = Instant::now() + HEARTBEAT;
    Ok(Stream {
        pages: pages.clone(),
        visitor,
        topics,
        shown,
        _place: place,
        number: 0,
        beat,
        greeted: false,
    })
}

/// `GET /ui/events?topics=…&since=…`: the topics, and the version of each that the page shows.
pub(crate) async fn handle(pages: Data<Pages>, request: HttpRequest) -> HttpResponse {
    match open(&pages, &request).await {
        Ok(stream) => Status::Shown
            .reply()
            .content_type("text/event-stream")
            // A proxy must not collect events.
            .insert_header(("x-accel-buffering", "no"))
            .streaming(unfold(stream, |mut stream| async move {
                let bytes = stream.next().await?;
                Some((Ok::<_, std::io::Error>(bytes), stream))
            })),
        Err(failure) => failure.status().reply().finish(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_parsed_and_other_texts_refused() {
        let id = Uuid::from_u128(7);
        assert_eq!(topic("org"), Some(Topic::Org));
        assert_eq!(topic(&format!("queue:{id}")), Some(Topic::Queue(QueueId(id))));
        assert_eq!(topic(&format!("tests:{id}")), Some(Topic::Tests(RepoId(id))));
        let output = Topic::Output(QueueId(id), RunId(id));
        assert_eq!(topic(&format!("output:{id}:{id}")), Some(output));
        assert_eq!(topic(&format!("output:{id}")), None);
        for wrong in ["", "queue", "queue:", "queue:x", "all:1", "org:1"] {
            assert_eq!(topic(wrong), None, "{wrong}");
        }
    }
}
