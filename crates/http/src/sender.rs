//! Who sends results: the holder of a token, or somebody who knows a repository's public id. The
//! public id is read on the routes of the uploader only.

use std::pin::Pin;

use actix_web::dev::Payload;
use actix_web::web::Data;
use actix_web::{FromRequest, HttpRequest};
use signalbox_services::Sender;

use crate::api::Api;
use crate::body::{authenticate, check_headers, parse, read};
use crate::dto::{Form, Request};
use crate::problem::{Code, Problem};

/// The header with the public id of a repository.
const PUBLIC_ID: &str = "x-trunk-public-repo-id";

/// Who sends.
pub(crate) struct Sent(pub(crate) Sender);

/// Who sends, and what they say.
pub(crate) struct Told<T: Request> {
    pub(crate) sender: Sender,
    pub(crate) asked: T::Asked,
}

/// A token counts before a public id: whoever has one is told when it is no good.
async fn sender(request: &HttpRequest) -> Result<Sender, Problem> {
    let header = |name: &str| {
        let value = request.headers().get(name).and_then(|value| value.to_str().ok());
        value.map(str::trim).filter(|value| !value.is_empty())
    };
    let public = header(PUBLIC_ID);
    if header("x-api-token").is_some() || header("authorization").is_some() || public.is_none() {
        return authenticate(request).await.map(Sender::Token);
    }
    let refused = || Problem::new(Code::Unauthorized, "");
    let api = request.app_data::<Data<Api>>().ok_or_else(refused)?;
    let id = public.and_then(|id| id.parse().ok()).ok_or_else(refused)?;
    let public = api.uploads.public_repository(id).await?.ok_or_else(refused)?;
    tracing::Span::current().record("org.slug", public.org_slug.as_str());
    Ok(Sender::Public(Box::new(public)))
}

impl FromRequest for Sent {
    type Error = Problem;
    type Future = Pin<Box<dyn Future<Output = Result<Self, Problem>>>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move { sender(&request).await.map(Self) })
    }
}

impl<T: Request + Form + 'static> FromRequest for Told<T> {
    type Error = Problem;
    type Future = Pin<Box<dyn Future<Output = Result<Self, Problem>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, payload) = (request.clone(), payload.take());
        Box::pin(async move {
            let sender = sender(&request).await?;
            check_headers(&request)?;
            let bytes = read(payload).await?;
            Ok(Self { sender, asked: parse::<T>(&bytes)? })
        })
    }
}
