//! The server's own metrics.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use signalbox_domain::ports::{Observed, Observer};
use signalbox_domain::queue::{Decision, RetryClass};
use signalbox_domain::time::{Span, Timestamp};

use crate::gauges::{Gauges, Sample};
use crate::labels::{
    Bounds, CallLabels, CallOutcomeLabels, ClassLabels, DirectionLabels, EffectLabels,
    EffectNameLabels, InputLabels, LONG, OperationLabels, OutcomeLabels, QuotaLabels, ReasonLabels,
    RequestLabels, ResultLabels, SHORT, ShareLabels, WhatLabels,
};

/// Counts observations on its own registry. Labels are operations, kinds of input, names of
/// effects and configured hosts, never anything that callers choose, so the number of series is
/// bounded.
pub struct PrometheusObserver {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    request_duration: Family<OperationLabels, Histogram, Bounds>,
    requests_shed: Family<ShareLabels, Counter>,
    tokens_refused: Family<ReasonLabels, Counter>,
    panics: Family<WhatLabels, Counter>,
    steps: Family<InputLabels, Counter>,
    step_duration: Histogram,
    conflicts: Counter,
    effects: Family<EffectLabels, Counter>,
    effect_duration: Family<EffectNameLabels, Histogram, Bounds>,
    landed_tree_differs: Counter,
    composition_mismatch: Counter,
    landings_audited: Family<ResultLabels, Counter>,
    check_retries: Family<ClassLabels, Counter>,
    checks_excused: Counter,
    red_target_holds: Counter,
    freezes: Counter,
    overtakes: Counter,
    window_resizes: Family<DirectionLabels, Counter>,
    runs_reparented: Counter,
    runs_pretested: Counter,
    unexplained_waits: Gauge,
    answers_lost: Counter,
    host_calls: Family<CallOutcomeLabels, Counter>,
    host_call_duration: Family<CallLabels, Histogram, Bounds>,
    quota_limit: Family<QuotaLabels, Gauge>,
    quota_remaining: Family<QuotaLabels, Gauge>,
    quota_reset: Family<QuotaLabels, Gauge<f64, AtomicU64>>,
    uploads: Family<OutcomeLabels, Counter>,
    upload_duration: Histogram,
    deliveries: Family<OutcomeLabels, Counter>,
    delivery_duration: Histogram,
    gauges: Gauges,
}

impl PrometheusObserver {
    /// A new observer, for a server of that version and start time.
    pub fn new(version: &str, started: Timestamp) -> Self {
        let mut this = Self {
            registry: Registry::default(),
            requests: Family::default(),
            request_duration: Family::new_with_constructor(Bounds(SHORT)),
            requests_shed: Family::default(),
            tokens_refused: Family::default(),
            panics: Family::default(),
            steps: Family::default(),
            step_duration: Histogram::new(SHORT.iter().copied()),
            conflicts: Counter::default(),
            effects: Family::default(),
            effect_duration: Family::new_with_constructor(Bounds(LONG)),
            landed_tree_differs: Counter::default(),
            composition_mismatch: Counter::default(),
            landings_audited: Family::default(),
            check_retries: Family::default(),
            checks_excused: Counter::default(),
            red_target_holds: Counter::default(),
            freezes: Counter::default(),
            overtakes: Counter::default(),
            window_resizes: Family::default(),
            runs_reparented: Counter::default(),
            runs_pretested: Counter::default(),
            unexplained_waits: Gauge::default(),
            answers_lost: Counter::default(),
            host_calls: Family::default(),
            host_call_duration: Family::new_with_constructor(Bounds(SHORT)),
            quota_limit: Family::default(),
            quota_remaining: Family::default(),
            quota_reset: Family::default(),
            uploads: Family::default(),
            upload_duration: Histogram::new(LONG.iter().copied()),
            deliveries: Family::default(),
            delivery_duration: Histogram::new(SHORT.iter().copied()),
            gauges: Gauges::default(),
        };
        let process = this.registry.sub_registry_with_prefix("process");
        let start = Gauge::<f64, AtomicU64>::default();
        start.set(seconds_of(started));
        let help = "Start time of the server, in seconds since 1970";
        process.register_with_unit("start_time", help, Unit::Seconds, start);
        this.register(version);
        this
    }

    fn register(&mut self, version: &str) {
        let registry = self.registry.sub_registry_with_prefix("signalbox");
        let build = Info::new([("version", version.to_owned())]);
        registry.register("build", "Version of the running server", build);
        registry.register("requests", "Requests answered", self.requests.clone());
        registry.register_with_unit(
            "request_duration",
            "Time from a request to its reply",
            Unit::Seconds,
            self.request_duration.clone(),
        );
        registry.register(
            "requests_shed",
            "Requests refused with 503, and connections closed, because the server was at its limit, by share",
            self.requests_shed.clone(),
        );
        registry.register(
            "tokens_refused",
            "Refused tokens of requests and sign-ins, by reason",
            self.tokens_refused.clone(),
        );
        registry.register(
            "panics",
            "Panics of requests and of background loops, which are restarted; must be 0",
            self.panics.clone(),
        );
        registry.register(
            "planner_steps",
            "Committed steps of queues, by the kind of input",
            self.steps.clone(),
        );
        registry.register_with_unit(
            "planner_step_duration",
            "Time from reading a queue to the commit of a step; the same for steps that are committed together",
            Unit::Seconds,
            self.step_duration.clone(),
        );
        registry.register(
            "commit_conflicts",
            "Steps decided again because a concurrent commit came first",
            self.conflicts.clone(),
        );
        registry.register("effects", "Effects run, by outcome", self.effects.clone());
        registry.register_with_unit(
            "effect_duration",
            "Duration of an effect",
            Unit::Seconds,
            self.effect_duration.clone(),
        );
        registry.register(
            "landed_tree_differs",
            "Landings whose tree is not the tested one; must be 0",
            self.landed_tree_differs.clone(),
        );
        registry.register(
            "composition_mismatch",
            "Candidates and landings that are not their base with the changes of their pull requests; \
             must be 0",
            self.composition_mismatch.clone(),
        );
        registry.register(
            "landings_audited",
            "Landed commits that the daily audit has proved again, by result; wrong ones are counted \
             once",
            self.landings_audited.clone(),
        );
        registry.register(
            "check_retries",
            "Retries of failed checks on the same candidate, by the class of the failure",
            self.check_retries.clone(),
        );
        registry.register(
            "red_target_holds",
            "Test runs that returned to the line because their tests fail on the target branch itself",
            self.red_target_holds.clone(),
        );
        registry.register(
            "queue_freezes",
            "Freezes that started, or whose end or reason changed",
            self.freezes.clone(),
        );
        registry.register(
            "queue_overtakes",
            "Pull requests that entered the line ahead of earlier ones by fair share",
            self.overtakes.clone(),
        );
        registry.register(
            "runs_reparented",
            "Failed test runs whose pull requests are tested beside the line, because runs ahead were unfinished",
            self.runs_reparented.clone(),
        );
        registry.register(
            "runs_pretested",
            "Test runs of pull requests beside the line, because their run in the line would probably fail",
            self.runs_pretested.clone(),
        );
        registry.register(
            "window_resizes",
            "Changes of an adaptive window: down by a failure, or up by a landing",
            self.window_resizes.clone(),
        );
        registry.register(
            "checks_excused",
            "Failed checks that count as passed, because only quarantined tests failed",
            self.checks_excused.clone(),
        );
        registry.register(
            "unexplained_waits",
            "Pull requests that wait for no known reason; must be 0",
            self.unexplained_waits.clone(),
        );
        registry.register(
            "answers_lost",
            "Effects that disappeared without a result of the host, and were started again",
            self.answers_lost.clone(),
        );
        registry.register("host_calls", "Calls of git hosts, by outcome", self.host_calls.clone());
        registry.register_with_unit(
            "host_call_duration",
            "Duration of a call of a git host",
            Unit::Seconds,
            self.host_call_duration.clone(),
        );
        registry.register(
            "host_quota_limit",
            "Calls that a git host allows per period, as last reported",
            self.quota_limit.clone(),
        );
        registry.register(
            "host_quota_remaining",
            "Remaining calls of this period, as last reported by the git host",
            self.quota_remaining.clone(),
        );
        registry.register_with_unit(
            "host_quota_reset_timestamp",
            "Start of the next period, in seconds since 1970",
            Unit::Seconds,
            self.quota_reset.clone(),
        );
        registry.register(
            "uploads",
            "Attempts to read uploads of test results, by outcome",
            self.uploads.clone(),
        );
        registry.register_with_unit(
            "upload_duration",
            "Duration of reading an upload of test results",
            Unit::Seconds,
            self.upload_duration.clone(),
        );
        registry.register(
            "webhook_deliveries",
            "Webhook delivery attempts, by outcome",
            self.deliveries.clone(),
        );
        registry.register_with_unit(
            "webhook_delivery_duration",
            "Duration of a webhook delivery attempt",
            Unit::Seconds,
            self.delivery_duration.clone(),
        );
        self.gauges.register(registry);
    }

    /// All counters, with the sampled gauges, in the OpenMetrics text format.
    pub fn encode(&self, sample: &Sample) -> String {
        self.gauges.set(sample);
        let mut page = String::new();
        // Writing to a string cannot fail, and metrics must not stop the server.
        let _ = text::encode(&mut page, &self.registry);
        page
    }
}

const fn class_label(class: RetryClass) -> &'static str {
    match class {
        RetryClass::Infrastructure => "infrastructure",
        RetryClass::KnownFlaky => "known_flaky",
        RetryClass::SeenElsewhere => "seen_elsewhere",
    }
}

fn seconds(span: Span) -> f64 {
    span.to_std().as_secs_f64()
}

fn seconds_of(at: Timestamp) -> f64 {
    seconds(at.since(Timestamp::from_unix_micros(0)))
}

/// A gauge holds signed numbers; one that does not fit is the largest that does.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl PrometheusObserver {
    /// Counts an audit; returns the number of wrong landings so far.
    fn audited(&self, proved: u32, not_checked: u32, wrong: u32) -> u64 {
        let results = [("proved", proved), ("not_checked", not_checked), ("wrong", wrong)];
        for (result, count) in results {
            self.landings_audited.get_or_create(&ResultLabels { result }).inc_by(count.into());
        }
        self.composition_mismatch.inc_by(wrong.into())
    }
}

impl Observer for PrometheusObserver {
    fn observe(&self, seen: &Observed<'_>) {
        match seen {
            Observed::Step { input, decisions, took, .. } => {
                self.steps.get_or_create(&InputLabels { input }).inc();
                self.step_duration.observe(seconds(*took));
                for decision in *decisions {
                    match decision {
                        Decision::LandedTreeDiffers { .. } => self.landed_tree_differs.inc(),
                        Decision::CompositionMismatch { .. } => self.composition_mismatch.inc(),
                        Decision::LandingsAudited { proved, not_checked, wrong } => {
                            self.audited(*proved, *not_checked, *wrong)
                        }
                        Decision::Retried { retry, .. } => {
                            let class = class_label(retry.class);
                            self.check_retries.get_or_create(&ClassLabels { class }).inc()
                        }
                        Decision::Excused { .. } => self.checks_excused.inc(),
                        Decision::HeldByRedTarget { .. } => self.red_target_holds.inc(),
                        Decision::FreezeStarted { .. } | Decision::PartialFreezeStarted { .. } => {
                            self.freezes.inc()
                        }
                        Decision::Overtook { .. } => self.overtakes.inc(),
                        Decision::Reparented { .. } => self.runs_reparented.inc(),
                        Decision::Pretested { .. } => self.runs_pretested.inc(),
                        Decision::WindowResized { from, to, .. } => {
                            let direction = if to < from { "down" } else { "up" };
                            self.window_resizes.get_or_create(&DirectionLabels { direction }).inc()
                        }
                        _ => 0,
                    };
                }
            }
            Observed::CommitConflict { .. } => {
                self.conflicts.inc();
            }
            Observed::EffectRun { effect, outcome, took, .. } => {
                self.effects.get_or_create(&EffectLabels { effect, outcome }).inc();
                let duration = self.effect_duration.get_or_create(&EffectNameLabels { effect });
                duration.observe(seconds(*took));
            }
            Observed::Request { operation, status, took } => {
                let operation = (*operation).to_owned();
                let labels = RequestLabels { operation: operation.clone(), status: *status };
                self.requests.get_or_create(&labels).inc();
                let duration = self.request_duration.get_or_create(&OperationLabels { operation });
                duration.observe(seconds(*took));
            }
            Observed::RequestShed { share } => {
                self.requests_shed.get_or_create(&ShareLabels { share }).inc();
            }
            Observed::TokenRefused { reason, .. } => {
                self.tokens_refused.get_or_create(&ReasonLabels { reason }).inc();
            }
            Observed::Panicked { what } => {
                self.panics.get_or_create(&WhatLabels { what }).inc();
            }
            Observed::HostCall { host, call, outcome, took } => {
                let host = (*host).to_owned();
                let labels = CallOutcomeLabels { host: host.clone(), call, outcome };
                self.host_calls.get_or_create(&labels).inc();
                let duration = self.host_call_duration.get_or_create(&CallLabels { host, call });
                duration.observe(seconds(*took));
            }
            Observed::HostQuota { host, resource, limit, remaining, resets_at } => {
                let labels = QuotaLabels { host: (*host).to_owned(), resource };
                self.quota_limit.get_or_create(&labels).set(signed(*limit));
                self.quota_remaining.get_or_create(&labels).set(signed(*remaining));
                self.quota_reset.get_or_create(&labels).set(seconds_of(*resets_at));
            }
            Observed::Waits { unexplained, lost } => {
                self.unexplained_waits.set(signed(*unexplained));
                self.answers_lost.inc_by(*lost);
            }
            Observed::Upload { outcome, took } => {
                self.uploads.get_or_create(&OutcomeLabels { outcome }).inc();
                self.upload_duration.observe(seconds(*took));
            }
            Observed::WebhookDelivery { outcome, took } => {
                self.deliveries.get_or_create(&OutcomeLabels { outcome }).inc();
                self.delivery_duration.observe(seconds(*took));
            }
            // Observations of later versions are not counted until they are added here.
            _ => {}
        }
    }
}
