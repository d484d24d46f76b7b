//! The description of the API, made from the handlers.

use actix_web::HttpResponse;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, SecurityScheme};
use utoipa::{Modify, OpenApi};

use crate::routes::v1;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Signalbox",
        description = "A merge queue: pull requests are tested on top of what is ahead of them, and merged only if what lands is exactly what passed.\n\nStates and modes are written in upper case; a token made with `--enum-case lower` gets them in lower case. They are accepted in any case.",
        version = "1.0.0",
        license(name = "Apache-2.0 OR MIT")
    ),
    paths(
        v1::submit_pull_request::submit_pull_request,
        v1::cancel_pull_request::cancel_pull_request,
        v1::restart_tests_on_pull_request::restart_tests_on_pull_request,
        v1::get_submitted_pull_request::get_submitted_pull_request,
        v1::set_impacted_targets::set_impacted_targets,
        v1::get_merge_queue_testing_details::get_merge_queue_testing_details,
        v1::create_queue::create_queue,
        v1::delete_queue::delete_queue,
        v1::get_queue::get_queue,
        v1::update_queue::update_queue,
        v1::get_merge_queue_metrics::get_merge_queue_metrics,
        v1::check_output::get_check_output,
        v1::status::get_status,
    ),
    modifiers(&Keys)
)]
struct Document;

struct Keys;

impl Modify for Keys {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let key = SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new("x-api-token")));
        openapi.components.get_or_insert_default().add_security_scheme("ApiKeyAuth", key);
    }
}

/// The document as JSON.
pub fn document() -> String {
    let mut text = Document::openapi().to_pretty_json().unwrap_or_default();
    text.push('\n');
    text
}

pub(crate) async fn serve() -> HttpResponse {
    HttpResponse::Ok().content_type("application/json").body(document())
}
