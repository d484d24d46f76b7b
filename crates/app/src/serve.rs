//! The server: listeners, background work, and a graceful shutdown.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use actix_web::dev::ServerHandle;
use actix_web::middleware::{NormalizePath, TrailingSlash, from_fn};
use actix_web::{App as WebApp, HttpServer};
use signalbox_admin::{lock, missing_database, open_database};
use signalbox_config::Config;
use signalbox_domain::queue::SharedPolicy;
use signalbox_http::{ConnectionLimits, Connections, admit, in_use, to_the_end, with_request_id};
use signalbox_terminal::Signals;
use tokio::task::JoinHandle;

use crate::error::AppError;
use crate::loops::Loops;
use crate::wiring::App;

/// Seconds that active requests have to finish.
const SHUTDOWN_SECONDS: u64 = 10;

/// A running server.
pub(crate) struct Server {
    app: Arc<App>,
    loops: Loops,
    handles: Vec<ServerHandle>,
    tasks: Vec<JoinHandle<std::io::Result<()>>>,
    /// Where the API listens.
    pub(crate) address: SocketAddr,
}

fn bind(address: SocketAddr) -> Result<TcpListener, AppError> {
    TcpListener::bind(address).map_err(|error| AppError::Listen { address, error })
}

impl Server {
    /// Starts everything on a listener that is bound already.
    pub(crate) async fn start(app: Arc<App>, listener: TcpListener) -> Result<Self, AppError> {
        let address = listener.local_addr()?;
        let metrics = app.config.server.metrics_listen.map(bind).transpose()?;
        app.hosts.sweep_leftovers();
        if app.database.is_embedded() {
            let taken = app.runner.take_over().await;
            taken.map_err(AppError::failed("leases"))?;
            let taken = app.uploads.hand_back(true).await;
            taken.map_err(AppError::failed("uploads"))?;
            let taken = app.jobs.hand_back(true).await;
            taken.map_err(AppError::failed("jobs"))?;
            let taken = app.webhooks.hand_back(true).await;
            taken.map_err(AppError::failed("webhooks"))?;
        }
        if app.lost_key.is_none() {
            let resealed = app.webhooks.reseal().await;
            if resealed.map_err(AppError::failed("webhooks"))? > 0 {
                tracing::info!("secrets of webhooks are sealed with a new key");
            }
        }
        let api = app.api();
        let pages = app.config.pages.enabled.then(|| crate::pages::pages(&app)).transpose()?;
        let limits = ConnectionLimits::default();
        let proxies = api.admission.proxies().clone();
        let connections = Connections::new(limits, proxies, api.observer.clone());
        let accepting = connections.clone();
        let server = HttpServer::new(move || {
            WebApp::new()
                .wrap(from_fn(admit))
                .wrap(from_fn(with_request_id))
                .wrap(NormalizePath::new(TrailingSlash::Trim))
                .wrap(from_fn(to_the_end))
                .wrap(from_fn(in_use))
                .configure(|config| {
                    // Before the API, which answers every address that it does not know.
                    if let Some(pages) = &pages {
                        signalbox_web::configure(pages.clone())(config);
                    }
                })
                .configure(signalbox_http::configure(api.clone()))
        })
        .disable_signals()
        .on_connect(move |stream, data| accepting.accept(stream, data))
        .max_connections(limits.most)
        .shutdown_timeout(SHUTDOWN_SECONDS)
        .workers(std::thread::available_parallelism().map_or(2, |count| count.get().min(8)))
        .listen(listener)?
        .run();
        let mut handles = vec![server.handle()];
        let idle = tokio::spawn(async move {
            connections.close_idle().await;
            Ok(())
        });
        let mut tasks = vec![tokio::spawn(server), idle];
        if let Some(listener) = metrics {
            let app = app.clone();
            let server = HttpServer::new(move || {
                WebApp::new().configure(crate::scrape::configure(app.clone()))
            })
            .disable_signals()
            .workers(1)
            .listen(listener)?
            .run();
            handles.push(server.handle());
            tasks.push(tokio::spawn(server));
        }
        let loops = Loops::start(&app);
        Ok(Self { app, loops, handles, tasks, address })
    }

    /// Stops accepting requests, finishes active ones, and releases leases.
    pub(crate) async fn stop(self) {
        self.app.stopping.store(true, Ordering::SeqCst);
        self.app.wake_ups.events.stop();
        // In parallel: no new work is leased while active requests finish.
        let requests = async {
            for handle in &self.handles {
                handle.stop(true).await;
            }
        };
        tokio::join!(self.loops.stop(), requests);
        for task in self.tasks {
            task.abort();
        }
    }
}

/// Runs a server until a signal stops it. A second signal ends it immediately.
pub(crate) async fn serve(
    mut config: Config,
    policy: SharedPolicy,
    migrate: bool,
) -> Result<(), AppError> {
    let listener = bind(config.server.listen)?;
    // With port 0 the system has chosen one, and links are to name it.
    config.server.listen = listener.local_addr()?;
    let public_url = config.public_url();
    config.make_data_dir()?;
    let _lock = lock(&config)?;
    let missing = missing_database(&config)?;
    let database = open_database(&config, migrate).await?;
    if let Some(file) = missing {
        tracing::info!(file = %file.display(), "created a new database");
    }
    let lost_key = crate::webhooks::lost_key(&config, &database).await?;
    if let Some(lost) = &lost_key {
        tracing::error!(error = %lost, "webhooks are off");
    }
    if let Some(warning) = config.unshared_uploads(database.is_embedded()) {
        tracing::warn!("{warning}");
    }
    for warning in signalbox_admin::exposures(&config, &database.stores()).await {
        tracing::warn!(warning, "the server is exposed");
    }
    let app = App::new(config, database, policy, lost_key).await?;
    // Before the server can be reached.
    let mut signals = Signals::new()?;
    let server = Server::start(Arc::new(app), listener).await?;
    let address = server.address;
    signalbox_terminal::say(&format!(
        "listening on http://{address} (public address {public_url})"
    ));
    signals.next().await;
    tracing::info!("stopping");
    let orderly = tokio::time::timeout(Duration::from_secs(28), server.stop());
    tokio::select! {
        done = orderly => if done.is_err() { tracing::warn!("shutdown timed out with work still active") },
        () = signals.next() => tracing::warn!("stopped immediately"),
    }
    Ok(())
}
