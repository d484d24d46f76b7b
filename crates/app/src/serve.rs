//! The server: listeners, background work, and an orderly end.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use actix_web::dev::ServerHandle;
use actix_web::middleware::{NormalizePath, TrailingSlash, from_fn};
use actix_web::web::Data;
use actix_web::{App as WebApp, HttpResponse, HttpServer, web};
use signalbox_http::with_request_id;
use signalbox_metrics::PrometheusObserver;
use tokio::task::JoinHandle;

use crate::loops::Loops;
use crate::wiring::App;

/// Seconds that requests under way have to end.
const SHUTDOWN_SECONDS: u64 = 10;
/// Bytes of a query string or header block are limited by the HTTP library; connections here.
const MAX_CONNECTIONS: usize = 10_000;

/// A running server.
pub(crate) struct Server {
    app: Arc<App>,
    loops: Loops,
    handles: Vec<ServerHandle>,
    tasks: Vec<JoinHandle<std::io::Result<()>>>,
    /// Where the API listens.
    pub(crate) address: SocketAddr,
}

fn bind(address: SocketAddr) -> Result<TcpListener, String> {
    TcpListener::bind(address).map_err(|error| format!("cannot listen on {address}: {error}"))
}

impl Server {
    /// Starts everything on a listener that is bound already.
    pub(crate) async fn start(app: Arc<App>, listener: TcpListener) -> Result<Self, String> {
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let metrics = app.config.server.metrics_listen.map(bind).transpose()?;
        app.hosts.sweep_leftovers();
        if app.database.is_embedded() {
            let taken = app.runner.take_over().await;
            taken.map_err(|error| crate::wiring::chain("leases", &error))?;
        }
        let api = app.api();
        let server = HttpServer::new(move || {
            WebApp::new()
                .wrap(from_fn(with_request_id))
                .wrap(NormalizePath::new(TrailingSlash::Trim))
                .configure(signalbox_http::configure(api.clone()))
        })
        .disable_signals()
        .max_connections(MAX_CONNECTIONS)
        .shutdown_timeout(SHUTDOWN_SECONDS)
        .workers(std::thread::available_parallelism().map_or(2, |count| count.get().min(8)))
        .listen(listener)
        .map_err(|error| error.to_string())?
        .run();
        let mut handles = vec![server.handle()];
        let mut tasks = vec![tokio::spawn(server)];
        if let Some(listener) = metrics {
            let observer = Data::from(app.metrics.clone());
            let server = HttpServer::new(move || {
                WebApp::new()
                    .app_data(observer.clone())
                    .route("/metrics", web::get().to(own_metrics))
            })
            .disable_signals()
            .workers(1)
            .listen(listener)
            .map_err(|error| error.to_string())?
            .run();
            handles.push(server.handle());
            tasks.push(tokio::spawn(server));
        }
        let loops = Loops::start(&app);
        Ok(Self { app, loops, handles, tasks, address })
    }

    /// Stops taking requests, ends what is under way, gives leases back.
    pub(crate) async fn stop(self) {
        self.app.stopping.store(true, Ordering::SeqCst);
        for handle in &self.handles {
            handle.stop(true).await;
        }
        self.loops.stop().await;
        for task in self.tasks {
            task.abort();
        }
    }
}

async fn own_metrics(observer: Data<PrometheusObserver>) -> HttpResponse {
    HttpResponse::Ok()
        .content_type("application/openmetrics-text; version=1.0.0; charset=utf-8")
        .body(observer.encode())
}

/// Runs a server until it is told to stop. A second signal ends it at once.
pub(crate) async fn serve(app: App) -> Result<(), String> {
    let listener = bind(app.config.server.listen)?;
    let public_url = app.config.public_url();
    let server = Server::start(Arc::new(app), listener).await?;
    let address = server.address;
    crate::terminal::say(&format!("listening on http://{address} (public address {public_url})"));
    wait_for_signal().await?;
    tracing::info!("stopping");
    let orderly = tokio::time::timeout(Duration::from_secs(28), server.stop());
    tokio::select! {
        done = orderly => if done.is_err() { tracing::warn!("not everything has ended in time") },
        _ = wait_for_signal() => tracing::warn!("stopped at once"),
    }
    Ok(())
}

async fn wait_for_signal() -> Result<(), String> {
    use tokio::signal::unix::{SignalKind, signal};
    let stream = |kind| signal(kind).map_err(|error| format!("signals: {error}"));
    let mut terminate = stream(SignalKind::terminate())?;
    let mut interrupt = stream(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}
