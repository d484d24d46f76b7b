//! The server's own metrics.

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use signalbox_domain::ports::{Observed, Observer};
use signalbox_domain::queue::Decision;

/// Bounds for what is done while somebody waits: requests and steps, in seconds.
const SHORT: &[f64] = &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];
/// Bounds for effects, which last from a read of a branch to a whole run of checks, in seconds.
const LONG: &[f64] = &[0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 10_800.0];

/// Counts what it sees on a registry of its own. Labels are operations, kinds of input and names
/// of effects, never anything that callers choose, so the number of series is bounded.
pub struct PrometheusObserver {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    request_duration: Family<OperationLabels, Histogram, Bounds>,
    steps: Family<InputLabels, Counter>,
    step_duration: Histogram,
    conflicts: Counter,
    effects: Family<EffectLabels, Counter>,
    effect_duration: Family<EffectNameLabels, Histogram, Bounds>,
    landed_tree_differs: Counter,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    operation: String,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OperationLabels {
    operation: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InputLabels {
    input: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EffectLabels {
    effect: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EffectNameLabels {
    effect: &'static str,
}

/// The bounds that a family's histograms are made with.
#[derive(Clone, Copy)]
struct Bounds(&'static [f64]);

impl MetricConstructor<Histogram> for Bounds {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

impl PrometheusObserver {
    /// An observer that has seen nothing, in a server of that version.
    pub fn new(version: &str) -> Self {
        let mut this = Self {
            registry: Registry::with_prefix("signalbox"),
            requests: Family::default(),
            request_duration: Family::new_with_constructor(Bounds(SHORT)),
            steps: Family::default(),
            step_duration: Bounds(SHORT).new_metric(),
            conflicts: Counter::default(),
            effects: Family::default(),
            effect_duration: Family::new_with_constructor(Bounds(LONG)),
            landed_tree_differs: Counter::default(),
        };
        this.register(version);
        this
    }

    fn register(&mut self, version: &str) {
        let registry = &mut self.registry;
        let build = Info::new([("version", version.to_owned())]);
        registry.register("build", "The server that runs", build);
        registry.register("requests", "Requests answered", self.requests.clone());
        registry.register_with_unit(
            "request_duration",
            "Time from a request to its answer",
            Unit::Seconds,
            self.request_duration.clone(),
        );
        registry.register(
            "planner_steps",
            "Steps of queues that were committed, by the kind of input",
            self.steps.clone(),
        );
        registry.register_with_unit(
            "planner_step_duration",
            "Time to decide and commit a step",
            Unit::Seconds,
            self.step_duration.clone(),
        );
        registry.register(
            "commit_conflicts",
            "Steps decided again because somebody else had committed first",
            self.conflicts.clone(),
        );
        registry.register("effects", "Effects run, by how they ended", self.effects.clone());
        registry.register_with_unit(
            "effect_duration",
            "Time to run an effect",
            Unit::Seconds,
            self.effect_duration.clone(),
        );
        registry.register(
            "landed_tree_differs",
            "Landings whose tree is not the tested one; anything but 0 needs a look at once",
            self.landed_tree_differs.clone(),
        );
    }

    /// Everything seen so far, in the OpenMetrics text format.
    pub fn encode(&self) -> String {
        let mut page = String::new();
        // Writing to a string cannot fail, and metrics must not take the server down.
        let _ = text::encode(&mut page, &self.registry);
        page
    }
}

impl Observer for PrometheusObserver {
    fn observe(&self, seen: &Observed<'_>) {
        match seen {
            Observed::Step { input, decisions, took, .. } => {
                self.steps.get_or_create(&InputLabels { input }).inc();
                self.step_duration.observe(took.to_std().as_secs_f64());
                let differs = |it: &&Decision| matches!(it, Decision::LandedTreeDiffers { .. });
                for _ in decisions.iter().filter(differs) {
                    self.landed_tree_differs.inc();
                }
            }
            Observed::CommitConflict { .. } => {
                self.conflicts.inc();
            }
            Observed::EffectRun { effect, outcome, took, .. } => {
                self.effects.get_or_create(&EffectLabels { effect, outcome }).inc();
                self.effect_duration
                    .get_or_create(&EffectNameLabels { effect })
                    .observe(took.to_std().as_secs_f64());
            }
            Observed::Request { operation, status, took } => {
                let operation = (*operation).to_owned();
                let labels = RequestLabels { operation: operation.clone(), status: *status };
                self.requests.get_or_create(&labels).inc();
                self.request_duration
                    .get_or_create(&OperationLabels { operation })
                    .observe(took.to_std().as_secs_f64());
            }
            // What is seen first in a later version is not counted until somebody says how.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use signalbox_domain::ids::{OrgId, QueueId, RunId};
    use signalbox_domain::ports::QueueRef;
    use signalbox_domain::time::Span;
    use uuid::Uuid;

    use super::*;

    fn queue() -> QueueRef {
        QueueRef { org: OrgId(Uuid::from_u128(1)), id: QueueId(Uuid::from_u128(2)) }
    }

    fn has(page: &str, line: &str) {
        assert!(page.lines().any(|it| it == line), "no line {line:?} in\n{page}");
    }

    #[test]
    fn requests_steps_and_effects_are_counted_and_timed() {
        let observer = PrometheusObserver::new("1.2.3");
        let took = Span::seconds(2);
        for _ in 0..2 {
            observer.observe(&Observed::Request { operation: "getQueue", status: 200, took });
        }
        observer.observe(&Observed::Step { queue: queue(), input: "submit", decisions: &[], took });
        observer.observe(&Observed::CommitConflict { queue: queue() });
        let (effect, outcome) = ("land", "retried");
        observer.observe(&Observed::EffectRun { queue: queue(), effect, outcome, took });

        let page = observer.encode();
        has(&page, r#"signalbox_build_info{version="1.2.3"} 1"#);
        has(&page, r#"signalbox_requests_total{operation="getQueue",status="200"} 2"#);
        has(&page, r#"signalbox_request_duration_seconds_sum{operation="getQueue"} 4.0"#);
        has(&page, r#"signalbox_planner_steps_total{input="submit"} 1"#);
        has(&page, "signalbox_planner_step_duration_seconds_count 1");
        has(&page, "signalbox_commit_conflicts_total 1");
        has(&page, r#"signalbox_effects_total{effect="land",outcome="retried"} 1"#);
        has(&page, r#"signalbox_effect_duration_seconds_count{effect="land"} 1"#);
        has(&page, "signalbox_landed_tree_differs_total 0");
        assert!(page.ends_with("# EOF\n"));
    }

    #[test]
    fn a_landed_tree_that_was_not_tested_is_counted() {
        let observer = PrometheusObserver::new("1.2.3");
        let decisions = [Decision::LandedTreeDiffers {
            run: RunId(Uuid::nil()),
            tested: "a".repeat(40),
            landed: "b".repeat(40),
        }];
        let took = Span::ZERO;
        observer.observe(&Observed::Step {
            queue: queue(),
            input: "landed",
            decisions: &decisions,
            took,
        });
        has(&observer.encode(), "signalbox_landed_tree_differs_total 1");
    }
}
