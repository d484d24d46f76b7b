//! A server on stores and a git host in memory, and what callers see of it.

use std::net::Ipv4Addr;
use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex};

use actix_web::body::{BoxBody, MessageBody, to_bytes};
use actix_web::http::Method;
use actix_web::test::{TestRequest, call_service, init_service};
use async_trait::async_trait;
use serde_json::{Value, json};
use signalbox_conformance::fake_host::{FakeHost, FakeHosts};
use signalbox_domain::ids::{OrgId, OrgSlug, PrNumber, RepoName, TokenId};
use signalbox_domain::ports::{Clock as _, Exposition, IdSource, Observed, Observer, Org, Stores};
use signalbox_domain::queue::{EffectClass, QueueMetrics};
use signalbox_domain::testing::{CountingIds, ManualClock, Quiet};
use signalbox_domain::time::Timestamp;
use signalbox_domain::token::{Caller, Compatibility, EnumCase, Scope, Token, TokenText};
use signalbox_http::{
    Admission, Api, EventDescription, EventHub, EventsApi, FlakyApi, PageTokens, Readiness,
    TestLinks, app,
};
use signalbox_services::{
    AuditService, Authenticator, Context, EffectRunner, EventService, FlakyService, HintService,
    IdempotencyService, QueueService, UploadLimits, UploadParts, UploadService, WebhookLimits,
    WebhookParts, WebhookService, WhatIf,
};
use signalbox_testkit::description::{Answer, Description};
use signalbox_testkit::fake_results::FakeResults;
use signalbox_testkit::fake_webhooks::FakeWebhooks;
use signalbox_testkit::memory::{MemoryBlobs, MemoryDatabase};
pub(crate) use signalbox_testkit::small_server::calc;
use signalbox_testkit::small_server::{calc_host, settle};
use signalbox_webhooks::{EventPayloads, Links};

/// Every public event.
pub(crate) fn catalog() -> impl Iterator<Item = EventDescription> {
    signalbox_webhooks::catalog::all().map(|event| EventDescription {
        kind: event.name.to_owned(),
        description: event.description.to_owned(),
        schema: event.schema().to_string(),
    })
}

/// The description of the API.
pub(crate) fn document() -> String {
    signalbox_http::openapi_document(&catalog().collect::<Vec<_>>())
}

/// What every reply is checked against.
pub(crate) static DESCRIPTION: LazyLock<Description> =
    LazyLock::new(|| Description::new(&document()));

/// Remembers which requests were seen.
#[derive(Default)]
pub(crate) struct Seen(pub(crate) Mutex<Vec<(String, u16)>>);

impl Observer for Seen {
    fn observe(&self, seen: &Observed<'_>) {
        if let Observed::Request { operation, status, .. } = seen {
            self.0.lock().expect("not poisoned").push(((*operation).to_owned(), *status));
        }
    }
}

/// One line for each queue.
struct Lines;

impl Exposition for Lines {
    fn render(&self, queues: &[QueueMetrics]) -> String {
        let host = |queue: &QueueMetrics| queue.repo_host.clone().unwrap_or_default();
        let lines = queues.iter().map(|it| format!("mq_depth_current{} {}", host(it), it.depth));
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// Whether the server is ready, set by the test.
#[derive(Default)]
pub(crate) struct Ready(pub(crate) Mutex<Option<String>>);

#[async_trait]
impl Readiness for Ready {
    async fn missing(&self) -> Option<String> {
        self.0.lock().expect("not poisoned").clone()
    }
}

/// The permissions of a token; default: all.
#[derive(Clone)]
pub(crate) struct Grant {
    pub(crate) org: &'static str,
    pub(crate) scopes: Vec<Scope>,
    pub(crate) repos: Vec<RepoName>,
    pub(crate) case: EnumCase,
    pub(crate) expires_at: Option<Timestamp>,
}

impl Default for Grant {
    fn default() -> Self {
        Self {
            org: "acme",
            scopes: Scope::ALL.to_vec(),
            repos: Vec::new(),
            case: EnumCase::Upper,
            expires_at: None,
        }
    }
}

/// A server with one repository, `git.test/acme/calc`. Its checks fail on a file `bad`.
pub(crate) struct Server {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) stores: Stores,
    pub(crate) host: Arc<FakeHost>,
    pub(crate) seen: Arc<Seen>,
    pub(crate) ready: Arc<Ready>,
    pub(crate) results: Arc<FakeResults>,
    pub(crate) blobs: MemoryBlobs,
    pub(crate) hooks: Arc<FakeWebhooks>,
    pub(crate) api: Api,
    /// A token of `acme` that may do everything.
    pub(crate) token: String,
    ids: Arc<CountingIds>,
    runner: EffectRunner,
}

impl Server {
    /// With a queue for `main`.
    pub(crate) async fn new() -> Self {
        let server = Self::without_queue().await;
        server.ok("createQueue", json!({"concurrency": 2})).await;
        server.settle().await;
        server
    }

    pub(crate) async fn without_queue() -> Self {
        let clock = Arc::new(ManualClock::default());
        let stores = MemoryDatabase::new().stores();
        let host = calc_host(clock.clone());
        let (ids, seen, ready) = (
            Arc::new(CountingIds::default()),
            Arc::new(Seen::default()),
            Arc::new(Ready::default()),
        );
        let context = Context {
            stores: stores.clone(),
            hosts: Arc::new(FakeHosts::one(&calc().host, host.clone())),
            clock: clock.clone(),
            ids: ids.clone(),
            observer: seen.clone(),
            events: Arc::new(EventPayloads(Links {
                public_url: "https://ci.test".to_owned(),
                ticket_url: Some("https://tickets.test/{id}".to_owned()),
            })),
            notifier: Arc::new(Quiet),
        };
        let (results, blobs) = (Arc::new(FakeResults::default()), MemoryBlobs::new(clock.clone()));
        let parts = UploadParts {
            blobs: Arc::new(blobs.clone()),
            reader: Arc::new(signalbox_reports::Reports::default()),
            sink: results.clone(),
            quarantine: results.clone(),
        };
        let limits = UploadLimits {
            bytes: 1_000_000,
            files: 3,
            runs: 50_000,
            public_calls: 8,
            public_calls_of_address: 5,
            ..UploadLimits::default()
        };
        let uploads = Arc::new(UploadService::new(context.clone(), parts, limits));
        let queues = Arc::new(QueueService::new(context.clone()));
        let hooks = Arc::new(FakeWebhooks::default());
        let parts = WebhookParts {
            log: hooks.clone(),
            catalog: hooks.clone(),
            sender: hooks.clone(),
            secrets: hooks.clone(),
        };
        let limits = WebhookLimits { endpoints: 3, backlog: 100 };
        let webhooks = WebhookService::new(context.clone(), parts, limits);
        let authenticator = Authenticator::new(
            stores.account.tokens.clone(),
            stores.account.orgs.clone(),
            clock.clone(),
        );
        let links = TestLinks {
            public_url: "https://ci.test".to_owned(),
            ticket_url: Some("https://tickets.test/{id}".to_owned()),
        };
        let flaky = FlakyApi {
            service: Arc::new(FlakyService::new(context.clone())),
            pages: PageTokens::new([7; 32]),
            links,
            public_pages: false,
        };
        let hub = EventHub::default();
        let events = EventsApi {
            service: Arc::new(EventService::new(
                context.stores.webhook.event_log.clone(),
                context.repositories(),
            )),
            hub: hub.clone(),
            catalog: catalog().collect(),
        };
        let api = Api {
            events,
            flaky,
            queues: queues.clone(),
            queue_replies: Arc::default(),
            what_if: Arc::new(WhatIf::new(queues.clone())),
            hints: Arc::new(HintService::new(
                context.clone(),
                context.stores.host.inbound_deliveries.clone(),
                queues.clone(),
            )),
            uploads,
            webhooks: Arc::new(webhooks),
            public_url: None,
            security_contact: None,
            authenticator: Arc::new(authenticator),
            exposition: Arc::new(Lines),
            idempotency: Arc::new(IdempotencyService::new(context.clone())),
            audit: Arc::new(AuditService::new(context.clone())),
            observer: seen.clone(),
            clock: clock.clone(),
            ids: ids.clone(),
            admission: Arc::new(Admission::new(64)),
            readiness: ready.clone(),
        };
        let runner = EffectRunner::new(context, queues);
        let token = String::new();
        let mut server = Self {
            clock,
            stores,
            host,
            seen,
            ready,
            results,
            blobs,
            hooks,
            api,
            token,
            ids,
            runner,
        };
        server.token = server.grant(Grant::default()).await;
        server
    }

    /// A new token's text.
    pub(crate) async fn grant(&self, grant: Grant) -> String {
        let org = Org {
            id: OrgId(self.ids.new_id()),
            slug: OrgSlug::new(grant.org).expect("a slug"),
            created_at: Timestamp::from_unix_seconds(0),
        };
        let org = self.stores.account.orgs.create(&org).await.expect("an organization");
        let id = self.ids.new_id();
        let mut random = [0; 20];
        random[..16].copy_from_slice(id.as_bytes());
        let text = TokenText::from_random(random);
        let token = Token {
            id: TokenId(id),
            org: org.id,
            name: "ci".to_owned(),
            hash: text.hash(),
            scopes: grant.scopes,
            repos: grant.repos,
            compatibility: match grant.case {
                EnumCase::Upper => Compatibility::Specification,
                EnumCase::Lower => Compatibility::V1Live,
            },
            created_at: Timestamp::from_unix_seconds(0),
            expires_at: grant.expires_at,
            revoked_at: None,
        };
        self.stores.account.tokens.insert(&token).await.expect("a token");
        text.reveal().to_owned()
    }

    /// Runs effects until there are none, but not those of these lanes.
    pub(crate) async fn settle_but(&self, held: &[EffectClass]) {
        settle(&self.runner, &self.clock, held).await;
    }

    pub(crate) async fn settle(&self) {
        self.settle_but(&[]).await;
    }

    /// The holder of the token.
    pub(crate) async fn caller(&self) -> Arc<Caller> {
        let here = Ipv4Addr::LOCALHOST.into();
        let found = self.api.authenticator.authenticate(&self.token, here).await;
        found.expect("the stores answer").expect("a valid token")
    }

    /// The time.
    pub(crate) fn clock_now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Reads every upload that waits to be read.
    pub(crate) async fn read_uploads(&self) {
        for leased in self.api.uploads.lease(100).await.expect("a lease") {
            self.api.uploads.read(leased).await.expect("an upload is read");
        }
    }

    /// A pull request that writes a file.
    pub(crate) fn open(&self, file: &str) -> PrNumber {
        self.host.open(&calc(), "main", &[(file, "new")])
    }

    /// A pull request that was submitted; nothing of what follows was run.
    pub(crate) async fn submitted(&self, file: &str) -> u32 {
        let pr = self.open(file).0;
        self.ok("submitPullRequest", json!({"pr": {"number": pr}})).await;
        pr
    }

    pub(crate) async fn call(&self, request: TestRequest) -> Reply {
        let service = init_service(app(self.api.clone())).await;
        let request = request.to_request();
        let (method, path) = (request.method().to_string(), request.uri().to_string());
        let response = call_service(&service, request).await;
        let status = response.status().as_u16();
        let headers: Vec<(String, String)> = response
            .headers()
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_str().expect("text").to_owned()))
            .collect();
        let streams =
            response.headers().get("content-type").is_some_and(|it| it == "text/event-stream");
        let body = if streams {
            // It has no end: what comes first.
            Following(response.into_body().boxed()).next().await.unwrap_or_default()
        } else {
            let body = to_bytes(response.into_body()).await.unwrap_or_else(|_| panic!("a body"));
            String::from_utf8(body.to_vec()).expect("UTF-8")
        };
        let reply = Reply { status, headers, body };
        let answer = Answer {
            method: &method,
            path: &path,
            status,
            content_type: reply.header("content-type").unwrap_or_default(),
            body: reply.body.as_bytes(),
        };
        DESCRIPTION.check_answer(answer).unwrap_or_else(|wrong| panic!("{wrong}"));
        reply
    }

    /// Opens a stream.
    pub(crate) async fn follow(&self, request: TestRequest) -> Following {
        let service = init_service(app(self.api.clone())).await;
        let request = request.insert_header(("x-api-token", self.token.as_str()));
        let response = call_service(&service, request.to_request()).await;
        assert_eq!(response.status(), 200);
        Following(response.into_body().boxed())
    }

    /// Posts a body, completed by the repository and the branch `main`, with a token.
    pub(crate) async fn post_as(&self, token: &str, operation: &str, mut body: Value) -> Reply {
        let repo = json!({"host": "git.test", "owner": "acme", "name": "calc"});
        for (key, value) in [("repo", repo), ("targetBranch", json!("main"))] {
            if let Some(body) = body.as_object_mut()
                && !body.contains_key(key)
            {
                body.insert(key.to_owned(), value);
            }
        }
        self.call(
            TestRequest::post()
                .uri(&format!("/v1/{operation}"))
                .insert_header(("x-api-token", token))
                .set_json(body),
        )
        .await
    }

    pub(crate) async fn post(&self, operation: &str, body: Value) -> Reply {
        self.post_as(&self.token, operation, body).await
    }

    /// Posts what must succeed.
    pub(crate) async fn ok(&self, operation: &str, body: Value) -> Value {
        let reply = self.post(operation, body).await;
        assert_eq!(reply.status, 200, "{operation}: {}", reply.body);
        reply.json()
    }

    pub(crate) async fn entry(&self, pr: u32) -> Value {
        self.ok("getSubmittedPullRequest", json!({"pr": {"number": pr}})).await
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.call(TestRequest::get().uri(path).insert_header(("x-api-token", self.token.as_str())))
            .await
    }
}

/// A streaming reply.
pub(crate) struct Following(BoxBody);

impl Following {
    /// The next event; `None` when it has ended.
    pub(crate) async fn next(&mut self) -> Option<String> {
        let chunk = std::future::poll_fn(|context| Pin::new(&mut self.0).poll_next(context)).await;
        let chunk = chunk?.unwrap_or_else(|error| panic!("{error}"));
        Some(String::from_utf8(chunk.to_vec()).expect("UTF-8"))
    }
}

/// A reply.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"), "{self:?}");
        serde_json::from_str(&self.body).expect("JSON")
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }

    /// The problem, after checking what every problem has.
    pub(crate) fn problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("content-type"), Some("application/problem+json"));
        let problem: Value = serde_json::from_str(&self.body).expect("JSON");
        assert_eq!(problem["code"], code, "{problem}");
        assert_eq!(problem["status"], status);
        assert_eq!(problem["type"], format!("urn:signalbox:problem:{code}"));
        assert!(problem["title"].is_string() && problem["detail"].is_string());
        assert_eq!(problem["request_id"].as_str(), self.header("x-request-id"));
        assert_eq!(problem["retryable"], self.header("retry-after").is_some());
        problem
    }

    /// The pointers of a 400.
    pub(crate) fn pointers(&self) -> Vec<String> {
        let problem = self.problem(400, "validation_failed");
        let errors = problem["errors"].as_array().expect("errors");
        errors.iter().map(|it| it["pointer"].as_str().expect("a pointer").to_owned()).collect()
    }

    pub(crate) fn is_unauthorized(&self) {
        assert_eq!(self.status, 401, "{self:?}");
        assert_eq!(self.header("content-type"), Some("text/plain; charset=utf-8"));
        assert!(self.header("www-authenticate").is_some());
        assert_eq!(self.body, "a valid x-api-token header is required");
    }
}

pub(crate) fn method(name: &str) -> Method {
    Method::from_bytes(name.to_uppercase().as_bytes()).expect("a method")
}
