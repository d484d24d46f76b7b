//! Which of some tests are quarantined.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;

use crate::flaky::{AskedTest, Excuse, FailedCheck, TestDirectory, TestId, excuse};
use crate::ids::{OrgId, RepoId};
use crate::ports::{QuarantineAnswer, QuarantineLookup, RepoRef, TestList};
use crate::time::Span;

use super::super::Error;
use super::known::QuarantinedTests;
use super::take_in::by_id;
use super::{FlakyService, settings_of};

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
        if !known.enabled {
            return Ok(QuarantineAnswer { disabled: true, ids: Vec::new() });
        }
        let likely: Vec<&AskedTest> = asked.iter().filter(|it| known.may_be(it)).collect();
        if likely.is_empty() {
            return Ok(QuarantineAnswer { disabled: false, ids: Vec::new() });
        }
        self.confirmed(repo, &likely).await
    }
}

impl FlakyService {
    /// Whether a failing check of the plain git host counts as passed. When that cannot be found
    /// out it does not.
    pub async fn excuse(&self, org: OrgId, repo: RepoId, check: FailedCheck<'_>) -> Excuse {
        let answer = self.quarantined(org, repo, check.failing).await;
        let ids: BTreeSet<String> =
            answer.map(|answer| answer.ids.into_iter().collect()).unwrap_or_default();
        excuse(check, &ids)
    }

    /// The quarantined tests of a repository as they were less than a second ago.
    async fn known_quarantine(&self, repo: RepoRef) -> Result<Arc<QuarantinedTests>, Error> {
        let stores = &self.context.stores;
        let at = self.context.clock.now();
        let recalled = self.known.recall(repo);
        if let Some((polled, known)) = &recalled
            && at < polled.plus(Span::seconds(1))
            && *polled <= at
        {
            return Ok(known.clone());
        }
        let now = stores.flaky.repo(repo).await?;
        if let Some((_, known)) = recalled
            && known.marks == now.marks
        {
            self.known.remember(repo, at, known.clone());
            return Ok(known);
        }
        let quarantine = settings_of(repo, &now).quarantine;
        let mut known = QuarantinedTests {
            marks: now.marks,
            enabled: quarantine.enabled,
            tests: BTreeSet::new(),
            aliases: BTreeSet::new(),
        };
        if quarantine.enabled {
            let list = TestList::Quarantined { settings: quarantine, at };
            let ids = stores.flaky_reads.ids(repo, list).await?;
            known.aliases = stores.flaky.aliases(repo, &ids).await?.into_iter().collect();
            known.tests = ids.into_iter().collect();
        }
        let known = Arc::new(known);
        self.known.remember(repo, at, known.clone());
        Ok(known)
    }

    /// The quarantined ones of some tests, found out from what is stored now.
    async fn confirmed(
        &self,
        repo: RepoRef,
        likely: &[&AskedTest],
    ) -> Result<QuarantineAnswer, Error> {
        let stores = &self.context.stores;
        let at = self.context.clock.now();
        let settings = settings_of(repo, &stores.flaky.repo(repo).await?);
        let sent: BTreeSet<String> = likely.iter().map(|asked| asked.id.clone()).collect();
        let sent: Vec<String> = sent.into_iter().collect();
        let holders = stores.flaky.holders(repo, &sent).await?;
        let computed = likely.iter().flat_map(|asked| asked.computed());
        let ids: BTreeSet<TestId> = computed.chain(holders.iter().map(|(_, id)| *id)).collect();
        let ids: Vec<TestId> = ids.into_iter().collect();
        let records = by_id(stores.flaky.tests(repo, &ids).await?);
        let mut directory = TestDirectory::default();
        for record in records.values() {
            directory.learn(&record.test.key, &[]).ok();
        }
        for (alias, id) in holders {
            directory.learn_alias(alias, id);
        }
        let quarantined = |asked: &&&AskedTest| {
            let record = directory.resolve(asked).and_then(|id| records.get(&id));
            record.is_some_and(|record| record.test.is_quarantined(&settings, at))
        };
        let ids = likely.iter().filter(quarantined).map(|asked| asked.id.clone()).collect();
        Ok(QuarantineAnswer { disabled: !settings.quarantine.enabled, ids })
    }
}
