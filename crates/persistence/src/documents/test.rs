//! A test without what its row and its key already say: most tests are healthy, and nothing was
//! ever decided about them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use signalbox_domain::flaky::{
    Judgement, LabelSource, ManualFlag, MonitorId, MonitorRecord, QuarantineDecision, Retirement,
    Suspicion, TestCase, TestId, TestKey,
};
use signalbox_domain::ports::RepoRef;
use signalbox_domain::time::Timestamp;

/// The state of a test.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TestDocument {
    key: TestKey,
    standing: Judgement,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    flag: Option<ManualFlag>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    quarantine: Option<QuarantineDecision>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    quarantined_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    monitors: BTreeMap<MonitorId, MonitorRecord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    suspicion: Option<Suspicion>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, BTreeSet<LabelSource>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retired: Option<Retirement>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    renamed_from: Option<TestId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    measured_at: Option<Timestamp>,
    /// Absent if the test has not changed since it got its status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    changed_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "is_zero")]
    sequence: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    events: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl TestDocument {
    /// The test with that id in a repository.
    pub(crate) fn test(self, repo: RepoRef, id: TestId) -> TestCase {
        let changed_at = self.changed_at.unwrap_or(self.standing.since);
        TestCase {
            org: repo.org,
            repo: repo.id,
            id,
            key: self.key,
            standing: self.standing,
            flag: self.flag,
            quarantine: self.quarantine,
            quarantined_at: self.quarantined_at,
            monitors: self.monitors,
            suspicion: self.suspicion,
            labels: self.labels,
            retired: self.retired,
            renamed_from: self.renamed_from,
            measured_at: self.measured_at,
            changed_at,
            sequence: self.sequence,
            events: self.events,
        }
    }
}

impl From<&TestCase> for TestDocument {
    fn from(test: &TestCase) -> Self {
        let TestCase {
            org: _,
            repo: _,
            id: _,
            key,
            standing,
            flag,
            quarantine,
            quarantined_at,
            monitors,
            suspicion,
            labels,
            retired,
            renamed_from,
            measured_at,
            changed_at,
            sequence,
            events,
        } = test.clone();
        let changed_at = (changed_at != standing.since).then_some(changed_at);
        Self {
            key,
            standing,
            flag,
            quarantine,
            quarantined_at,
            monitors,
            suspicion,
            labels,
            retired,
            renamed_from,
            measured_at,
            changed_at,
            sequence,
            events,
        }
    }
}
