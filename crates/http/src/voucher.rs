//! Who vouches for a report of impacted targets: a token, or a workflow run of a fork.

use std::pin::Pin;
use std::sync::Arc;

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest};
use signalbox_domain::token::Caller;

use crate::body::{authenticate, check_headers, parse, read};
use crate::dto::{Form, Request};
use crate::problem::{Code, Problem};

/// The header with the id of a workflow run.
const RUN_ID: &str = "x-forked-workflow-run-id";

/// Who vouches.
pub(crate) enum Voucher {
    Token(Arc<Caller>),
    WorkflowRun(u64),
}

/// Who vouches, and what they report.
pub(crate) struct Vouched<T: Request> {
    pub(crate) by: Voucher,
    pub(crate) asked: T::Asked,
}

/// A token counts before a run: whoever has one is told when it is no good.
async fn voucher(request: &HttpRequest) -> Result<Voucher, Problem> {
    let header = |name: &str| {
        let value = request.headers().get(name).and_then(|value| value.to_str().ok());
        value.map(str::trim).filter(|value| !value.is_empty())
    };
    let run = header(RUN_ID);
    if header("x-api-token").is_some() || header("authorization").is_some() || run.is_none() {
        return authenticate(request).await.map(Voucher::Token);
    }
    let run = run.and_then(|run| run.parse().ok());
    run.map(Voucher::WorkflowRun).ok_or_else(|| Problem::new(Code::Unauthorized, ""))
}

impl<T: Request + Form + 'static> FromRequest for Vouched<T> {
    type Error = Problem;
    type Future = Pin<Box<dyn Future<Output = Result<Self, Problem>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, payload) = (request.clone(), payload.take());
        Box::pin(async move {
            let by = voucher(&request).await?;
            check_headers(&request)?;
            let bytes = read(payload).await?;
            Ok(Self { by, asked: parse::<T>(&bytes)? })
        })
    }
}
