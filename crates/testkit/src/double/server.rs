//! The server of a double: it answers requests, injects faults, and logs both.

use std::net::TcpListener;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use actix_web::dev::ServerHandle;
use actix_web::http::StatusCode;
use actix_web::web::{Bytes, Data};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use serde_json::Value;
use signalbox_domain::time::Timestamp;

use super::faults::{Fault, Faults};

/// A logged request with the status of its answer.
#[derive(Clone, Debug)]
pub struct Logged {
    /// The method.
    pub method: String,
    /// The path, as received (encoded).
    pub path: String,
    /// The query, as received (encoded).
    pub query: String,
    /// The body; null without one.
    pub body: Value,
    /// The status of the answer.
    pub status: u16,
}

/// A request as the routes of a host see it.
pub(crate) struct Request {
    pub(crate) method: String,
    /// The path, as received (encoded).
    pub(crate) path: String,
    /// The query, as received (encoded).
    pub(crate) query: String,
    headers: Vec<(String, String)>,
    /// The body; null without one.
    pub(crate) json: Value,
    /// The body as received.
    pub(crate) body: Bytes,
    /// The host's time, in seconds since 1970.
    pub(crate) seconds: i64,
}

impl Request {
    /// A header by its lower-case name; empty if it is missing.
    pub(crate) fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map_or("", |(_, value)| value)
    }
}

/// An answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    /// JSON; `None` for an answer without a body.
    pub(crate) text: Option<String>,
}

/// An answer that is not JSON.
pub(crate) struct RawAnswer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// The routes of a host.
pub(crate) trait Routes: Send + Sync + 'static {
    /// Executes a request that does not belong to the API, or answers it with a fault. Such
    /// requests are not logged.
    fn answer_raw(&self, _request: &Request, _fault: Option<Fault>) -> Option<RawAnswer> {
        None
    }

    /// Executes a request.
    fn answer(&self, request: &Request) -> Answer;

    /// Answers a request with a fault, in the host's format; the request has no effect.
    fn refuse(&self, request: &Request, fault: Fault) -> Answer;
}

/// A free port, and the URL of the server that will listen on it.
pub(crate) struct Port {
    listener: TcpListener,
    pub(crate) url: String,
}

impl Port {
    pub(crate) fn free() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        Self { listener, url }
    }
}

#[derive(Default)]
struct Book {
    faults: Faults,
    log: Vec<Logged>,
}

struct Shared<R> {
    routes: Arc<R>,
    book: Arc<Mutex<Book>>,
}

/// A running server; dropping it stops it.
pub(crate) struct Server {
    book: Arc<Mutex<Book>>,
    handle: ServerHandle,
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.handle.stop(false));
    }
}

impl Server {
    /// Starts a server with these routes on a port. `beside` runs on the server's thread until the
    /// server stops.
    pub(crate) fn start<R: Routes, F: Future<Output = ()> + 'static>(
        port: Port,
        routes: Arc<R>,
        beside: impl FnOnce() -> F + Send + 'static,
    ) -> Self {
        let book = Arc::<Mutex<Book>>::default();
        let shared = Data::new(Shared { routes, book: book.clone() });
        let (send, receive) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            actix_web::rt::System::new().block_on(async move {
                let server = HttpServer::new(move || {
                    App::new().app_data(shared.clone()).default_service(web::to(serve::<R>))
                });
                let server = server.workers(2).disable_signals().listen(port.listener);
                let server = server.expect("the server listens").run();
                send.send(server.handle()).expect("the starter waits");
                actix_web::rt::spawn(beside());
                server.await.expect("the server stops without an error");
            });
        });
        let handle = receive.recv().expect("a handle");
        Self { book, handle }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        locked(&self.book)
    }

    /// Plans a fault for the next `times` requests with this method (any if empty) whose path
    /// contains `path_part`.
    pub(crate) fn plan(&self, method: &str, path_part: &str, times: u32, fault: Fault) {
        self.book().faults.plan(method, path_part, times, fault);
    }

    /// From now on, one request in `one_in` meets the next of these faults, in turn.
    pub(crate) fn trouble(&self, one_in: u64, faults: &[Fault]) {
        self.book().faults.trouble(one_in, faults);
    }

    /// All requests so far.
    pub(crate) fn log(&self) -> Vec<Logged> {
        self.book().log.clone()
    }
}

fn locked(book: &Mutex<Book>) -> MutexGuard<'_, Book> {
    book.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve<R: Routes>(
    shared: Data<Shared<R>>,
    request: HttpRequest,
    body: Bytes,
) -> HttpResponse {
    let now: Timestamp = time::OffsetDateTime::now_utc().into();
    let text = |value: &actix_web::http::header::HeaderValue| {
        value.to_str().unwrap_or_default().to_owned()
    };
    let headers = request.headers().iter();
    let request = Request {
        method: request.method().to_string(),
        path: request.path().to_owned(),
        query: request.query_string().to_owned(),
        headers: headers.map(|(name, value)| (name.as_str().to_owned(), text(value))).collect(),
        json: serde_json::from_slice(&body).unwrap_or_default(),
        seconds: now.unix_micros().div_euclid(1_000_000),
        body,
    };
    let fault = locked(&shared.book).faults.meet(&request.method, &request.path);
    if let Some(RawAnswer { status, headers, body }) = shared.routes.answer_raw(&request, fault) {
        let mut http = HttpResponse::build(StatusCode::from_u16(status).expect("a status"));
        for header in headers {
            http.insert_header(header);
        }
        return http.body(body);
    }
    let answer = match fault {
        Some(fault @ Fault::LostAnswer) => {
            shared.routes.answer(&request);
            shared.routes.refuse(&request, fault)
        }
        Some(fault) => shared.routes.refuse(&request, fault),
        None => shared.routes.answer(&request),
    };
    let Request { method, path, query, json: body, .. } = request;
    let status = answer.status;
    locked(&shared.book).log.push(Logged { method, path, query, body, status });
    let mut http = HttpResponse::build(StatusCode::from_u16(status).expect("a status"));
    for (name, value) in answer.headers {
        http.insert_header((name, value));
    }
    if fault == Some(Fault::Broken) {
        let broken =
            futures_util::stream::once(async { Err::<Bytes, _>(std::io::Error::other("planned")) });
        return http.streaming(broken);
    }
    match answer.text {
        Some(text) => http.content_type("application/json; charset=utf-8").body(text),
        None => http.finish(),
    }
}
