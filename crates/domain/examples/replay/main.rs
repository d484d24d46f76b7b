//! Replays the failure rates of real tests against monitors, and prints what the monitors detect.
//!
//! `cargo run --release -p signalbox-domain --example replay -- rates.csv [healthy tests]`
//!
//! The file has a header and the columns `project,test,failing_runs,passing_runs`. Each test runs on
//! one commit after the other; a failure is retried once. Randomness is made from the test's name,
//! so that the same file gives the same table.

mod random;
mod setups;

use std::error::Error;
use std::io::{self, Write};

use signalbox_domain::flaky::{
    Admission, BUCKET_MINUTES, Base, BranchClass, Bucket, CodeSummary, Fact, InfrastructureGuard,
    Monitor, Origin, SameCode, Settings, Summary, TestCase, TestKey, TestStatus, Trust,
    UploadCounts, absorb, admit,
};
use signalbox_domain::ids::{OrgId, RepoId, Sha};
use signalbox_domain::time::{Span, Timestamp};
use uuid::Uuid;

use random::Random;
use setups::{Setup, setups};

/// Commits a day.
const COMMITS_PER_DAY: u32 = 50;
/// The numbers of commits after which the table is computed.
const LOOKS: [u32; 2] = [100, 1_000];
/// One upload in that many comes from a broken machine, and is run again on a sound one.
const INCIDENT_ONE_IN: u64 = 200;
/// The percentage of tests that fail on a broken machine.
const INCIDENT_PERCENT: u64 = 95;
/// One run in that many fails for a reason that has nothing to do with the test.
const STRAY_ONE_IN: u64 = 100_000;
/// How far summaries reach back, in hours; only the window of pass-on-retry is longer.
const KEPT_HOURS: u32 = 8 * 24;

/// A test of the input file.
struct Subject {
    name: String,
    failing: u64,
    total: u64,
}

impl Subject {
    fn kind(&self) -> Kind {
        if self.failing == 0 {
            Kind::Healthy
        } else if self.failing == self.total {
            Kind::Broken
        } else if self.failing * 100 >= self.total {
            Kind::OftenFlaky
        } else {
            Kind::SeldomFlaky
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Healthy,
    Broken,
    /// It fails in at least one run of a hundred.
    OftenFlaky,
    SeldomFlaky,
}

/// The commits at which a test was first detected as flaky and as broken.
#[derive(Clone, Copy, Default)]
struct Found {
    flaky: Option<u32>,
    broken: Option<u32>,
}

/// A test while it is replayed.
struct Replay {
    settings: Settings,
    test: TestCase,
    summary: Summary,
    /// The last commit on which it failed.
    last_failed: Option<u32>,
}

impl Replay {
    fn new(setup: &Setup, name: &str, start: Timestamp) -> Self {
        let (org, repo) = (OrgId(Uuid::from_u128(1)), RepoId(Uuid::from_u128(2)));
        let key = TestKey { name: name.into(), ..TestKey::default() };
        let settings = Settings { monitors: setup.monitors.clone(), ..Settings::new(repo) };
        let test = TestCase::new(org, repo, key, start);
        Self { settings, test, summary: Summary::default(), last_failed: None }
    }

    fn run(&mut self, commit: u32, at: Timestamp, passed: bool) -> Result<(), Box<dyn Error>> {
        let (good, bad) = (u32::from(passed), u32::from(!passed));
        let failed_at = if passed { None } else { Some(at) };
        match self.summary.buckets.last_mut() {
            Some(last) if at.since(last.start) < Span::minutes(BUCKET_MINUTES) => {
                last.passed += good;
                last.failed += bad;
                last.last_run_at = at;
                last.last_failure_at = last.last_failure_at.max(failed_at);
            }
            Some(_) | None => self.summary.buckets.push(Bucket {
                start: at,
                branch: "main".into(),
                class: BranchClass::Stable,
                passed: good,
                failed: bad,
                last_run_at: at,
                last_failure_at: failed_at,
            }),
        }
        // A commit without a failure has no disagreement.
        let same = self.last_failed == Some(commit);
        if !passed && !same {
            self.last_failed = Some(commit);
            self.summary.codes.push(CodeSummary {
                code: SameCode::Commit(Sha::new(format!("{commit:040x}"))?),
                branch: "main".into(),
                class: BranchClass::Stable,
                origin: Origin::new(Some(&["unit"]), Base::Itself),
                first_success_at: None,
                first_failure_at: Some(at),
            });
        } else if let Some(row) = self.summary.codes.last_mut().filter(|_| passed && same) {
            row.first_success_at = row.first_success_at.or(Some(at));
        }
        Ok(())
    }

    fn measure(&mut self, at: Timestamp) {
        let kept = at.minus(Span::hours(KEPT_HOURS));
        self.summary.buckets.retain(|bucket| bucket.start > kept);
        self.summary
            .codes
            .retain(|row| row.first_failure_at.max(row.first_success_at) > Some(kept));
        let read = |monitor: &Monitor| (monitor.id, monitor.read(&self.summary, at));
        let readings = self.settings.monitors.iter().map(read).collect();
        let fact = Fact::Measured { as_of: at, readings };
        self.test = absorb(&self.test, &self.settings, &fact, at).test;
    }
}

/// Whether the upload of a commit comes from a broken machine: the same for every test.
fn is_incident(commit: u32) -> bool {
    Random::of(&format!("upload {commit}")).chance(1, INCIDENT_ONE_IN)
}

/// Whether the upload of a broken machine counts.
fn incident_counts(setup: &Setup, repo_tests: u32) -> Result<bool, Box<dyn Error>> {
    let failed = u64::from(repo_tests) * INCIDENT_PERCENT / 100;
    let guard = InfrastructureGuard { enabled: setup.guard, ..InfrastructureGuard::default() };
    let (tests, trust) = (repo_tests, Trust::Token);
    let upload = UploadCounts { tests, failed: u32::try_from(failed)?, trust };
    Ok(admit(guard, false, upload) == Admission::Counts)
}

fn replay(setup: &Setup, subject: &Subject, incidents: &[bool]) -> Result<Found, Box<dyn Error>> {
    let start = Timestamp::from_unix_seconds(0);
    let mut random = Random::of(&subject.name);
    let mut replay = Replay::new(setup, &subject.name, start);
    let mut found = Found::default();
    let counts = incident_counts(setup, 1_000)?;
    for (commit, incident) in (1..).zip(incidents) {
        let minutes = commit * (24 * 60 / COMMITS_PER_DAY);
        let at = start.plus(Span::minutes(minutes));
        let lost = *incident && random.chance(INCIDENT_PERCENT, 100);
        if lost && counts {
            replay.run(commit, at, false)?;
        }
        let mut fails =
            || random.chance(subject.failing, subject.total) || random.chance(1, STRAY_ONE_IN);
        let attempts = if fails() { vec![false, !fails()] } else { vec![true] };
        for passed in &attempts {
            replay.run(commit, at.plus(Span::minutes(2)), *passed)?;
        }
        // A test that never failed has no findings, and few change between two failures.
        if replay.last_failed.is_some() && (attempts.len() > 1 || commit % 5 == 0 || lost) {
            replay.measure(at.plus(Span::minutes(3)));
        }
        match replay.test.standing.value {
            TestStatus::Healthy => {}
            TestStatus::Flaky => found.flaky = found.flaky.or(Some(commit)),
            TestStatus::Broken => found.broken = found.broken.or(Some(commit)),
        }
        if found.broken.is_some() || (found.flaky.is_some() && setup.monitors.len() == 1) {
            break;
        }
    }
    Ok(found)
}

/// The number of tests of a kind, and of those with a finding after each number of commits.
#[derive(Clone, Copy, Default)]
struct Tally {
    tests: u32,
    flaky: [u32; 2],
    broken: [u32; 2],
    flagged: [u32; 2],
}

impl Tally {
    fn add(&mut self, found: Found) {
        self.tests += 1;
        for (number, look) in LOOKS.into_iter().enumerate() {
            let by_then = |at: Option<u32>| u32::from(at.is_some_and(|at| at <= look));
            self.flaky[number] += by_then(found.flaky);
            self.broken[number] += by_then(found.broken);
            self.flagged[number] += by_then(found.flaky.into_iter().chain(found.broken).min());
        }
    }

    fn percent(&self, count: u32) -> String {
        let share = f64::from(count) * 100.0 / f64::from(self.tests.max(1));
        if share > 0.0 && share < 1.0 { format!("{share:.2} %") } else { format!("{share:.0} %") }
    }
}

fn read(path: &str, healthy: u32) -> Result<Vec<Subject>, Box<dyn Error>> {
    let mut subjects = Vec::new();
    for line in std::fs::read_to_string(path)?.lines().skip(1) {
        let mut columns = line.rsplitn(3, ',');
        let passing: u64 = columns.next().ok_or("no passing runs")?.parse()?;
        let failing: u64 = columns.next().ok_or("no failing runs")?.parse()?;
        let name = columns.next().ok_or("no name")?.into();
        subjects.push(Subject { name, failing, total: failing + passing });
    }
    subjects.extend((0..healthy).map(|number| Subject {
        name: format!("healthy {number}"),
        failing: 0,
        total: 10_000,
    }));
    Ok(subjects)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: replay rates.csv [healthy tests]")?;
    let healthy = arguments.next().map_or(Ok(21_287), |it| it.parse())?;
    let subjects = read(&path, healthy)?;
    let incidents: Vec<bool> = (1..=LOOKS[1]).map(is_incident).collect();
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "| monitor | runs | flaky tests found | of those failing ≥ 1 % | of those failing < 1 % | broken called broken | broken called flaky | healthy flagged |"
    )?;
    writeln!(out, "|---|---|---|---|---|---|---|---|")?;
    for setup in setups() {
        let mut tallies = [Tally::default(); 4];
        for subject in &subjects {
            let found = replay(&setup, subject, &incidents)?;
            let kind = match subject.kind() {
                Kind::Healthy => 0,
                Kind::Broken => 1,
                Kind::OftenFlaky => 2,
                Kind::SeldomFlaky => 3,
            };
            tallies[kind].add(found);
        }
        let [well, broken, often, seldom] = tallies;
        for (number, look) in LOOKS.into_iter().enumerate() {
            let both = Tally { tests: often.tests + seldom.tests, ..Tally::default() };
            writeln!(
                out,
                "| {} | {look} | {} | {} | {} | {} | {} | {} |",
                setup.name,
                both.percent(often.flagged[number] + seldom.flagged[number]),
                often.percent(often.flagged[number]),
                seldom.percent(seldom.flagged[number]),
                broken.percent(broken.broken[number]),
                broken.percent(broken.flaky[number]),
                well.percent(well.flagged[number]),
            )?;
        }
    }
    Ok(())
}
