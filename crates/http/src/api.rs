//! What the routes work with, and where they are.

use std::sync::Arc;

use actix_web::web::{self, Data, ServiceConfig};
use async_trait::async_trait;
use signalbox_domain::ports::{CheckLog, Clock, Exposition, IdSource, Observer};
use signalbox_domain::service::{Authenticator, QueueService};

use crate::problem::{Code, Problem};
use crate::routes;

/// Whether the server may be sent requests.
#[async_trait]
pub trait Readiness: Send + Sync {
    /// What is missing, if anything: the database, a migration, or the will to go on.
    async fn missing(&self) -> Option<String>;
}

/// What the routes work with.
#[derive(Clone)]
pub struct Api {
    /// The use cases of queues.
    pub queues: Arc<QueueService>,
    /// Who calls.
    pub authenticator: Arc<Authenticator>,
    /// Writes metrics as text.
    pub exposition: Arc<dyn Exposition>,
    /// What checks printed.
    pub check_log: Arc<dyn CheckLog>,
    /// Sees requests.
    pub observer: Arc<dyn Observer>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Request ids.
    pub ids: Arc<dyn IdSource>,
    /// Whether the server is ready.
    pub readiness: Arc<dyn Readiness>,
}

/// Adds every route. Wrap the app in [`crate::with_request_id`] and in a middleware that merges
/// doubled slashes.
pub fn configure(api: Api) -> impl FnOnce(&mut ServiceConfig) {
    move |config| {
        config
            .app_data(Data::new(api))
            .route("/healthz", web::get().to(routes::health::healthz))
            .route("/readyz", web::get().to(routes::health::readyz))
            .configure(routes::configure)
            .default_service(web::to(|request: actix_web::HttpRequest| async move {
                let detail = format!("there is nothing at {}", request.path());
                Err::<actix_web::HttpResponse, _>(Problem::new(Code::UnknownPath, detail))
            }));
    }
}
