//! A plain git host from its settings: `kind = "git"`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use signalbox_domain::ids::PrNumber;
use signalbox_domain::ports::{Clock, GitHost, HostError, Repository, StoredPullRequest};
use signalbox_hosts::{
    ConnectError, ConnectedHost, HookError, HostKind, HostParts, HostSettings, LocalRepositories,
    OpenRequest, Problem, PushAnswer, PushCommand, PushOptions, Recomputer, SettingError,
    StaleLock, Table,
};

use crate::limited::Limited;
use crate::{ChecksConfig, HostConfig, LocalChecksRunner, Mirrors, PlainGitHost};

/// The plain git host as a kind of host.
pub const KIND: HostKind = HostKind {
    kind: "git",
    read,
    example,
    unconfigured: Some(unconfigured),
    helper: Some(helper),
    recomputer: Some(recomputer),
};

/// The settings of one host.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// The name by which clients call it.
    host: String,
    /// The folder with `OWNER/NAME.git`; without one only repositories with a path are known.
    root: Option<PathBuf>,
    /// How checks are run.
    #[serde(default)]
    checks: Checks,
}

/// How checks are run.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
struct Checks {
    /// Candidates that are checked at the same time, at least 1.
    concurrency: u32,
    /// The default timeout of a check, in minutes, at least 1.
    timeout_minutes: u32,
    /// Variables of the server's environment that checks get.
    pass_env: Vec<String>,
    /// How many commits a checkout has, the candidate among them; 0: all.
    clone_depth: u32,
}

impl Default for Checks {
    fn default() -> Self {
        Self { concurrency: 2, timeout_minutes: 60, pass_env: Vec::new(), clone_depth: 20 }
    }
}

fn read(table: Table) -> Result<Arc<dyn HostSettings>, SettingError> {
    let settings: Settings = signalbox_hosts::parse(table)?;
    let Checks { concurrency, timeout_minutes, .. } = settings.checks;
    for (key, value) in [("concurrency", concurrency), ("timeout_minutes", timeout_minutes)] {
        if value == 0 {
            return Err(SettingError::new(format!("checks.{key}"), "must be at least 1"));
        }
    }
    Ok(Arc::new(settings))
}

fn example() -> Table {
    signalbox_hosts::table(&Settings {
        host: "git.local".to_owned(),
        root: Some(PathBuf::from("/srv/git")),
        checks: Checks::default(),
    })
}

fn unconfigured() -> Arc<dyn HostSettings> {
    Arc::new(Settings::default())
}

fn recomputer() -> Arc<dyn Recomputer> {
    Arc::new(Mirrors::default())
}

/// Supervises a check, when this process was started to.
fn helper() -> Option<ExitCode> {
    signalbox_sandbox::supervise(std::env::args_os())
}

impl HostSettings for Settings {
    fn table(&self) -> Table {
        signalbox_hosts::table(self)
    }

    fn connect(&self, parts: HostParts) -> Result<ConnectedHost, ConnectError> {
        let HostParts { pull_requests, clock, reports, public_url, folder, sandbox, .. } = parts;
        let config = HostConfig { root: self.root.clone(), public_url: public_url.clone() };
        let host = Arc::new(PlainGitHost::new(config, pull_requests, clock.clone()));
        let config = ChecksConfig {
            work_dir: folder,
            timeout_minutes: self.checks.timeout_minutes,
            pass_env: self.checks.pass_env.clone(),
            public_url,
            clone_depth: self.checks.clone_depth,
        };
        let runner = LocalChecksRunner::new(config, sandbox, host.clone(), clock.clone(), reports);
        let runner = Arc::new(runner);
        let checks = Limited::new(runner.clone(), self.checks.concurrency);
        let (name, root) = (self.host.clone(), self.root.clone());
        Ok(ConnectedHost {
            git: host.clone(),
            checks: Arc::new(checks),
            concurrent_checks: usize::try_from(self.checks.concurrency).unwrap_or(usize::MAX),
            forge: None,
            decoder: None,
            local: Some(Arc::new(Local { name, root, host, runner, clock })),
            reread_after: None,
        })
    }
}

/// A host's repositories and its runner.
struct Local {
    name: String,
    root: Option<PathBuf>,
    host: Arc<PlainGitHost>,
    runner: Arc<LocalChecksRunner>,
    clock: Arc<dyn Clock>,
}

#[async_trait]
impl LocalRepositories for Local {
    fn git(&self) -> Arc<dyn GitHost> {
        self.host.clone()
    }

    async fn install_hooks(
        &self,
        repository: &Repository,
        program: &[String],
    ) -> Result<bool, HookError> {
        self.host.install_hooks(repository, program).await
    }

    async fn open_pull_request(
        &self,
        repository: &Repository,
        request: OpenRequest,
    ) -> Result<StoredPullRequest, HostError> {
        self.host.open_pull_request(repository, request).await
    }

    async fn close_pull_request(
        &self,
        repository: &Repository,
        number: PrNumber,
    ) -> Result<Option<StoredPullRequest>, HostError> {
        self.host.close_pull_request(repository, number).await
    }

    async fn pushed(
        &self,
        repository: &Repository,
        commands: &[PushCommand],
        options: &PushOptions,
    ) -> Vec<PushAnswer> {
        self.host.pushed(repository, commands, options).await
    }

    async fn heal_locks(&self, repository: &Repository) -> Result<Vec<StaleLock>, HostError> {
        self.host.heal_locks(repository).await
    }

    fn sweep_leftovers(&self) {
        self.runner.sweep_leftovers();
    }

    fn missing_root(&self) -> Option<String> {
        let root = self.root.as_ref()?;
        let missing = std::fs::read_dir(root).err()?;
        Some(format!("{}: {}: {missing}", self.name, root.display()))
    }

    fn problem(&self, repository: &Repository) -> Option<Problem> {
        let path = Path::new(repository.path.as_deref()?);
        crate::diagnose::problem(repository, path, self.clock.now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        let table: Table = text.parse().expect("TOML");
        read(table).err().map(|it| it.to_string()).unwrap_or_default()
    }

    #[test]
    fn settings_that_cannot_be_right_are_refused_with_their_key() {
        assert_eq!(refusal("host = \"h\""), "");
        assert_eq!(
            refusal("host = \"h\"\nchecks.concurrency = 0"),
            "checks.concurrency: must be at least 1"
        );
        let unknown = refusal("host = \"h\"\nchecks.concurency = 2");
        assert!(unknown.contains("unknown field `concurency`"), "{unknown}");
    }

    #[test]
    fn a_table_has_the_defaults() {
        let table = "host = \"h\"".parse().expect("TOML");
        let Ok(settings) = read(table) else { panic!("it is valid") };
        let shown = settings.table().to_string();
        assert!(shown.contains("concurrency = 2") && !shown.contains("root"), "{shown}");
    }
}
