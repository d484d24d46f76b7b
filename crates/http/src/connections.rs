//! The connections of a server: at most a share of them for each address, and none that neither asks
//! nor takes its answer. The HTTP library has a time limit only for the first request of a connection.

use std::any::Any;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use actix_web::Error;
use actix_web::body::{BodySize, MessageBody};
use actix_web::dev::{Extensions, ServiceRequest, ServiceResponse};
use actix_web::middleware::Next;
use actix_web::rt::net::TcpStream;
use actix_web::web::Bytes;
use rustix::net::{Shutdown, shutdown, sockopt};
use signalbox_domain::ports::{Observed, Observer};
use signalbox_domain::shares::Shares;
use signalbox_services::network_of;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::client::TrustedProxies;

/// What a server allows its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Connections in all.
    pub most: usize,
    /// Connections of one address, or one network of 64 bits in IPv6.
    pub of_address: usize,
    /// How long a connection may be open without a request.
    pub idle: Duration,
    /// How long a client may take none of its answer.
    pub stalled: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            most: 16_384,
            of_address: 4_096,
            idle: Duration::from_mins(1),
            stalled: Duration::from_secs(30),
        }
    }
}

/// The open connections of a server.
pub struct Connections {
    limits: ConnectionLimits,
    proxies: TrustedProxies,
    observer: Arc<dyn Observer>,
    open: Mutex<Open>,
}

struct Open {
    shares: Shares<IpAddr>,
    number: u64,
    connections: BTreeMap<u64, Weak<Connection>>,
}

/// An open connection. The HTTP library drops it with the connection.
struct Connection {
    home: Arc<Connections>,
    number: u64,
    /// Whose share it is of; `None` for a proxy, which speaks for many.
    of: Option<IpAddr>,
    /// Closes it.
    socket: OwnedFd,
    use_: Mutex<Use>,
}

/// The requests that are being answered, and since when there is none.
struct Use {
    active: u32,
    idle_since: Instant,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Connections {
    /// No connections yet.
    pub fn new(
        limits: ConnectionLimits,
        proxies: TrustedProxies,
        observer: Arc<dyn Observer>,
    ) -> Arc<Self> {
        let most = u64::try_from(limits.most).unwrap_or(u64::MAX);
        let open = Open { shares: Shares::new(most), number: 0, connections: BTreeMap::new() };
        Arc::new(Self { limits, proxies, observer, open: Mutex::new(open) })
    }

    /// Accepts a new connection, or closes it when its address has too many.
    pub fn accept(self: &Arc<Self>, stream: &dyn Any, data: &mut Extensions) {
        let Some(stream) = stream.downcast_ref::<TcpStream>() else { return };
        let Ok(peer) = stream.peer_addr() else { return };
        // The kernel also applies it to a client that leaves its window closed.
        let stalled = u32::try_from(self.limits.stalled.as_millis()).unwrap_or(u32::MAX);
        if let Err(error) = sockopt::set_tcp_user_timeout(stream, stalled) {
            tracing::warn!(%error, "could not set a time limit for a connection");
        }
        let of = Some(peer.ip().to_canonical()).filter(|it| !self.proxies.includes(*it));
        let of = of.map(network_of);
        let socket = stream.as_fd().try_clone_to_owned();
        let connection = socket.ok().and_then(|socket| self.registered(of, socket));
        if let Some(connection) = connection {
            data.insert(connection);
        } else {
            self.observer.observe(&Observed::RequestShed { share: "connection" });
            // One that has ended already needs no closing.
            let _ended = shutdown(stream, Shutdown::Both);
        }
    }

    fn registered(
        self: &Arc<Self>,
        of: Option<IpAddr>,
        socket: OwnedFd,
    ) -> Option<Arc<Connection>> {
        let of_address = u64::try_from(self.limits.of_address).unwrap_or(u64::MAX);
        let holders: Vec<(IpAddr, u64)> = of.iter().map(|it| (*it, of_address)).collect();
        let mut open = locked(&self.open);
        open.shares.take(1, &holders).ok()?;
        open.number += 1;
        let number = open.number;
        let use_ = Mutex::new(Use { active: 0, idle_since: Instant::now() });
        let connection = Arc::new(Connection { home: self.clone(), number, of, socket, use_ });
        open.connections.insert(number, Arc::downgrade(&connection));
        Some(connection)
    }

    /// Closes connections without requests, for as long as the server runs.
    pub async fn close_idle(self: Arc<Self>) {
        let mut ticks = interval(self.limits.idle / 12);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let open: Vec<_> =
                locked(&self.open).connections.values().filter_map(Weak::upgrade).collect();
            for connection in open {
                if connection.is_idle(self.limits.idle) {
                    let _ended = shutdown(&connection.socket, Shutdown::Both);
                }
            }
        }
    }

    /// The number of open connections.
    pub fn open(&self) -> u64 {
        locked(&self.open).shares.used()
    }
}

impl Connection {
    fn is_idle(&self, longest: Duration) -> bool {
        let use_ = locked(&self.use_);
        use_.active == 0 && use_.idle_since.elapsed() >= longest
    }

    fn begin(self: &Arc<Self>) -> Active {
        locked(&self.use_).active += 1;
        Active(self.clone())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut open = locked(&self.home.open);
        open.shares.give_back(1, self.of);
        open.connections.remove(&self.number);
    }
}

/// A request that is being answered.
struct Active(Arc<Connection>);

impl Drop for Active {
    fn drop(&mut self) {
        let mut use_ = locked(&self.0.use_);
        use_.active = use_.active.saturating_sub(1);
        use_.idle_since = Instant::now();
    }
}

/// A body whose request is active until it has been sent.
struct Sending<B> {
    body: Pin<Box<B>>,
    _active: Option<Active>,
}

impl<B: MessageBody> MessageBody for Sending<B> {
    type Error = B::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        self.get_mut().body.as_mut().poll_next(context)
    }
}

/// Notes that a connection is in use while one of its requests is answered.
pub async fn in_use<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let active = request.request().conn_data::<Arc<Connection>>().map(Connection::begin);
    let response = next.call(request).await?;
    Ok(response.map_body(|_, body| Sending { body: Box::pin(body), _active: active }))
}
