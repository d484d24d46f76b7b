//! Senders of test results: the holder of a token, or a client that knows a repository's public id.
//! The public id is read on the routes of the uploader only.

use std::sync::Arc;

use actix_web::HttpRequest;
use signalbox_domain::token::Caller;
use signalbox_services::Sender;

use crate::authenticated::{Credentials, api_of, has_token, header};
use crate::client::client_address;
use crate::holding::{Holder, public_holders};
use crate::problem::{Code, Problem};

/// The header with the public id of a repository.
const PUBLIC_ID: &str = "x-trunk-public-repo-id";

impl Credentials for Sender {
    async fn authenticate(request: &HttpRequest) -> Result<Self, Problem> {
        let public = header(request, PUBLIC_ID);
        if has_token(request) || public.is_none() {
            return Arc::<Caller>::authenticate(request).await.map(Self::Token);
        }
        let refused = || Problem::new(Code::Unauthorized, "");
        let api = api_of(request)?;
        let id = public.and_then(|id| id.parse().ok()).ok_or_else(refused)?;
        let found = api.uploads.public_repository(id, client_address(request)).await?;
        let public = found.ok_or_else(refused)?;
        tracing::Span::current().record("org.slug", public.org_slug.as_str());
        Ok(Self::Public(Box::new(public)))
    }

    fn holders(&self, request: &HttpRequest) -> Vec<Holder> {
        match self {
            Self::Token(caller) => caller.holders(request),
            Self::Public(public) => public_holders(client_address(request), public.repository.id),
        }
    }
}
