//! Errors that are the operator's business: what callers see of them.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use actix_web::test::TestRequest;
use async_trait::async_trait;
use serde_json::{Value, json};
use signalbox_conformance::fake_host::{Call, Failure};
use signalbox_domain::audit::{AuditAction, AuditRecord};
use signalbox_domain::ids::{OrgId, TokenId};
use signalbox_domain::ports::{AuditFilter, AuditLog, AuditPlace, StoreError, TokenStore};
use signalbox_domain::testing::{CountingIds, Quiet};
use signalbox_domain::time::Timestamp;
use signalbox_domain::token::{Token, TokenHash, TokenText};
use signalbox_services::{Authenticator, RefusalReports};

use crate::support::Server;

#[actix_web::test]
async fn a_host_that_does_not_answer_is_a_passing_trouble() {
    let server = Server::new().await;
    let pr = server.open("b").0;
    let limited = Failure::RateLimited(server.api.clock.now());
    for failure in [Failure::Unavailable, limited] {
        server.host.fail(Call::PullRequest, 1, failure);
        let reply = server.post("submitPullRequest", json!({"pr": {"number": pr}})).await;
        reply.problem(503, "unavailable");
        assert_eq!(reply.header("retry-after"), Some("5"));
        assert!(!reply.body.contains("planned"), "no source text: {}", reply.body);
    }
}

#[actix_web::test]
async fn a_host_that_denies_access_is_a_server_error() {
    let server = Server::new().await;
    let pr = server.open("b").0;
    server.host.fail(Call::PullRequest, 1, Failure::Rejected);
    let reply = server.post("submitPullRequest", json!({"pr": {"number": pr}})).await;
    reply.problem(500, "internal_error");
    assert!(!reply.body.contains("planned"), "no source text: {}", reply.body);
}

#[actix_web::test]
async fn a_queue_that_is_there_is_never_missing_while_the_host_is_away() {
    let server = Server::new().await;
    server.host.set_down(true);
    assert_eq!(server.post("getQueue", json!({})).await.status, 200);
}

/// A database that is away, or broken.
struct Broken {
    passing: bool,
}

impl Broken {
    fn error(&self) -> StoreError {
        let cause = "connection to 10.0.0.7 refused".into();
        if self.passing { StoreError::Unavailable(cause) } else { StoreError::Failed(cause) }
    }
}

#[async_trait]
impl TokenStore for Broken {
    async fn insert(&self, _: &Token) -> Result<(), StoreError> {
        Err(self.error())
    }

    async fn find_by_hash(&self, _: TokenHash) -> Result<Option<Token>, StoreError> {
        Err(self.error())
    }

    async fn list(&self, _: Option<OrgId>) -> Result<Vec<Token>, StoreError> {
        Err(self.error())
    }

    async fn revoke(&self, _: TokenId, _: Timestamp, _: uuid::Uuid) -> Result<bool, StoreError> {
        Err(self.error())
    }

    async fn last_revocation(&self) -> Result<uuid::Uuid, StoreError> {
        Err(self.error())
    }
}

#[actix_web::test]
async fn an_unavailable_database_is_never_reported_as_a_bad_token() {
    let mut server = Server::new().await;
    for (passing, status, code) in [(true, 503, "unavailable"), (false, 500, "internal_error")] {
        let authenticator = Authenticator::new(
            Arc::new(Broken { passing }),
            server.stores.account.orgs.clone(),
            server.clock.clone(),
        );
        server.api.authenticator = Arc::new(authenticator);
        let reply = server.post("getQueue", json!({})).await;
        reply.problem(status, code);
        assert!(!reply.body.contains("10.0.0.7"), "no source text: {}", reply.body);
    }
}

/// An audit log that cannot be written while `fails`.
struct Unwritable {
    log: Arc<dyn AuditLog>,
    fails: AtomicBool,
}

#[async_trait]
impl AuditLog for Unwritable {
    async fn append(&self, record: &AuditRecord) -> Result<(), StoreError> {
        if self.fails.load(Ordering::SeqCst) {
            return Err(StoreError::Unavailable("the disk is full".into()));
        }
        self.log.append(record).await
    }

    async fn list(
        &self,
        org: Option<OrgId>,
        filter: &AuditFilter,
        before: Option<AuditPlace>,
        limit: u32,
    ) -> Result<Vec<AuditRecord>, StoreError> {
        self.log.list(org, filter, before, limit).await
    }

    async fn prune(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.log.prune(before, limit).await
    }
}

#[actix_web::test]
async fn a_revoked_token_is_refused_although_the_audit_log_cannot_be_written() {
    let mut server = Server::new().await;
    let audit = server.stores.account.audit.clone();
    let audit = Arc::new(Unwritable { log: audit, fails: AtomicBool::new(true) });
    let (tokens, orgs) = (server.stores.account.tokens.clone(), server.stores.account.orgs.clone());
    let authenticator = Authenticator::new(tokens.clone(), orgs, server.clock.clone());
    let ids = Arc::new(CountingIds::default());
    let reports = RefusalReports::new(Arc::new(Quiet), audit.clone(), ids);
    server.api.authenticator = Arc::new(authenticator.reporting(reports));
    let hash = TokenText::parse(&server.token).expect("a text").hash();
    let token = tokens.find_by_hash(hash).await.expect("read").expect("a token");
    tokens
        .revoke(token.id, server.api.clock.now(), uuid::Uuid::from_u128(1))
        .await
        .expect("revoked");
    let records = async || {
        let filter = AuditFilter { action: Some(AuditAction::TokenRefused), ..Default::default() };
        audit.list(None, &filter, None, 10).await.expect("read").len()
    };
    server.post("getQueue", json!({})).await.is_unauthorized();
    assert_eq!(records().await, 0);
    // As soon as it can be written, the next refusal is in it, once.
    audit.fails.store(false, Ordering::SeqCst);
    for _ in 0..2 {
        server.post("getQueue", json!({})).await.is_unauthorized();
    }
    assert_eq!(records().await, 1);
}

/// The log.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("not poisoned").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn lines(&self) -> Vec<Value> {
        let text = self.0.lock().expect("not poisoned").clone();
        let text = String::from_utf8(text).expect("UTF-8");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }
}

#[actix_web::test]
async fn the_cause_is_logged_once_with_the_request_id_and_without_secrets() {
    let log = Log::default();
    let writer = log.clone();
    // For the whole program, as in the app: other tests write into it too.
    let subscriber = tracing_subscriber::fmt().json().with_writer(move || writer.clone()).finish();
    tracing::subscriber::set_global_default(subscriber).expect("the only test that sets it");
    let mut server = Server::new().await;
    server.host.fail(Call::PullRequest, 1, Failure::Rejected);
    let request = |server: &Server, id: &'static str| {
        TestRequest::post()
            .uri("/v1/submitPullRequest")
            .insert_header(("x-api-token", server.token.as_str()))
            .insert_header(("x-request-id", id))
            .set_json(json!({
                "repo": {"host": "git.test", "owner": "acme", "name": "calc"},
                "targetBranch": "main",
                "pr": {"number": 1}
            }))
    };
    server.call(request(&server, "refused-by-host")).await.problem(500, "internal_error");
    server.api.authenticator = Arc::new(Authenticator::new(
        Arc::new(Broken { passing: true }),
        server.stores.account.orgs.clone(),
        server.clock.clone(),
    ));
    server.call(request(&server, "without-database")).await.problem(503, "unavailable");
    let lines = log.lines();
    for (id, status, cause) in [
        ("refused-by-host", 500, "a planned fault"),
        ("without-database", 503, "connection to 10.0.0.7 refused"),
    ] {
        let own: Vec<_> = lines.iter().filter(|it| it["span"]["request.id"] == id).collect();
        assert_eq!(own.len(), 2, "one for the cause, one for the answer: {own:?}");
        assert!(own[0]["fields"]["error"].as_str().expect("a cause").contains(cause));
        assert_eq!(own[1]["fields"]["status"], status);
        assert_eq!(own[1]["fields"]["operation"], "submitPullRequest");
    }
    let first = lines.iter().find(|it| it["span"]["request.id"] == "refused-by-host");
    let span = &first.expect("a line")["span"];
    assert_eq!((&span["org.slug"], &span["token.name"]), (&json!("acme"), &json!("ci")));
    assert!(!format!("{lines:?}").contains(&server.token), "no token is logged");
}
