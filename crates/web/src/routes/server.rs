//! Pages about the server.

use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use signalbox_domain::audit::AuditAction;
use signalbox_domain::ports::{AuditFilter, AuditPlace};
use signalbox_domain::time::Timestamp;
use uuid::Uuid;

use crate::Pages;
use crate::shell::answer;
use crate::view;
use crate::visitor::{Asked, member, visitor};

/// `GET /status`.
pub(crate) async fn status(pages: Data<Pages>, request: HttpRequest) -> HttpResponse {
    let shown = async {
        let visitor = visitor(&pages, &request).await?;
        let facts = pages.server.facts().await;
        Ok((Some(visitor), view::status::page(&facts)))
    };
    answer(&pages, &request, shown.await)
}

/// `GET /reference`.
pub(crate) async fn reference(pages: Data<Pages>, request: HttpRequest) -> HttpResponse {
    let shown = async {
        let visitor = visitor(&pages, &request).await?;
        Ok((Some(visitor), view::reference::page(&pages.openapi)))
    };
    answer(&pages, &request, shown.await)
}

/// `GET /{org}/audit`.
pub(crate) async fn audit(
    pages: Data<Pages>,
    request: HttpRequest,
    org: Path<String>,
) -> HttpResponse {
    let shown = async {
        let visitor = member(&pages, &request, &org).await?;
        let asked = Asked::query(&request);
        let at: Option<i64> = asked.text("at").parse().ok();
        let id = Uuid::try_parse(asked.text("id")).ok();
        let before =
            at.zip(id).map(|(at, id)| AuditPlace { at: Timestamp::from_unix_micros(at), id });
        let filter = AuditFilter {
            action: AuditAction::parse(asked.text("action")),
            object: Some(asked.text("object").to_owned()).filter(|it| !it.is_empty()),
            ..AuditFilter::default()
        };
        let records = pages.audit.list(&visitor.caller, filter.clone(), before, 100).await?;
        let next = records.last().filter(|_| records.len() >= view::ROWS).map(|last| {
            let here = view::audit::path(&org, filter.action, filter.object.as_deref());
            format!("{here}&at={}&id={}", last.at.unix_micros(), last.id)
        });
        let page = view::audit::page(&org, &filter, &records, next, pages.reads.now());
        Ok((Some(visitor), page))
    };
    answer(&pages, &request, shown.await)
}
