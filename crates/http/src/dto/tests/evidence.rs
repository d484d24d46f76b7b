//! The evidence of monitors.

use serde_json::{Map, Value};
use signalbox_domain::flaky::{Evidence, Reading};

/// The evidence of a monitor.
pub(super) fn evidence_value(reading: &Reading) -> Value {
    let summary = ("summary".to_owned(), reading.to_string().into());
    let particulars = reading.evidence().into_iter().map(|(name, evidence)| {
        let value = match evidence {
            Evidence::Count(count) => count.into(),
            Evidence::Time(at) => at.map(|at| at.to_string()).into(),
            Evidence::Word(word) => word.into(),
        };
        (name.to_owned(), value)
    });
    Value::Object([summary].into_iter().chain(particulars).collect::<Map<_, _>>())
}
