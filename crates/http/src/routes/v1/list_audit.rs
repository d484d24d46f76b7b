//! `GET /v1/audit`.

use actix_web::web::{Data, Json, Query};

use crate::api::Api;
use crate::authenticated::Authenticated;
use crate::dto::{AuditActionWord, AuditQuery, AuditReply, RepoText, TimeText};
use crate::failures::OfAudit;
use crate::problem::Problem;

/// List the audit log, newest first.
///
/// A token that is limited to repositories sees only changes of these.
#[utoipa::path(
    get,
    path = "/v1/audit",
    operation_id = "listAuditRecords",
    tag = "service",
    params(
        ("action" = Option<AuditActionWord>, Query, description = "Only this kind of change.", example = "queue.updated"),
        ("token" = Option<Uuid>, Query, description = "Only changes by the token with this id."),
        ("object" = Option<String>, Query, description = "Only changes of this object, by its full text."),
        ("repo" = Option<RepoText>, Query, description = "Only changes that belong to this repository, as `host/owner/name`.", example = "github.com/acme/calc"),
        ("since" = Option<TimeText>, Query, description = "Only changes at or after this time.", example = "2026-11-21T00:00:00Z"),
        ("until" = Option<TimeText>, Query, description = "Only changes before this time."),
        ("limit" = Option<u32>, Query, description = "Records on a page, 1 to 100; default 50.", minimum = 1, maximum = 100),
        ("cursor" = Option<String>, Query, description = "`nextCursor` of the previous page.", pattern = r"^[0-9]{1,16}\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"),
    ),
    responses((status = OK, description = "A page of the log.", body = AuditReply), OfAudit),
    security(("ApiKeyAuth" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    Authenticated(caller): Authenticated,
    Query(given): Query<Vec<(String, String)>>,
) -> Result<Json<AuditReply>, Problem> {
    let AuditQuery { filter, before, limit } = AuditQuery::read(&given)?;
    let records = api.audit.list(&caller, filter, before, limit + 1).await?;
    Ok(Json(AuditReply::of(&records, limit)))
}
