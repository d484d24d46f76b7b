//! The state of a test case.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{OrgId, RepoId};
use crate::time::Timestamp;

use super::{
    Action, Actor, MonitorId, MonitorKind, MonitorStatus, QuarantineCause, QuarantineOverride,
    Quarantining, Reading, Retirement, Settings, StatusReason, TestId, TestKey, TestStatus,
    is_quarantined,
};

/// How a test is judged, why, and since when.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Judgement {
    /// The status.
    pub value: TestStatus,
    /// Why.
    pub reason: StatusReason,
    /// The monitor that the reason is about.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub monitor: Option<MonitorId>,
    /// What that monitor saw.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub evidence: Option<Reading>,
    /// When the status last changed; another reason for the same status does not move it.
    pub since: Timestamp,
}

impl Judgement {
    /// The reason as one line: the word, then the evidence if there is any.
    pub fn reason_text(&self) -> String {
        match &self.evidence {
            Some(evidence) => format!("{}: {evidence}", self.reason.as_str()),
            None => self.reason.as_str().into(),
        }
    }
}

/// A person's flag: the test is flaky, whatever monitors say.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ManualFlag {
    /// Why.
    pub reason: Option<String>,
    /// Who.
    pub by: Actor,
    /// When.
    pub at: Timestamp,
}

/// A monitor does not count for this test for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Mute {
    /// The first moment at which it counts again; `None` for never.
    pub until: Option<Timestamp>,
    /// Why.
    pub reason: Option<String>,
    /// Who.
    pub by: Actor,
    /// When.
    pub at: Timestamp,
}

/// The record of one monitor for the test. There is one for each monitor that was ever active for
/// it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct MonitorRecord {
    /// The monitor's kind.
    pub kind: MonitorKind,
    /// Whether it is active.
    pub status: MonitorStatus,
    /// Since when.
    pub since: Timestamp,
    /// The reading by which it last became active, or last saw the pattern again.
    pub evidence: Reading,
    /// Whether it is muted.
    pub mute: Option<Mute>,
}

/// Something that may become a finding, on too little evidence so far. It does not change the status.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Suspicion {
    /// The monitor.
    pub monitor: MonitorId,
    /// What it saw.
    pub evidence: Reading,
    /// The first moment at which it no longer matters.
    pub until: Timestamp,
}

/// What was decided about the test's quarantine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct QuarantineDecision {
    /// The override.
    pub quarantining: Quarantining,
    /// Why.
    pub reason: Option<String>,
    /// Who.
    pub by: Actor,
    /// When.
    pub at: Timestamp,
}

/// A source of a label on a test. The label stays until its last source releases it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum LabelSource {
    /// People.
    Person,
    /// A monitor.
    Monitor(MonitorId),
}

/// A test case of a repository. Each variant of a test is one of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TestCase {
    /// The organization.
    pub org: OrgId,
    /// The repository.
    pub repo: RepoId,
    /// Its id, made from the key.
    pub id: TestId,
    /// What makes it that test.
    pub key: TestKey,
    /// How it is judged.
    pub standing: Judgement,
    /// A person's flag.
    pub flag: Option<ManualFlag>,
    /// What was decided about its quarantine; `None` if nothing ever was.
    pub quarantine: Option<QuarantineDecision>,
    /// Since when it was quarantined as of the last change; `None` if it was not. What settings
    /// have changed since is not in it: [`TestCase::quarantined_since`].
    #[cfg_attr(feature = "serde", serde(default))]
    pub quarantined_at: Option<Timestamp>,
    /// The records of monitors.
    pub monitors: BTreeMap<MonitorId, MonitorRecord>,
    /// What a monitor suspects that is not active; only of a healthy test, with the
    /// reason [`StatusReason::MaybePlatformOrBase`].
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub suspicion: Option<Suspicion>,
    /// Labels and their sources; each label has at least one source.
    pub labels: BTreeMap<String, BTreeSet<LabelSource>>,
    /// Set while stable branches do not contain the test: it is healthy then and not quarantined,
    /// whatever was found and decided.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub retired: Option<Retirement>,
    /// The test that was renamed to this one last.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub renamed_from: Option<TestId>,
    /// The time of the last absorbed measurement.
    pub measured_at: Option<Timestamp>,
    /// The last change.
    pub changed_at: Timestamp,
    /// Grows with every change; the version for commits and the number for the journal.
    pub sequence: u64,
    /// Events so far.
    pub events: u64,
}

/// An active reason against a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it makes of the test.
    pub status: TestStatus,
    /// What it is.
    pub reason: StatusReason,
    /// The monitor; `None` for a user's flag.
    pub monitor: Option<MonitorId>,
}

impl TestCase {
    /// A test that was just seen for the first time: healthy.
    pub fn new(org: OrgId, repo: RepoId, key: TestKey, at: Timestamp) -> Self {
        Self {
            org,
            repo,
            id: key.id(),
            key,
            standing: Judgement {
                value: TestStatus::Healthy,
                reason: StatusReason::NothingFound,
                monitor: None,
                evidence: None,
                since: at,
            },
            flag: None,
            quarantine: None,
            quarantined_at: None,
            monitors: BTreeMap::new(),
            suspicion: None,
            labels: BTreeMap::new(),
            retired: None,
            renamed_from: None,
            measured_at: None,
            changed_at: at,
            sequence: 0,
            events: 0,
        }
    }

    /// The test that it was renamed to.
    pub fn renamed_to(&self) -> Option<TestId> {
        self.retired.as_ref()?.renamed_to
    }

    /// The current override.
    pub fn quarantining(&self) -> Quarantining {
        self.quarantine.as_ref().map_or(Quarantining::FOLLOW, |it| it.quarantining)
    }

    /// Whether its absence would show: a monitor found something, or a user decided something.
    pub fn is_remarkable(&self) -> bool {
        let is_marked = |record: &MonitorRecord| {
            record.status == MonitorStatus::Active || record.mute.is_some()
        };
        self.standing.value != TestStatus::Healthy
            || self.flag.is_some()
            || self.quarantining() != Quarantining::FOLLOW
            || self.monitors.values().any(is_marked)
            || !self.labels.is_empty()
    }

    /// Whether its next failure counts as passed: [`is_quarantined`]. A retired test is not
    /// quarantined.
    pub fn is_quarantined(&self, settings: &Settings, at: Timestamp) -> bool {
        self.retired.is_none()
            && is_quarantined(settings.quarantine, self.quarantining(), self.standing.value, at)
    }

    /// Who or what quarantines it; `None` when it is not quarantined.
    pub fn quarantine_cause(&self, settings: &Settings, at: Timestamp) -> Option<QuarantineCause> {
        if !self.is_quarantined(settings, at) {
            return None;
        }
        let always = self.quarantining().at(at) == QuarantineOverride::Always;
        if let Some(decision) = self.quarantine.as_ref().filter(|_| always) {
            return Some(QuarantineCause::Override { by: decision.by.clone() });
        }
        if let Some(flag) = self.flag.as_ref().filter(|_| self.standing.monitor.is_none()) {
            return Some(QuarantineCause::Flag { by: flag.by.clone() });
        }
        let id = self.standing.monitor?;
        let name = settings.monitor(id).map_or_else(|| id.to_string(), |it| it.name.clone());
        Some(QuarantineCause::Monitor { status: self.standing.value, name })
    }

    /// Since when it has been quarantined without interruption; `None` when it is not.
    pub fn quarantined_since(&self, settings: &Settings, at: Timestamp) -> Option<Timestamp> {
        if !self.is_quarantined(settings, at) {
            return None;
        }
        let setting = self.quarantining().at(at);
        let covered = settings.quarantine_since.of(setting, self.standing.value);
        let covered_later = covered.filter(|it| *it > self.changed_at);
        Some(covered_later.or(self.quarantined_at).unwrap_or(self.standing.since))
    }

    /// The working monitors that are active and not muted for this test.
    pub fn counting_monitors<'a>(
        &'a self,
        settings: &'a Settings,
    ) -> impl Iterator<Item = (MonitorId, &'a MonitorRecord, &'a Action)> {
        self.monitors.iter().filter_map(|(id, record)| {
            let counts = record.status == MonitorStatus::Active && record.mute.is_none();
            let monitor = settings.working_monitor(*id).filter(|_| counts)?;
            Some((*id, record, &monitor.action))
        })
    }

    /// All findings about the test, in the order of monitors, a user's flag last; none about a retired
    /// one.
    pub fn findings(&self, settings: &Settings) -> Vec<Finding> {
        if self.retired.is_some() {
            return Vec::new();
        }
        let of_monitors = self.counting_monitors(settings).filter_map(|(id, record, action)| {
            let status = match action {
                Action::Classify(classification) => (*classification).into(),
                Action::Label { .. } => return None,
            };
            Some(Finding { status, reason: record.kind.into(), monitor: Some(id) })
        });
        let of_people = self.flag.iter().map(|_| Finding {
            status: TestStatus::Flaky,
            reason: StatusReason::FlaggedByHand,
            monitor: None,
        });
        of_monitors.chain(of_people).collect()
    }

    /// The status that follows from the findings: the most severe, or healthy.
    pub fn judged(&self, settings: &Settings) -> TestStatus {
        let worst = self.findings(settings).iter().map(|finding| finding.status).max();
        worst.unwrap_or(TestStatus::Healthy)
    }
}
