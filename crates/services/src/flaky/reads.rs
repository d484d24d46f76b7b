//! Lists of tests and single ones, for callers.

use std::collections::BTreeMap;

use futures_util::future::try_join;
use uuid::Uuid;

use signalbox_domain::flaky::{Incident, JournalRecord, RunRecord, Settings, TestId, TestStatus};
use signalbox_domain::ids::{OrgSlug, RepoName};
use signalbox_domain::ports::{
    FlakyRepo, RepoRef, Repository, Seek, StoreError, TestList, TestNumbers, TestRecord,
    TestSnapshot,
};
use signalbox_domain::time::{Span, Timestamp};
use signalbox_domain::token::{Caller, Scope};

use super::super::Error;
use super::{FlakyService, settings_of};

/// Which tests are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ListKind {
    /// Tests that failed within a window; see [`TestList::Failing`].
    Failing {
        /// The first moment.
        from: Timestamp,
        /// The first moment after.
        until: Timestamp,
    },
    /// Those of a status.
    Unhealthy(TestStatus),
    /// Tests that are quarantined now.
    Quarantined,
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedTests {
    /// The tests, in ascending order of their ids.
    pub tests: Vec<TestSnapshot>,
    /// How many tests the list has, if requested.
    pub total: Option<u64>,
}

/// A test with everything that a page shows of it.
#[derive(Clone, Debug, PartialEq)]
pub struct TestDetails {
    /// The test.
    pub snapshot: TestSnapshot,
    /// Its runs, the newest first.
    pub runs: Vec<RunRecord>,
    /// Its journal, the newest first.
    pub journal: Vec<JournalRecord>,
    /// The incidents that failures of it belong to, the newest first.
    pub incidents: Vec<Incident>,
}

/// How much of a test's past a page shows.
const SHOWN: u32 = 50;
/// The most incidents of a test that a page shows.
const INCIDENTS: u32 = 5;

impl FlakyService {
    /// A page of a list with everything that is counted of its tests.
    pub async fn list(
        &self,
        caller: &Caller,
        name: &RepoName,
        kind: ListKind,
        seek: Seek,
        limit: u32,
        counted: bool,
    ) -> Result<ListedTests, Error> {
        let asked = (seek, limit, counted);
        self.list_with(caller, name, kind, asked, NumbersRead::All).await
    }

    /// A block of a list, of which only the tests that are kept get their numbers: also returns where
    /// the next block begins.
    pub async fn list_kept(
        &self,
        caller: &Caller,
        name: &RepoName,
        kind: ListKind,
        (after, limit): (Option<TestId>, u32),
        keep: impl Fn(&TestRecord) -> bool,
    ) -> Result<(Vec<TestSnapshot>, Option<TestId>), Error> {
        let (repository, repo) = self.repository(caller, Scope::TestsRead, name).await?;
        let at = self.context.clock.now();
        let stores = &self.context.stores;
        let settings = settings_of(repo, &stores.tests.repo(repo).await?);
        let list = test_list(kind, &settings, at);
        let seek = Seek::After(after);
        let mut records = stores.reads.list(repo, list, seek, limit.saturating_add(1)).await?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let is_more = records.len() > limit;
        records.truncate(limit);
        let next = records.last().map(|it| it.test.id).filter(|_| is_more);
        records.retain(keep);
        Ok((self.snapshots(&repository, &settings, records, at).await?, next))
    }

    /// As [`list`](Self::list), but reads only the numbers that the API's list of that kind returns: all of
    /// failing tests, the pull requests of unhealthy ones, none of quarantined ones.
    pub async fn list_for_api(
        &self,
        caller: &Caller,
        name: &RepoName,
        kind: ListKind,
        seek: Seek,
        limit: u32,
        counted: bool,
    ) -> Result<ListedTests, Error> {
        let read = match kind {
            ListKind::Failing { .. } => NumbersRead::All,
            ListKind::Unhealthy(_) => NumbersRead::PullRequests,
            ListKind::Quarantined => NumbersRead::None,
        };
        self.list_with(caller, name, kind, (seek, limit, counted), read).await
    }

    async fn list_with(
        &self,
        caller: &Caller,
        name: &RepoName,
        kind: ListKind,
        (seek, limit, counted): (Seek, u32, bool),
        read: NumbersRead,
    ) -> Result<ListedTests, Error> {
        let (repository, repo) = self.repository(caller, Scope::TestsRead, name).await?;
        let stores = &self.context.stores;
        let at = self.context.clock.now();
        let state = stores.tests.repo(repo).await?;
        let settings = settings_of(repo, &state);
        let list = test_list(kind, &settings, at);
        let count = async {
            if counted {
                self.total((repo, &state), kind, list, at).await.map(Some)
            } else {
                Ok(None)
            }
        };
        let (records, total) = try_join(stores.reads.list(repo, list, seek, limit), count).await?;
        let numbers = self.numbers(repo, &records, read, at).await?;
        let tests = snapshots(&repository, &settings, records, numbers, at);
        Ok(ListedTests { tests, total })
    }

    /// The number of tests of a list. It is counted again after a commit that can change it, and after an
    /// hour, because old failures are deleted without a commit.
    async fn total(
        &self,
        (repo, state): (RepoRef, &FlakyRepo),
        kind: ListKind,
        list: TestList,
        at: Timestamp,
    ) -> Result<u64, StoreError> {
        let commit = match kind {
            ListKind::Failing { .. } => Some(state.version.0),
            ListKind::Unhealthy(_) => Some(state.revision),
            // Overrides of quarantine expire without a commit.
            ListKind::Quarantined => None,
        };
        let counted_at = commit.map(|commit| (commit, at.floor(Span::hours(1))));
        if let Some((then, total)) = self.totals.get(&(repo, kind))
            && Some(then) == counted_at
        {
            return Ok(total);
        }
        let total = self.context.stores.reads.count(repo, list).await?;
        if let Some(counted_at) = counted_at {
            self.totals.insert((repo, kind), (counted_at, total));
        }
        Ok(total)
    }

    /// A test, by its id or by one under which clients ask for it and no other.
    pub async fn test(
        &self,
        caller: &Caller,
        name: &RepoName,
        test: TestId,
    ) -> Result<TestSnapshot, Error> {
        let (repository, repo) = self.repository(caller, Scope::TestsRead, name).await?;
        match self.snapshot(&repository, repo, test).await {
            Err(Error::UnknownTest { .. }) => {}
            found => return found,
        }
        let meant = self.meant(repo, &test.to_string()).await?;
        self.snapshot(&repository, repo, meant.unwrap_or(test)).await
    }

    /// A test's journal, the newest first, before a number if given.
    pub async fn history(
        &self,
        caller: &Caller,
        name: &RepoName,
        test: TestId,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<JournalRecord>, Error> {
        let (repository, repo) = self.repository(caller, Scope::TestsRead, name).await?;
        self.snapshot(&repository, repo, test).await?;
        Ok(self.context.stores.reads.test_journal(repo, test, before, limit).await?)
    }

    /// A test with its past, for a caller.
    pub async fn details(
        &self,
        caller: &Caller,
        name: &RepoName,
        test: TestId,
    ) -> Result<TestDetails, Error> {
        let (repository, repo) = self.repository(caller, Scope::TestsRead, name).await?;
        self.details_of(&repository, repo, test).await
    }

    /// A test with its past, as links to tests name it: by the slug of the organization and the
    /// repository's owner and name, and by the test's id or one under which clients ask for it and
    /// no other. Of several hosts the first one that has the test is meant. `None`: no such test
    /// exists in the repositories that `seen_by` may see. `seen_by` is `None` where the pages of
    /// tests are public.
    pub async fn details_by_link(
        &self,
        org: &OrgSlug,
        owner: &str,
        name: &str,
        test: &str,
        seen_by: Option<&Caller>,
    ) -> Result<Option<TestDetails>, Error> {
        let Some(org) = self.context.orgs.find_by_slug(org).await? else { return Ok(None) };
        let may_see = |repo: &RepoName| {
            seen_by.is_none_or(|caller| self.context.repositories.may_see(caller, repo))
        };
        for repository in self.context.repositories.list(Some(org.id)).await? {
            let named = repository.name.owner.eq_ignore_ascii_case(owner)
                && repository.name.name.eq_ignore_ascii_case(name);
            if named && may_see(&repository.name) {
                let repo = RepoRef { org: org.id, id: repository.id };
                let own = Uuid::try_parse(test).ok().map(TestId);
                for id in [own, self.meant(repo, test).await?].into_iter().flatten() {
                    match self.details_of(&repository, repo, id).await {
                        Err(Error::UnknownTest { .. }) => {}
                        found => return found.map(Some),
                    }
                }
            }
        }
        Ok(None)
    }

    /// The only test for which clients send that id.
    async fn meant(&self, repo: RepoRef, sent: &str) -> Result<Option<TestId>, Error> {
        if sent.contains('\0') {
            return Ok(None);
        }
        let ids_by_alias = self.context.stores.tests.ids_by_alias(repo, &[sent.to_owned()]).await?;
        Ok(match ids_by_alias.as_slice() {
            [(_, only)] => Some(*only),
            [] | [_, _, ..] => None,
        })
    }

    async fn details_of(
        &self,
        repository: &Repository,
        repo: RepoRef,
        test: TestId,
    ) -> Result<TestDetails, Error> {
        let snapshot = self.snapshot(repository, repo, test).await?;
        let reads = &self.context.stores.reads;
        let runs = reads.recent_runs(repo, test, SHOWN).await?;
        let journal = reads.test_journal(repo, test, None, SHOWN).await?;
        let incidents = reads.incidents_of(repo, test, INCIDENTS).await?;
        Ok(TestDetails { snapshot, runs, journal, incidents })
    }

    async fn snapshot(
        &self,
        repository: &Repository,
        repo: RepoRef,
        test: TestId,
    ) -> Result<TestSnapshot, Error> {
        let stores = &self.context.stores;
        let settings = settings_of(repo, &stores.tests.repo(repo).await?);
        let records = stores.tests.tests(repo, &[test]).await?;
        let at = self.context.clock.now();
        let found = self.snapshots(repository, &settings, records, at).await?.pop();
        found.ok_or_else(|| Error::UnknownTest { repo: repository.name.clone(), test })
    }

    pub(super) async fn snapshots(
        &self,
        repository: &Repository,
        settings: &Settings,
        records: Vec<TestRecord>,
        at: Timestamp,
    ) -> Result<Vec<TestSnapshot>, Error> {
        let repo = RepoRef { org: repository.org, id: repository.id };
        let numbers = self.numbers(repo, &records, NumbersRead::All, at).await?;
        Ok(snapshots(repository, settings, records, numbers, at))
    }

    async fn numbers(
        &self,
        repo: RepoRef,
        records: &[TestRecord],
        read: NumbersRead,
        at: Timestamp,
    ) -> Result<BTreeMap<TestId, TestNumbers>, Error> {
        let reads = &self.context.stores.reads;
        let ids: Vec<TestId> = records.iter().map(|record| record.test.id).collect();
        match read {
            NumbersRead::All => Ok(reads.numbers(repo, &ids, at).await?),
            NumbersRead::PullRequests => {
                let impacted = reads.pull_requests(repo, &ids, at).await?.into_iter();
                let numbers = impacted.map(|(test, pull_requests_7d)| {
                    (test, TestNumbers { pull_requests_7d, ..TestNumbers::default() })
                });
                Ok(numbers.collect())
            }
            NumbersRead::None => Ok(BTreeMap::new()),
        }
    }
}

/// The list in the store.
const fn test_list(kind: ListKind, settings: &Settings, at: Timestamp) -> TestList {
    match kind {
        ListKind::Failing { from, until } => TestList::Failing { from, until },
        ListKind::Unhealthy(status) => TestList::Unhealthy(status),
        ListKind::Quarantined => TestList::Quarantined { settings: settings.quarantine, at },
    }
}

/// Which numbers are read with a list's tests.
#[derive(Clone, Copy, Debug)]
enum NumbersRead {
    All,
    PullRequests,
    None,
}

/// Tests with what was read of them.
fn snapshots(
    repository: &Repository,
    settings: &Settings,
    records: Vec<TestRecord>,
    mut numbers: BTreeMap<TestId, TestNumbers>,
    at: Timestamp,
) -> Vec<TestSnapshot> {
    let snapshot = |record: TestRecord| TestSnapshot {
        repo: repository.name.clone(),
        quarantined: record.test.is_quarantined(settings, at),
        quarantined_since: record.test.quarantined_since(settings, at),
        numbers: numbers.remove(&record.test.id).unwrap_or_default(),
        record,
    };
    records.into_iter().map(snapshot).collect()
}
