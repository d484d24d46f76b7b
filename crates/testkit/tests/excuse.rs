//! A failing check is never excused when the lookup fails.

use std::collections::BTreeMap;

use async_trait::async_trait;
use signalbox_domain::flaky::{
    Actor, AskedTest, Excuse, Excused, FailedCheck, QuarantineCause, TestKey,
};
use signalbox_domain::ids::{OrgId, RepoId};
use signalbox_domain::ports::StoreError;
use signalbox_services::Error;
use signalbox_services::{QuarantineAnswer, QuarantineLookup};
use signalbox_testkit::fake_results::FakeResults;
use uuid::Uuid;

/// A lookup whose database is unavailable.
struct Away;

#[async_trait]
impl QuarantineLookup for Away {
    async fn quarantined(
        &self,
        _: OrgId,
        _: RepoId,
        _: &[AskedTest],
    ) -> Result<QuarantineAnswer, Error> {
        Err(StoreError::Unavailable("the database is unavailable".into()).into())
    }

    async fn causes(
        &self,
        _: OrgId,
        _: RepoId,
        _: &[AskedTest],
    ) -> Result<BTreeMap<String, QuarantineCause>, Error> {
        Err(StoreError::Unavailable("the database is unavailable".into()).into())
    }
}

fn asked(name: &str) -> AskedTest {
    let key = TestKey { name: name.into(), ..TestKey::default() };
    AskedTest { id: key.id().to_string(), key }
}

const ORG: OrgId = OrgId(Uuid::from_u128(1));
const REPO: RepoId = RepoId(Uuid::from_u128(2));

#[tokio::test]
async fn an_unavailable_database_excuses_nothing() {
    let failing = [asked("adds")];
    let check = FailedCheck { failing: &failing, complete: true };
    assert_eq!(Away.excuse(ORG, REPO, check).await, Excuse::Failing(vec!["adds".into()]));
}

#[tokio::test]
async fn quarantined_tests_are_excused_unless_quarantine_is_off() {
    let results = FakeResults::default();
    let failing = [asked("adds")];
    let check = FailedCheck { failing: &failing, complete: true };
    results.quarantine(ORG, REPO, failing[0].key.id());
    let cause = QuarantineCause::Override { by: Actor::system() };
    let excused = Excused { name: "adds".into(), cause };
    assert_eq!(results.excuse(ORG, REPO, check).await, Excuse::Excused(vec![excused]));
    let other = RepoId(Uuid::from_u128(3));
    assert_eq!(results.excuse(ORG, other, check).await, Excuse::Failing(vec!["adds".into()]));
    results.disable(ORG, REPO);
    assert_eq!(results.excuse(ORG, REPO, check).await, Excuse::Failing(vec!["adds".into()]));
}
