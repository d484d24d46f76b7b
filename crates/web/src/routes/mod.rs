//! Which address shows what.

mod home;
mod identity;
mod monitors;
mod quarantine;
mod queue;
mod queue_more;
mod server;
pub(crate) mod sign_in;
mod test_list;
mod tokens;
mod webhooks;

use actix_web::guard::fn_guard;
use actix_web::web::{self, ServiceConfig};

/// Adds every page.
pub(crate) fn configure(config: &mut ServiceConfig) {
    // No organization takes the addresses of the API.
    let page = |path: &str, name: &str| {
        web::resource(path.to_owned())
            .name(name)
            .guard(fn_guard(|it| !it.head().uri.path().starts_with("/v1/")))
    };
    config
        .service(page("/", "pageHome").route(web::get().to(home::show)))
        .service(
            page("/sign-in", "pageSignIn")
                .route(web::get().to(sign_in::show))
                .route(web::post().to(sign_in::sign_in)),
        )
        .service(page("/sign-in/with", "pageSignInWith").route(web::get().to(identity::leave)))
        .service(page("/sign-in/back", "pageSignInBack").route(web::get().to(identity::returned)))
        .service(page("/sign-out", "pageSignOut").route(web::post().to(sign_in::sign_out)))
        .service(page("/assets/{file}", "pageAsset").route(web::get().to(crate::assets::handle)))
        .service(page("/ui/events", "pageEvents").route(web::get().to(crate::live::handle)))
        .service(page("/status", "pageStatus").route(web::get().to(server::status)))
        .service(page("/{org}/queue", "pageQueue").route(web::get().to(queue::list)))
        .service(page("/{org}/queue/pr", "pagePullRequest").route(web::get().to(queue::pr)))
        .service(page("/{org}/queue/output", "pageOutput").route(web::get().to(queue::output)))
        .service(page("/{org}/queue/do", "pageDo").route(web::post().to(queue::act)))
        .service(page("/{org}/queue/left", "pageLeft").route(web::get().to(queue_more::left)))
        .service(page("/{org}/queue/health", "pageHealth").route(web::get().to(queue_more::health)))
        .service(page("/{org}/queue/graph", "pageGraph").route(web::get().to(queue_more::graph)))
        .service(
            page("/{org}/queue/settings", "pageSettings")
                .route(web::get().to(queue_more::settings))
                .route(web::post().to(queue_more::save)),
        )
        .service(page("/{org}/flaky-tests", "pageTests").route(web::get().to(test_list::dashboard)))
        .service(
            page("/{org}/flaky-tests/quarantine", "pageQuarantine")
                .route(web::get().to(test_list::quarantine)),
        )
        .service(
            page("/{org}/flaky-tests/owners", "pageOwners").route(web::get().to(test_list::owners)),
        )
        .service(
            page("/{org}/flaky-tests/monitors", "pageMonitors")
                .route(web::get().to(monitors::list)),
        )
        .service(
            page("/{org}/flaky-tests/uploads", "pageUploads")
                .route(web::get().to(test_list::uploads)),
        )
        .service(page("/{org}/flaky-tests/do", "pageTestDo").route(web::post().to(test_list::act)))
        .service(
            page("/{org}/flaky-tests/test/{id}", "pageTest").route(web::get().to(test_list::test)),
        )
        .service(
            page("/{org}/tokens", "pageTokens")
                .route(web::get().to(tokens::list))
                .route(web::post().to(tokens::act)),
        )
        .service(page("/{org}/settings", "pageToTokens").route(web::get().to(tokens::hinted)))
        .service(page("/{org}/webhooks", "pageWebhooks").route(web::get().to(webhooks::list)))
        .service(
            page("/{org}/webhooks/endpoint", "pageWebhook")
                .route(web::get().to(webhooks::endpoint)),
        )
        .service(
            page("/{org}/webhooks/message", "pageWebhookMessage")
                .route(web::get().to(webhooks::message)),
        )
        .service(
            page("/{org}/webhooks/events", "pageWebhookEvents")
                .route(web::get().to(webhooks::events)),
        )
        .service(page("/{org}/webhooks/do", "pageWebhookDo").route(web::post().to(webhooks::act)))
        .service(page("/{org}/audit", "pageAudit").route(web::get().to(server::audit)))
        .service(page("/reference", "pageReference").route(web::get().to(server::reference)));
}
