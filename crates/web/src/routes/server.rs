//! Pages about the server.

use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};

use crate::Pages;
use crate::shell::answer;
use crate::view;
use crate::visitor::visitor;

/// `GET /status`.
pub(crate) async fn status(pages: Data<Pages>, request: HttpRequest) -> HttpResponse {
    let shown = async {
        let visitor = visitor(&pages, &request).await?;
        let facts = pages.server.facts().await;
        Ok((Some(visitor), view::status::page(&facts)))
    };
    answer(&pages, &request, shown.await)
}
