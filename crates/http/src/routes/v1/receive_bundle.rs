//! `PUT /v1/uploads/{upload}/bundle.tar.zst?signature=…`: the bytes of an announced bundle. The
//! URL is the permission; sending the same bundle again has no effect.

use actix_web::HttpRequest;
use actix_web::web::{Data, Json, Path, Payload, Query};
use serde::Deserialize;
use signalbox_domain::flaky::{Trust, UploadId};
use signalbox_domain::upload::BlobOwner;
use signalbox_services::{Reception, UploadError};

use crate::admission::admit_known;
use crate::api::Api;
use crate::client::client_address;
use crate::dto::Empty;
use crate::holding::{Holder, public_holders};
use crate::problem::Problem;
use crate::stream;

pub(crate) const PATH: &str = "/v1/uploads/{upload}/bundle.tar.zst";

/// The query of the URL.
#[derive(Deserialize)]
pub(crate) struct Signed {
    #[serde(default)]
    signature: String,
}

pub(crate) async fn handle(
    request: HttpRequest,
    api: Data<Api>,
    path: Path<String>,
    signed: Query<Signed>,
    body: Payload,
) -> Result<Json<Empty>, Problem> {
    let wrong = || Problem::from(UploadError::WrongSignature);
    let id = path.parse().map(UploadId).map_err(|_| wrong())?;
    let most = api.uploads.limits().bytes;
    match api.uploads.receive(id, &signed.signature).await? {
        Reception::Open(mut upload) => {
            stream::check_length(&request, most)?;
            let BlobOwner { org, repo, trust } = upload.owner();
            let holders = match trust {
                Trust::Token => vec![Holder::Organization(org)],
                Trust::Public => public_holders(client_address(&request), repo),
            };
            admit_known(&request, &api, &holders).await?;
            stream::into_upload(body, &mut upload).await?;
            api.uploads.complete(*upload).await?;
        }
        Reception::Known => stream::drain(body, most).await?,
    }
    Ok(Json(Empty {}))
}
