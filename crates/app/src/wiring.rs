//! The only place that knows every adapter.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signalbox_domain::ids::{OrgId, OrgSlug};
use signalbox_domain::ports::{Clock, IdSource, Observer, Org};
use signalbox_domain::queue::SharedPolicy;
use signalbox_domain::time::Span;
use signalbox_hosts::{ConnectedHosts, HostParts};
use signalbox_http::{
    Admission, Api, EventDescription, EventsApi, FlakyApi, PageTokens, TestLinks, TrustedProxies,
};
use signalbox_metrics::{PrometheusObserver, QueueExposition};
use signalbox_oidc::CiSystems;
use signalbox_persistence::Database;
use signalbox_reports::{BlockingReader, Reports};
use signalbox_services::{
    AuditService, Authenticator, Context, DeferredReports, EffectRunner, EventService,
    FlakyService, HintService, IdempotencyService, JobService, LandingAudit, QueueService,
    RefusalReports, StatusReporter, Sweeper, UploadLimits, UploadParts, UploadService, Watch,
    WebhookService, WhatIf,
};
use signalbox_telemetry::LoggingObserver;
pub(crate) use signalbox_terminal::chain;
use signalbox_webhooks::{EventPayloads, Links};

use crate::adapters::{RandomIds, SystemClock, WakeUps};
use crate::error::AppError;
use crate::hosts;
use crate::probe::Probe;
use crate::webhooks::LostKey;
use signalbox_config::Config;

/// All services with their adapters.
pub(crate) struct App {
    pub(crate) config: Config,
    pub(crate) database: Database,
    pub(crate) context: Context,
    pub(crate) hosts: Arc<ConnectedHosts>,
    pub(crate) wake_ups: Arc<WakeUps>,
    pub(crate) metrics: Arc<PrometheusObserver>,
    pub(crate) queues: Arc<QueueService>,
    pub(crate) what_if: Arc<WhatIf>,
    pub(crate) uploads: Arc<UploadService>,
    pub(crate) flaky: FlakyApi,
    pub(crate) webhooks: Arc<WebhookService>,
    /// Why webhooks are off, if they are.
    pub(crate) lost_key: Option<LostKey>,
    pub(crate) runner: Arc<EffectRunner>,
    pub(crate) sweeper: Arc<Sweeper>,
    pub(crate) landing_audit: LandingAudit,
    pub(crate) watch: Watch,
    pub(crate) hints: Arc<HintService>,
    pub(crate) status_reporter: Arc<StatusReporter>,
    pub(crate) jobs: Arc<JobService>,
    pub(crate) stopping: Arc<AtomicBool>,
    pub(crate) authenticator: Arc<Authenticator>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) probe: Arc<Probe>,
}

impl App {
    /// Creates all services on that database.
    pub(crate) async fn new(
        config: Config,
        database: Database,
        policy: SharedPolicy,
        lost_key: Option<LostKey>,
    ) -> Result<Self, AppError> {
        let stores = database.stores();
        let (clock, ids) = (Arc::new(SystemClock), Arc::new(RandomIds));
        let mut orgs: Vec<OrgId> = Vec::new();
        for organization in &config.organizations {
            let slug = OrgSlug::new(organization.slug.as_str())?;
            let org = Org { id: OrgId(ids.new_id()), slug, created_at: clock.now() };
            let kept = stores.account.orgs.create(&org).await;
            orgs.push(kept.map_err(AppError::failed("organizations"))?.id);
        }
        let metrics = Arc::new(PrometheusObserver::new(env!("CARGO_PKG_VERSION"), clock.now()));
        let observer: Arc<dyn Observer> = Arc::new(LoggingObserver(metrics.clone()));
        let reports = Arc::new(DeferredReports::default());
        let parts = HostParts {
            pull_requests: stores.host.pull_requests.clone(),
            clock: clock.clone(),
            reports: reports.clone(),
            public_url: config.public_url(),
            folder: config.data_dir().join("checks"),
            sandbox: signalbox_admin::sandbox(&config),
            recomputer: hosts::KINDS.recomputer(),
        };
        let settings = hosts::settings(&config, &orgs)?;
        let hosts = ConnectedHosts::connect(hosts::KINDS, settings, &parts, observer.clone());
        let hosts = Arc::new(hosts?);
        let wake_ups = Arc::new(WakeUps::default());
        let context = Context {
            stores,
            hosts: hosts.clone(),
            clock,
            ids,
            events: Arc::new(EventPayloads(Links {
                public_url: config.public_url().trim_end_matches('/').to_owned(),
                ticket_url: config.flaky.ticket_url.clone(),
            })),
            observer,
            notifier: wake_ups.clone(),
        };
        let queues = Arc::new(QueueService::new(context.clone()).with_policy(policy));
        let flaky = flaky(&config, &context).await?;
        let uploads = Arc::new(uploads(&config, &context, &flaky.service)?);
        reports.go_to(&uploads);
        let (tokens, orgs) =
            (context.stores.account.tokens.clone(), context.stores.account.orgs.clone());
        let reports = RefusalReports::new(
            context.observer.clone(),
            context.stores.account.audit.clone(),
            context.ids.clone(),
        );
        let authenticator = Authenticator::new(tokens, orgs, context.clock.clone());
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let ci = CiSystems::new(config.ci_systems()?, context.clock.clone());
        let ci = Arc::new(ci.map_err(AppError::failed("ci"))?);
        let authenticator = Arc::new(authenticator.reporting(reports).trusting(ci));
        let webhooks = Arc::new(crate::webhooks::service(&config, &context, lost_key.as_ref())?);
        let stopping = Arc::new(AtomicBool::new(false));
        let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        let proxies = TrustedProxies::new(config.server.proxies()?);
        let admission = Admission::for_cores(cores).with(config.data_dir().join("bodies"), proxies);
        Ok(Self {
            admission: Arc::new(admission),
            probe: Arc::new(Probe::new(database.clone(), stopping.clone())),
            uploads,
            flaky,
            webhooks,
            lost_key,
            config,
            database,
            hosts,
            wake_ups,
            metrics,
            runner: Arc::new(EffectRunner::new(context.clone(), queues.clone())),
            sweeper: Arc::new(Sweeper::new(context.clone(), queues.clone())),
            landing_audit: LandingAudit::new(context.clone(), queues.clone()),
            watch: Watch::new(context.clone(), queues.clone()),
            hints: Arc::new(HintService::new(
                context.clone(),
                context.stores.host.inbound_deliveries.clone(),
                queues.clone(),
            )),
            status_reporter: Arc::new(StatusReporter::new(context.clone(), queues.clone())),
            jobs: Arc::new(JobService::new(
                context.stores.runtime.jobs.clone(),
                context.clock.clone(),
                context.ids.new_id(),
            )),
            what_if: Arc::new(WhatIf::new(queues.clone())),
            queues,
            context,
            stopping,
            authenticator,
        })
    }

    /// The state of the HTTP routes.
    pub(crate) fn api(&self) -> Api {
        let context = &self.context;
        Api {
            queues: self.queues.clone(),
            queue_replies: Arc::default(),
            what_if: self.what_if.clone(),
            hints: self.hints.clone(),
            uploads: self.uploads.clone(),
            public_url: self.config.server.public_url.is_some().then(|| self.config.public_url()),
            security_contact: self.config.server.security_contact.as_deref().map(Into::into),
            flaky: self.flaky.clone(),
            webhooks: self.webhooks.clone(),
            events: EventsApi {
                service: Arc::new(EventService::new(
                    context.stores.webhook.event_log.clone(),
                    context.repositories(),
                )),
                hub: self.wake_ups.events.clone(),
                catalog: catalog().collect(),
            },
            authenticator: self.authenticator.clone(),
            exposition: Arc::new(QueueExposition),
            idempotency: Arc::new(IdempotencyService::new(context.clone())),
            audit: Arc::new(AuditService::new(context.clone())),
            observer: context.observer.clone(),
            clock: context.clock.clone(),
            ids: context.ids.clone(),
            admission: self.admission.clone(),
            readiness: self.probe.clone(),
        }
    }
}

/// Every public event, as the API describes it.
pub(crate) fn catalog() -> impl Iterator<Item = EventDescription> {
    let described = |event: &signalbox_webhooks::catalog::EventType| EventDescription {
        kind: event.name.to_owned(),
        description: event.description.to_owned(),
        schema: event.schema().to_string(),
    };
    signalbox_webhooks::catalog::all().map(described)
}

/// The upload services with their adapters.
fn uploads(
    config: &Config,
    context: &Context,
    results: &Arc<FlakyService>,
) -> Result<UploadService, AppError> {
    const MIB: u64 = 1024 * 1024;
    let flaky = &config.flaky;
    let parts = UploadParts {
        blobs: crate::uploads::blobs(config)?,
        reader: Arc::new(BlockingReader::new(Reports::default())),
        sink: results.clone(),
        quarantine: results.clone(),
    };
    let bytes = u64::from(flaky.upload_mib) * MIB;
    let history = Span::days(flaky.history_days);
    let limits = UploadLimits { bytes, history, ..UploadLimits::default() };
    Ok(UploadService::new(context.clone(), parts, limits))
}

/// The flaky-test services with their adapters.
async fn flaky(config: &Config, context: &Context) -> Result<FlakyApi, AppError> {
    let (one, other) = (context.ids.new_id(), context.ids.new_id());
    let mut new = [0; 32];
    let random = one.as_bytes().iter().chain(other.as_bytes());
    for (byte, random) in new.iter_mut().zip(random) {
        *byte = *random;
    }
    let key = context.stores.flaky.tests.page_key(new).await;
    let key = key.map_err(AppError::failed("page token key"))?;
    let links = TestLinks {
        public_url: config.public_url().trim_end_matches('/').to_owned(),
        ticket_url: config.flaky.ticket_url.clone(),
    };
    Ok(FlakyApi {
        service: Arc::new(FlakyService::new(context.clone())),
        pages: PageTokens::new(key),
        links,
        public_pages: config.flaky.public_pages,
    })
}
