//! Limits the requests that are handled at the same time. A request beyond the limit waits briefly,
//! and is then refused with 503 instead of slowing down the others. Reads, writes, uploads and
//! events of git hosts have separate shares, so that none of them starves another. In front of each is
//! a fair line ([`crate::gate`]). An upload gets its place after its client is known, from the share of
//! that client: an organization, or the public id of a repository.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::http::header::{CONTENT_LENGTH, COOKIE, TRANSFER_ENCODING};
use actix_web::middleware::Next;
use actix_web::web::{Bytes, BytesMut, Data};
use actix_web::{Error, HttpMessage, HttpRequest, ResponseError};
use futures_util::StreamExt;
use signalbox_domain::ports::Observed;
use signalbox_domain::token::Caller;
use signalbox_services::MinuteCounts;

use crate::api::Api;
use crate::authenticated::{Credentials, Proven, has_token, token_of};
use crate::client::{TrustedProxies, client_address};
use crate::gate::{Admitted, Gate, Party};
use crate::holding::{Bodies, Holder, unproven};
use crate::pace::{cut_off, paced};
use crate::problem::{Code, Problem};

/// Bodies up to this size are read before a request counts as work: a slow sender takes no place.
const SMALL: u64 = 64 * 1024;
/// The most bytes of the body of a page's form, which are read before its sender is known.
const FORM: usize = 256 * 1024;
/// The first bytes of a body are in no share: there are not more such bodies than connections, and
/// a stranger cannot keep others from signing in.
const FREE: usize = 4 * 1024;
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

    /// The share of a request; `None`: it needs no place, or its handler takes one.
    fn of(request: &ServiceRequest) -> Option<Self> {
        let name = request.match_name().unwrap_or_default();
        match name {
            "healthz" | "readyz" | "hooks" | "uploadMetrics" => return None,
            "receiveBundle"
            | "createBundleUpload"
            | "uploadTestReports"
            | "importTestReports"
            | "getQuarantineConfig" => {
                return Some(Self::Upload);
            }
            _ => {}
        }
        let method = request.method();
        if method == Method::GET || method == Method::HEAD || method == Method::OPTIONS {
            return Some(Self::Read);
        }
        if !is_small(request) && !is_page(request) {
            return Some(Self::Upload);
        }
        Some(if only_reads(name) { Self::Read } else { Self::Write })
    }
}

/// Whether an operation of this name changes nothing.
pub(crate) fn only_reads(name: &str) -> bool {
    ["get", "list", "preview", "explain"].iter().any(|verb| name.starts_with(verb))
}

/// Whether a request is for a page, which reads forms only.
fn is_page(request: &ServiceRequest) -> bool {
    request.match_name().is_some_and(|name| name.starts_with("page"))
}

/// The length of a body, if it is given.
fn length(request: &ServiceRequest) -> Option<u64> {
    let length = request.headers().get(CONTENT_LENGTH)?;
    // One that is no number is longer than any that is allowed.
    Some(length.to_str().ok().and_then(|it| it.parse().ok()).unwrap_or(u64::MAX))
}

/// Whether a body is known to be small.
fn is_small(request: &ServiceRequest) -> bool {
    match length(request) {
        Some(length) => length <= SMALL,
        None => !request.headers().contains_key(TRANSFER_ENCODING),
    }
}

/// Whether there is a small body or a form to read.
fn has_body(request: &ServiceRequest) -> bool {
    let is_sent = match length(request) {
        Some(length) => length > 0,
        None => request.headers().contains_key(TRANSFER_ENCODING),
    };
    is_sent && (is_small(request) || is_page(request))
}

/// Decides which requests are worked on.
#[derive(Debug)]
pub struct Admission {
    reads: Gate,
    writes: Gate,
    uploads: Gate,
    hooks: Gate,
    /// The places for uploads of each holder that has any.
    shares: Mutex<BTreeMap<Holder, Arc<Gate>>>,
    pub(crate) bodies: Bodies,
    pub(crate) proxies: TrustedProxies,
    /// The refused requests of each client.
    pub(crate) refusals: MinuteCounts,
}

impl Admission {
    /// So many reads at the same time, and half as many writes: they cost more, and those of one
    /// queue can only be decided one after the other.
    pub fn new(most: usize) -> Self {
        Self {
            reads: Gate::new(most, MOMENT).for_bursts(),
            writes: Gate::new((most / 2).max(1), MOMENT).for_bursts(),
            uploads: Gate::new(2 * most, WHILE),
            hooks: Gate::new(most, WHILE),
            shares: Mutex::default(),
            bodies: Bodies::new(std::env::temp_dir()),
            proxies: TrustedProxies::default(),
            refusals: MinuteCounts::default(),
        }
    }

    /// With this folder for bodies that are too large for memory, and these proxies, which name
    /// their clients.
    #[must_use]
    pub fn with(self, folder: PathBuf, proxies: TrustedProxies) -> Self {
        Self { bodies: Bodies::new(folder), proxies, ..self }
    }

    /// As much as a machine with so many cores does without making callers wait for long.
    pub fn for_cores(cores: usize) -> Self {
        Self::new(cores.saturating_mul(4).clamp(16, 64))
    }

    /// The proxies that name their clients.
    pub const fn proxies(&self) -> &TrustedProxies {
        &self.proxies
    }

    const fn gate(&self, share: Share) -> &Gate {
        match share {
            Share::Read => &self.reads,
            Share::Write => &self.writes,
            Share::Upload => &self.uploads,
            Share::Hook => &self.hooks,
        }
    }

    /// A place in a share; `None` when there is none and the line is full of parties with as many
    /// requests, the place in the line was needed for another party, or the wait was too long.
    pub async fn enter(&self, share: Share, party: Party) -> Option<Admitted> {
        self.gate(share).enter(party).await
    }

    /// The places that a holder has for uploads.
    fn share_of(&self, holder: Holder) -> Arc<Gate> {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        shares.retain(|_, gate| Arc::strong_count(gate) > 1);
        let all = self.uploads.most;
        let most = all / usize::try_from(holder.divisor()).unwrap_or(1);
        shares.entry(holder).or_insert_with(|| Arc::new(Gate::new(most.max(2), WHILE))).clone()
    }

    /// Places for an upload: one of each holder's share, the smallest first, and one of all. In each
    /// line the parties are the next smaller shares, and in the smallest the sender is one.
    async fn enter_upload(&self, sender: Party, holders: &[Holder]) -> Option<Places> {
        let mut of_holders = Vec::new();
        let mut party = sender;
        for holder in holders {
            let gate = self.share_of(*holder);
            let place = gate.enter(party).await?;
            of_holders.push((place, gate));
            party = (*holder).into();
        }
        Some(Places { _of_all: self.uploads.enter(party).await?, _of_holders: of_holders })
    }

    /// Requests that are worked on, by share.
    pub fn in_flight(&self) -> Vec<(&'static str, u64)> {
        Share::ALL.iter().map(|share| (share.as_str(), self.gate(*share).in_flight())).collect()
    }
}

/// The places of an upload, until this is dropped.
#[derive(Debug)]
struct Places {
    _of_all: Admitted,
    /// A gate lasts as long as its places.
    _of_holders: Vec<(Admitted, Arc<Gate>)>,
}

/// Marks a request that gets its place after its client is known.
#[derive(Debug)]
struct AwaitsPlace;

/// Admits a request whose client is known now, if it is not admitted yet; 503 when the share of the
/// client is exhausted.
pub(crate) async fn admit_known(
    request: &HttpRequest,
    api: &Api,
    holders: &[Holder],
) -> Result<(), Problem> {
    if request.extensions_mut().remove::<AwaitsPlace>().is_none() {
        return Ok(());
    }
    // The signed address of an upload stands for the organization without a token.
    let sender = match (party_of(api, request), holders.first()) {
        (sender, Some(org @ Holder::Organization(_))) if !sender.is_known() => (*org).into(),
        (sender, _) => sender,
    };
    let Some(places) = api.admission.enter_upload(sender, holders).await else {
        return Err(refused(api, Share::Upload));
    };
    request.extensions_mut().insert(places);
    Ok(())
}

/// Counts a refusal; the reply to it.
pub(crate) fn refused(api: &Api, share: Share) -> Problem {
    api.observer.observe(&Observed::RequestShed { share: share.as_str() });
    Problem::new(Code::Unavailable, "the server is busy; try again later")
}

/// Whose share the body of a request is taken from, and the most bytes that it may have. The holder
/// of a token is known before anything of the body is read.
async fn holders_of(request: &ServiceRequest) -> Result<(Vec<Holder>, usize), Problem> {
    let request = request.request();
    let strangers = || unproven(client_address(request));
    match request.match_name() {
        Some(name) if name.starts_with("page") => {
            // Without a session there is only the form that begins one.
            let has_session = request.headers().contains_key(COOKIE);
            Ok((strangers(), if has_session { FORM } else { FREE }))
        }
        Some(_) if has_token(request) => {
            let caller = Arc::<Caller>::authenticate(request).await?;
            let holders = caller.holders(request);
            request.extensions_mut().insert(Proven(caller));
            Ok((holders, FORM))
        }
        _ => Ok((strangers(), FORM)),
    }
}

/// Who has sent a request: the holder of a token that was accepted, now or before, or else the address.
/// A token is not looked up here.
fn party_of(api: &Api, request: &HttpRequest) -> Party {
    if let Some(Proven(caller)) = request.extensions().get() {
        return Party::of(caller);
    }
    let caller = token_of(request).and_then(|token| api.authenticator.accepted_before(token));
    caller.map_or_else(|| Party::at(client_address(request)), |caller| Party::of(&caller))
}

/// Reads a small body, or a form, before the request counts as work.
async fn receive(api: &Api, request: &mut ServiceRequest) -> Result<(), Problem> {
    let (holders, most) = holders_of(request).await?;
    let mut held = api.admission.bodies.in_memory(holders);
    let too_large =
        || Problem::new(Code::TooLarge, format!("the body may have at most {most} bytes"));
    if length(request).is_some_and(|length| length > u64::try_from(most).unwrap_or(u64::MAX)) {
        return Err(too_large());
    }
    let mut payload = request.take_payload();
    let mut body = BytesMut::new();
    while let Some(chunk) = payload.next().await {
        let chunk: Bytes = chunk.map_err(|error| cut_off(&error))?;
        let free = FREE.saturating_sub(body.len());
        body.extend_from_slice(&chunk);
        if body.len() > most {
            return Err(too_large());
        }
        held.add(chunk.len().saturating_sub(free))?;
    }
    request.set_payload(Payload::from(body.freeze()));
    request.extensions_mut().insert(held);
    Ok(())
}

/// Admits a request, or refuses it. Its slot is free again when the reply begins: what a
/// stream sends later is no work.
pub async fn admit<B: MessageBody>(
    mut request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, Error> {
    let payload = paced(request.take_payload());
    request.set_payload(payload);
    let api = request.app_data::<Data<Api>>().cloned();
    let (Some(api), Some(share)) = (api, Share::of(&request)) else {
        return next.call(request).await.map(ServiceResponse::map_into_left_body);
    };
    if share == Share::Upload {
        request.extensions_mut().insert(AwaitsPlace);
        let reply = next.call(request).await?;
        reply.request().extensions_mut().remove::<Places>();
        return Ok(reply.map_into_left_body());
    }
    if has_body(&request)
        && let Err(problem) = receive(&api, &mut request).await
    {
        let reply = problem.error_response();
        return Ok(request.into_response(reply).map_into_right_body());
    }
    let party = party_of(&api, request.request());
    let Some(admitted) = api.admission.enter(share, party).await else {
        let reply = refused(&api, share).error_response();
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
        Err(Problem::internal().into())
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU8, Ordering};

    use signalbox_domain::ids::{OrgId, RepoId};
    use uuid::Uuid;

    use super::*;

    /// Each is at another address.
    fn a_stranger() -> Party {
        static LAST: AtomicU8 = AtomicU8::new(0);
        Party::at([203, 0, 113, LAST.fetch_add(1, Ordering::Relaxed)].into())
    }

    fn a_sender() -> Party {
        Holder::Unproven.into()
    }

    fn narrow() -> Admission {
        let hour = Duration::from_hours(1);
        let gate = || Gate::new(1, hour);
        let (reads, writes, uploads, hooks) = (gate(), gate(), gate(), gate());
        Admission { reads, writes, uploads, hooks, ..Admission::new(1) }
    }

    #[tokio::test]
    async fn one_request_runs_one_waits_and_the_next_is_refused() {
        let admission = Arc::new(narrow());
        let first = admission.enter(Share::Write, a_sender()).await.expect("a place");
        let second = {
            let admission = admission.clone();
            tokio::spawn(async move { admission.enter(Share::Write, a_sender()).await })
        };
        while admission.writes.waiting() == 0 {
            tokio::task::yield_now().await;
        }
        assert!(admission.enter(Share::Write, a_sender()).await.is_none(), "the line is full");
        drop(first);
        assert!(second.await.expect("a task").is_some(), "who has waited is next");
    }

    #[tokio::test]
    async fn writes_do_not_block_reads() {
        let admission = narrow();
        let _write = admission.enter(Share::Write, a_sender()).await.expect("a place");
        let read = admission.enter(Share::Read, a_sender()).await;
        assert!(read.is_some());
        let counts = [("read", 1), ("write", 1), ("upload", 0), ("hook", 0)];
        assert_eq!(admission.in_flight(), counts);
    }

    #[tokio::test]
    async fn a_public_id_leaves_places_to_other_repositories_and_to_tokens() {
        let shares = Admission::new(64);
        let admission = Admission { uploads: Gate::new(32, Duration::ZERO), ..shares };
        let public =
            |repo: u128| [Holder::PublicRepository(RepoId(Uuid::from_u128(repo))), Holder::Public];
        let mut held = Vec::new();
        for repo in 1..=9 {
            for _ in 0..9 {
                let gates = public(repo).map(|holder| admission.share_of(holder));
                if gates.iter().all(|gate| gate.free() > 0) {
                    held.extend(admission.enter_upload(a_sender(), &public(repo)).await);
                }
            }
        }
        assert_eq!(held.len(), 8, "a quarter of 32 for all public ids");
        let org = |org: u128| [Holder::Organization(OrgId(Uuid::from_u128(org)))];
        for _ in 0..16 {
            held.push(admission.enter_upload(a_sender(), &org(1)).await.expect("a place"));
        }
        assert_eq!(admission.share_of(org(1)[0]).free(), 0);
        assert!(admission.enter_upload(a_sender(), &org(2)).await.is_some());
        held.clear();
        assert!(admission.enter_upload(a_sender(), &public(1)).await.is_some());
        assert_eq!(admission.shares.lock().expect("not poisoned").len(), 2);
    }

    /// One repository with uploads from several addresses is one party among those with a public id.
    #[tokio::test]
    async fn uploads_with_public_ids_take_turns_by_repository() {
        let admission = Admission { uploads: Gate::new(8, Duration::ZERO), ..Admission::new(4) };
        let enter = |repo: u8| {
            let id = RepoId(Uuid::from_u128(repo.into()));
            let holders = [Holder::PublicRepository(id), Holder::Public];
            let (admission, sender) = (&admission, a_stranger());
            Box::pin(async move { admission.enter_upload(sender, &holders).await })
        };
        let _first = enter(1).await.expect("a place");
        let second = enter(2).await.expect("a place, the last one for public ids");
        let (mut early, mut late) = (enter(1), enter(3));
        assert!(futures_util::poll!(&mut early).is_pending());
        assert!(futures_util::poll!(&mut late).is_pending());
        drop(second);
        assert!(futures_util::poll!(&mut early).is_pending(), "its repository has a place");
        let late = late.await;
        assert!(late.is_some());
        drop(late);
        assert!(early.await.is_some());
    }

    #[tokio::test]
    async fn who_gives_up_leaves_the_line() {
        let admission = narrow();
        let first = admission.enter(Share::Write, a_sender()).await.expect("a place");
        {
            let mut waiting = std::pin::pin!(admission.enter(Share::Write, a_sender()));
            let polled = futures_util::poll!(&mut waiting);
            assert!(polled.is_pending());
        }
        assert_eq!(admission.writes.waiting(), 0);
        drop(first);
        assert!(admission.enter(Share::Write, a_sender()).await.is_some());
    }

    #[tokio::test]
    async fn no_request_waits_for_long() {
        let admission = Admission { writes: Gate::new(1, Duration::from_millis(1)), ..narrow() };
        let _first = admission.enter(Share::Write, a_sender()).await.expect("a place");
        assert!(admission.enter(Share::Write, a_sender()).await.is_none());
    }
}
