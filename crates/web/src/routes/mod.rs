//! Which address shows what.

mod home;
mod queue;
mod server;
pub(crate) mod sign_in;

use actix_web::web::{self, ServiceConfig};

/// Adds every page.
pub(crate) fn configure(config: &mut ServiceConfig) {
    let page = |path: &str, name: &str| web::resource(path.to_owned()).name(name);
    config
        .service(page("/", "pageHome").route(web::get().to(home::show)))
        .service(
            page("/sign-in", "pageSignIn")
                .route(web::get().to(sign_in::show))
                .route(web::post().to(sign_in::sign_in)),
        )
        .service(page("/sign-out", "pageSignOut").route(web::post().to(sign_in::sign_out)))
        .service(page("/assets/{file}", "pageAsset").route(web::get().to(crate::assets::handle)))
        .service(page("/ui/events", "pageEvents").route(web::get().to(crate::live::handle)))
        .service(page("/status", "pageStatus").route(web::get().to(server::status)))
        .service(page("/{org}/queue", "pageQueue").route(web::get().to(queue::list)))
        .service(page("/{org}/queue/pr", "pagePullRequest").route(web::get().to(queue::pr)))
        .service(page("/{org}/queue/do", "pageDo").route(web::post().to(queue::act)));
}
