//! What a repository has decided about its flaky tests.

use crate::ids::RepoId;
use crate::time::Timestamp;

use super::branch::check_patterns;
use super::{
    AutoQuarantine, BranchPattern, BranchRules, InfrastructureGuard, Monitor, MonitorId,
    QuarantineSettings, QuarantineSince, Refusal,
};

/// The most monitors of one repository.
pub const MAX_MONITORS: usize = 50;

/// All settings of a repository's flaky tests.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Settings {
    /// Quarantine: off by default.
    pub quarantine: QuarantineSettings,
    /// Since when that has been so.
    #[cfg_attr(feature = "serde", serde(default))]
    pub quarantine_since: QuarantineSince,
    /// The rules that classify branches.
    pub branches: BranchRules,
    /// Which uploads are set aside.
    pub guard: InfrastructureGuard,
    /// Whether unauthenticated uploads feed monitors. Off by default: an outsider could otherwise
    /// make a test flaky, have it quarantined and pass a bad change.
    pub count_public_uploads: bool,
    /// The reply to uploaders while quarantine is off: on: no test is quarantined, so that their
    /// step fails with the tests. Off: quarantine is off, and their step then passes.
    #[cfg_attr(feature = "serde", serde(default))]
    pub gate_while_off: bool,
    /// At most [`MAX_MONITORS`], in the order of creation, each id once.
    pub monitors: Vec<Monitor>,
}

impl Settings {
    /// What a new repository starts with.
    pub fn new(repo: RepoId) -> Self {
        Self {
            quarantine: QuarantineSettings { enabled: false, auto: AutoQuarantine::Off },
            quarantine_since: QuarantineSince::default(),
            branches: BranchRules::default(),
            guard: InfrastructureGuard::default(),
            count_public_uploads: false,
            gate_while_off: false,
            monitors: Monitor::defaults_of(repo),
        }
    }

    /// These settings in place of others from that time on.
    #[must_use]
    pub fn in_place_of(mut self, before: &Self, at: Timestamp) -> Self {
        let since = before.quarantine_since;
        self.quarantine_since = since.changed(before.quarantine, self.quarantine, at);
        self
    }

    /// The monitor with that id.
    pub fn monitor(&self, id: MonitorId) -> Option<&Monitor> {
        self.monitors.iter().find(|monitor| monitor.id == id)
    }

    /// The monitor with that id, if it works.
    pub fn working_monitor(&self, id: MonitorId) -> Option<&Monitor> {
        self.monitor(id).filter(|monitor| monitor.enabled)
    }

    /// The settings with a monitor created or, under the same id, replaced at that time.
    ///
    /// The kind of a monitor never changes: its earlier status of tests would lose its meaning. A
    /// changed scope is noted with the time.
    pub fn with_monitor(&self, mut monitor: Monitor, at: Timestamp) -> Result<Self, Refusal> {
        monitor.check()?;
        let mut to = self.clone();
        if let Some(old) = to.monitors.iter_mut().find(|old| old.id == monitor.id) {
            if old.rule.kind() != monitor.rule.kind() {
                return Err(Refusal::MonitorKindFixed { monitor: monitor.id });
            }
            monitor.scope_since =
                if old.scope == monitor.scope { old.scope_since } else { Some(at) };
            *old = monitor;
            return Ok(to);
        }
        if to.monitors.len() >= MAX_MONITORS {
            let rule = format!("must have at most {MAX_MONITORS} items");
            return Err(Refusal::setting("monitors", rule));
        }
        to.monitors.push(monitor);
        Ok(to)
    }

    /// The settings without a monitor.
    pub fn without_monitor(&self, id: MonitorId) -> Result<Self, Refusal> {
        let mut to = self.clone();
        to.monitors.retain(|monitor| monitor.id != id);
        if to.monitors.len() == self.monitors.len() {
            return Err(Refusal::NoSuchMonitor { monitor: id });
        }
        Ok(to)
    }
}

/// A partial change of settings: what is `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
pub struct SettingsPatch {
    /// Whether there is quarantine. Switching it off switches automatic quarantine off as well;
    /// switching it on again does not bring that back.
    pub quarantine_enabled: Option<bool>,
    /// Which tests are quarantined automatically. Any value but `Off` needs quarantine to be
    /// enabled.
    pub auto_quarantine: Option<AutoQuarantine>,
    /// Branches that are meant to be green.
    pub stable_branches: Option<Vec<BranchPattern>>,
    /// Branches of merge queues.
    pub merge_branches: Option<Vec<BranchPattern>>,
    /// Which uploads are set aside.
    pub guard: Option<InfrastructureGuard>,
    /// Whether unauthenticated uploads feed monitors.
    pub count_public_uploads: Option<bool>,
    /// Whether the public uploader fails with its tests while quarantine is turned off.
    pub gate_while_off: Option<bool>,
}

impl SettingsPatch {
    /// The settings with this change made, or the first rule that it breaks.
    pub fn applied_to(&self, settings: &Settings) -> Result<Settings, Refusal> {
        let mut to = settings.clone();
        if let Some(enabled) = self.quarantine_enabled {
            to.quarantine.enabled = enabled;
        }
        if !to.quarantine.enabled {
            to.quarantine.auto = AutoQuarantine::Off;
        }
        if let Some(auto) = self.auto_quarantine {
            if auto != AutoQuarantine::Off && !to.quarantine.enabled {
                let rule = "must be off while quarantineEnabled is false";
                return Err(Refusal::setting("autoQuarantine", rule));
            }
            to.quarantine.auto = auto;
        }
        if let Some(patterns) = &self.stable_branches {
            check_patterns("stableBranches", patterns)?;
            to.branches.stable.clone_from(patterns);
        }
        if let Some(patterns) = &self.merge_branches {
            check_patterns("mergeBranches", patterns)?;
            to.branches.merge.clone_from(patterns);
        }
        if let Some(guard) = self.guard {
            guard.check()?;
            to.guard = guard;
        }
        if let Some(count) = self.count_public_uploads {
            to.count_public_uploads = count;
        }
        if let Some(gate) = self.gate_while_off {
            to.gate_while_off = gate;
        }
        Ok(to)
    }
}
