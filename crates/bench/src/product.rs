//! The product on a database: its stores, services and routes, with a git host in memory that
//! responds immediately, and without background work.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use serde_json::{Value, json};
use signalbox_conformance::fake_host::{FakeHost, FakeHosts};
use signalbox_domain::ids::{BranchName, HostId, OrgId, OrgSlug, RepoName, TokenId};
use signalbox_domain::ports::{IdSource, Org, Repository, Stores};
use signalbox_domain::queue::CheckConclusion;
use signalbox_domain::testing::Quiet;
use signalbox_domain::token::{Caller, Compatibility, Scope, Token, TokenText};
use signalbox_http::{
    Admission, Api, DescribedEvents, EventHub, EventsApi, FlakyApi, PageTokens, TestLinks,
};
use signalbox_metrics::{PrometheusObserver, QueueExposition};
use signalbox_persistence::Database;
use signalbox_reports::Reports;
use signalbox_services::{
    AuditService, Authenticator, Context, EventService, FlakyService, HintService,
    IdempotencyService, QueueService, UploadLimits, UploadParts, UploadService, WebhookLimits,
    WebhookParts, WebhookService, WhatIf,
};
use signalbox_testkit::fake_webhooks::FakeWebhooks;
use signalbox_testkit::memory::MemoryBlobs;
use signalbox_webhooks::EventPayloads;

use crate::failure::{During, Failure};
use crate::parts::{RandomIds, Ready, SystemClock};

/// Where the requests come from.
pub(crate) const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The product, put together.
pub(crate) struct Product {
    /// What its routes work with.
    pub(crate) api: Api,
    /// Its database.
    pub(crate) stores: Stores,
    /// Its git host.
    pub(crate) host: Arc<FakeHost>,
    /// Its only organization.
    pub(crate) org: Org,
    /// The repository `git.test/acme/calc`.
    pub(crate) repository: Repository,
    /// A token that may do everything.
    pub(crate) token: String,
    /// Who comes with that token.
    pub(crate) caller: Arc<Caller>,
}

impl Product {
    /// On that database, which has its schema.
    pub(crate) async fn on(database: &Database) -> Result<Self, Failure> {
        let clock = Arc::new(SystemClock);
        let host = Arc::new(FakeHost::new(clock.clone(), |_| CheckConclusion::Success));
        let name = RepoName::parse("git.test/acme/calc").during("a repository")?;
        host.add_repository(&name, &[("file", "text")]);
        let stores = database.stores();
        let created_at = signalbox_domain::ports::Clock::now(clock.as_ref());
        let slug = OrgSlug::new("acme").during("an organization")?;
        let org = Org { id: OrgId(RandomIds.new_id()), slug, created_at };
        let org = stores.account.orgs.create(&org).await.during("an organization")?;
        let repository = Repository {
            id: signalbox_domain::ids::RepoId(RandomIds.new_id()),
            org: org.id,
            name,
            path: None,
            created_at: org.created_at,
        };
        let repository =
            stores.account.repos.register(&repository, false).await.during("a repository")?;
        let (token, text) = token(&org, 0);
        stores.account.tokens.insert(&token).await.during("a token")?;
        let api = api(&stores, host.clone())?;
        let caller = api.authenticator.authenticate(&text, HERE).await.during("a token")?;
        let Some(caller) = caller else {
            return Err(Failure::new("a token", "is not recognized"));
        };
        Ok(Self { api, stores, host, org, repository, token: text, caller })
    }

    /// Another server on the same database, with connections and caches of its own.
    pub(crate) fn another(&self, database: &Database) -> Result<Api, Failure> {
        api(&database.stores(), self.host.clone())
    }

    /// A request's body that names the repository and a branch, and a pull request if given.
    pub(crate) fn body(&self, branch: &BranchName, pr: Option<u32>) -> Value {
        let name = &self.repository.name;
        let repo = json!({
            "host": name.host.as_str(), "owner": name.owner.as_str(), "name": name.name.as_str()
        });
        let mut body = json!({ "repo": repo, "targetBranch": branch.as_str() });
        if let Some(number) = pr {
            body["pr"] = json!({ "number": number });
        }
        body
    }
}

/// What the routes of a server work with.
fn api(stores: &Stores, host: Arc<FakeHost>) -> Result<Api, Failure> {
    let (clock, ids) = (Arc::new(SystemClock), Arc::new(RandomIds));
    let started = signalbox_domain::ports::Clock::now(clock.as_ref());
    let host_id = HostId::new("git.test").during("a host")?;
    let context = Context {
        stores: stores.clone(),
        hosts: Arc::new(FakeHosts::one(&host_id, host)),
        clock: clock.clone(),
        ids: ids.clone(),
        observer: Arc::new(PrometheusObserver::new("bench", started)),
        events: Arc::new(EventPayloads::default()),
        notifier: Arc::new(Quiet),
    };
    let tokens = (stores.account.tokens.clone(), stores.account.orgs.clone());
    let authenticator = Arc::new(Authenticator::new(tokens.0, tokens.1, clock.clone()));
    let links = TestLinks { public_url: "http://localhost".to_owned(), ticket_url: None };
    let service = Arc::new(FlakyService::new(context.clone()));
    let parts = UploadParts {
        blobs: Arc::new(MemoryBlobs::new(clock.clone())),
        reader: Arc::new(Reports::default()),
        sink: service.clone(),
        quarantine: service.clone(),
    };
    let uploads = UploadService::new(context.clone(), parts, UploadLimits::default());
    let hooks = Arc::new(FakeWebhooks::default());
    let parts = WebhookParts {
        log: hooks.clone(),
        catalog: hooks.clone(),
        sender: hooks.clone(),
        secrets: hooks,
    };
    let webhooks = WebhookService::new(context.clone(), parts, WebhookLimits::default());
    let queues = Arc::new(QueueService::new(context.clone()));
    Ok(Api {
        events: EventsApi {
            service: Arc::new(EventService::new(
                context.stores.webhook.event_log.clone(),
                context.repositories(),
            )),
            hub: EventHub::default(),
            catalog: DescribedEvents::from_iter([]),
        },
        flaky: FlakyApi { service, pages: PageTokens::new([7; 32]), links, public_pages: false },
        uploads: Arc::new(uploads),
        webhooks: Arc::new(webhooks),
        public_url: None,
        security_contact: None,
        hints: Arc::new(HintService::new(
            context.clone(),
            context.stores.host.inbound_deliveries.clone(),
            queues.clone(),
        )),
        queue_replies: Arc::default(),
        what_if: Arc::new(WhatIf::new(queues.clone())),
        queues,
        authenticator,
        exposition: Arc::new(QueueExposition),
        idempotency: Arc::new(IdempotencyService::new(context.clone())),
        audit: Arc::new(AuditService::new(context.clone())),
        observer: context.observer.clone(),
        clock,
        ids,
        admission: Arc::new(Admission::for_cores(cores())),
        readiness: Arc::new(Ready),
    })
}

/// A token of that number: its stored form, and its text.
pub(crate) fn token(org: &Org, number: u64) -> (Token, String) {
    let mut random = [0; 20];
    random[..8].copy_from_slice(&number.to_be_bytes());
    let text = TokenText::from_random(random);
    let token = Token {
        id: TokenId(RandomIds.new_id()),
        org: org.id,
        name: format!("token {number}"),
        hash: text.hash(),
        scopes: Scope::ALL.to_vec(),
        repos: Vec::new(),
        compatibility: Compatibility::Specification,
        created_at: org.created_at,
        expires_at: None,
        revoked_at: None,
    };
    (token, text.reveal().to_owned())
}

/// The cores of this machine.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, std::num::NonZero::get)
}
