//! `GET /v1/status`.

use actix_web::web::{Data, Json};
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::Api;
use crate::failures::OfOpen;

/// One part of the service.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Part {
    name: &'static str,
    /// green, yellow or red.
    color: &'static str,
    status_description: String,
}

/// The state of all parts.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Overall {
    /// up or impacted.
    r#type: &'static str,
    color: &'static str,
    #[serde(rename = "overallStatusDescription")]
    description: &'static str,
    /// The parts that are impacted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    impacted_statuses: Vec<Part>,
}

/// The state of the service.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StatusReply {
    overall_status: Overall,
    statuses: Vec<Part>,
}

/// Get the state of the service.
#[utoipa::path(
    get,
    path = "/v1/status",
    operation_id = "getStatus",
    tag = "service",
    responses((status = OK, description = "The state.", body = StatusReply, example = json!({
            "overallStatus": {
                "type": "up", "color": "green",
                "overallStatusDescription": "All systems operational"
            },
            "statuses": [{
                "name": "Merge Queue", "color": "green", "statusDescription": "Operational"
            }]
        })), OfOpen),
)]
pub(crate) async fn handle(api: Data<Api>) -> Json<StatusReply> {
    let part = |missing: Option<&String>| match missing {
        None => Part {
            name: "Merge Queue",
            color: "green",
            status_description: "Operational".to_owned(),
        },
        Some(missing) => {
            Part { name: "Merge Queue", color: "red", status_description: missing.clone() }
        }
    };
    let missing = api.readiness.missing().await;
    let overall_status = match &missing {
        None => Overall {
            r#type: "up",
            color: "green",
            description: "All systems operational",
            impacted_statuses: Vec::new(),
        },
        Some(missing) => Overall {
            r#type: "impacted",
            color: "red",
            description: "Impacted",
            impacted_statuses: vec![part(Some(missing))],
        },
    };
    Json(StatusReply { overall_status, statuses: vec![part(missing.as_ref())] })
}
