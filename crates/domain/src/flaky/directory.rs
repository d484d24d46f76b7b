//! Which test a client means: the tests of a repository by id, by key and by alias.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;
use uuid::Uuid;

use super::{TestId, TestKey};

/// Two different tests have the same id. The second one is ignored.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("test {name:?} has the id {id} of another test, {other:?}")]
pub struct IdCollision {
    /// The id.
    pub id: TestId,
    /// The name of the test that was refused.
    pub name: String,
    /// The name of the test that has the id.
    pub other: String,
}

/// A test as a client asks for it: the id that it computed and the fields that it knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedTest {
    /// The id as sent. The answer names it the same way.
    pub id: String,
    /// The fields; `info` is not sent and stays empty.
    pub key: TestKey,
}

impl AskedTest {
    /// The ids that the test would have if the client's id and fields are right, the best first.
    pub fn computed(&self) -> impl Iterator<Item = TestId> {
        let as_sent = Uuid::try_parse(&self.id).ok().map(TestId);
        let with_id = std::iter::once_with(|| self.key.id_with(&self.id));
        let without = std::iter::once_with(|| self.key.id());
        with_id.chain(as_sent).chain(without)
    }
}

/// The tests of one repository and the ids under which clients request them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TestDirectory {
    tests: BTreeMap<TestId, TestKey>,
    aliases: BTreeMap<String, BTreeSet<TestId>>,
}

impl TestDirectory {
    /// Adds a reported test, with the other files that the report names for it.
    pub fn learn(&mut self, key: &TestKey, other_files: &[&str]) -> Result<TestId, IdCollision> {
        let id = key.id();
        match self.tests.get(&id) {
            Some(known) if !same_test(known, key) => {
                return Err(IdCollision { id, name: key.name.clone(), other: known.name.clone() });
            }
            Some(_) => {}
            None => {
                self.tests.insert(id, key.clone());
            }
        }
        for alias in key.sent_ids(other_files) {
            self.aliases.entry(alias).or_default().insert(id);
        }
        Ok(id)
    }

    /// Adds an id under which clients request a test, besides the ids of its key.
    pub fn learn_alias(&mut self, alias: String, id: TestId) {
        self.aliases.entry(alias).or_default().insert(id);
    }

    /// The test with that id.
    pub fn key(&self, id: TestId) -> Option<&TestKey> {
        self.tests.get(&id)
    }

    /// The test that a client asks for, or `None` when it is unknown or could be several.
    ///
    /// Looked up by the id, then by the fields, then by what was learned from reports. A test of
    /// another variant is never meant, whatever the id says.
    pub fn resolve(&self, asked: &AskedTest) -> Option<TestId> {
        asked.computed().find(|id| self.is_variant(*id, &asked.key)).or_else(|| {
            let known = self.aliases.get(&asked.id)?;
            let mut fitting = known.iter().filter(|id| self.is_variant(**id, &asked.key));
            let first = fitting.next()?;
            fitting.next().is_none().then_some(*first)
        })
    }

    fn is_variant(&self, id: TestId, key: &TestKey) -> bool {
        self.tests.get(&id).is_some_and(|known| known.variant == key.variant)
    }
}

/// Whether two keys of one id are of one test. An id of the runner's own stands for the test
/// whatever the other fields say.
pub(super) fn same_test(known: &TestKey, other: &TestKey) -> bool {
    let TestKey { org, repo, parent, classname, file, name, variant, info } = known;
    let own_id = !info.is_empty() && *info == other.info;
    *variant == other.variant
        && (own_id
            || (org, repo, parent, classname, file, name)
                == (
                    &other.org,
                    &other.repo,
                    &other.parent,
                    &other.classname,
                    &other.file,
                    &other.name,
                ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIVE: &str = "1defca6d-177c-5958-b1df-4c4da091b71a";

    fn key(name: &str, variant: &str, info: &str) -> TestKey {
        TestKey {
            org: "acme".into(),
            repo: "github.com/acme/calc".into(),
            file: "tests/calc.rs".into(),
            name: name.into(),
            variant: variant.into(),
            info: info.into(),
            ..TestKey::default()
        }
    }

    fn asked(id: &str, name: &str, variant: &str) -> AskedTest {
        AskedTest { id: id.into(), key: key(name, variant, "") }
    }

    #[test]
    fn an_unchanged_id_of_the_report_finds_its_variant() {
        let mut directory = TestDirectory::default();
        let plain = directory.learn(&key("adds", "", FIVE), &[]).expect("new");
        let unix = directory.learn(&key("adds", "unix", FIVE), &[]).expect("new");
        assert_eq!(directory.resolve(&asked(FIVE, "adds", "")), Some(plain));
        assert_eq!(directory.resolve(&asked(FIVE, "adds", "unix")), Some(unix));
        assert_eq!(directory.resolve(&asked(&unix.to_string(), "adds", "unix")), Some(unix));
        assert_eq!(directory.resolve(&asked(FIVE, "adds", "mac")), None);
    }

    #[test]
    fn a_test_is_found_by_its_fields_and_by_the_files_that_a_client_may_take() {
        let mut directory = TestDirectory::default();
        let id = directory.learn(&key("adds", "", "123"), &["suite.rs"]).expect("new");
        assert_eq!(directory.resolve(&asked("anything", "adds", "")), Some(id));
        let other = TestKey { file: "suite.rs".into(), ..key("adds", "", "") };
        let sent = AskedTest { id: other.id().to_string(), key: other };
        assert_eq!(directory.resolve(&sent), Some(id));
        assert_eq!(directory.resolve(&asked("123", "unknown", "")), Some(id));
        assert_eq!(directory.resolve(&asked("124", "unknown", "")), None);
    }

    #[test]
    fn an_id_of_the_runner_stands_for_the_test_in_its_variant() {
        let mut directory = TestDirectory::default();
        let id = directory.learn(&key("adds", "", FIVE), &[]).expect("new");
        let renamed = TestKey { file: "tests/sums.rs".into(), ..key("sums", "", FIVE) };
        assert_eq!(directory.learn(&renamed, &[]), Ok(id));
        let unix = directory.learn(&key("adds", "unix", FIVE), &[]).expect("another variant");
        assert_eq!(directory.learn(&key("sums", "unix", FIVE), &[]), Ok(unix));
    }

    #[test]
    fn a_test_is_found_by_every_learned_alias_and_known_by_its_key() {
        let mut directory = TestDirectory::default();
        let id = directory.learn(&key("adds", "", ""), &[]).expect("new");
        assert_eq!(directory.resolve(&asked("7", "unknown", "")), None);
        directory.learn_alias("7".into(), id);
        assert_eq!(directory.resolve(&asked("7", "unknown", "")), Some(id));
        assert_eq!(directory.key(id), Some(&key("adds", "", "")));
        assert_eq!(directory.key(key("subtracts", "", "").id()), None);
    }

    #[test]
    fn an_alias_of_several_tests_means_none_of_them() {
        let mut directory = TestDirectory::default();
        directory.learn(&key("adds", "", "1"), &[]).expect("new");
        directory.learn(&key("subtracts", "", "1"), &[]).expect("new");
        assert_eq!(directory.resolve(&asked("1", "unknown", "")), None);
    }

    #[test]
    fn a_second_test_with_the_same_id_is_refused() {
        let mut directory = TestDirectory::default();
        let one = TestKey { classname: "b#c".into(), file: "a".into(), ..key("adds", "", "") };
        let two = TestKey { classname: "c".into(), file: "a#b".into(), ..key("adds", "", "") };
        assert_eq!(one.id(), two.id());
        directory.learn(&one, &[]).expect("new");
        assert!(directory.learn(&two, &[]).is_err());
        assert_eq!(directory.learn(&one, &[]), Ok(one.id()));
    }
}
