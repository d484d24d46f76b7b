//! `POST /v1/setImpactedTargets`.

use actix_web::HttpRequest;
use actix_web::web::{Data, Json};

use signalbox_services::ForkReport;

use crate::api::Api;
use crate::authenticated::AuthenticatedJson;
use crate::client::client_address;
use crate::dto::{Empty, SetTargets, TargetsRequest};
use crate::failures::OfTargets;
use crate::problem::{Code, Problem};
use crate::targets_reporter::TargetsReporter;

/// Report the impacted targets of a pull request, for queues in PARALLEL mode.
///
/// The pull request does not have to be in the queue yet, but must exist on its host. Instead of a
/// token, a workflow of a fork may send the id of its run in `x-forked-workflow-run-id`; the host
/// confirms that the run belongs to the pull request.
#[utoipa::path(
    post,
    path = "/v1/setImpactedTargets",
    operation_id = "setImpactedTargets",
    tag = "merge queue",
    request_body = TargetsRequest,
    responses((status = OK, description = "Done.", body = Empty, example = json!({})), OfTargets),
    security(("ApiKeyAuth" = []), ("ForkedWorkflowRun" = []))
)]
pub(crate) async fn handle(
    api: Data<Api>,
    request: HttpRequest,
    AuthenticatedJson { caller, body }: AuthenticatedJson<TargetsRequest, TargetsReporter>,
) -> Result<Json<Empty>, Problem> {
    let SetTargets { place: (repo, branch), pr, targets } = body;
    match caller {
        TargetsReporter::Token(caller) => {
            api.queues.set_targets(&caller, &repo, &branch, pr, targets).await?;
        }
        TargetsReporter::WorkflowRun(workflow_run) => {
            let from = client_address(&request);
            let report = ForkReport { repo, branch, pr, targets, workflow_run, from };
            if !api.hints.targets_from_fork(&report).await? {
                return Err(Problem::new(Code::Unauthorized, ""));
            }
        }
    }
    Ok(Json(Empty {}))
}
