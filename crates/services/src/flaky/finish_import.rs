//! The end of an import: one event about all that was imported.

use std::collections::BTreeMap;

use signalbox_domain::flaky::{IMPORT_FINISHED, ImportSummary, Progress, TestStatus};
use signalbox_domain::ids::RepoName;
use signalbox_domain::ports::{EventRecord, FlakyCommit, ProgressStep, TestList};
use signalbox_domain::token::{Caller, Scope};

use super::super::Error;
use super::{ATTEMPTS, FlakyService};

impl FlakyService {
    /// Sums up what was imported since the last summary, and sends the event about it. When nothing
    /// was, nothing is written or sent.
    pub async fn finish_import(
        &self,
        caller: &Caller,
        name: &RepoName,
    ) -> Result<ImportSummary, Error> {
        let (_, repo) = self.repository(caller, Scope::TestsAdmin, name).await?;
        let stores = &self.context.stores;
        let turn = self.turn(repo);
        let _turn = turn.lock().await;
        for _ in 0..ATTEMPTS {
            let at = self.context.clock.now();
            let known = stores.tests.repo(repo).await?;
            let summary = ImportSummary {
                imported: known.progress.imported,
                flaky: stores.reads.count(repo, TestList::Unhealthy(TestStatus::Flaky)).await?,
                broken: stores.reads.count(repo, TestList::Unhealthy(TestStatus::Broken)).await?,
            };
            if summary.imported.is_none() {
                return Ok(summary);
            }
            let event = EventRecord {
                id: self.context.ids.new_id(),
                kind: IMPORT_FINISHED,
                at,
                payload: self.context.events.import_event((repo.id, name), &summary, at),
                request: self.context.ids.request_id(),
            };
            let progress = Progress { imported: None, ..known.progress };
            let commit = FlakyCommit {
                repo,
                expected: known.version,
                settings: None,
                steps: &[],
                windows: &BTreeMap::new(),
                presences: &BTreeMap::new(),
                incidents: None,
                progress: Some(&ProgressStep { progress, event: Some(event) }),
                at,
                audit: None,
            };
            if self.commit(&commit).await?.is_some() {
                return Ok(summary);
            }
        }
        Err(Error::Busy)
    }
}
