//! What a monitor would find, without deciding anything.

use signalbox_domain::flaky::{Monitor, Reading, TestId, TestStatus, horizon};
use signalbox_domain::ids::RepoName;
use signalbox_domain::ports::TestList;
use signalbox_domain::token::{Caller, Scope};

use super::super::Error;
use super::FlakyService;

/// The most tests that a preview names.
const SHOWN: usize = 100;
/// The most tests that a preview looks at.
const LOOKED_AT: usize = 20_000;
/// Tests whose runs are read together.
const READ_AT_ONCE: usize = 500;

/// A test that a monitor would find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreviewedTest {
    /// The test.
    pub id: TestId,
    /// Its name.
    pub name: String,
    /// Its variant.
    pub variant: String,
    /// Its status now.
    pub status: TestStatus,
    /// What the monitor sees.
    pub evidence: Reading,
}

/// What a monitor would find.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preview {
    /// The tests, at most 100.
    pub tests: Vec<PreviewedTest>,
    /// How many there are.
    pub found: u32,
    /// How many tests with failures were examined; no monitor finds a test without one.
    pub looked_at: u32,
}

impl FlakyService {
    /// What a monitor would find now if it were created.
    pub async fn preview(
        &self,
        caller: &Caller,
        name: &RepoName,
        monitor: &Monitor,
    ) -> Result<Preview, Error> {
        let (_, repo) = self.repository(caller, Scope::TestsRead, name).await?;
        monitor.check()?;
        let stores = &self.context.stores;
        let at = self.context.clock.now();
        let (from, until) = (horizon(at), at.plus(signalbox_domain::time::Span::MICROSECOND));
        let mut ids = stores.reads.ids(repo, TestList::Failing { from, until }).await?;
        ids.truncate(LOOKED_AT);
        let looked_at = u32::try_from(ids.len()).unwrap_or(u32::MAX);
        let mut preview = Preview { looked_at, ..Preview::default() };
        for ids in ids.chunks(READ_AT_ONCE) {
            let summaries = stores.tests.summaries(repo, ids, from).await?;
            let found: Vec<(TestId, Reading)> = summaries
                .iter()
                .filter_map(|(id, summary)| Some((*id, monitor.preview(summary, at)?)))
                .collect();
            preview.found = preview.found.saturating_add(u32::try_from(found.len()).unwrap_or(0));
            let room = SHOWN.saturating_sub(preview.tests.len());
            let shown: Vec<TestId> = found.iter().take(room).map(|(id, _)| *id).collect();
            let records = super::take_in::by_id(stores.tests.tests(repo, &shown).await?);
            for (id, evidence) in found.into_iter().take(room) {
                let Some(record) = records.get(&id) else { continue };
                preview.tests.push(PreviewedTest {
                    id,
                    name: record.test.key.name.clone(),
                    variant: record.test.key.variant.clone(),
                    status: record.test.standing.value,
                    evidence,
                });
            }
        }
        Ok(preview)
    }
}
