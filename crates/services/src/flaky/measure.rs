//! What time does: monitors resolve, mutes and overrides end, old history goes.

use std::collections::BTreeMap;

use signalbox_domain::flaky::{TestId, WindowRules};
use signalbox_domain::ports::{FlakyCommit, RepoRef, TestRecord};
use signalbox_domain::time::{Span, Timestamp};

use super::super::Error;
use super::judge::{Judged, due_at};
use super::{FlakyService, settings_of};

/// About the most rows of a kind that are deleted per step.
const PRUNED_AT_ONCE: u32 = 5_000;

impl FlakyService {
    /// Looks at the tests whose time has come. Returns how many there were; when it is the size of
    /// a batch, there may be more.
    pub async fn measure(&self) -> Result<usize, Error> {
        let at = self.context.clock.now();
        let limit = u32::try_from(Self::AT_ONCE).unwrap_or(u32::MAX);
        let due = self.context.stores.tests.due(at, limit).await?;
        let count = due.len();
        let mut by_repo: BTreeMap<RepoRef, Vec<TestId>> = BTreeMap::new();
        for (repo, test) in due {
            by_repo.entry(repo).or_default().push(test);
        }
        for (repo, tests) in by_repo {
            self.measure_tests(repo, &tests).await?;
        }
        Ok(count)
    }

    /// The number of tests that [`Self::measure`] looks at in one go.
    pub const AT_ONCE: usize = 500;

    async fn measure_tests(&self, repo: RepoRef, tests: &[TestId]) -> Result<(), Error> {
        let stores = &self.context.stores;
        let Some(repository) = self.context.repositories.find(repo.org, repo.id).await? else {
            return Ok(());
        };
        let turn = self.turn(repo);
        let _turn = turn.lock().await;
        let at = self.context.clock.now();
        let known = stores.tests.repo(repo).await?;
        let settings = settings_of(repo, &known);
        let records: Vec<TestRecord> = stores.tests.tests(repo, tests).await?;
        let rules = WindowRules::of(&settings.monitors);
        let windows = self.rebuilt(repo, &rules, &records, at).await?;
        let (mut judged, mut unchanged) = (Vec::new(), Vec::new());
        for record in records {
            let known = windows.get(&record.test.id).unwrap_or(&record.windows).clone();
            let one = Judged::measured(record, (&settings, &rules), &known, at);
            if one.transition.is_empty() {
                unchanged.push((one.record.test.id, due_at(&one.record.test, at)));
            } else {
                judged.push(one);
            }
        }
        let steps = self.steps(&repository, &settings, None, None, judged, at).await?;
        if !steps.is_empty() || !windows.is_empty() {
            let expected = known.version;
            let commit = FlakyCommit {
                repo,
                expected,
                settings: None,
                steps: &steps,
                windows: &windows,
                presences: &BTreeMap::new(),
                incidents: None,
                progress: None,
                at,
                audit: None,
            };
            // After a conflict the tests are still due, and the next round looks at them again.
            if self.commit(&commit).await?.is_none() {
                return Ok(());
            }
        }
        if !unchanged.is_empty() {
            stores.tests.postpone(repo, &unchanged).await?;
        }
        Ok(())
    }

    /// Makes room for the results of the next days.
    pub async fn prepare_days(&self) -> Result<(), Error> {
        Ok(self.context.stores.tests.prepare_days(self.context.clock.now()).await?)
    }

    /// Deletes some of what is older than `history`. Returns how many rows went; call it again
    /// until that is 0.
    pub async fn prune(&self, history: Span) -> Result<u64, Error> {
        let before = self.context.clock.now().minus(history).floor(Span::hours(24));
        Ok(self.context.stores.tests.prune(before, PRUNED_AT_ONCE).await?)
    }

    /// The time as this service knows it.
    pub fn now(&self) -> Timestamp {
        self.context.clock.now()
    }
}
