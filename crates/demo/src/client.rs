//! A client of the demo's own server.

use std::net::SocketAddr;

use serde_json::{Value, json};
use signalbox_domain::ids::OrgId;
use signalbox_domain::token::Scope;
use signalbox_services::{NewToken, TokenService};

use crate::repository::{HOST, NAME, ORG, OWNER};
use crate::{DemoError, Running};

/// Calls the API with a token of its own.
pub(crate) struct Client {
    api: signalbox_client::Client,
    pub(crate) org: OrgId,
}

impl Client {
    pub(crate) async fn for_demo(
        app: &dyn Running,
        address: SocketAddr,
    ) -> Result<Self, DemoError> {
        let slug = signalbox_domain::ids::OrgSlug::new(ORG)?;
        let org = app.context().stores.account.orgs.find_by_slug(&slug).await;
        let org = org?.ok_or_else(|| DemoError::Story("the organization is missing".to_owned()))?;
        let new =
            NewToken { name: "demo".into(), scopes: Scope::ALL.to_vec(), ..NewToken::default() };
        let made = TokenService::new(app.context().clone()).create_as_operator(org.id, new).await;
        let (_, text) = made.map_err(|error| DemoError::Service(error.into()))?;
        let api = signalbox_client::Client::new(&format!("http://{address}"), text.reveal());
        Ok(Self { api: api?, org: org.id })
    }

    pub(crate) fn token(&self) -> &str {
        self.api.token()
    }

    /// Calls an operation on the queue of a target branch.
    pub(crate) async fn call(
        &self,
        target: &str,
        operation: &str,
        mut body: Value,
    ) -> Result<Value, DemoError> {
        body["repo"] = json!({ "host": HOST, "owner": OWNER, "name": NAME });
        body["targetBranch"] = json!(target);
        let reply = self.api.post(operation, &body).await;
        reply.map_err(|error| DemoError::Call { operation: operation.to_owned(), error })
    }

    /// A pull request's entry, with its timeline.
    pub(crate) async fn entry(&self, target: &str, number: u32) -> Result<Value, DemoError> {
        let body = json!({ "pr": { "number": number }, "includeTimeline": true });
        self.call(target, "getSubmittedPullRequest", body).await
    }
}
