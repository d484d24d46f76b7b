//! The server's own metrics.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use signalbox_domain::ports::{Observed, Observer};
use signalbox_domain::time::Span;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RequestLabels {
    operation: String,
    status: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct StepLabels {
    input: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct EffectLabels {
    effect: String,
    outcome: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct BuildLabels {
    version: String,
}

/// Counts and times what the server does.
pub struct PrometheusObserver {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    request_duration: Histogram,
    steps: Family<StepLabels, Counter>,
    step_duration: Histogram,
    conflicts: Counter,
    effects: Family<EffectLabels, Counter>,
    effect_duration: Histogram,
}

impl PrometheusObserver {
    /// An observer for that version of the server.
    pub fn new(version: &str) -> Self {
        let mut registry = Registry::with_prefix("signalbox");
        let durations = || Histogram::new(exponential_buckets(0.001, 2.0, 16));
        let observer = Self {
            requests: Family::default(),
            request_duration: durations(),
            steps: Family::default(),
            step_duration: durations(),
            conflicts: Counter::default(),
            effects: Family::default(),
            effect_duration: durations(),
            registry: Registry::default(),
        };
        let build = Family::<BuildLabels, Gauge>::default();
        build.get_or_create(&BuildLabels { version: version.to_owned() }).set(1);
        registry.register("build_info", "The running version", build);
        registry.register("requests", "Requests by operation", observer.requests.clone());
        registry.register(
            "request_duration_seconds",
            "Time to answer a request",
            observer.request_duration.clone(),
        );
        registry.register("planner_steps", "Committed steps", observer.steps.clone());
        registry.register(
            "planner_step_duration_seconds",
            "Time to decide and commit a step",
            observer.step_duration.clone(),
        );
        registry.register(
            "commit_conflicts",
            "Steps that were decided again because another one was committed first",
            observer.conflicts.clone(),
        );
        registry.register("effects", "Effects by outcome", observer.effects.clone());
        registry.register(
            "effect_duration_seconds",
            "Time to run an effect",
            observer.effect_duration.clone(),
        );
        Self { registry, ..observer }
    }

    /// Everything in the OpenMetrics text format.
    pub fn encode(&self) -> String {
        let mut text = String::new();
        // Writing to a String does not fail.
        let _written = encode(&mut text, &self.registry);
        text
    }
}

fn seconds(span: Span) -> f64 {
    span.to_std().as_secs_f64()
}

impl Observer for PrometheusObserver {
    fn observe(&self, seen: &Observed<'_>) {
        match seen {
            Observed::Step { input, took, .. } => {
                self.steps.get_or_create(&StepLabels { input: (*input).to_owned() }).inc();
                self.step_duration.observe(seconds(*took));
            }
            Observed::CommitConflict { .. } => {
                self.conflicts.inc();
            }
            Observed::EffectRun { effect, outcome, took, .. } => {
                let labels =
                    EffectLabels { effect: (*effect).to_owned(), outcome: (*outcome).to_owned() };
                self.effects.get_or_create(&labels).inc();
                self.effect_duration.observe(seconds(*took));
            }
            Observed::Request { operation, status, took } => {
                let operation = (*operation).to_owned();
                self.requests.get_or_create(&RequestLabels { operation, status: *status }).inc();
                self.request_duration.observe(seconds(*took));
            }
            _ => {}
        }
    }
}
