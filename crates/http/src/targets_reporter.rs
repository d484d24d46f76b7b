//! Reporters of impacted targets: the holder of a token, or a workflow run of a fork.

use std::sync::Arc;

use actix_web::HttpRequest;
use signalbox_domain::token::Caller;

use crate::authenticated::{Credentials, has_token, header};
use crate::body::MAX_UNPROVEN_BODY;
use crate::client::client_address;
use crate::holding::{Holder, unproven};
use crate::problem::{Code, Problem};

/// The header with the id of a workflow run.
const RUN_ID: &str = "x-forked-workflow-run-id";

/// A reporter of impacted targets.
pub(crate) enum TargetsReporter {
    Token(Arc<Caller>),
    WorkflowRun(u64),
}

impl Credentials for TargetsReporter {
    async fn authenticate(request: &HttpRequest) -> Result<Self, Problem> {
        let run = header(request, RUN_ID);
        if has_token(request) || run.is_none() {
            return Arc::<Caller>::authenticate(request).await.map(Self::Token);
        }
        let run = run.and_then(|run| run.parse().ok());
        run.map(Self::WorkflowRun).ok_or_else(|| Problem::new(Code::Unauthorized, ""))
    }

    fn holders(&self, request: &HttpRequest) -> Vec<Holder> {
        match self {
            Self::Token(caller) => caller.holders(request),
            Self::WorkflowRun(_) => unproven(client_address(request)),
        }
    }

    fn keyed(&self) -> Option<&Caller> {
        match self {
            Self::Token(caller) => caller.keyed(),
            Self::WorkflowRun(_) => None,
        }
    }

    fn most_bytes(&self) -> usize {
        match self {
            Self::Token(caller) => caller.most_bytes(),
            // The git host is called after the body has come.
            Self::WorkflowRun(_) => MAX_UNPROVEN_BODY,
        }
    }
}
