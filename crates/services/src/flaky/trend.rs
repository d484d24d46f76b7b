//! How many tests are flaky, broken and quarantined from day to day, and what they delay.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use signalbox_domain::flaky::{Delay, TestId, TestStatus, delays};
use signalbox_domain::ids::RepoName;
use signalbox_domain::ports::{DayCounts, RepoRef, TestList, TestSnapshot};
use signalbox_domain::time::{Span, Timestamp};
use signalbox_domain::token::{Caller, Scope};

use super::super::Error;
use super::{FlakyService, settings_of};

/// The most tests whose delays are read at a time.
const DELAYS_OF: usize = 500;
/// The time within which delays are counted, in days.
const DELAYS_DAYS: u32 = 7;

/// A day begins at midnight in UTC.
fn day(at: Timestamp) -> Timestamp {
    at.floor(Span::days(1))
}

impl FlakyService {
    /// Counts the tests of repositories that have changed since they were last counted today. Returns
    /// how many repositories there were; when it is [`Self::AT_ONCE`], there may be more.
    pub async fn count_tests(&self) -> Result<usize, Error> {
        let limit = u32::try_from(Self::AT_ONCE).unwrap_or(u32::MAX);
        let trend = &self.context.stores.trend;
        let changed = trend.uncounted(day(self.now()), limit).await?;
        // One that cannot be counted does not keep the others from it.
        let mut failed = Ok(changed.len());
        for (repo, version) in &changed {
            let counted = async {
                let counts = self.counts(*repo).await?;
                Ok::<_, Error>(trend.keep_counts(*repo, *version, &counts).await?)
            };
            if let Err(error) = counted.await {
                failed = Err(error);
            }
        }
        failed
    }

    /// How many tests there are now.
    async fn counts(&self, repo: RepoRef) -> Result<DayCounts, Error> {
        let (stores, at) = (&self.context.stores, self.now());
        let settings = settings_of(repo, &stores.tests.repo(repo).await?).quarantine;
        let count = async |list| stores.reads.count(repo, list).await;
        Ok(DayCounts {
            day: day(at),
            flaky: count(TestList::Unhealthy(TestStatus::Flaky)).await?,
            broken: count(TestList::Unhealthy(TestStatus::Broken)).await?,
            quarantined: count(TestList::Quarantined { settings, at }).await?,
        })
    }

    /// How many tests there were on each of the last days, of which the last one is today; the oldest
    /// first. A day on which the server did not run is missing.
    pub async fn trend(
        &self,
        caller: &Caller,
        name: &RepoName,
        days: u32,
    ) -> Result<Vec<DayCounts>, Error> {
        let (_, repo) = self.repository(caller, Scope::TestsRead, name).await?;
        let today = self.counts(repo).await?;
        let since = today.day.minus(Span::days(days.saturating_sub(1)));
        let mut counted = self.context.stores.trend.days(repo, since).await?;
        counted.retain(|it| it.day < today.day);
        counted.push(today);
        Ok(counted)
    }

    /// How these tests delayed pull requests and merge queues within the last 7 days. Of many tests, the
    /// 500 that affected the most pull requests are examined. A failure of a test that has been quarantined
    /// since before it delays none.
    pub async fn delays(
        &self,
        caller: &Caller,
        name: &RepoName,
        tests: &[TestSnapshot],
    ) -> Result<BTreeMap<TestId, Vec<Delay>>, Error> {
        let (_, repo) = self.repository(caller, Scope::TestsRead, name).await?;
        let since = self.now().minus(Span::days(DELAYS_DAYS));
        let mut failing: Vec<&TestSnapshot> =
            tests.iter().filter(|it| it.numbers.failures_7d > 0).collect();
        let cost = |it: &TestSnapshot| (it.numbers.pull_requests_7d.len(), it.numbers.failures_7d);
        failing.sort_by_key(|it| Reverse(cost(it)));
        failing.truncate(DELAYS_OF);
        let ids: Vec<TestId> = failing.iter().map(|it| it.record.test.id).collect();
        let codes = self.context.stores.reads.failed_codes(repo, &ids, since).await?;
        let mut found = BTreeMap::new();
        for test in failing {
            let Some(codes) = codes.get(&test.record.test.id) else { continue };
            let mut delays = delays(codes, since);
            delays.retain(|it| test.quarantined_since.is_none_or(|since| it.from < since));
            if !delays.is_empty() {
                found.insert(test.record.test.id, delays);
            }
        }
        Ok(found)
    }
}
