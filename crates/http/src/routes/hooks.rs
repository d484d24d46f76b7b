//! `POST /hooks/{host}`: events of a git host.

use actix_web::web::{Data, Json, Path, Payload};
use actix_web::{HttpRequest, web};
use signalbox_domain::ids::HostId;
use signalbox_domain::ports::DecodeError;
use signalbox_services::HookError;

use crate::api::Api;
use crate::body::read;
use crate::dto::Empty;
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

/// Passes on the headers and the unmodified bytes, because the signature covers them.
pub(crate) async fn handle(
    api: Data<Api>,
    host: Path<String>,
    request: HttpRequest,
    payload: Payload,
) -> Result<Json<Empty>, Problem> {
    let host = HostId::new(host.into_inner()).map_err(|_| HookError::UnknownHost)?;
    let body: web::Bytes = read(payload.into_inner()).await?;
    let headers: Vec<(String, String)> = request
        .headers()
        .iter()
        .filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())))
        .collect();
    let header = |name: &str| {
        headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    };
    api.hints.hear(&host, &header, &body).await?;
    Ok(Json(Empty {}))
}
