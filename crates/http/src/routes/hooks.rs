//! `POST /hooks/{host}`: events of a git host.

use actix_web::HttpRequest;
use actix_web::web::{Data, Json, Path, Payload};
use signalbox_domain::ids::HostId;
use signalbox_domain::ports::DecodeError;
use signalbox_services::HookError;

use crate::admission::{Share, refused};
use crate::api::Api;
use crate::body::{MAX_UNPROVEN_BODY, read};
use crate::client::client_address;
use crate::dto::Empty;
use crate::gate::Party;
use crate::holding::unproven;
use crate::problem::{Code, Problem};

/// The address, with the host's name.
pub(crate) const PATH: &str = "/hooks/{host}";

impl From<HookError> for Problem {
    fn from(error: HookError) -> Self {
        let detail = error.to_string();
        match error {
            HookError::UnknownHost => Self::new(Code::UnknownPath, detail),
            HookError::Decode(DecodeError::WrongSignature) => {
                Self::new(Code::WrongSignature, detail)
            }
            HookError::Decode(DecodeError::Malformed(_)) => Self::new(Code::MalformedBody, detail),
            HookError::Service(error) => error.into(),
        }
    }
}

/// Passes on the headers and the unmodified bytes, because the signature covers them. The host and
/// the presence of a signature are checked before any of the body is read. Git hosts rarely send
/// larger events, and the queue finds by polling what those were about.
pub(crate) async fn handle(
    api: Data<Api>,
    host: Path<String>,
    request: HttpRequest,
    payload: Payload,
) -> Result<Json<Empty>, Problem> {
    let host = HostId::new(host.into_inner()).map_err(|_| HookError::UnknownHost)?;
    let headers: Vec<(String, String)> = request
        .headers()
        .iter()
        .filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())))
        .collect();
    let header = |name: &str| {
        headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    };
    api.hints.expects(&host, &header)?;
    let mut held = api.admission.bodies.in_memory(unproven(client_address(&request)));
    let body = read(payload.into_inner(), MAX_UNPROVEN_BODY, &mut held).await?;
    let party = Party::at(client_address(&request));
    let Some(_place) = api.admission.enter(Share::Hook, party).await else {
        return Err(refused(&api, Share::Hook));
    };
    api.hints.hear(&host, &header, &body).await?;
    Ok(Json(Empty {}))
}
