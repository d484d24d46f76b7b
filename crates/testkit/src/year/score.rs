//! What the judge says, compared with the truth.

use std::collections::{BTreeMap, BTreeSet};

use signalbox_domain::flaky::{Incident, IncidentId, IncidentState, TestId};
use signalbox_domain::time::{Span, Timestamp};

use super::DayCost;
use super::failures::Cause;
use super::plan::{Kind, Name, Plan, PlannedTest};
use super::replay::EARLY_DAYS;

/// Days for which a fixed test may still be called flaky, and a day: the recovery of the default
/// monitor.
const RECOVERY_DAYS: u32 = 8;
/// Hours after an incident in which its last failures may come.
const AFTER_INCIDENT_HOURS: u32 = 2;

/// What the judge says at a time.
pub(super) struct Sample {
    pub(super) at: Timestamp,
    /// When the head of `main` was made.
    pub(super) head: Timestamp,
    /// When the head of a day ago was made.
    pub(super) head_day_ago: Timestamp,
    pub(super) flaky: BTreeSet<TestId>,
    pub(super) broken: BTreeSet<TestId>,
    /// Broken tests that would be called flaky otherwise.
    pub(super) hidden: BTreeSet<TestId>,
    pub(super) incidents: Vec<Incident>,
    /// Retired tests, and what they were renamed to.
    pub(super) retired: BTreeMap<TestId, Option<TestId>>,
}

/// A test that failed in a job in the end.
pub(super) struct Failed {
    pub(super) test: usize,
    pub(super) cause: Cause,
    pub(super) is_excused: bool,
    pub(super) at: Timestamp,
}

/// How well tests are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quality {
    /// Found and true.
    pub right: u32,
    /// Found and not true.
    pub wrong: u32,
    /// True and not found.
    pub missed: u32,
}

impl Quality {
    /// The share of what was found that is true; 1 when nothing was found.
    pub fn precision(self) -> f64 {
        share(self.right, self.right + self.wrong)
    }

    /// The share of what is true that was found; 1 when nothing is true.
    pub fn recall(self) -> f64 {
        share(self.right, self.right + self.missed)
    }

    fn add(&mut self, is_found: bool, is_true: bool, is_excusable: bool) {
        match (is_found, is_true) {
            (true, true) => self.right += 1,
            (true, false) if !is_excusable => self.wrong += 1,
            (false, true) => self.missed += 1,
            (true | false, false) => {}
        }
    }
}

fn share(part: u32, whole: u32) -> f64 {
    if whole == 0 { 1.0 } else { f64::from(part) / f64::from(whole) }
}

/// How long something took, for those of some tests for which it happened.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Delays {
    /// Tests for which it should have happened.
    pub of: u32,
    /// Days, in order, of those for which it happened.
    pub days: Vec<f64>,
}

impl Delays {
    fn note(&mut self, from: Timestamp, at: Option<Timestamp>) {
        self.of += 1;
        if let Some(at) = at {
            let minutes = at.since(from).micros() / 60_000_000;
            self.days.push(f64::from(u32::try_from(minutes).unwrap_or(0)) / 1_440.0);
            self.days.sort_by(f64::total_cmp);
        }
    }

    /// The delay that half of those for which it happened do not exceed.
    pub fn median(&self) -> Option<f64> {
        self.days.get(self.days.len().saturating_sub(1) / 2).copied()
    }

    /// The longest delay.
    pub fn longest(&self) -> Option<f64> {
        self.days.last().copied()
    }
}

/// What a replay showed.
#[derive(Clone, Debug)]
pub struct Findings {
    /// Flaky tests after nine days.
    pub early: Quality,
    /// Flaky tests over all samples, four a day. A test that was fixed less than 8 days ago is
    /// neither right nor wrong.
    pub flaky: Quality,
    /// Tests broken on `main` over all samples.
    pub broken: Quality,
    /// Days from when a test became flaky until it was called flaky, by kind.
    pub detected: BTreeMap<Kind, Delays>,
    /// Days from when a test was fixed until it was no longer called flaky.
    pub recovered: Delays,
    /// Days from when a test was broken on `main` until it was called broken.
    pub broken_detected: Delays,
    /// How often a test was called flaky that was not, by the cause of its last failure.
    pub accused: BTreeMap<Cause, u32>,
    /// Failing tests of jobs, and excused ones, by cause.
    pub failures: BTreeMap<Cause, (u32, u32)>,
    /// Real failures that were excused because a test was wrongly called flaky.
    pub wrongly_excused: u32,
    /// Real failures.
    pub real: u32,
    /// Incidents that were recognized, of five.
    pub incidents: u32,
    /// Recognized incidents that were none, and did not turn out to be a regression.
    pub false_incidents: u32,
    /// Samples of tests that no longer exist and were still called flaky or broken.
    pub gone: u32,
    /// Samples of tests that exist and were retired.
    pub wrongly_retired: u32,
    /// Samples of tests that were renamed to another test.
    pub wrongly_renamed: u32,
    /// Samples of tests that were renamed to their new name.
    pub renamed: u32,
    /// By day.
    pub cost: Vec<DayCost>,
}

#[derive(Default)]
struct Track {
    is_accused: bool,
    last_cause: Option<Cause>,
    detected: Option<Timestamp>,
    was_flagged_when_fixed: bool,
    recovered: Option<Timestamp>,
    broken: BTreeMap<Timestamp, Timestamp>,
}

/// Compares as the time passes.
pub(super) struct Score<'a> {
    plan: &'a Plan,
    /// The ids of each test: since when, by name and platform.
    ids: Vec<Vec<(Timestamp, TestId)>>,
    tracks: Vec<Track>,
    incidents: BTreeMap<IncidentId, (Timestamp, IncidentState)>,
    /// The time of the last sample.
    last: Timestamp,
    findings: Findings,
}

impl<'a> Score<'a> {
    pub(super) fn new(plan: &'a Plan, id: impl Fn(&Name, &str) -> TestId) -> Self {
        let ids_of = |test: &PlannedTest| {
            let names = test.names.iter();
            let of_name =
                |name: &Name| ["linux", "windows"].map(|platform| (name.since, id(name, platform)));
            names.flat_map(of_name).collect()
        };
        let findings = Findings {
            early: Quality::default(),
            flaky: Quality::default(),
            broken: Quality::default(),
            detected: BTreeMap::new(),
            recovered: Delays::default(),
            broken_detected: Delays::default(),
            accused: BTreeMap::new(),
            failures: BTreeMap::new(),
            wrongly_excused: 0,
            real: 0,
            incidents: 0,
            false_incidents: 0,
            gone: 0,
            wrongly_retired: 0,
            wrongly_renamed: 0,
            renamed: 0,
            cost: Vec::new(),
        };
        Self {
            plan,
            ids: plan.tests.iter().map(ids_of).collect(),
            tracks: plan.tests.iter().map(|_| Track::default()).collect(),
            incidents: BTreeMap::new(),
            last: plan.calendar.start,
            findings,
        }
    }

    /// An attempt of a test failed.
    pub(super) fn failed_attempt(&mut self, test: usize, cause: Cause) {
        if let Some(track) = self.tracks.get_mut(test) {
            track.last_cause = Some(cause);
        }
    }

    /// A test failed in a job in the end.
    pub(super) fn failed(&mut self, failed: &Failed) {
        let Failed { test, cause, is_excused, at } = *failed;
        let counts = self.findings.failures.entry(cause).or_default();
        counts.0 += 1;
        counts.1 += u32::from(is_excused);
        if cause.is_real() {
            let is_flaky = self.plan.tests.get(test).is_some_and(|it| was_flaky(it, at));
            self.findings.real += 1;
            self.findings.wrongly_excused += u32::from(is_excused && !is_flaky);
        }
    }

    /// Compares what the judge says.
    pub(super) fn sample(&mut self, sample: &Sample) {
        let at = sample.at;
        self.last = at;
        let is_early = at == self.plan.calendar.at(EARLY_DAYS, 0);
        let rows = self.plan.tests.iter().zip(&self.ids).zip(&mut self.tracks);
        for ((test, ids), track) in rows {
            let current =
                ids.iter().filter(|(since, _)| *since <= at).map(|(since, _)| since).max();
            let is_listed = |list: &BTreeSet<TestId>, is_current: bool| {
                let of_name =
                    ids.iter().filter(|(since, _)| (Some(since) == current) == is_current);
                of_name.into_iter().any(|(_, id)| list.contains(id))
            };
            if is_listed(&sample.flaky, false) || is_listed(&sample.broken, false) {
                self.findings.gone += 1;
            }
            for (since, id) in ids {
                let Some(to) = sample.retired.get(id) else { continue };
                let is_wrong = Some(since) == current && test.exists.contains(at);
                self.findings.wrongly_retired += u32::from(is_wrong);
                if let Some(to) = to {
                    let is_same = ids.iter().any(|(since, id)| id == to && Some(since) == current);
                    self.findings.renamed += u32::from(is_same);
                    self.findings.wrongly_renamed += u32::from(!is_same);
                }
            }
            let is_flagged = is_listed(&sample.flaky, true);
            let is_called_broken = is_listed(&sample.broken, true);
            if !test.exists.contains(at) {
                let is_over = at >= self.plan.calendar.end();
                self.findings.gone += u32::from(!is_over && (is_flagged || is_called_broken));
                continue;
            }
            let (is_flaky, was_flaky) = (test.is_flaky(at), was_flaky(test, at));
            self.findings.flaky.add(is_flagged, is_flaky, was_flaky);
            if is_early {
                self.findings.early.add(is_flagged, is_flaky, was_flaky);
            }
            // While it is called broken, a finding that it is flaky is hidden, and not a new one afterwards.
            let is_found = is_flagged || is_listed(&sample.hidden, true);
            let is_accused = is_found && !was_flaky;
            if is_accused && !track.is_accused {
                let cause = track.last_cause.unwrap_or(Cause::Noise);
                *self.findings.accused.entry(cause).or_default() += 1;
            }
            track.is_accused = is_accused;
            if is_flaky && is_flagged {
                track.detected.get_or_insert(at);
            }
            if is_flaky {
                track.was_flagged_when_fixed = is_flagged;
            } else if was_flaky && !is_flagged {
                track.recovered.get_or_insert(at);
            }
            // A fix shows when `main` moves.
            let is_broken = test.broken_at(sample.head).is_some();
            let was_broken = test.broken_at(sample.head_day_ago).is_some();
            let on_platform = test.kind == Kind::Platform && test.wrong.contains(at);
            let excusable = was_broken || on_platform;
            self.findings.broken.add(is_called_broken, is_broken, excusable);
            if is_called_broken {
                for (period, _) in test.broken.iter().filter(|(it, _)| it.contains(sample.head)) {
                    track.broken.entry(period.from).or_insert(at);
                }
            }
        }
        for incident in &sample.incidents {
            self.incidents.insert(incident.id, (incident.started_at, incident.state));
        }
    }

    /// Everything together.
    pub(super) fn findings(mut self, cost: Vec<DayCost>) -> Findings {
        let findings = &mut self.findings;
        let end = self.last;
        for (test, track) in self.plan.tests.iter().zip(&self.tracks) {
            let onset = test.wrong.from.max(test.exists.from);
            if test.is_flaky(onset) && onset < end {
                findings.detected.entry(test.kind).or_default().note(onset, track.detected);
            }
            let fixed = test.wrong.until;
            if fixed < test.exists.until.min(end)
                && track.was_flagged_when_fixed
                && test.is_flaky(onset)
            {
                findings.recovered.note(fixed, track.recovered);
            }
            for (period, _) in test.broken.iter().filter(|(period, _)| period.from < end) {
                let found = track.broken.get(&period.from).copied();
                findings.broken_detected.note(period.from, found);
            }
        }
        let mut known = BTreeSet::new();
        for (at, state) in self.incidents.values() {
            let around = |it: &super::plan::PlannedIncident| {
                it.period.from <= *at
                    && *at < it.period.until.plus(Span::hours(AFTER_INCIDENT_HOURS))
            };
            match self.plan.incidents.iter().position(around) {
                Some(planned) => {
                    known.insert(planned);
                }
                None if *state == IncidentState::Regression => {}
                None => findings.false_incidents += 1,
            }
        }
        findings.incidents = u32::try_from(known.len()).unwrap_or(u32::MAX);
        Findings { cost, ..self.findings }
    }
}

/// Whether a test is flaky, or was so recently that the judge cannot know better.
fn was_flaky(test: &PlannedTest, at: Timestamp) -> bool {
    let since = at.minus(Span::days(RECOVERY_DAYS));
    let lately = test.wrong.until > since && test.wrong.from <= at;
    let kind = matches!(test.kind, Kind::Flaky(_) | Kind::RandomOrder | Kind::FixedOrder);
    kind && lately && test.exists.from <= at
}
