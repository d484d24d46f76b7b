//! Looks at an upload before it is counted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::ids::{OrgId, RepoId};
use crate::time::{Span, Timestamp};

use super::super::{SameCode, TestId, UploadId};
use super::history::{Baseline, FailureHistory, RECENT_MINUTES, Recent};
use super::key::FailureKey;
use super::{Incident, IncidentCause, IncidentId, IncidentState, MAX_SAMPLE, remember};

/// Hours after its last failure during which further uploads join an incident.
const JOIN_HOURS: u32 = 6;
/// Minutes within which all failures of earlier uploads belong to an incident.
const TOGETHER_MINUTES: u32 = 5;
/// The fewest tests of a jump, and of tests that had never failed before.
const LEAST_TESTS: usize = 10;
/// The fewest tests that had never failed before, over the uploads of an hour.
const LEAST_IN_AN_HOUR: usize = 20;
/// The fewest rarely failing tests that belong to an incident within its hour, whatever their
/// failures are.
const LEAST_JOINING: usize = 3;
/// The fewest tests with a failure in common.
const LEAST_SHARING: usize = 5;

/// A test that failed in an upload, in its last attempt or in one before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failing {
    /// The test.
    pub test: TestId,
    /// Whether it was known before and has not failed for a week, as far as it counts.
    pub rarely: bool,
    /// Whether it was known before and has never failed, as far as it counts.
    pub never_failed: bool,
    /// What its failures may have in common with others.
    pub keys: Vec<Arc<FailureKey>>,
}

/// How a test ended in an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ran {
    /// Whether its last attempt passed.
    pub passed: bool,
    /// Whether it was known before.
    pub known: bool,
}

/// An upload, as far as incidents are about it.
#[derive(Clone, Debug)]
pub struct UploadLook {
    /// The organization.
    pub org: OrgId,
    /// The repository.
    pub repo: RepoId,
    /// The upload.
    pub upload: UploadId,
    /// When it came.
    pub at: Timestamp,
    /// The code that was tested.
    pub code: SameCode,
    /// The branch.
    pub branch: String,
    /// The CI job.
    pub job: Option<String>,
    /// The tests that ran.
    pub ran: BTreeMap<TestId, Ran>,
    /// The tests that failed.
    pub failing: Vec<Failing>,
}

/// What an upload means for incidents.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assessment {
    /// The failures of the repository lately, with this upload.
    pub history: FailureHistory,
    /// The incident that the upload is a part of.
    pub incident: Option<IncidentId>,
    /// The tests whose failures in this upload are that incident's.
    pub excluded: BTreeSet<TestId>,
    /// Failures of earlier uploads that were counted and are that incident's, too.
    pub late: BTreeSet<(TestId, UploadId)>,
    /// Incidents that are new or changed, each with its state before.
    pub changed: Vec<(Option<IncidentState>, Incident)>,
}

/// Looks at an upload. `open` has the incidents of the repository of the last days, the newest
/// first.
pub fn assess(look: &UploadLook, history: &FailureHistory, open: &[Incident]) -> Assessment {
    let mut history = history.clone();
    history.forget(look.at);
    let mut after: Vec<Incident> = open.to_vec();
    let mut is_explained = false;
    for incident in &mut after {
        is_explained |= follow(incident, look);
    }
    let mut assessment = Assessment::default();
    if !is_explained {
        recognize(look, &mut history, &mut after, &mut assessment);
    }
    assessment.history = history;
    let before: BTreeMap<IncidentId, &Incident> = open.iter().map(|it| (it.id, it)).collect();
    for incident in after {
        match before.get(&incident.id) {
            Some(old) if **old == incident => {}
            old => assessment.changed.push((old.map(|it| it.state), incident)),
        }
    }
    assessment
}

/// What an upload shows of an incident: that its tests pass again, or that they stay red. `true`:
/// the upload's failures are those of a regression.
fn follow(incident: &mut Incident, look: &UploadLook) -> bool {
    if incident.state.is_decided() {
        return false;
    }
    let ran: Vec<bool> =
        incident.sample.iter().filter_map(|it| Some(look.ran.get(it)?.passed)).collect();
    let enough = (incident.sample.len() / 4).max(3).min(incident.sample.len());
    if ran.is_empty() || ran.len() < enough {
        return false;
    }
    let passed = ran.iter().filter(|passed| **passed).count();
    let red = ran.len() - passed;
    let same_job = look.job.as_ref().is_none_or(|job| incident.jobs.contains(job));
    if incident.codes.contains(&look.code) && passed * 2 >= ran.len() {
        // Another job may run on another platform, so it takes nothing back.
        if incident.state == IncidentState::Suspected || same_job {
            incident.moved(IncidentState::Recovered, look.at);
        }
        incident.proven |= same_job;
        return false;
    }
    let lately = look.at <= incident.last_at.plus(Span::hours(JOIN_HOURS));
    let stays_red = red * 5 >= ran.len() * 4 && incident.branches.contains(&look.branch) && lately;
    if incident.proven || !stays_red {
        return false;
    }
    incident.red = incident.red.saturating_add(1);
    remember(&mut incident.red_codes, look.code.clone());
    let codes: BTreeSet<&SameCode> = incident.codes.iter().chain(&incident.red_codes).collect();
    // One commit may be tested by many jobs, so a regression takes two commits.
    if incident.red >= 2 && codes.len() >= 2 {
        incident.moved(IncidentState::Regression, look.at);
    }
    incident.state == IncidentState::Regression
}

/// Sees whether an upload is the start or a part of an incident.
fn recognize(
    look: &UploadLook,
    history: &mut FailureHistory,
    incidents: &mut Vec<Incident>,
    assessment: &mut Assessment,
) {
    let rarely: Vec<&Failing> = look.failing.iter().filter(|it| it.rarely).collect();
    let known = look.ran.values().filter(|it| it.known).count();
    let joinable = incidents.iter().position(|incident| {
        let (first, last) = (incident.started_at, incident.last_at);
        incident.state.excludes()
            && look.at >= first.minus(Span::hours(JOIN_HOURS))
            && look.at <= last.plus(Span::hours(JOIN_HOURS))
    });
    let goes_on = joinable
        .and_then(|at| incidents.get(at))
        .is_some_and(|incident| look.at <= incident.last_at.plus(Span::minutes(RECENT_MINUTES)));
    let found = find(&rarely, known, (history, goes_on));
    let excluded: BTreeSet<TestId> = match &found {
        Some(found) => found.excluded(&look.failing),
        // Failures like those of an incident belong to it, however few they are.
        None => joinable.and_then(|at| incidents.get(at)).map_or_else(BTreeSet::new, |incident| {
            let like =
                |it: &&Failing| it.keys.iter().any(|key| incident.keys.contains(&key.digest));
            look.failing.iter().filter(like).map(|it| it.test).collect()
        }),
    };
    let small = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    history.note(small(known), small(rarely.len()), look.at);
    if excluded.is_empty() {
        history.remember(&rarely, look.upload, look.at);
        return;
    }
    let keys = found.as_ref().map(|found| found.keys.clone()).unwrap_or_default();
    let late = found.as_ref().map_or_else(BTreeSet::new, |found| found.late(history, look.at));
    let is_late = |it: &&Recent| late.contains(&(it.test, it.upload));
    let first = history.recent.iter().filter(is_late).map(|it| it.at).min();
    history.recent.retain(|it| !late.contains(&(it.test, it.upload)));
    if joinable.is_none() {
        let cause = found.map_or(IncidentCause::SharedFailure, |found| found.cause);
        incidents.insert(0, started(look, cause, &excluded));
    }
    let Some(incident) = incidents.get_mut(joinable.unwrap_or(0)) else { return };
    take_part(incident, look, &excluded, &late, &keys);
    incident.started_at = first.map_or(incident.started_at, |at| at.min(incident.started_at));
    assessment.incident = Some(incident.id);
    (assessment.excluded, assessment.late) = (excluded, late);
}

fn started(look: &UploadLook, cause: IncidentCause, excluded: &BTreeSet<TestId>) -> Incident {
    Incident {
        id: IncidentId::of(look.repo, look.upload),
        org: look.org,
        repo: look.repo,
        state: IncidentState::Suspected,
        cause,
        summary: summary(look, excluded),
        started_at: look.at,
        last_at: look.at,
        since: look.at,
        uploads: 0,
        failures: 0,
        decision: None,
        sample: Vec::new(),
        codes: Vec::new(),
        branches: Vec::new(),
        jobs: Vec::new(),
        keys: Vec::new(),
        red: 0,
        red_codes: Vec::new(),
        proven: false,
    }
}

/// The most frequent thing that failures have in common.
fn summary(look: &UploadLook, excluded: &BTreeSet<TestId>) -> String {
    let mut labels: BTreeMap<&str, usize> = BTreeMap::new();
    let failing = look.failing.iter().filter(|it| excluded.contains(&it.test));
    for key in failing.flat_map(|it| &it.keys) {
        *labels.entry(&key.label).or_default() += 1;
    }
    let most = labels.into_iter().max_by_key(|(label, count)| (*count, std::cmp::Reverse(*label)));
    most.map_or_else(|| "failures without a message".into(), |(label, _)| label.to_owned())
}

/// Adds an upload to an incident.
fn take_part(
    incident: &mut Incident,
    look: &UploadLook,
    excluded: &BTreeSet<TestId>,
    late: &BTreeSet<(TestId, UploadId)>,
    keys: &BTreeSet<String>,
) {
    let small = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let late_uploads: BTreeSet<UploadId> = late.iter().map(|(_, upload)| *upload).collect();
    incident.uploads = incident.uploads.saturating_add(small(late_uploads.len() + 1));
    incident.failures = incident.failures.saturating_add(small(excluded.len() + late.len()));
    incident.started_at = incident.started_at.min(look.at);
    incident.last_at = incident.last_at.max(look.at);
    remember(&mut incident.codes, look.code.clone());
    remember(&mut incident.branches, look.branch.clone());
    if let Some(job) = &look.job {
        remember(&mut incident.jobs, job.clone());
    }
    for key in keys {
        remember(&mut incident.keys, key.clone());
    }
    for test in excluded.iter().chain(late.iter().map(|(test, _)| test)) {
        if incident.sample.len() < MAX_SAMPLE && !incident.sample.contains(test) {
            incident.sample.push(*test);
        }
    }
    incident.sample.sort();
    let passed = excluded.iter().filter(|it| look.ran.get(it).is_some_and(|ran| ran.passed));
    if passed.count() * 2 >= excluded.len() && !incident.state.is_decided() {
        incident.moved(IncidentState::Recovered, look.at);
        incident.proven = true;
    }
}

/// What makes an upload a part of an incident.
struct Found {
    cause: IncidentCause,
    /// Digests of what its failures have in common.
    keys: BTreeSet<String>,
    /// Whether all failures of the upload belong to it, or only those with a key.
    whole: bool,
    /// Whether all failures of the last hour that never happened before belong to it.
    hour: bool,
}

impl Found {
    fn excluded(&self, failing: &[Failing]) -> BTreeSet<TestId> {
        let belongs =
            |it: &&Failing| self.whole || it.keys.iter().any(|key| self.keys.contains(&key.digest));
        failing.iter().filter(belongs).map(|it| it.test).collect()
    }

    /// Failures of earlier uploads that belong to it.
    fn late(&self, history: &FailureHistory, at: Timestamp) -> BTreeSet<(TestId, UploadId)> {
        let together = at.minus(Span::minutes(TOGETHER_MINUTES));
        let belongs = |it: &&Recent| {
            it.keys.iter().any(|key| self.keys.contains(key))
                || (self.hour && it.never_failed)
                || (self.whole && it.at >= together)
        };
        history.recent.iter().filter(belongs).map(|it| (it.test, it.upload)).collect()
    }
}

fn find(
    rarely: &[&Failing],
    known: usize,
    (history, goes_on): (&FailureHistory, bool),
) -> Option<Found> {
    if rarely.is_empty() {
        return None;
    }
    let usual = history.baseline();
    let Baseline { count, jump, .. } = usual;
    let keys = shared_keys(rarely, usual, history);
    let never: BTreeSet<TestId> =
        rarely.iter().filter(|it| it.never_failed).map(|it| it.test).collect();
    let whole = |cause| Some(Found { cause, keys: keys.clone(), whole: true, hour: false });
    let number = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    if rarely.len() >= LEAST_TESTS && number(rarely.len()) > jump * number(known) {
        return whole(IncidentCause::FailureJump);
    }
    if never.len() >= LEAST_TESTS && number(never.len()) > 5.0 * (count + 1.0) {
        return whole(IncidentCause::NeverFailedBefore);
    }
    // Within the hour of an incident, a few tests are enough.
    if goes_on && rarely.len() >= LEAST_JOINING && number(rarely.len()) > 2.0 * (count + 1.0) {
        return whole(IncidentCause::NeverFailedBefore);
    }
    let recently = history.recent.iter().filter(|it| it.never_failed);
    let in_an_hour: BTreeSet<TestId> =
        recently.clone().map(|it| it.test).chain(never.iter().copied()).collect();
    let uploads: BTreeSet<UploadId> = recently.map(|it| it.upload).collect();
    let expected = 5.0 * (count * number(uploads.len() + 1) + 1.0);
    if in_an_hour.len() >= LEAST_IN_AN_HOUR
        && number(in_an_hour.len()) > expected
        && in_an_hour.len() > uploads.len() * 3
    {
        let cause = IncidentCause::NeverFailedBefore;
        return Some(Found { cause, keys, whole: true, hour: true });
    }
    let cause = IncidentCause::SharedFailure;
    (!keys.is_empty()).then_some(Found { cause, keys, whole: false, hour: false })
}

/// What so many rarely failing tests have in common, in this upload and those of the last hour, that it
/// is no accident: the jobs of a matrix take different times, so 5 minutes are too short.
fn shared_keys(rarely: &[&Failing], usual: Baseline, history: &FailureHistory) -> BTreeSet<String> {
    let mut tests: BTreeMap<&str, BTreeSet<TestId>> = BTreeMap::new();
    for failing in rarely {
        for key in &failing.keys {
            tests.entry(&key.digest).or_default().insert(failing.test);
        }
    }
    for recent in &history.recent {
        for key in &recent.keys {
            // Only what this upload shows again.
            if let Some(tests) = tests.get_mut(key.as_str()) {
                tests.insert(recent.test);
            }
        }
    }
    let number = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    let many = |tests: &BTreeSet<TestId>| {
        let least = if usual.is_known { LEAST_SHARING } else { LEAST_TESTS };
        tests.len() >= least && number(tests.len()) > 3.0 * (usual.count + 1.0)
    };
    tests.into_iter().filter(|(_, it)| many(it)).map(|(key, _)| key.to_owned()).collect()
}
