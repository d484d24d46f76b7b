//! Events: the log, the stream, and the catalog.

pub(crate) mod list_events;
pub(crate) mod schema;
pub(crate) mod schemas;
pub(crate) mod stream_events;

use actix_web::web::ServiceConfig;

use super::super::{get, resource};

/// Adds the routes.
pub(crate) fn configure(config: &mut ServiceConfig) {
    config
        .service(get(resource(&list_events::__path_handle), list_events::handle))
        .service(get(resource(&stream_events::__path_handle), stream_events::handle))
        .service(get(resource(&schemas::__path_handle), schemas::handle))
        .service(get(resource(&schema::__path_handle), schema::handle));
}
