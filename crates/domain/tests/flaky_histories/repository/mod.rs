//! A repository in which things happen: only the domain's functions, and what stores keep.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Debug, Write as _};

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};
use signalbox_domain::flaky::{
    Action, Actor, AutoQuarantine, Base, BranchPattern, BranchScope, Classification, CodeSummary,
    Command, Fact, FailureCount, FailureHistory, FailureRate, FailureStreak, Incident, IncidentId,
    Intake, KnownKeys, Monitor, MonitorId, MuteLength, Origin, Outline, PassOnRetry,
    QuarantineOverride, ReportedFailure, ReportedRun, Rule, RunOutcome, RunRecord, Settings,
    Summary, TestCase, TestId, TestKey, Transition, Trust, Upload, UploadId, UploadRuns,
    UploadSource, WindowRules, Windows, absorb, assess, check_invariants, decide, failures_of,
    horizon, intake, next_deadline,
};
use signalbox_domain::ids::{OrgId, PrNumber, RepoId, Sha};
use signalbox_domain::time::{Span, Timestamp};
use uuid::Uuid;

use crate::{Numbers, reports};

const TESTS: u32 = 40;
const MONITORS: u32 = 6;
const ORG: OrgId = OrgId(Uuid::from_u128(1));
const REPO: RepoId = RepoId(Uuid::from_u128(2));

/// What is kept of a test.
struct Record {
    test: TestCase,
    windows: Windows,
    last_failure_at: Option<Timestamp>,
    /// All runs that count.
    summary: Summary,
}

/// What goes wrong besides flaky tests.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Weather {
    Fine,
    /// Many tests fail, each in its own way, and pass when they run again.
    Machine,
    /// Tests fail with something in common.
    Shared(u32),
    /// A helper is broken, on the target branch and for good.
    Helper,
}

pub(crate) struct Repository {
    numbers: Numbers,
    now: Timestamp,
    settings: Settings,
    records: BTreeMap<TestId, Record>,
    runs: Vec<RunRecord>,
    history: FailureHistory,
    incidents: Vec<Incident>,
    excluded: BTreeMap<IncidentId, BTreeSet<(TestId, UploadId)>>,
    weather: Weather,
    commits: u32,
    uploads: u32,
    /// The details of the present step.
    details: String,
    /// What the line of the present step says.
    said: Vec<String>,
}

fn monitor(number: u32, hours: u32, scope: BranchScope) -> Monitor {
    let rate = FailureRate {
        activation_percent: 30,
        resolution_percent: 10,
        window_hours: hours,
        min_sample: 4,
        min_failing_times: 1 + hours % 3,
    };
    let count = FailureCount { count: 3, window_hours: hours, resolution_timeout_hours: hours * 2 };
    let streak = FailureStreak { streak: 2 + hours % 4, window_hours: hours };
    let rule = match number {
        0 | 5 => Rule::PassOnRetry(PassOnRetry { recovery_days: 1 + hours % 15 }),
        1 | 4 => Rule::FailureRate(rate),
        2 => Rule::FailureCount(count),
        _ => Rule::FailureStreak(streak),
    };
    let action = match number {
        3 => Action::Classify(Classification::Broken),
        4 => Action::Label { labels: vec!["shaky".into()], remove_when_resolved: true },
        _ => Action::Classify(Classification::Flaky),
    };
    Monitor {
        id: MonitorId(Uuid::from_u128(u128::from(number))),
        name: format!("monitor {number}"),
        enabled: true,
        scope,
        scope_since: None,
        action,
        rule,
        stale_timeout_hours: (number == 1).then_some(hours * 3),
    }
}

fn user(name: &str) -> Actor {
    Actor { full_name: name.into(), email: String::new() }
}

impl Repository {
    pub(crate) fn new(seed: u64) -> Self {
        let mut settings = Settings::new(REPO);
        settings.monitors = (0..MONITORS)
            .filter(|number| *number == 0 || (seed + u64::from(*number)).is_multiple_of(2))
            .map(|number| monitor(number, 24, BranchScope::all()))
            .collect();
        settings.guard.same_failure_tests = seed.is_multiple_of(5).then_some(12);
        settings.count_public_uploads = seed == 3;
        Self {
            numbers: Numbers::of(seed + 1),
            now: Timestamp::parse("2026-11-02T00:00:00Z").expect("valid"),
            settings,
            records: BTreeMap::new(),
            runs: Vec::new(),
            history: FailureHistory::default(),
            incidents: Vec::new(),
            excluded: BTreeMap::new(),
            weather: Weather::Fine,
            commits: 0,
            uploads: 0,
            details: String::new(),
            said: Vec::new(),
        }
    }

    /// Does something; returns one line about it.
    pub(crate) fn step(&mut self) -> String {
        self.details.clear();
        self.said.clear();
        let minutes = match self.numbers.below(10) {
            0 => self.numbers.below(4_000),
            1 => self.numbers.below(600),
            _ => self.numbers.below(25),
        };
        self.now = self.now.plus(Span::minutes(minutes)).plus(Span::MICROSECOND);
        let what = match self.numbers.below(30) {
            0 | 1 => self.change_settings(),
            2..=4 => self.ask(),
            5 => self.decide_incident(),
            6 | 7 => self.measure(),
            8 | 9 => self.change_weather(),
            _ => self.upload(),
        };
        self.look_around();
        let said = if self.said.is_empty() { "nothing".into() } else { self.said.join("; ") };
        let digest = Sha256::digest(self.details.as_bytes());
        let digest = HEXLOWER.encode(&digest[..6]);
        format!("{} {what}: {said} [{digest}]", self.now)
    }

    fn note(&mut self, detail: &impl Debug) {
        let _ = write!(self.details, "{detail:?}");
    }

    /// Everything that pages and lists show of the tests.
    fn look_around(&mut self) {
        let (settings, now) = (self.settings.clone(), self.now);
        let mut details = String::new();
        for record in self.records.values() {
            let test = &record.test;
            let shown = (
                (&test.standing, &test.labels, test.is_quarantined(&settings, now)),
                (test.quarantined_since(&settings, now), next_deadline(test)),
                check_invariants(test, &settings),
            );
            let _ = write!(details, "{shown:?}");
        }
        self.details.push_str(&details);
        let history = self.history.clone();
        self.note(&history);
    }

    fn change_weather(&mut self) -> String {
        let way = self.numbers.below(3);
        let of = [Weather::Fine, Weather::Machine, Weather::Shared(way), Weather::Helper];
        self.weather = *self.numbers.pick(&of);
        format!("weather {:?}", self.weather)
    }

    fn change_settings(&mut self) -> String {
        let number = self.numbers.below(MONITORS);
        let before = self.settings.clone();
        match self.numbers.below(6) {
            0 => {
                let hours = 6 + self.numbers.below(200);
                let patterns = ["*", "main", "f?ature/*"];
                let pattern = BranchPattern((*self.numbers.pick(&patterns)).into());
                let scope = BranchScope { patterns: vec![pattern], ..BranchScope::all() };
                let monitor = monitor(number, hours, scope);
                if let Ok(settings) = self.settings.with_monitor(monitor, self.now) {
                    self.settings = settings;
                }
            }
            1 => {
                if let Some(it) = self.settings.monitors.iter_mut().next_back() {
                    it.enabled = !it.enabled;
                }
            }
            2 if self.settings.monitors.len() > 2 => drop(self.settings.monitors.pop()),
            3 => self.settings.guard.enabled = !self.settings.guard.enabled,
            _ => {
                self.settings.quarantine.enabled = self.numbers.percent(80);
                self.settings.quarantine.auto = *self.numbers.pick(AutoQuarantine::ALL);
            }
        }
        self.settings = self.settings.clone().in_place_of(&before, self.now);
        self.note(&self.settings.clone());
        let ids: Vec<TestId> = self.records.keys().copied().collect();
        for id in ids {
            self.absorb(id, &Fact::SettingsChanged);
        }
        "settings".into()
    }

    fn any_test(&mut self) -> Option<TestId> {
        let ids: Vec<TestId> = self.records.keys().copied().collect();
        (!ids.is_empty()).then(|| *self.numbers.pick(&ids))
    }

    fn ask(&mut self) -> String {
        let Some(id) = self.any_test() else { return "a question about no test".into() };
        let by = user("Ada");
        let monitor = MonitorId(Uuid::from_u128(u128::from(self.numbers.below(MONITORS))));
        let reason = self.numbers.percent(50).then(|| "seen".to_owned());
        let hours = self.numbers.below(80);
        let expires_at = (hours > 30).then(|| self.now.plus(Span::hours(hours)));
        let label = (*self.numbers.pick(&["slow", "shaky", ""])).to_owned();
        let command = match self.numbers.below(8) {
            0 => Command::Flag { reason, by },
            1 => Command::Unflag { reason, by },
            2 => {
                let length = *self.numbers.pick(MuteLength::ALL);
                Command::Mute { monitor, length, reason, by }
            }
            3 => Command::Unmute { monitor, by },
            4 | 5 => {
                let setting = *self.numbers.pick(QuarantineOverride::ALL);
                Command::SetQuarantine { setting, expires_at, reason, by }
            }
            6 => Command::AddLabel { label, by },
            _ => Command::RemoveLabel { label, by },
        };
        let record = &self.records[&id];
        let name = format!("{} of {}", command.name(), record.test.key.name);
        match decide(&record.test, &self.settings, &command, self.now) {
            Ok(transition) => self.commit(id, transition),
            Err(refusal) => self.said.push(refusal.to_string()),
        }
        name
    }

    fn measure(&mut self) -> String {
        let ids: Vec<TestId> = self.records.keys().copied().collect();
        for id in ids {
            self.rebuild(id);
            self.judge(id, None);
            self.absorb(id, &Fact::TimePassed);
        }
        "measured".into()
    }

    fn decide_incident(&mut self) -> String {
        let Some(before) = self.incidents.first().cloned() else {
            return "no incident".into();
        };
        let (confirm, by) = (self.numbers.percent(50), user("Grace"));
        let Ok(after) = before.decided(confirm, None, by, self.now) else {
            return "refused".into();
        };
        self.flip(&before, &after);
        self.incidents[0] = after;
        format!("incident decided: {confirm}")
    }

    /// Recounts the failures of an incident whose state says something else of them now.
    fn flip(&mut self, before: &Incident, after: &Incident) {
        if before.state != after.state {
            self.said.push(format!("incident {}", after.state.as_str()));
        }
        if before.state.excludes() != after.state.excludes() {
            let failures = self.excluded.get(&after.id).cloned().unwrap_or_default();
            self.recount(after, &failures, !after.state.excludes());
        }
    }

    fn recount(&mut self, of: &Incident, failures: &BTreeSet<(TestId, UploadId)>, counts: bool) {
        let is_one = |run: &&RunRecord| failures.contains(&(run.test, run.upload));
        let runs: Vec<RunRecord> = self.runs.iter().filter(is_one).cloned().collect();
        for (id, failed) in failures_of(&runs) {
            self.rebuild(id);
            let (rules, now) = (self.settings.monitors.clone(), self.now);
            let rules = WindowRules::of(&rules);
            let Some(record) = self.records.get_mut(&id) else { continue };
            if counts {
                record.summary.add(&failed);
                let tested: BTreeSet<_> = failed.codes.iter().map(|it| it.code.clone()).collect();
                let codes: Vec<CodeSummary> = record.summary.codes.clone();
                let codes: Vec<CodeSummary> =
                    codes.into_iter().filter(|it| tested.contains(&it.code)).collect();
                record.windows.count(&rules, &failed, &codes, now);
            } else {
                record.windows.forget(&rules, &failed);
                record.last_failure_at = record.windows.last_failure_at();
                without(&mut record.summary, &failed);
            }
            self.judge(id, Some((of.id, of.started_at, counts)));
        }
    }

    /// Rebuilds windows that have missed runs.
    fn rebuild(&mut self, id: TestId) {
        let rules = WindowRules::of(&self.settings.monitors);
        let now = self.now;
        if let Some(record) = self.records.get_mut(&id)
            && record.windows.are_partial(&rules)
        {
            let mut summary = record.summary.clone();
            summary.buckets.retain(|bucket| bucket.start >= horizon(now));
            record.windows = Windows::rebuilt(&rules, &summary, now);
        }
    }

    fn judge(&mut self, id: TestId, recounted: Option<(IncidentId, Timestamp, bool)>) {
        let Some(record) = self.records.get(&id) else { return };
        let next = record.test.measured_at.map(|last| last.plus(Span::MICROSECOND));
        let as_of = next.map_or(self.now, |next| next.max(self.now));
        let working = || self.settings.monitors.iter().filter(|monitor| monitor.enabled);
        let rules = WindowRules::of(&self.settings.monitors);
        let readings: Vec<_> = record.windows.read(&rules, as_of).collect();
        let by_summary: Vec<_> =
            working().map(|it| it.read(&record.summary, as_of).to_string()).collect();
        let shown: Vec<_> =
            readings.iter().map(|(_, it)| (it.to_string(), it.evidence())).collect();
        self.note(&(&readings, by_summary, shown));
        let fact = match recounted {
            Some((incident, since, counts)) => {
                Fact::Recounted { as_of, readings, incident, since, counts }
            }
            None => Fact::Measured { as_of, readings },
        };
        self.absorb(id, &fact);
    }

    fn absorb(&mut self, id: TestId, fact: &Fact) {
        let Some(record) = self.records.get(&id) else { return };
        let transition = absorb(&record.test, &self.settings, fact, self.now);
        self.commit(id, transition);
    }

    fn commit(&mut self, id: TestId, transition: Transition) {
        self.note(&(&transition.decisions, &transition.events));
        if transition.is_empty() {
            return;
        }
        let Some(record) = self.records.get_mut(&id) else { return };
        let (before, after) = (&record.test.standing, &transition.test.standing);
        if before.value != after.value {
            let name = &transition.test.key.name;
            let (status, reason) = (after.value.as_str(), after.reason.as_str());
            self.said.push(format!("{name} is {status} ({reason})"));
        }
        record.test = transition.test;
    }
}

/// Takes failures that no longer count from a summary.
fn without(summary: &mut Summary, failures: &Summary) {
    for gone in &failures.codes {
        for row in summary.codes.iter_mut().filter(|row| row.is_of(gone)) {
            row.first_failure_at = None;
        }
    }
    for gone in &failures.buckets {
        let of_it = |it: &&mut signalbox_domain::flaky::Bucket| {
            it.start == gone.start && it.branch == gone.branch
        };
        for row in summary.buckets.iter_mut().filter(of_it) {
            row.failed = row.failed.saturating_sub(gone.failed);
        }
    }
}

mod uploads;
