//! A client of the demo's own server.

use std::net::SocketAddr;

use serde_json::{Value, json};
use signalbox_domain::ids::OrgId;
use signalbox_domain::token::Scope;
use signalbox_services::{NewToken, TokenService};

use super::repository::{HOST, NAME, ORG, OWNER};
use crate::wiring::App;

/// Calls the API with a token of its own.
pub(super) struct Client {
    api: signalbox_client::Client,
    pub(super) org: OrgId,
}

impl Client {
    pub(super) async fn for_demo(app: &App, address: SocketAddr) -> Result<Self, String> {
        let slug = signalbox_domain::ids::OrgSlug::new(ORG).map_err(|it| it.to_string())?;
        let org = app.context.stores.orgs.find_by_slug(&slug).await;
        let org = org.map_err(|it| it.to_string())?.ok_or("the organization is missing")?;
        let new =
            NewToken { name: "demo".into(), scopes: Scope::ALL.to_vec(), ..NewToken::default() };
        let made = TokenService::new(app.context.clone()).create_as_operator(org.id, new).await;
        let (_, text) = made.map_err(|it| it.to_string())?;
        let api = signalbox_client::Client::new(&format!("http://{address}"), text.reveal());
        Ok(Self { api: api.map_err(|it| it.to_string())?, org: org.id })
    }

    pub(super) fn token(&self) -> &str {
        self.api.token()
    }

    /// Calls an operation on the queue of a target branch.
    pub(super) async fn call(
        &self,
        target: &str,
        operation: &str,
        mut body: Value,
    ) -> Result<Value, String> {
        body["repo"] = json!({ "host": HOST, "owner": OWNER, "name": NAME });
        body["targetBranch"] = json!(target);
        let reply = self.api.post(operation, &body).await;
        reply.map_err(|error| signalbox_terminal::chain(operation, &error))
    }

    /// A pull request's entry, with its timeline.
    pub(super) async fn entry(&self, target: &str, number: u32) -> Result<Value, String> {
        let body = json!({ "pr": { "number": number }, "includeTimeline": true });
        self.call(target, "getSubmittedPullRequest", body).await
    }
}
