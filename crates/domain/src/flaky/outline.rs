//! What concerns all tests of an upload together: whether it counts, whether it is an incident, and
//! which tests exist.
//!
//! An upload is counted in parts, so that it needs little memory: the [`Outline`] is made of all
//! parts first, and then each part is counted on its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::time::{Span, Timestamp};

use super::directory::same_test;
use super::intake::{branch_of, message_of};
use super::{
    Admission, Failing, FailureKey, Fingerprint, InfrastructureGuard, IngestOutcome, KnownKeys,
    Ran, ReportedRun, RunOutcome, Settings, StableRun, TestId, TestKey, Upload, UploadCounts,
    UploadLook, admit, failure_keys, place,
};

/// All runs of an upload, by test.
#[derive(Clone, Debug)]
pub struct UploadRuns {
    runs: Vec<ReportedRun>,
    /// The places of the runs, ordered by test.
    order: Vec<(TestId, usize)>,
}

impl UploadRuns {
    /// Orders the runs of an upload by test; those of one test stay in their order.
    pub fn new(runs: Vec<ReportedRun>) -> Self {
        let ids = runs.iter().enumerate().map(|(at, run)| (run.key.id(), at));
        let mut order: Vec<(TestId, usize)> = ids.collect();
        order.sort_unstable();
        Self { runs, order }
    }

    /// Parts of about that many runs. All runs of a test are in one part.
    pub fn parts(&self, runs: usize) -> impl Iterator<Item = RunsPart<'_>> {
        let mut rest = self.order.as_slice();
        std::iter::from_fn(move || {
            let last = rest.get(runs.max(1) - 1).or(rest.last())?.0;
            let (order, after) = rest.split_at(rest.partition_point(|(id, _)| *id <= last));
            rest = after;
            Some(RunsPart { runs: &self.runs, order })
        })
    }
}

/// The runs of some tests of an upload.
#[derive(Clone, Copy, Debug)]
pub struct RunsPart<'a> {
    runs: &'a [ReportedRun],
    order: &'a [(TestId, usize)],
}

impl<'a> RunsPart<'a> {
    /// The number of runs.
    pub const fn len(self) -> usize {
        self.order.len()
    }

    /// Whether it has no runs.
    pub const fn is_empty(self) -> bool {
        self.order.is_empty()
    }

    /// The tests by id, each with its runs.
    pub fn tests(self) -> impl Iterator<Item = (TestId, impl Iterator<Item = &'a ReportedRun>)> {
        let runs = self.runs;
        self.order.chunk_by(|one, other| one.0 == other.0).filter_map(move |of_test| {
            let id = of_test.first()?.0;
            Some((id, of_test.iter().filter_map(move |(_, at)| runs.get(*at))))
        })
    }

    /// The ids of the tests.
    pub fn ids(self) -> Vec<TestId> {
        self.tests().map(|(id, _)| id).collect()
    }
}

/// How a test ended in an upload.
#[derive(Clone, Debug)]
struct Ended {
    attempt: u32,
    /// Whether its last attempt passed.
    passed: bool,
    /// Whether any attempt failed.
    failed: bool,
    /// What its failures may have in common with those of other tests.
    keys: Vec<Arc<FailureKey>>,
}

/// What concerns all tests of an upload together.
#[derive(Clone, Debug)]
pub struct Outline {
    upload: Upload,
    guard: InfrastructureGuard,
    count_public_uploads: bool,
    runs: u32,
    ignored: u32,
    counts: UploadCounts,
    /// The reported tests in their order, and how they ended unless they were only skipped.
    tests: Vec<(TestId, Option<Ended>)>,
    keys: BTreeSet<Arc<FailureKey>>,
    /// Tests that failed alike, if the guard asks for them.
    alike: BTreeMap<Fingerprint, u32>,
    places: BTreeSet<String>,
}

impl Outline {
    /// The outline of an upload without runs.
    pub fn new(upload: &Upload, settings: &Settings) -> Self {
        Self {
            upload: upload.clone(),
            guard: settings.guard,
            count_public_uploads: settings.count_public_uploads,
            runs: 0,
            ignored: 0,
            counts: UploadCounts { tests: 0, failed: 0, trust: upload.trust },
            tests: Vec::new(),
            keys: BTreeSet::new(),
            alike: BTreeMap::new(),
            places: BTreeSet::new(),
        }
    }

    /// Adds the next part of the upload.
    pub fn add(&mut self, part: RunsPart<'_>, known: &KnownKeys<'_>) {
        self.tests.reserve_exact(part.tests().count());
        for (id, runs) in part.tests() {
            let (runs, ignored) = self.of_one_test(known.get(&id).copied(), runs);
            self.ignored = self.ignored.saturating_add(small(ignored));
            let Some(first) = runs.first() else { continue };
            self.runs = self.runs.saturating_add(small(runs.len()));
            if self.upload.stable_at().is_some() {
                self.places.extend(place(known.get(&id).copied().unwrap_or(&first.key)));
            }
            let ended = self.ended(&runs);
            self.counts.tests += u32::from(ended.is_some());
            self.counts.failed += u32::from(ended.as_ref().is_some_and(|it| !it.passed));
            self.tests.push((id, ended));
        }
    }

    /// Whether its sender is trusted: otherwise it is only shown.
    pub(super) fn is_trusted(&self) -> bool {
        self.outcome().admission != Admission::Untrusted
    }

    /// The runs that are of the test that is known under their id, or of the first one, and the number
    /// of the others. A sender that is not trusted adds no test with whose id another one could be
    /// meant.
    pub(super) fn of_one_test<'a>(
        &self,
        known: Option<&TestKey>,
        runs: impl Iterator<Item = &'a ReportedRun>,
    ) -> (Vec<&'a ReportedRun>, usize) {
        let (is_trusted, mut first) = (self.is_trusted(), None);
        let (of_it, others): (Vec<_>, Vec<_>) = runs.partition(|run| {
            let is_clear = known.is_some() || is_trusted || run.key.is_unambiguous();
            is_clear && same_test(known.unwrap_or(first.get_or_insert(&run.key)), &run.key)
        });
        (of_it, others.len())
    }

    fn ended(&mut self, runs: &[&ReportedRun]) -> Option<Ended> {
        let mut ended: Option<Ended> = None;
        let mut alike: BTreeSet<Fingerprint> = BTreeSet::new();
        for run in runs.iter().filter(|run| run.outcome != RunOutcome::Skipped) {
            let (attempt, passed) = (run.attempt, run.outcome == RunOutcome::Passed);
            let ended =
                ended.get_or_insert(Ended { attempt, passed, failed: false, keys: Vec::new() });
            if attempt >= ended.attempt {
                (ended.attempt, ended.passed) = (attempt, passed);
            }
            if passed {
                continue;
            }
            ended.failed = true;
            for key in run.failure.as_ref().map(failure_keys).unwrap_or_default() {
                let key = shared(&mut self.keys, key);
                if !ended.keys.contains(&key) {
                    ended.keys.push(key);
                }
            }
            alike.extend(self.fingerprint(run));
        }
        for fingerprint in alike {
            let count = self.alike.entry(fingerprint).or_default();
            *count = count.saturating_add(1);
        }
        ended
    }

    /// The fingerprint of a failure, if many with the same one are an incident.
    fn fingerprint(&self, run: &ReportedRun) -> Option<Fingerprint> {
        self.guard.alike_tests().map(|_| Fingerprint::of(message_of(run)))
    }

    /// Whether so many tests of the upload failed like this one that they are not to blame.
    pub(super) fn is_incident(&self, run: &ReportedRun) -> bool {
        let count = self.fingerprint(run).and_then(|it| self.alike.get(&it));
        count.zip(self.guard.alike_tests()).is_some_and(|(count, least)| *count >= least)
    }

    /// The upload.
    pub const fn upload(&self) -> &Upload {
        &self.upload
    }

    /// The outcome of the upload.
    pub fn outcome(&self) -> IngestOutcome {
        IngestOutcome {
            tests: self.counts.tests,
            failed: self.counts.failed,
            runs: self.runs,
            ignored: self.ignored,
            admission: admit(self.guard, self.count_public_uploads, self.counts),
            repeated: false,
        }
    }

    /// Whether it reports a test.
    pub fn reports(&self, test: TestId) -> bool {
        self.tests.binary_search_by_key(&test, |(id, _)| *id).is_ok()
    }

    /// The parts of the upload that concern incidents. `known` has the last counted failure of each
    /// test that was reported before.
    pub fn look(&self, known: &BTreeMap<TestId, Option<Timestamp>>) -> UploadLook {
        let upload = &self.upload;
        let week_ago = upload.received_at.minus(Span::days(7));
        let ended = || self.tests.iter().filter_map(|(id, ended)| Some((*id, ended.as_ref()?)));
        let ran = ended()
            .map(|(test, it)| (test, Ran { passed: it.passed, known: known.contains_key(&test) }));
        let failing = ended().filter(|(_, it)| it.failed).map(|(test, it)| {
            let before = known.get(&test);
            Failing {
                test,
                rarely: before.is_some_and(|last| last.is_none_or(|last| last < week_ago)),
                never_failed: before.is_some_and(Option::is_none),
                keys: it.keys.clone(),
            }
        });
        UploadLook {
            org: upload.org,
            repo: upload.repo,
            upload: upload.id,
            at: upload.received_at,
            code: upload.code(),
            branch: branch_of(upload).to_owned(),
            job: upload.origin.job().or_else(|| upload.job_name.clone()),
            ran: ran.collect(),
            failing: failing.collect(),
        }
    }

    /// What it shows about which tests exist, if it shows anything.
    pub fn stable_run(&self) -> Option<StableRun> {
        StableRun::of(&self.upload, self.outcome().admission, self.places.clone())
    }
}

/// The key as it is kept once for all tests: many failures have the same.
fn shared(keys: &mut BTreeSet<Arc<FailureKey>>, key: FailureKey) -> Arc<FailureKey> {
    if let Some(known) = keys.get(&key) {
        return known.clone();
    }
    let key = Arc::new(key);
    keys.insert(key.clone());
    key
}

fn small(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
