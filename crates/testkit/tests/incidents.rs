//! Incidents through the production judge: generated days of a repository, incidents of several
//! kinds and sizes, a regression, and what people decide. Bounds on what is wrongly flagged.

use std::collections::BTreeSet;

use signalbox_conformance::stores::Scenario;
use signalbox_domain::flaky::{
    Base, BranchClass, Incident, IncidentState, InfrastructureGuard, MonitorCause, MonitorId,
    Origin, ReportedRun, SettingsPatch, StatusReason, Template, TestId, TestStatus, Upload,
    UploadSource,
};
use signalbox_domain::ports::{Stores, TestList};
use signalbox_domain::time::Span;
use signalbox_services::ResultsSink;
use signalbox_testkit::memory::MemoryDatabase;
use uuid::Uuid;

/// Tests of the repository.
const TESTS: u32 = 200;
/// Uploads of a day.
const UPLOADS: u32 = 16;

/// Numbers that look random and are the same for a seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn percent(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }
}

/// An incident of a kind and a size.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// So many per cent of all tests fail with messages of their own, and pass in another run of the
    /// commit.
    BadMachine(u64),
    /// So many tests cannot reach a host; their messages differ.
    HostDown(u32),
    /// So many tests fail in the same helper; their messages differ, and they pass on a retry.
    Helper(u32),
    /// Each of eight uploads of 25 tests has so many failures.
    Shards(u32),
}

/// How often a test fails, in per cent.
fn flakiness(test: u32) -> u64 {
    match test {
        0..5 => 30,
        5..10 => 10,
        10..15 => 5,
        _ => 0,
    }
}

fn name(test: u32) -> String {
    format!("test {test}")
}

struct Repo<'a> {
    scenario: Scenario<'a>,
    random: Random,
    commit: u32,
    /// How long ago the runs were that are imported; `None`: they are uploaded.
    imported: Option<Span>,
}

impl<'a> Repo<'a> {
    async fn new(stores: &'a Stores, seed: u64) -> Self {
        let scenario = Scenario::new(stores, "acme").await;
        Self { scenario, random: Random(seed), commit: 0, imported: None }
    }

    fn run(&self, test: u32, attempt: u32, failure: Option<(String, String)>) -> ReportedRun {
        let mut run = self.scenario.run(&name(test), failure.is_none());
        run.attempt = attempt;
        if let (Some(told), Some((message, text))) = (&mut run.failure, failure) {
            (told.message, told.text) = (message, text);
        }
        run
    }

    /// A message of the test's own.
    fn own(test: u32) -> (String, String) {
        let letters = test.to_string().into_bytes();
        let word: String = letters.iter().map(|it| char::from(it - b'0' + b'a')).collect();
        (format!("{word} is not what {word} should be"), String::new())
    }

    async fn upload(&self, upload: &Upload, runs: Vec<ReportedRun>) {
        let mut upload = upload.clone();
        if let Some(ago) = self.imported {
            upload.source = UploadSource::Import;
            upload.received_at = self.scenario.now().minus(ago);
        }
        self.scenario.service.take_in(&upload, runs).await.expect("processed");
    }

    fn next_upload(&mut self) -> Upload {
        self.commit += 1;
        self.scenario.upload(self.commit)
    }

    /// Runs of tests that fail as often as they do, and are retried once.
    fn usual(&mut self, tests: impl IntoIterator<Item = u32>) -> Vec<ReportedRun> {
        let mut runs = Vec::new();
        for test in tests {
            let fails = self.random.percent(flakiness(test));
            if fails {
                runs.push(self.run(test, 0, Some(Self::own(test))));
            }
            runs.push(self.run(test, u32::from(fails), None));
        }
        runs
    }

    async fn day(&mut self) {
        for _ in 0..UPLOADS {
            let runs = self.usual(0..TESTS);
            let upload = self.next_upload();
            self.upload(&upload, runs).await;
            self.scenario.clock.advance(Span::minutes(24 * 60 / UPLOADS));
        }
        self.scenario.service.measure().await.expect("measured");
    }

    /// An upload in which some tests fail, and another run of its commit in which they do not.
    async fn red_and_green(
        &mut self,
        failing: &BTreeSet<u32>,
        failure: fn(u32) -> (String, String),
    ) {
        let mut runs = self.usual((0..TESTS).filter(|test| !failing.contains(test)));
        runs.extend(failing.iter().map(|test| self.run(*test, 0, Some(failure(*test)))));
        let upload = self.next_upload();
        self.upload(&upload, runs).await;
        self.scenario.clock.advance(Span::minutes(10));
        let again = self.usual(0..TESTS);
        let mut second = self.scenario.upload(self.commit);
        second.job_name.clone_from(&upload.job_name);
        self.upload(&second, again).await;
        self.scenario.clock.advance(Span::minutes(20));
    }

    async fn incident(&mut self, kind: Kind) {
        for _ in 0..4 {
            match kind {
                Kind::BadMachine(percent) => {
                    let random = &mut self.random;
                    let failing = (0..TESTS).filter(|_| random.percent(percent)).collect();
                    self.red_and_green(&failing, Self::own).await;
                }
                Kind::HostDown(tests) => {
                    let failing = (40..40 + tests).collect();
                    self.red_and_green(&failing, |test| {
                        let (message, _) = Self::own(test);
                        (format!("{message}: db.internal:5432 refused"), String::new())
                    })
                    .await;
                }
                Kind::Helper(tests) => {
                    let mut runs = self.usual(0..TESTS - tests);
                    for test in TESTS - tests..TESTS {
                        let (message, _) = Self::own(test);
                        let trace = format!(
                            "{message}\n  at Clock.wait(Clock.java:{test})\n  at T{test}.run(T.java:1)"
                        );
                        runs.push(self.run(test, 0, Some((message, trace))));
                        runs.push(self.run(test, 1, None));
                    }
                    let upload = self.next_upload();
                    self.upload(&upload, runs).await;
                    self.scenario.clock.advance(Span::minutes(30));
                }
                Kind::Shards(failures) => {
                    self.commit += 1;
                    for round in 0..2 {
                        for shard in 0..8 {
                            let first = shard * 25;
                            let mut runs = Vec::new();
                            for test in first..first + 25 {
                                let fails = round == 0 && test >= first + 25 - failures;
                                let failure = fails.then(|| Self::own(test));
                                runs.push(self.run(test, 0, failure));
                            }
                            let mut upload = self.scenario.upload(self.commit);
                            upload.job_name = Some(format!("shard {shard}"));
                            self.upload(&upload, runs).await;
                            self.scenario.clock.advance(Span::seconds(20));
                        }
                        self.scenario.clock.advance(Span::minutes(3));
                    }
                    self.scenario.clock.advance(Span::minutes(90));
                }
            }
        }
    }

    async fn flagged(&self, status: TestStatus) -> BTreeSet<TestId> {
        let reads = &self.scenario.stores.flaky.reads;
        let listed = reads.ids(self.scenario.repo, TestList::Unhealthy(status)).await;
        listed.expect("a list").into_iter().collect()
    }

    fn ids(&self, tests: impl IntoIterator<Item = u32>) -> BTreeSet<TestId> {
        tests.into_iter().map(|test| self.scenario.key(&name(test)).id()).collect()
    }

    async fn incidents(&self) -> Vec<Incident> {
        let service = &self.scenario.service;
        service.incidents(&self.scenario.caller, self.scenario.name()).await.expect("incidents")
    }
}

/// Precision and recall after nine days with an incident of that kind on the sixth.
async fn nine_days(kind: Option<Kind>, seed: u64, guarded: bool) -> (f64, f64, Vec<Incident>) {
    nine_days_of(None, kind, seed, guarded).await
}

/// The same, imported so long afterwards.
async fn nine_days_of(
    imported: Option<Span>,
    kind: Option<Kind>,
    seed: u64,
    guarded: bool,
) -> (f64, f64, Vec<Incident>) {
    let database = MemoryDatabase::new();
    let stores = database.stores();
    let mut repo = Repo::new(&stores, seed).await;
    repo.imported = imported;
    let guard = InfrastructureGuard { enabled: guarded, ..InfrastructureGuard::default() };
    repo.scenario.set(SettingsPatch { guard: Some(guard), ..SettingsPatch::default() }).await;
    for day in 0..9 {
        repo.day().await;
        if let Some(kind) = kind.filter(|_| day == 5) {
            repo.incident(kind).await;
        }
    }
    let truth = repo.ids((0..TESTS).filter(|test| flakiness(*test) > 0));
    let flagged = repo.flagged(TestStatus::Flaky).await;
    let right = f64::from(u32::try_from(flagged.intersection(&truth).count()).expect("few"));
    let of = |count: usize| f64::from(u32::try_from(count.max(1)).expect("few"));
    (right / of(flagged.len()), right / of(truth.len()), repo.incidents().await)
}

async fn flags_no_stable_test(kind: Option<Kind>, seed: u64) {
    let (precision, recall, incidents) = nine_days(kind, seed, true).await;
    assert!(precision >= 0.95, "{kind:?}: precision {precision:.2}, {incidents:#?}");
    assert!(recall >= 0.9, "{kind:?}: recall {recall:.2}, {incidents:#?}");
    assert_eq!(incidents.is_empty(), kind.is_none(), "{kind:?}: {incidents:#?}");
}

macro_rules! incidents {
    ($($name:ident: $kind:expr, $seed:literal;)+) => {
        $(
            #[tokio::test]
            async fn $name() {
                flags_no_stable_test($kind, $seed).await;
            }
        )+
    };
}

incidents! {
    without_an_incident_none_is_recognized: None, 1;
    a_bad_machine_flags_no_stable_test: Some(Kind::BadMachine(60)), 2;
    a_bad_machine_of_few_failures_flags_no_stable_test: Some(Kind::BadMachine(20)), 3;
    a_host_that_is_down_flags_no_stable_test: Some(Kind::HostDown(80)), 4;
    a_host_that_few_tests_need_flags_no_stable_test: Some(Kind::HostDown(8)), 5;
    a_helper_flags_no_stable_test: Some(Kind::Helper(60)), 6;
    a_helper_of_few_tests_flags_no_stable_test: Some(Kind::Helper(7)), 7;
    shards_flag_no_stable_test: Some(Kind::Shards(4)), 8;
}

/// The history of a repository is judged as it would have been at its time, with its incidents.
#[tokio::test]
async fn an_imported_history_is_judged_as_if_it_had_been_uploaded() {
    for kind in [None, Some(Kind::BadMachine(60)), Some(Kind::HostDown(80)), Some(Kind::Shards(4))]
    {
        let imported = nine_days_of(Some(Span::days(30)), kind, 2, true).await;
        let uploaded = nine_days(kind, 2, true).await;
        assert_eq!((imported.0, imported.1), (uploaded.0, uploaded.1), "{kind:?}");
        assert_eq!(imported.2.len(), uploaded.2.len(), "{kind:?}");
        assert!(imported.0 >= 0.95 && imported.1 >= 0.9, "{kind:?}: {imported:?}");
    }
}

/// The bounds above can fail: without the guard a bad machine accuses most tests.
#[tokio::test]
async fn without_the_guard_a_bad_machine_accuses_most_tests() {
    let (precision, _, incidents) = nine_days(Some(Kind::BadMachine(60)), 2, false).await;
    assert!(precision < 0.2, "precision {precision:.2}");
    assert_eq!(incidents, []);
}

/// A helper that breaks 40 % of the tests on main is no incident for long: the tests are broken.
#[tokio::test]
async fn a_regression_is_seen() {
    let database = MemoryDatabase::new();
    let stores = database.stores();
    let mut repo = Repo::new(&stores, 7).await;
    let monitor = Template::BrokenOnStable.monitor(MonitorId(Uuid::nil()));
    let (caller, name) = (repo.scenario.caller.clone(), repo.scenario.name().clone());
    repo.scenario.service.create_monitor(&caller, &name, monitor).await.expect("created");
    for _ in 0..3 {
        repo.day().await;
    }
    let broken: BTreeSet<u32> = (100..180).collect();
    for upload in 0..10 {
        let mut runs = repo.usual((0..TESTS).filter(|test| !broken.contains(test)));
        let trace = "no such function\n  at Helper.call(Helper.java:3)".to_owned();
        let failure = || Some(("no such function".to_owned(), trace.clone()));
        runs.extend(broken.iter().map(|test| repo.run(*test, 0, failure())));
        let at = repo.next_upload();
        repo.upload(&at, runs).await;
        repo.scenario.clock.advance(Span::minutes(40));
        let state = repo.incidents().await.first().map(|it| it.state);
        let expected =
            if upload < 2 { IncidentState::Suspected } else { IncidentState::Regression };
        assert_eq!(state, Some(expected), "after upload {upload}");
    }
    assert_eq!(repo.flagged(TestStatus::Broken).await, repo.ids(100..180));
    assert_eq!(repo.incidents().await.len(), 1, "what stays red is one incident");
    let counted = repo.scenario.test("test 100").await;
    assert!(counted.last_failure_at.is_some(), "its failures count");
}

/// What an incident had flagged before it was recognized is undone, with events.
#[tokio::test]
async fn a_late_incident_is_undone() {
    let database = MemoryDatabase::new();
    let stores = database.stores();
    let mut repo = Repo::new(&stores, 3).await;
    for _ in 0..3 {
        repo.day().await;
    }
    let before = repo.flagged(TestStatus::Flaky).await;
    // Four tests of each small upload fail and pass on retry: too few to be noticed alone.
    let mut accused = false;
    for group in 0..7_u32 {
        let tests = 40 + group * 4..44 + group * 4;
        let runs: Vec<ReportedRun> = tests
            .clone()
            .flat_map(|test| [repo.run(test, 0, Some(Repo::own(test))), repo.run(test, 1, None)])
            .collect();
        let upload = repo.next_upload();
        repo.upload(&upload, runs).await;
        repo.scenario.clock.advance(Span::minutes(7));
        accused |= !repo.flagged(TestStatus::Flaky).await.is_disjoint(&repo.ids(40..68));
    }
    assert!(accused, "the first uploads accused their tests");
    assert_eq!(repo.flagged(TestStatus::Flaky).await, before, "all of that is undone");
    let test = repo.scenario.test("test 40").await.test;
    assert_eq!(test.standing.reason, StatusReason::Incident);
    let history = &repo.scenario.stores.flaky.reads;
    let journal = history.test_journal(repo.scenario.repo, test.id, None, 1).await.expect("read");
    let undone = format!("{:?}", journal[0].decisions);
    assert!(undone.contains(&format!("{:?}", MonitorCause::Excluded)), "{undone}");
    let log = &repo.scenario.stores.webhook.event_log;
    let events = log.after(repo.scenario.repo.org, 0, None, 10_000).await.expect("events");
    let told = |kind: &str| events.iter().filter(|it| it.kind == kind).count();
    assert_eq!(told("test_incident.status_changed"), 1);
    let changed = told("test_case.status_changed");
    assert!(changed >= before.len() + 32, "{changed} changes of status were emitted");
    let shown = repo.scenario.service.details(&repo.scenario.caller, repo.scenario.name(), test.id);
    let incidents = shown.await.expect("details").incidents;
    assert_eq!(incidents.len(), 1, "the test names its incident");
}

/// A person who dismisses an incident has its failures counted, and can take that back.
#[tokio::test]
async fn a_person_decides() {
    let database = MemoryDatabase::new();
    let stores = database.stores();
    let mut repo = Repo::new(&stores, 5).await;
    for _ in 0..3 {
        repo.day().await;
    }
    let before = repo.flagged(TestStatus::Flaky).await;
    let failing = (50..90).collect();
    repo.red_and_green(&failing, Repo::own).await;
    assert_eq!(repo.flagged(TestStatus::Flaky).await, before);
    let incident = repo.incidents().await.remove(0);
    assert_eq!(incident.state, IncidentState::Recovered);
    let (caller, name) = (repo.scenario.caller.clone(), repo.scenario.name().clone());
    let decide = async |confirm| {
        let service = &repo.scenario.service;
        let reason = Some("we looked".to_owned());
        service.decide_incident(&caller, &name, incident.id, confirm, reason).await
    };
    let dismissed = decide(false).await.expect("dismissed");
    assert_eq!(dismissed.state, IncidentState::Dismissed);
    let accused = &repo.flagged(TestStatus::Flaky).await - &before;
    assert_eq!(accused, repo.ids(50..90), "its failures count");
    repo.scenario.clock.advance(Span::minutes(1));
    let confirmed = decide(true).await.expect("confirmed");
    assert_eq!(confirmed.decision.and_then(|it| it.reason).as_deref(), Some("we looked"));
    assert_eq!(repo.flagged(TestStatus::Flaky).await, before, "they no longer count");
    assert!(decide(true).await.is_ok(), "a decision can be repeated");
}

/// A platform that stays red while another job of the commit is green is no incident for long.
#[tokio::test]
async fn another_green_job_hides_no_regression() {
    let database = MemoryDatabase::new();
    let stores = database.stores();
    let mut repo = Repo::new(&stores, 9).await;
    for _ in 0..3 {
        repo.day().await;
    }
    for _ in 0..5 {
        repo.commit += 1;
        for job in ["linux", "mac"] {
            let failing = |test: u32| job == "linux" && (60..120).contains(&test);
            let runs =
                (0..TESTS).map(|test| repo.run(test, 0, failing(test).then(|| Repo::own(test))));
            let runs = runs.collect();
            let mut upload = repo.scenario.upload(repo.commit);
            (upload.job_name, upload.class) = (Some(job.to_owned()), BranchClass::Stable);
            upload.origin = Origin::new(Some(&[job]), Base::Itself);
            repo.upload(&upload, runs).await;
            repo.scenario.clock.advance(Span::minutes(20));
        }
    }
    let states: Vec<IncidentState> = repo.incidents().await.iter().map(|it| it.state).collect();
    assert_eq!(states, [IncidentState::Regression]);
}
