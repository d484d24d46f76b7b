//! A test in the list of quarantined ones.

use serde::Serialize;
use signalbox_domain::flaky::QuarantineOverride;
use signalbox_domain::ports::TestSnapshot;
use utoipa::ToSchema;

use super::test_case::some;

/// A test in the list of quarantined ones.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QuarantinedTest {
    /// Its id.
    test_case_id: String,
    /// Its name.
    name: String,
    /// The outermost suite.
    parent: Option<String>,
    /// Its file.
    file: Option<String>,
    /// Its class.
    classname: Option<String>,
    /// Its variant; empty when it has none.
    variant: String,
    /// `HEALTHY`, `FLAKY` or `BROKEN`.
    status: String,
    /// The owners of its code.
    codeowners: Vec<String>,
    /// `ALWAYS_QUARANTINE`, or `AUTO_QUARANTINE` when it follows from the status.
    quarantine_setting: &'static str,
    /// Since when it has been quarantined without interruption.
    quarantined_at: String,
    /// When the status last changed.
    status_last_updated_at: String,
}

impl QuarantinedTest {
    pub(crate) fn of(snapshot: &TestSnapshot) -> Self {
        let record = &snapshot.record;
        let (key, standing) = (&record.test.key, &record.test.standing);
        // An override that has expired was not in the list.
        let always = record
            .test
            .quarantine
            .as_ref()
            .filter(|it| it.quarantining.setting == QuarantineOverride::Always);
        Self {
            test_case_id: record.test.id.to_string(),
            name: key.name.clone(),
            parent: some(&key.parent),
            file: some(&key.file),
            classname: some(&key.classname),
            variant: key.variant.clone(),
            status: standing.value.as_str().to_uppercase(),
            codeowners: record.owners.clone(),
            quarantine_setting: always
                .map_or("AUTO_QUARANTINE", |_| QuarantineOverride::Always.as_str()),
            quarantined_at: snapshot.quarantined_since.unwrap_or(standing.since).to_string(),
            status_last_updated_at: standing.since.to_string(),
        }
    }
}
