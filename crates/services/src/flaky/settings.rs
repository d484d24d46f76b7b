//! The settings and monitors of a repository.

use std::collections::BTreeMap;

use signalbox_domain::audit::{AuditAction, of_flaky_settings};
use signalbox_domain::flaky::{Fact, Monitor, MonitorId, Refusal, Settings, SettingsPatch};
use signalbox_domain::ids::RepoName;
use signalbox_domain::ports::{FlakyCommit, SettingsStep};
use signalbox_domain::time::Timestamp;
use signalbox_domain::token::{Caller, Scope};

use super::super::Error;
use super::super::audit::AuditEntryBuilder;
use super::judge::Judged;
use super::{ATTEMPTS, FlakyService, settings_of};

impl FlakyService {
    /// The settings that hold.
    pub async fn settings(&self, caller: &Caller, name: &RepoName) -> Result<Settings, Error> {
        let (_, repo) = self.repository(caller, Scope::TestsRead, name).await?;
        Ok(settings_of(repo, &self.context.stores.tests.repo(repo).await?))
    }

    /// Changes settings; returns the effective ones. The patch may depend on the current ones.
    pub async fn update_settings(
        &self,
        caller: &Caller,
        name: &RepoName,
        patch: impl Fn(&Settings) -> SettingsPatch + Send + Sync,
    ) -> Result<Settings, Error> {
        self.change(caller, name, |settings, _| patch(settings).applied_to(settings)).await
    }

    /// Creates a monitor under a new id; returns it.
    pub async fn create_monitor(
        &self,
        caller: &Caller,
        name: &RepoName,
        mut monitor: Monitor,
    ) -> Result<Monitor, Error> {
        let id = MonitorId(self.context.ids.new_id());
        monitor.id = id;
        let create = |settings: &Settings, at| settings.with_monitor(monitor.clone(), at);
        let settings = self.change(caller, name, create).await?;
        Ok(settings.monitor(id).cloned().unwrap_or(monitor))
    }

    /// Changes a monitor; returns it. What `change` refuses is refused.
    pub async fn update_monitor(
        &self,
        caller: &Caller,
        name: &RepoName,
        id: MonitorId,
        change: impl Fn(&Monitor) -> Result<Monitor, Refusal> + Send + Sync,
    ) -> Result<Monitor, Error> {
        let missing = || Refusal::NoSuchMonitor { monitor: id };
        let update = |settings: &Settings, at| {
            let changed = change(settings.monitor(id).ok_or_else(missing)?)?;
            settings.with_monitor(Monitor { id, ..changed }, at)
        };
        let settings = self.change(caller, name, update).await?;
        settings.monitor(id).cloned().ok_or_else(|| missing().into())
    }

    /// Deletes a monitor: it resolves for every test immediately.
    pub async fn delete_monitor(
        &self,
        caller: &Caller,
        name: &RepoName,
        id: MonitorId,
    ) -> Result<(), Error> {
        self.change(caller, name, |settings, _| settings.without_monitor(id)).await.map(drop)
    }

    /// Changes of settings, the newest first.
    pub async fn settings_history(
        &self,
        caller: &Caller,
        name: &RepoName,
        limit: u32,
    ) -> Result<Vec<SettingsStep>, Error> {
        let (_, repo) = self.repository(caller, Scope::TestsRead, name).await?;
        Ok(self.context.stores.reads.settings_history(repo, limit).await?)
    }

    /// Changes settings, and in the same commit every test for which that changes something.
    async fn change(
        &self,
        caller: &Caller,
        name: &RepoName,
        change: impl Fn(&Settings, Timestamp) -> Result<Settings, Refusal> + Send + Sync,
    ) -> Result<Settings, Error> {
        let (repository, repo) = self.repository(caller, Scope::TestsAdmin, name).await?;
        let stores = &self.context.stores;
        let turn = self.turn(repo);
        let _turn = turn.lock().await;
        for _ in 0..ATTEMPTS {
            let at = self.context.clock.now();
            let known = stores.tests.repo(repo).await?;
            let before = settings_of(repo, &known);
            let settings = change(&before, at)?.in_place_of(&before, at);
            if settings == before {
                return Ok(settings);
            }
            let watched = stores.tests.watched(repo).await?;
            let judged = watched.into_iter();
            let judged = judged.map(|it| Judged::of(it, &settings, Fact::SettingsChanged, at));
            let judged = judged.collect();
            let steps = self.steps(&repository, &settings, None, None, judged, at).await?;
            let changed = SettingsStep { settings, by: Self::actor(caller), at };
            let object = format!("test settings of {name}");
            let audit_entry =
                AuditEntryBuilder::of(caller, AuditAction::TestSettingsUpdated, object, name);
            let (from, to) = (of_flaky_settings(&before), of_flaky_settings(&changed.settings));
            let audit = audit_entry.record(&*self.context.ids, at, &from, &to);
            let commit = FlakyCommit {
                repo,
                expected: known.version,
                settings: Some(&changed),
                steps: &steps,
                windows: &BTreeMap::new(),
                presences: &BTreeMap::new(),
                incidents: None,
                progress: None,
                at,
                audit: Some(&audit),
            };
            if self.commit(&commit).await?.is_some() {
                return Ok(changed.settings);
            }
        }
        Err(Error::Busy)
    }
}
