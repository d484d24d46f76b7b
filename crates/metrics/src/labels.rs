//! Labels and buckets of the server's own metrics.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::MetricConstructor;
use prometheus_client::metrics::histogram::Histogram;

/// Buckets for interactive work: requests and steps, in seconds.
pub(crate) const SHORT: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];
/// Buckets for effects, from a read of a branch to a whole run of checks, in seconds.
pub(crate) const LONG: &[f64] =
    &[0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 10_800.0];

macro_rules! labels {
    ($($name:ident { $($label:ident: $kind:ty),+ })+) => {
        $(
            #[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
            pub(crate) struct $name {
                $(pub(crate) $label: $kind,)+
            }
        )+
    };
}

labels! {
    RequestLabels { operation: String, status: u16 }
    OperationLabels { operation: String }
    InputLabels { input: &'static str }
    ResultLabels { result: &'static str }
    EffectLabels { effect: &'static str, outcome: &'static str }
    EffectNameLabels { effect: &'static str }
    CallOutcomeLabels { host: String, call: &'static str, outcome: &'static str }
    CallLabels { host: String, call: &'static str }
    QuotaLabels { host: String, resource: &'static str }
    OutcomeLabels { outcome: &'static str }
    WorkLabels { work: &'static str }
    StateLabels { state: &'static str }
    ShareLabels { share: &'static str }
    ReasonLabels { reason: &'static str }
    ClassLabels { class: &'static str }
    WhatLabels { what: &'static str }
    DirectionLabels { direction: &'static str }
}

/// The buckets of a family's histograms.
#[derive(Clone, Copy)]
pub(crate) struct Bounds(pub(crate) &'static [f64]);

impl MetricConstructor<Histogram> for Bounds {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}
