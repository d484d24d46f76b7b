//! Tests that stable branches no longer contain, have under another name, or contain again.

use std::collections::{BTreeMap, BTreeSet};

use signalbox_domain::flaky::{
    Fact, Inheritance, Intake, Outline, Presence, Retirement, Settings, StableRun, Summary,
    TestCase, TestId, TestKey, UploadRuns, WindowRules, Windows, horizon, renames,
};
use signalbox_domain::ports::{RepoRef, TestRecord};
use signalbox_domain::time::Timestamp;

use super::super::Error;
use super::FlakyService;
use super::judge::Judged;
use super::take_in::by_id;

/// The most names of a test, one after the other, that are followed.
pub(super) const MOST_NAMES: u32 = 8;

/// What a run of a stable branch shows about which tests exist.
#[derive(Default)]
pub(super) struct Names {
    /// The presences of the reported tests before the run.
    known: BTreeMap<TestId, Presence>,
    /// The presences that the run changes.
    presences: BTreeMap<TestId, Option<Presence>>,
    /// Tests that retire.
    leaving: Vec<(TestRecord, Retirement)>,
    /// Steps of reported tests: they return, or take over what another test has.
    judged: BTreeMap<TestId, Vec<Judged>>,
    /// Their records after these steps.
    records: BTreeMap<TestId, TestRecord>,
    /// The windows of tests that take over the runs of another test, before those of the upload.
    windows: BTreeMap<TestId, Windows>,
}

/// What is needed of all reported tests to find names that are new or back.
#[derive(Default)]
pub(super) struct Reported {
    /// Since when stable branches have contained the tests that have not retired.
    since: BTreeSet<Timestamp>,
    retired: BTreeMap<TestId, TestRecord>,
}

impl Reported {
    /// The retired tests are read in the end.
    pub(super) fn new(since: BTreeSet<Timestamp>, retired: Vec<TestRecord>) -> Self {
        Self { since, retired: by_id(retired) }
    }
}

impl FlakyService {
    /// What a run shows about names, before its results are judged: which tests are missing, renamed or
    /// back.
    pub(super) async fn names(
        &self,
        repo: RepoRef,
        settings: &Settings,
        run: &StableRun,
        (outline, reported): (&Outline, Reported),
        runs: &UploadRuns,
        at: Timestamp,
    ) -> Result<Names, Error> {
        let tests = &self.context.stores.tests;
        let mut names = Names::default();
        let mut missing: BTreeMap<TestId, Presence> = BTreeMap::new();
        for (id, mut presence) in tests.presences(repo, &run.places()).await? {
            if outline.reports(id) {
                names.known.insert(id, presence);
            } else if presence.missed(run) {
                names.presences.insert(id, Some(presence.clone()));
                missing.insert(id, presence);
            }
        }
        let Reported { since, retired } = reported;
        let could_be_new =
            |presence: &Presence| since.iter().any(|since| presence.could_be(*since, run));
        let may_leave = |presence: &Presence| {
            !retired.is_empty() || presence.retirement(run, at).is_some() || could_be_new(presence)
        };
        let ids = missing.iter().filter(|(_, presence)| may_leave(presence)).map(|(id, _)| *id);
        let ids: Vec<TestId> = ids.collect();
        let gone = by_id(tests.tests(repo, &ids).await?);
        let mut pairs = self.renamed_back(repo, &retired, &missing, at).await?;
        let is_free = |id: &TestId| !pairs.iter().any(|(old, _, _)| old == id);
        let vanished: Vec<(&TestRecord, &Presence)> = gone
            .iter()
            .filter(|(id, record)| is_free(id) && record.is_remarkable())
            .filter_map(|(id, record)| Some((record, missing.get(id)?)))
            .collect();
        let stable_since =
            |record: &TestRecord| record.stable_since.filter(|_| record.test.retired.is_none());
        let is_new = |record: &TestRecord| {
            stable_since(record)
                .is_some_and(|since| vanished.iter().any(|(_, it)| it.could_be(since, run)))
        };
        let mut appeared: Vec<TestRecord> = Vec::new();
        if vanished.iter().any(|(_, presence)| could_be_new(presence)) {
            for part in runs.parts(self.part) {
                let records = tests.tests(repo, &part.ids()).await?;
                appeared.extend(records.into_iter().filter(|record| is_new(record)));
            }
        }
        let old_keys: Vec<&TestKey> = vanished.iter().map(|(it, _)| &it.test.key).collect();
        let new_keys: Vec<&TestKey> = appeared.iter().map(|it| &it.test.key).collect();
        let could_be = |old: usize, new: usize| {
            let found = vanished.get(old).zip(appeared.get(new));
            found.is_some_and(|((_, it), new)| {
                stable_since(new).is_some_and(|since| it.could_be(since, run))
            })
        };
        for (old, new) in renames(&old_keys, &new_keys, could_be) {
            let Some(((old, presence), new)) = vanished.get(old).zip(appeared.get(new)) else {
                continue;
            };
            let retirement = presence.renamed(run, new.test.id, at);
            pairs.extend(retirement.map(|it| (old.test.id, new.test.id, it)));
        }
        let mut records = retired;
        records.extend(appeared.into_iter().map(|record| (record.test.id, record)));
        for (old, new, retirement) in pairs {
            let Some((old, new)) = gone.get(&old).zip(records.get_mut(&new)) else { continue };
            let judged = self.inherit(repo, settings, (old, new), at).await?;
            names.judged.entry(new.test.id).or_default().push(judged);
            names.windows.insert(new.test.id, new.windows.clone());
            names.leaving.push((old.clone(), retirement));
        }
        for (id, record) in gone {
            let is_renamed = names.leaving.iter().any(|(it, _)| it.test.id == id);
            let retirement = missing.get(&id).and_then(|it| it.retirement(run, at));
            if let Some(retirement) = retirement.filter(|_| !is_renamed) {
                names.leaving.push((record, retirement));
            }
        }
        for record in records.values_mut().filter(|record| record.test.retired.is_some()) {
            let fact = Fact::Returned { code_at: run.code_at() };
            let one = Judged::of(record.clone(), settings, fact, at);
            record.test.clone_from(&one.transition.test);
            names.judged.entry(record.test.id).or_default().push(one);
        }
        records.retain(|id, _| names.judged.contains_key(id));
        names.records = records;
        Ok(names)
    }

    /// Retired tests that are back, in place of the missing tests that they were renamed to.
    async fn renamed_back(
        &self,
        repo: RepoRef,
        records: &BTreeMap<TestId, TestRecord>,
        missing: &BTreeMap<TestId, Presence>,
        at: Timestamp,
    ) -> Result<Vec<(TestId, TestId, Retirement)>, Error> {
        let renamed = records.iter().filter_map(|(id, it)| Some((*id, it.test.renamed_to()?)));
        let mut followed: BTreeMap<TestId, TestId> = renamed.collect();
        let mut pairs = Vec::new();
        for _ in 0..MOST_NAMES {
            followed.retain(|back, now| {
                let retirement = missing.get(now).and_then(|it| it.renamed_back(*back, at));
                let is_found = retirement.is_some();
                pairs.extend(retirement.map(|it| (*now, *back, it)));
                !is_found
            });
            let ids: Vec<TestId> = followed.values().copied().collect();
            if ids.is_empty() {
                break;
            }
            let found = by_id(self.context.stores.tests.tests(repo, &ids).await?);
            followed = followed
                .into_iter()
                .filter_map(|(back, now)| Some((back, found.get(&now)?.test.renamed_to()?)))
                .collect();
        }
        Ok(pairs)
    }

    /// Gives a test what was found and decided about another one, and the runs of both.
    async fn inherit(
        &self,
        repo: RepoRef,
        settings: &Settings,
        (old, new): (&TestRecord, &mut TestRecord),
        at: Timestamp,
    ) -> Result<Judged, Error> {
        let ids = [old.test.id, new.test.id];
        let runs = self.context.stores.tests.summaries(repo, &ids, horizon(at)).await?;
        let mut both = Summary::default();
        for of_one in runs.values() {
            both.add(of_one);
        }
        let rules = WindowRules::of(&settings.monitors);
        new.windows = Windows::rebuilt(&rules, &both, at);
        let ticket = old.ticket.clone().filter(|_| new.ticket.is_none());
        new.ticket = new.ticket.take().or_else(|| ticket.clone());
        let fact = Fact::Inherited(Inheritance::of(&old.test, &new.test));
        let one = Judged { ticket, ..Judged::of(new.clone(), settings, fact, at) };
        new.test.clone_from(&one.transition.test);
        Ok(one)
    }
}

impl Names {
    /// The steps of the tests of a part. Their records have the state after them.
    pub(super) fn part(
        &mut self,
        intake: &Intake,
        records: &mut BTreeMap<TestId, TestRecord>,
    ) -> Vec<Judged> {
        let mut judged = Vec::new();
        for id in intake.reported_tests.keys() {
            records.extend(self.records.remove_entry(id));
            judged.extend(self.judged.remove(id).into_iter().flatten());
        }
        judged
    }

    /// Adds the windows of the tests of a part that take over those of another test and count no run.
    pub(super) fn windows_of(&mut self, intake: &Intake, windows: &mut BTreeMap<TestId, Windows>) {
        for id in intake.reported_tests.keys() {
            if let Some(inherited) = self.windows.remove(id) {
                windows.entry(*id).or_insert(inherited);
            }
        }
    }

    /// The presences of the tests of a part whose absence would show. `remarkable` were so before
    /// their results were judged.
    pub(super) fn seen(
        &mut self,
        run: &StableRun,
        intake: &Intake,
        remarkable: &BTreeSet<TestId>,
        judged: &[Judged],
    ) -> BTreeMap<TestId, Option<Presence>> {
        let after = last_states(judged);
        let mut presences = BTreeMap::new();
        for (id, reported) in &intake.reported_tests {
            let before = self.known.remove(id);
            let is_kept =
                remarkable.contains(id) || after.get(id).is_some_and(|test| test.is_remarkable());
            if is_kept || before.is_some() {
                let seen = Presence::seen(before, &reported.key, run).filter(|_| is_kept);
                presences.insert(*id, seen);
            }
        }
        presences
    }

    /// The steps of tests that retire, on top of the judged ones, and the presences after that.
    pub(super) fn retired(
        mut self,
        settings: &Settings,
        judged: &[Judged],
        at: Timestamp,
    ) -> (Vec<Judged>, BTreeMap<TestId, Option<Presence>>) {
        let after = last_states(judged);
        let mut steps = Vec::new();
        for (mut record, retirement) in self.leaving {
            self.presences.insert(record.test.id, None);
            if let Some(test) = after.get(&record.test.id) {
                record.test.clone_from(test);
            }
            if record.is_remarkable() {
                steps.push(Judged::of(record, settings, Fact::Retired(retirement), at));
            }
        }
        (steps, self.presences)
    }
}

/// The state of each test after its last step.
fn last_states(judged: &[Judged]) -> BTreeMap<TestId, &TestCase> {
    judged.iter().map(|it| (it.transition.test.id, &it.transition.test)).collect()
}
