//! Pages on stores, a git host and receivers in memory, and a browser without scripts.

use std::io::Read as _;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use actix_web::App;
use actix_web::body::to_bytes;
use actix_web::test::{TestRequest, call_service, init_service};
use async_trait::async_trait;
use signalbox_conformance::fake_host::{FakeHost, FakeHosts};
use signalbox_domain::ids::{BranchName, OrgId, OrgSlug, TokenId};
use signalbox_domain::ports::{IdSource, Org, Stores};
use signalbox_domain::queue::{ChangeSource, EffectClass, Mode};
use signalbox_domain::testing::{CountingIds, ManualClock, Quiet};
use signalbox_domain::time::Timestamp;
use signalbox_domain::token::{Caller, Compatibility, Scope, Token, TokenText};
use signalbox_services::{
    AuditService, Authenticator, Context, EffectRunner, FlakyService, LandingAudit, PageReads,
    QueueService, Sessions, TokenService, UploadLimits, UploadParts, UploadService, WebhookLimits,
    WebhookParts, WebhookService, WhatIf,
};
use signalbox_testkit::fake_webhooks::FakeWebhooks;
use signalbox_testkit::memory::{MemoryBlobs, MemoryDatabase};
pub(crate) use signalbox_testkit::small_server::calc;
use signalbox_testkit::small_server::{calc_host, settle};
use signalbox_web::{EventInfo, Live, Pages, ServerFact, ServerFacts};

/// Where the pages are.
pub(crate) const HERE: &str = "http://box.test";

struct Facts;

#[async_trait]
impl ServerFacts for Facts {
    async fn facts(&self) -> Vec<ServerFact> {
        let fact = |name, value: &str, good, advice| ServerFact {
            name,
            value: value.to_owned(),
            good,
            advice,
        };
        vec![
            fact("Version", "1.2.3", true, "Advice for unhealthy facts only."),
            fact("Pending migrations", "1", false, "Run signalbox migrate up."),
        ]
    }
}

/// The content type of a page.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }

    /// The text between the first `from` and the next `to` after it.
    pub(crate) fn between(&self, from: &str, to: &str) -> &str {
        let rest = self.body.split_once(from).map_or("", |(_, rest)| rest);
        rest.split_once(to).map_or("", |(found, _)| found)
    }
}

/// A browser with a session.
pub(crate) struct Browser<'a> {
    house: &'a House,
    pub(crate) cookie: String,
}

/// A server of pages with one repository, `git.test/acme/calc`. Its checks fail on a file `bad`.
pub(crate) struct House {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) stores: Stores,
    pub(crate) host: Arc<FakeHost>,
    landing_audit: LandingAudit,
    pub(crate) hooks: Arc<FakeWebhooks>,
    pub(crate) pages: Pages,
    pub(crate) caller: Caller,
    ids: Arc<CountingIds>,
    runner: EffectRunner,
    said: Mutex<u32>,
}

pub(crate) fn main_branch() -> BranchName {
    BranchName::new("main").expect("a branch")
}

impl House {
    pub(crate) async fn new() -> Self {
        let clock = Arc::new(ManualClock::default());
        let stores = MemoryDatabase::new().stores();
        let host = calc_host(clock.clone());
        let ids = Arc::new(CountingIds::default());
        let context = Context {
            stores: stores.clone(),
            hosts: Arc::new(FakeHosts::one(&calc().host, host.clone())),
            clock: clock.clone(),
            ids: ids.clone(),
            observer: Arc::new(Quiet),
            notifier: Arc::new(Quiet),
            events: Arc::new(signalbox_conformance::PlainEvents),
        };
        let hooks = Arc::new(FakeWebhooks::default());
        let parts = WebhookParts {
            log: hooks.clone(),
            catalog: hooks.clone(),
            sender: hooks.clone(),
            secrets: hooks.clone(),
        };
        let limits = WebhookLimits { endpoints: 3, backlog: 1_000 };
        let webhooks = Arc::new(WebhookService::new(context.clone(), parts, limits));
        let queues = Arc::new(QueueService::new(context.clone()));
        let flaky = Arc::new(FlakyService::new(context.clone()));
        let parts = UploadParts {
            blobs: Arc::new(MemoryBlobs::new(clock.clone())),
            reader: Arc::new(signalbox_reports::Reports::default()),
            sink: flaky.clone(),
            quarantine: flaky.clone(),
        };
        let uploads = UploadService::new(context.clone(), parts, UploadLimits::default());
        let (tokens, orgs) = (stores.account.tokens.clone(), stores.account.orgs.clone());
        let authenticator = Arc::new(Authenticator::new(tokens, orgs, clock.clone()));
        let pages = Pages {
            reads: Arc::new(PageReads::new(
                context.clone(),
                context.stores.flaky.tests.clone(),
                queues.clone(),
            )),
            queues: queues.clone(),
            what_if: Arc::new(WhatIf::new(queues.clone())),
            flaky,
            uploads: Arc::new(uploads),
            webhooks,
            events: Arc::new([EventInfo {
                kind: "pull_request.merged".to_owned(),
                description: "A pull request is on the target branch.".to_owned(),
                schema: "{\"title\": \"pull_request.merged\"}".to_owned(),
            }]),
            tokens: Arc::new(TokenService::new(context.clone())),
            sign_in_with: None,
            sessions: Arc::new(Sessions::new(context.clone(), authenticator.clone())),
            audit: Arc::new(AuditService::new(context.clone())),
            authenticator,
            server: Arc::new(Facts),
            openapi: "{}".into(),
            public_url: HERE.to_owned(),
            ticket_url: Some("https://tickets.test/{id}".to_owned()),
            public_tests: false,
            request_id: |_| "a-request".to_owned(),
            client: |_| IpAddr::from([192, 0, 2, 1]),
            live: Live::default(),
        };
        let slug = OrgSlug::new("acme").expect("a slug");
        let org =
            Org { id: OrgId(ids.new_id()), slug, created_at: Timestamp::from_unix_seconds(0) };
        let org = stores.account.orgs.create(&org).await.expect("an organization");
        let caller = Caller {
            org: org.id,
            org_slug: org.slug,
            token: TokenId(ids.new_id()),
            name: "ada".to_owned(),
            scopes: Scope::ALL.to_vec(),
            repos: Vec::new(),
            compatibility: Compatibility::Specification,
            source: None,
        };
        let landing_audit = LandingAudit::new(context.clone(), queues.clone());
        let runner = EffectRunner::new(context, queues);
        let said = Mutex::new(0);
        Self { clock, stores, host, landing_audit, hooks, pages, caller, ids, runner, said }
    }

    /// A server with a queue for `main` of the repository.
    pub(crate) async fn with_queue() -> Self {
        let house = Self::new().await;
        let (repo, branch, source) = (calc(), main_branch(), ChangeSource::Direct);
        let queues = &house.pages.queues;
        let made = queues.create_queue(&house.caller, &repo, &branch, Mode::Single, None, source);
        made.await.expect("a queue, and so a repository");
        house
    }

    /// A token of that name, which allows that.
    pub(crate) async fn token(&self, name: &str, scopes: &[Scope]) -> String {
        self.token_of(self.caller.org, name, scopes).await
    }

    /// The same for an organization.
    pub(crate) async fn token_of(&self, org: OrgId, name: &str, scopes: &[Scope]) -> String {
        let seed = {
            let mut said = self.said.lock().expect("not poisoned");
            *said += 1;
            *said
        };
        let mut random = [7; 20];
        random[..4].copy_from_slice(&seed.to_be_bytes());
        let text = TokenText::from_random(random);
        let token = Token {
            id: TokenId(self.ids.new_id()),
            org,
            name: name.to_owned(),
            hash: text.hash(),
            scopes: scopes.to_vec(),
            repos: Vec::new(),
            compatibility: Compatibility::Specification,
            created_at: Timestamp::from_unix_seconds(0),
            expires_at: None,
            revoked_at: None,
        };
        self.stores.account.tokens.insert(&token).await.expect("a token");
        text.reveal().to_owned()
    }

    /// Signs in with a token that allows that.
    pub(crate) async fn browser(&self, name: &str, scopes: &[Scope]) -> Browser<'_> {
        let token = self.token(name, scopes).await;
        self.browser_with(&token).await.expect("a good token")
    }

    /// Signs in with that token; `None` when it is invalid.
    pub(crate) async fn browser_with(&self, token: &str) -> Option<Browser<'_>> {
        let reply = self.send("/sign-in", &[("token", token), ("next", "/")], "").await;
        let cookie = reply.header("set-cookie")?.split(';').next()?.to_owned();
        Some(Browser { house: self, cookie })
    }

    pub(crate) async fn admin(&self) -> Browser<'_> {
        self.browser("ada", &Scope::ALL).await
    }

    /// Runs effects until there are none.
    pub(crate) async fn settle(&self) {
        self.settle_but(&[]).await;
    }

    /// Runs effects until there are none, but not those of these lanes.
    pub(crate) async fn settle_but(&self, held: &[EffectClass]) {
        settle(&self.runner, &self.clock, held).await;
    }

    /// Proves all landings again.
    pub(crate) async fn audit(&self) {
        assert!(self.landing_audit.audit().await.expect("the stores answer").is_empty());
    }

    /// Every endpoint that has something to send has a turn.
    pub(crate) async fn send_webhooks(&self) {
        let hooks = &self.pages.webhooks;
        for failing in [false, true] {
            for leased in hooks.lease(99, failing).await.expect("leases") {
                let due = hooks.due(&leased, hooks.turn_end(), 999).await.expect("messages");
                for message in due {
                    hooks.deliver(&leased, &message).await.expect("kept or lost");
                }
                hooks.release(&leased).await.expect("released");
            }
        }
    }

    pub(crate) async fn send(&self, path: &str, form: &[(&str, &str)], cookie: &str) -> Reply {
        let request = TestRequest::post()
            .uri(path)
            .insert_header(("host", "box.test"))
            .insert_header(("origin", HERE))
            .insert_header(("cookie", cookie))
            .set_form(form);
        self.call(request).await
    }

    pub(crate) async fn call(&self, request: TestRequest) -> Reply {
        let app = App::new().configure(signalbox_web::configure(self.pages.clone()));
        let service = init_service(app).await;
        let response = call_service(&service, request.to_request()).await;
        let status = response.status().as_u16();
        let text = |(name, value): (&actix_web::http::header::HeaderName, &_)| {
            let value: &actix_web::http::header::HeaderValue = value;
            (name.to_string(), value.to_str().expect("text").to_owned())
        };
        let headers = response.headers().iter().map(text).collect();
        let response_is_packed = response.headers().contains_key("content-encoding");
        let body = to_bytes(response.into_body()).await.unwrap_or_else(|_| panic!("a body"));
        let body = if response_is_packed { unpacked(&body) } else { body.to_vec() };
        let body = String::from_utf8(body).expect("UTF-8");
        Reply { status, headers, body }
    }
}

fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(bytes).read_to_end(&mut text).expect("it is gzip");
    text
}

impl Browser<'_> {
    pub(crate) async fn get(&self, path: &str) -> Reply {
        let request = TestRequest::get().uri(path).insert_header(("cookie", self.cookie.as_str()));
        self.house.call(request).await
    }

    /// Sends a form as a page does: with its token.
    pub(crate) async fn post(&self, path: &str, form: &[(&str, &str)]) -> Reply {
        let any = self.get("/").await;
        let token = any.between("name=\"form_token\" value=\"", "\"").to_owned();
        assert_eq!(token.len(), 96, "a page carries the token of forms");
        let form = [form, &[("form_token", token.as_str())]].concat();
        self.house.send(path, &form, &self.cookie).await
    }
}
