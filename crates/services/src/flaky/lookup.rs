//! Which of some tests are quarantined.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use uuid::Uuid;

use crate::{QuarantineAnswer, QuarantineLookup};
use signalbox_domain::flaky::{
    AskedTest, Fact, QuarantineCause, Settings, TestDirectory, TestId, absorb,
};
use signalbox_domain::ids::{OrgId, RepoId};
use signalbox_domain::ports::{RepoRef, TestList, TestRecord};
use signalbox_domain::time::{Span, Timestamp};

use super::super::Error;
use super::known::QuarantinedTests;
use super::presence::MOST_NAMES;
use super::take_in::by_id;
use super::{FlakyService, settings_of};

/// How many changes of settings are read to determine whether quarantine was ever on.
const LOOKED_BACK: u32 = 1_000;

#[async_trait]
impl QuarantineLookup for FlakyService {
    async fn quarantined(
        &self,
        org: OrgId,
        repo: RepoId,
        asked: &[AskedTest],
    ) -> Result<QuarantineAnswer, Error> {
        let repo = RepoRef { org, id: repo };
        let known = self.known_quarantine(repo).await?;
        let none = QuarantineAnswer { disabled: known.switched_off, ids: Vec::new() };
        if !known.enabled {
            return Ok(none);
        }
        if asked.is_empty() {
            return Ok(QuarantineAnswer { ids: self.all_quarantined(repo).await?, ..none });
        }
        let confirmed = self.confirmed(repo, &known, asked).await?;
        let ids = confirmed.into_iter().map(|(id, _)| id).collect();
        Ok(QuarantineAnswer { disabled: false, ids })
    }

    async fn causes(
        &self,
        org: OrgId,
        repo: RepoId,
        asked: &[AskedTest],
    ) -> Result<BTreeMap<String, QuarantineCause>, Error> {
        let repo = RepoRef { org, id: repo };
        let known = self.known_quarantine(repo).await?;
        if !known.enabled {
            return Ok(BTreeMap::new());
        }
        Ok(self.confirmed(repo, &known, asked).await?.into_iter().collect())
    }
}

impl FlakyService {
    /// The quarantined tests of a repository as they were less than a second ago.
    async fn known_quarantine(&self, repo: RepoRef) -> Result<Arc<QuarantinedTests>, Error> {
        let stores = &self.context.stores;
        let at = self.context.clock.now();
        let recalled = self.quarantined.get(&repo);
        if let Some((polled, known)) = &recalled
            && at < polled.plus(Span::seconds(1))
            && *polled <= at
        {
            return Ok(known.clone());
        }
        let now = stores.tests.repo(repo).await?;
        if let Some((_, known)) = recalled
            && known.revision == now.revision
        {
            self.quarantined.insert(repo, (at, known.clone()));
            return Ok(known);
        }
        let settings = settings_of(repo, &now);
        let quarantine = settings.quarantine;
        let may_be_off = !quarantine.enabled && !settings.gate_while_off;
        let mut known = QuarantinedTests {
            revision: now.revision,
            enabled: quarantine.enabled,
            switched_off: may_be_off && self.was_ever_on(repo).await?,
            tests: BTreeSet::new(),
            aliases: BTreeSet::new(),
        };
        if quarantine.enabled {
            let list = TestList::Quarantined { settings: quarantine, at };
            let mut ids = stores.reads.ids(repo, list).await?;
            // Branches that still contain a retired test may ask for it.
            ids.extend(stores.reads.ids(repo, TestList::Retired).await?);
            known.aliases = stores.tests.aliases(repo, &ids).await?.into_iter().collect();
            known.tests = ids.into_iter().collect();
        }
        let known = Arc::new(known);
        self.quarantined.insert(repo, (at, known.clone()));
        Ok(known)
    }

    /// Whether quarantine was ever on. Clients let every failure pass when the reply says that it
    /// is off, so the reply does not say that for a repository that has never turned it on.
    async fn was_ever_on(&self, repo: RepoRef) -> Result<bool, Error> {
        let log = self.context.stores.reads.settings_history(repo, LOOKED_BACK).await?;
        Ok(log.iter().any(|step| step.settings.quarantine.enabled))
    }

    /// The ids that clients compute for all quarantined tests. An id that also belongs to another
    /// test is omitted.
    async fn all_quarantined(&self, repo: RepoRef) -> Result<Vec<String>, Error> {
        let stores = &self.context.stores;
        let at = self.context.clock.now();
        let settings = settings_of(repo, &stores.tests.repo(repo).await?);
        let list = TestList::Quarantined { settings: settings.quarantine, at };
        let mut tests: BTreeSet<TestId> = stores.reads.ids(repo, list).await?.into_iter().collect();
        let retired = stores.reads.ids(repo, TestList::Retired).await?;
        let retired =
            self.successors(repo, by_id(stores.tests.tests(repo, &retired).await?)).await?;
        let retired = retired.iter().filter(|(_, it)| cause(it, &settings, at).is_some());
        tests.extend(retired.map(|(id, _)| *id));
        let listed: Vec<TestId> = tests.iter().copied().collect();
        let aliases = stores.tests.aliases(repo, &listed).await?;
        let mut sent: BTreeSet<String> = aliases.iter().cloned().collect();
        for (alias, id) in stores.tests.ids_by_alias(repo, &aliases).await? {
            if !tests.contains(&id) {
                sent.remove(&alias);
            }
        }
        // Nor may it be what a client computes for a test that is not quarantined.
        let given = |alias: &String| Uuid::try_parse(alias).ok().map(TestId);
        let ids: Vec<TestId> = sent.iter().filter_map(given).collect();
        let known = stores.tests.known_tests(repo, &ids).await?;
        let others = known.into_iter().map(|it| it.test.id).filter(|id| !tests.contains(id));
        let others: BTreeSet<TestId> = others.collect();
        sent.retain(|alias| given(alias).is_none_or(|id| !others.contains(&id)));
        sent.extend(tests.iter().map(ToString::to_string));
        Ok(sent.into_iter().collect())
    }

    /// The quarantined ones of some tests, as stored now: the ids of the request, and their causes.
    async fn confirmed(
        &self,
        repo: RepoRef,
        known: &QuarantinedTests,
        asked: &[AskedTest],
    ) -> Result<Vec<(String, QuarantineCause)>, Error> {
        let likely: Vec<&AskedTest> = asked.iter().filter(|it| known.may_be(it)).collect();
        if likely.is_empty() {
            return Ok(Vec::new());
        }
        let stores = &self.context.stores;
        let at = self.context.clock.now();
        let settings = settings_of(repo, &stores.tests.repo(repo).await?);
        // No database keeps a NUL, so no test is known by one.
        let sent = likely.iter().map(|asked| &asked.id).filter(|id| !id.contains('\0'));
        let sent: BTreeSet<&String> = sent.collect();
        let sent: Vec<String> = sent.into_iter().cloned().collect();
        let ids_by_alias = stores.tests.ids_by_alias(repo, &sent).await?;
        let computed = likely.iter().flat_map(|asked| asked.computed());
        let ids: BTreeSet<TestId> =
            computed.chain(ids_by_alias.iter().map(|(_, id)| *id)).collect();
        let ids: Vec<TestId> = ids.into_iter().collect();
        let records = by_id(stores.tests.tests(repo, &ids).await?);
        let mut directory = TestDirectory::default();
        for record in records.values() {
            directory.learn(&record.test.key, &[]).ok();
        }
        for (alias, id) in ids_by_alias {
            directory.learn_alias(alias, id);
        }
        let records = self.successors(repo, records).await?;
        let answer = |asked: &&AskedTest| {
            let record = records.get(&directory.resolve(asked)?)?;
            Some((asked.id.clone(), cause(record, &settings, at)?))
        };
        Ok(likely.iter().filter_map(answer).collect())
    }
}

impl FlakyService {
    /// The records of tests, in place of renamed ones those of what they were renamed to.
    async fn successors(
        &self,
        repo: RepoRef,
        mut records: BTreeMap<TestId, TestRecord>,
    ) -> Result<BTreeMap<TestId, TestRecord>, Error> {
        for _ in 0..MOST_NAMES {
            let named = records.values().filter_map(|record| record.test.renamed_to());
            let named: Vec<TestId> = named.collect();
            if named.is_empty() {
                break;
            }
            let found = by_id(self.context.stores.tests.tests(repo, &named).await?);
            for record in records.values_mut() {
                if let Some(next) = record.test.renamed_to().and_then(|to| found.get(&to)) {
                    record.clone_from(next);
                }
            }
        }
        Ok(records)
    }
}

/// What quarantines a test where it runs. A branch that still contains a retired test is answered as
/// before it retired.
fn cause(record: &TestRecord, settings: &Settings, at: Timestamp) -> Option<QuarantineCause> {
    let Some(retired) = &record.test.retired else {
        return record.test.quarantine_cause(settings, at);
    };
    let fact = Fact::Returned { code_at: retired.code_at.plus(Span::MICROSECOND) };
    absorb(&record.test, settings, &fact, at).test.quarantine_cause(settings, at)
}
