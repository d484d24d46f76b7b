//! What is remembered of quarantine: enough to say quickly that a test is not quarantined.

use std::collections::BTreeSet;

use signalbox_domain::flaky::{AskedTest, TestId};

/// The quarantined tests of a repository, and the ids that clients send for them.
#[derive(Debug)]
pub(super) struct QuarantinedTests {
    pub(super) revision: i64,
    pub(super) enabled: bool,
    /// A user has turned it off.
    pub(super) switched_off: bool,
    pub(super) tests: BTreeSet<TestId>,
    pub(super) aliases: BTreeSet<String>,
}

impl QuarantinedTests {
    /// Whether a test may be one of them. `false` is certain.
    pub(super) fn may_be(&self, asked: &AskedTest) -> bool {
        self.aliases.contains(&asked.id) || asked.computed().any(|id| self.tests.contains(&id))
    }
}
