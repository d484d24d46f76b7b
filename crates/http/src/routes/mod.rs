//! The routes: address, method and handler. A reply to another method names the right one.

pub(crate) mod health;
pub(crate) mod hooks;
mod security_txt;
mod test_page;
pub(crate) mod v1;

use std::future::ready;
use std::sync::Arc;

use actix_web::dev::HttpServiceFactory;
use actix_web::middleware::from_fn;
use actix_web::web::{self, Data, ServiceConfig};
use actix_web::{FromRequest, Handler, HttpRequest, HttpResponse, Resource, Responder};
use utoipa::Path;

use crate::api::Api;
use crate::idempotency::keep_reply;
use crate::problem::{Code, Problem};

async fn use_post() -> Result<HttpResponse, Problem> {
    Err(Problem::wrong_method("POST"))
}

async fn use_put() -> Result<HttpResponse, Problem> {
    Err(Problem::wrong_method("PUT"))
}

async fn use_get() -> Result<HttpResponse, Problem> {
    Err(Problem::wrong_method("GET, HEAD"))
}

async fn nothing_here(request: HttpRequest) -> Result<HttpResponse, Problem> {
    Err(Problem::new(Code::UnknownPath, format!("no operation or page at {}", request.path())))
}

/// An operation at the address, and under the name, of its description.
fn resource<P: Path>(_: &P) -> Resource {
    web::resource(P::path()).name(&P::operation().operation_id.unwrap_or_default())
}

fn post<P, F, Args>(described: &P, handler: F) -> impl HttpServiceFactory + use<P, F, Args>
where
    P: Path,
    F: Handler<Args>,
    Args: FromRequest + 'static,
    F::Output: Responder + 'static,
{
    resource(described)
        .route(web::post().to(handler))
        .default_service(web::to(use_post))
        .wrap(from_fn(keep_reply))
}

fn get<F, Args>(resource: Resource, handler: F) -> Resource
where
    F: Handler<Args>,
    Args: FromRequest + 'static,
    F::Output: Responder + 'static,
{
    resource
        .route(web::get().to(handler.clone()))
        .route(web::head().to(handler))
        .default_service(web::to(use_get))
}

/// Adds every route; that of `security.txt` only with a contact.
pub(crate) fn configure(config: &mut ServiceConfig, security_contact: Option<Arc<str>>) {
    if let Some(contact) = security_contact {
        let handle = move |api: Data<Api>| ready(security_txt::reply(&api, &contact));
        config.service(get(web::resource(security_txt::PATH).name("securityTxt"), handle));
    }
    macro_rules! operations {
        (post: $($post:ident),+; get: $($get:ident),+;) => {
            $(config.service(post(&v1::$post::__path_handle, v1::$post::handle));)+
            $(config.service(get(resource(&v1::$get::__path_handle), v1::$get::handle));)+
        };
    }
    operations!(
        post: submit_pull_request, cancel_pull_request, restart_tests_on_pull_request,
            get_submitted_pull_request, get_submitted_pull_requests, list_pull_requests,
            list_merge_queue_testing_results, set_impacted_targets, get_merge_queue_testing_details,
            create_queue, delete_queue, get_queue, list_queues, update_queue, upload_reports, import_reports,
            list_uploads, report_check_result, explain_failure, get_quarantine_config,
            create_bundle_upload, upload_metrics;
        get: get_merge_queue_metrics, simulate, check_output, get_upload, status, openapi,
            list_audit;
    );
    config.service(
        resource(&v1::receive_bundle::__path_handle)
            .route(web::put().to(v1::receive_bundle::handle))
            .default_service(web::to(use_put)),
    );
    macro_rules! flaky_tests {
        ($($post:ident),+ $(,)?) => {
            $(config.service(
                post(&v1::flaky::$post::__path_handle, v1::flaky::$post::handle),
            );)+
        };
    }
    flaky_tests!(
        list_failing_tests,
        list_unhealthy_tests,
        list_quarantined_tests,
        get_test_details,
        link_ticket_to_test_case,
        create_ci_run,
        get_settings,
        update_settings,
        get_settings_history,
        list_monitors,
        create_monitor,
        update_monitor,
        delete_monitor,
        preview_monitor,
        flag_test,
        mute_monitor,
        override_quarantine,
        get_test_history,
        list_failures_of_test_run,
        list_incidents,
        decide_incident,
        finish_import,
    );
    macro_rules! webhooks {
        ($($post:ident),+ $(,)?) => {
            $(config.service(
                post(&v1::webhooks::$post::__path_handle, v1::webhooks::$post::handle),
            );)+
        };
    }
    webhooks!(create, list, get, update, delete, rotate_secret, send_test, list_deliveries, replay);
    v1::events::configure(config);
    config
        .service(get(
            web::resource("/{org}/flaky-tests/test/{id}").name("testPage"),
            test_page::handle,
        ))
        .service(
            web::resource(hooks::PATH)
                .name("hooks")
                .route(web::post().to(hooks::handle))
                .default_service(web::to(use_post)),
        )
        .service(get(web::resource("/healthz").name("healthz"), health::healthz))
        .service(get(web::resource("/readyz").name("readyz"), health::readyz))
        .default_service(web::to(nothing_here));
}
