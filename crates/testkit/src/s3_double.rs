//! A double of an S3 service, with the operations that the blob store uses: objects, multipart
//! uploads and lists. Requests must have a version 4 signature header, which is not verified.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use actix_web::dev::ServerHandle;
use actix_web::http::Method;
use actix_web::http::header::HttpDate;
use actix_web::web::{Bytes, Data, PayloadConfig, Query};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// The id of the only access key.
pub const ACCESS_KEY: &str = "double";
/// The minimum size of a part in bytes, except for the last one.
const LEAST_PART: usize = 5 * 1024 * 1024;

#[derive(Default)]
struct State {
    objects: BTreeMap<String, (SystemTime, Bytes)>,
    uploads: BTreeMap<String, BTreeMap<usize, Bytes>>,
    last_upload: usize,
    multipart: usize,
    unreadable: bool,
    reads: usize,
    refused: usize,
}

type Shared = Arc<Mutex<State>>;

/// A running service with one bucket, `uploads`.
pub struct S3Double {
    state: Shared,
    handle: ServerHandle,
    /// The URL of the service.
    pub url: String,
}

impl Drop for S3Double {
    fn drop(&mut self) {
        drop(self.handle.stop(false));
    }
}

impl S3Double {
    /// Starts a service.
    pub fn start() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let state = Shared::default();
        let shared = Data::new(state.clone());
        let (send, receive) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            actix_web::rt::System::new().block_on(async move {
                let server = HttpServer::new(move || {
                    App::new()
                        .app_data(shared.clone())
                        .app_data(PayloadConfig::new(64 * 1024 * 1024))
                        .default_service(web::to(answer))
                });
                let server = server.workers(2).disable_signals().shutdown_timeout(0);
                let server = server.listen(listener).expect("the server listens").run();
                send.send(server.handle()).expect("the starter waits");
                server.await.expect("the server stops without an error");
            });
        });
        let handle = receive.recv().expect("a handle");
        Self { state, handle, url }
    }

    /// The keys of all objects.
    pub fn keys(&self) -> Vec<String> {
        self.state().objects.keys().cloned().collect()
    }

    /// The number of completed and of open multipart uploads.
    pub fn multipart(&self) -> (usize, usize) {
        let state = self.state();
        (state.multipart, state.uploads.len())
    }

    /// Blocks or unblocks reads.
    pub fn hold_reads(&self, hold: bool) {
        self.state().unreadable = hold;
    }

    /// The number of reads.
    pub fn reads(&self) -> usize {
        self.state().reads
    }

    /// The number of requests without a valid signature header.
    pub fn refused(&self) -> usize {
        self.state().refused
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }
}

fn locked(state: &Shared) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn problem(status: u16, code: &str) -> HttpResponse {
    let status = actix_web::http::StatusCode::from_u16(status).expect("a status");
    let text = format!("<Error><Code>{code}</Code><Message>{code}</Message></Error>");
    HttpResponse::build(status).content_type("application/xml").body(text)
}

fn xml(text: String) -> HttpResponse {
    HttpResponse::Ok().content_type("application/xml").body(text)
}

fn is_signed(request: &HttpRequest) -> bool {
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    let signature = header("authorization").unwrap_or_default();
    signature.starts_with(&format!("AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/"))
        && signature.contains("/s3/aws4_request")
        && signature.contains("Signature=")
        && header("x-amz-date").is_some()
        && header("x-amz-content-sha256").is_some()
}

async fn answer(
    request: HttpRequest,
    shared: Data<Shared>,
    query: Query<BTreeMap<String, String>>,
    body: Bytes,
) -> HttpResponse {
    if !is_signed(&request) {
        locked(&shared).refused += 1;
        return problem(403, "SignatureDoesNotMatch");
    }
    let path = request.path().trim_start_matches('/');
    let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
    if bucket != "uploads" {
        return problem(404, "NoSuchBucket");
    }
    if request.method() == Method::GET && !key.is_empty() {
        locked(&shared).reads += 1;
        while locked(&shared).unreadable {
            actix_web::rt::time::sleep(Duration::from_millis(20)).await;
        }
    }
    handled(&mut locked(&shared), request.method(), key, &query, body)
}

fn handled(
    state: &mut State,
    method: &Method,
    key: &str,
    query: &BTreeMap<String, String>,
    body: Bytes,
) -> HttpResponse {
    let upload = query.get("uploadId");
    match (method.as_str(), upload) {
        ("POST", None) if query.contains_key("uploads") => {
            state.last_upload += 1;
            let id = state.last_upload.to_string();
            state.uploads.insert(id.clone(), BTreeMap::new());
            let id = format!("<UploadId>{id}</UploadId>");
            xml(format!("<InitiateMultipartUploadResult>{id}</InitiateMultipartUploadResult>"))
        }
        ("PUT", Some(id)) => {
            let number = query.get("partNumber").and_then(|it| it.parse().ok());
            match (state.uploads.get_mut(id), number) {
                (Some(parts), Some(number)) => {
                    parts.insert(number, body);
                    HttpResponse::Ok().insert_header(("etag", format!("\"{number}\""))).finish()
                }
                (None, _) | (_, None) => problem(404, "NoSuchUpload"),
            }
        }
        ("POST", Some(id)) => {
            let Some(parts) = state.uploads.remove(id) else {
                return problem(404, "NoSuchUpload");
            };
            let all_but_last = parts.len().saturating_sub(1);
            if parts.values().take(all_but_last).any(|part| part.len() < LEAST_PART) {
                return problem(400, "EntityTooSmall");
            }
            let whole: Vec<u8> = parts.into_values().flatten().collect();
            state.objects.insert(key.to_owned(), (SystemTime::now(), whole.into()));
            state.multipart += 1;
            let tag = "<ETag>\"whole\"</ETag>";
            xml(format!("<CompleteMultipartUploadResult>{tag}</CompleteMultipartUploadResult>"))
        }
        ("DELETE", Some(id)) => {
            state.uploads.remove(id);
            HttpResponse::NoContent().finish()
        }
        ("PUT", None) => {
            state.objects.insert(key.to_owned(), (SystemTime::now(), body));
            HttpResponse::Ok().insert_header(("etag", "\"whole\"")).finish()
        }
        ("DELETE", None) => {
            state.objects.remove(key);
            HttpResponse::NoContent().finish()
        }
        ("GET", None) if key.is_empty() => listed(state, query.get("prefix")),
        ("GET" | "HEAD", None) => match state.objects.get(key) {
            Some((at, content)) => HttpResponse::Ok()
                .insert_header(("etag", "\"whole\""))
                .insert_header(("last-modified", HttpDate::from(*at).to_string()))
                .body(content.clone()),
            None => problem(404, "NoSuchKey"),
        },
        (_, _) => problem(405, "MethodNotAllowed"),
    }
}

fn listed(state: &State, prefix: Option<&String>) -> HttpResponse {
    let prefix = prefix.map_or("", String::as_str);
    let mut text = "<ListBucketResult>".to_owned();
    for (key, (at, content)) in state.objects.iter().filter(|(key, _)| key.starts_with(prefix)) {
        let at = OffsetDateTime::from(*at).format(&Rfc3339).expect("a time");
        let size = content.len();
        let one = format!(
            "<Contents><Key>{key}</Key><LastModified>{at}</LastModified><ETag>\"whole\"</ETag>\
             <Size>{size}</Size></Contents>"
        );
        text.push_str(&one);
    }
    xml(text + "</ListBucketResult>")
}
