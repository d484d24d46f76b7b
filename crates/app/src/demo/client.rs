//! A client of the demo's own server.

use std::net::SocketAddr;

use serde_json::{Value, json};
use signalbox_domain::ids::{OrgId, TokenId};
use signalbox_domain::token::{EnumCase, Scope, Token, TokenText};

use super::repository::{HOST, NAME, ORG, OWNER};
use crate::commands::create_token;
use crate::wiring::App;

/// Calls the API with a token of its own.
pub(super) struct Client {
    server: String,
    token: String,
    pub(super) org: OrgId,
}

impl Client {
    pub(super) async fn for_demo(app: &App, address: SocketAddr) -> Result<Self, String> {
        let slug = signalbox_domain::ids::OrgSlug::new(ORG).map_err(|it| it.to_string())?;
        let org = app.context.stores.orgs.find_by_slug(&slug).await;
        let org = org.map_err(|it| it.to_string())?.ok_or("the organization is missing")?;
        let token = Token {
            id: TokenId(uuid::Uuid::nil()),
            org: org.id,
            name: "demo".into(),
            hash: TokenText::from_random([0; 20]).hash(),
            scopes: Scope::ALL.to_vec(),
            repos: Vec::new(),
            enum_case: EnumCase::Upper,
            created_at: app.context.clock.now(),
            expires_at: None,
            revoked_at: None,
        };
        let (_, text) = create_token(app, token).await?;
        let server = format!("http://{address}");
        Ok(Self { server, token: text.reveal().to_owned(), org: org.id })
    }

    pub(super) fn token(&self) -> &str {
        &self.token
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
        let reply = crate::commands::post(&self.server, &self.token, operation, &body).await;
        reply.map_err(|words| format!("{operation}: {words}"))
    }

    /// A pull request's entry, with its timeline.
    pub(super) async fn entry(&self, target: &str, number: u32) -> Result<Value, String> {
        let body = json!({ "pr": { "number": number }, "includeTimeline": true });
        self.call(target, "getSubmittedPullRequest", body).await
    }
}
