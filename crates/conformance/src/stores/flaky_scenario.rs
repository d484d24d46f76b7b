//! A repository with flaky tests on the stores under test: uploads come in, time passes.

use std::sync::Arc;

use signalbox_domain::flaky::{
    AskedTest, Base, BranchClass, IngestOutcome, Origin, ReportedFailure, ReportedRun, RunOutcome,
    SettingsPatch, TestId, TestKey, Trust, Upload, UploadId, UploadSource,
};
use signalbox_domain::ids::{HostId, PrNumber, RepoName, Sha, TokenId};
use signalbox_domain::ports::{RepoRef, Repository, Stores, TestRecord};
use signalbox_domain::queue::CheckConclusion;
use signalbox_domain::testing::{CountingIds, ManualClock, Quiet};
use signalbox_domain::time::{Span, Timestamp};
use signalbox_domain::token::{Caller, Compatibility, Scope};
use signalbox_services::{Context, FlakyService};
use signalbox_services::{QuarantineLookup, ResultsSink};
use uuid::Uuid;

use super::{Sample, at};
use crate::fake_host::{FakeHost, FakeHosts};
use crate::plain_events::PlainEvents;

/// A repository, a service on it, and a clock that is set by hand.
pub struct Scenario<'a> {
    /// The stores.
    pub stores: &'a Stores,
    /// The time.
    pub clock: Arc<ManualClock>,
    /// The service.
    pub service: FlakyService,
    /// The repository.
    pub repository: Repository,
    /// The same, as stores name it.
    pub repo: RepoRef,
    /// A caller with every scope.
    pub caller: Caller,
}

impl<'a> Scenario<'a> {
    /// A scenario for the repository `calc` of an organization.
    pub async fn new(stores: &'a Stores, org: &str) -> Self {
        let org = Sample::org(stores, org).await;
        let repository = Sample::repository(stores, org.id, "calc").await;
        let clock = Arc::new(ManualClock::at(at(0)));
        let caller = Caller {
            org: org.id,
            org_slug: org.slug,
            token: TokenId(Uuid::new_v4()),
            name: "ada".into(),
            scopes: Scope::ALL.to_vec(),
            repos: Vec::new(),
            compatibility: Compatibility::Specification,
            source: None,
        };
        // Every upload of more than two runs has several parts.
        let service = service(stores, &clock, 0).in_parts_of(2);
        let repo = RepoRef { org: org.id, id: repository.id };
        Self { stores, clock, service, repository, repo, caller }
    }

    /// Another server on the same stores, which counts usual uploads whole.
    pub fn another(&self) -> FlakyService {
        service(self.stores, &self.clock, 1_000_000)
    }

    /// The name of the repository.
    pub const fn name(&self) -> &RepoName {
        &self.repository.name
    }

    /// Lets time pass.
    pub fn wait(&self, hours: u32) {
        self.clock.advance(Span::hours(hours));
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        self.service.now()
    }

    /// The key of a test.
    pub fn key(&self, name: &str) -> TestKey {
        TestKey {
            org: self.caller.org_slug.to_string(),
            repo: self.repository.name.to_string(),
            file: "tests/calc.rs".into(),
            classname: "Calc".into(),
            name: name.into(),
            ..TestKey::default()
        }
    }

    /// A test as a client asks for it.
    pub fn asked(&self, name: &str) -> AskedTest {
        AskedTest { id: self.key(name).id().to_string(), key: self.key(name) }
    }

    /// A run of a test.
    pub fn run(&self, name: &str, passed: bool) -> ReportedRun {
        let outcome = if passed { RunOutcome::Passed } else { RunOutcome::Failed };
        let failure = ReportedFailure { message: "expected 1, got 2".into(), text: String::new() };
        ReportedRun {
            key: self.key(name),
            other_files: Vec::new(),
            outcome,
            attempt: 0,
            started_at: None,
            took: Some(Span::seconds(2)),
            failure: (!passed).then_some(failure),
            owners: vec!["@acme/calc".into()],
            quarantined: false,
        }
    }

    /// An upload of a commit, received now.
    pub fn upload(&self, commit: u32) -> Upload {
        Upload {
            id: UploadId(Uuid::new_v4()),
            org: self.repo.org,
            repo: self.repo.id,
            source: UploadSource::JUnit,
            trust: Trust::Token,
            received_at: self.now(),
            sha: Some(Sha::new(format!("{commit:040x}")).expect("a commit")),
            committed_at: None,
            branch: "main".into(),
            class: BranchClass::Stable,
            pr: None,
            job_url: Some("https://ci.example/1".into()),
            job_name: Some("test".into()),
            origin: Origin::new(Some(&["test"]), Base::Itself),
            author: None,
            variant: String::new(),
        }
    }

    /// Takes runs in on a commit.
    pub async fn report(&self, commit: u32, runs: Vec<ReportedRun>) -> IngestOutcome {
        let upload = self.upload(commit);
        self.service.take_in(&upload, runs).await.expect("stored")
    }

    /// Takes runs in on a commit of a pull request.
    pub async fn report_pr(&self, commit: u32, pr: u32, runs: Vec<ReportedRun>) {
        let mut upload = self.upload(commit);
        (upload.pr, upload.class) = (Some(PrNumber(pr)), BranchClass::PullRequest);
        upload.branch = format!("topic-{pr}");
        self.service.take_in(&upload, runs).await.expect("stored");
    }

    /// Makes a test flaky: it fails and passes on one commit.
    pub async fn make_flaky(&self, name: &str, commit: u32) -> TestId {
        self.report(commit, vec![self.run(name, false)]).await;
        self.report(commit, vec![self.run(name, true)]).await;
        self.key(name).id()
    }

    /// A test as it is kept.
    pub async fn test(&self, name: &str) -> TestRecord {
        let ids = [self.key(name).id()];
        self.stores.flaky.tests.tests(self.repo, &ids).await.expect("a read").pop().expect("a test")
    }

    /// Which of these are quarantined.
    pub async fn quarantined(&self, names: &[&str]) -> Vec<bool> {
        let asked: Vec<AskedTest> = names.iter().map(|name| self.asked(name)).collect();
        let answer = self.service.quarantined(self.repo.org, self.repo.id, &asked).await;
        let ids = answer.expect("an answer").ids;
        asked.iter().map(|asked| ids.contains(&asked.id)).collect()
    }

    /// Changes settings.
    pub async fn set(&self, patch: SettingsPatch) {
        let changed =
            self.service.update_settings(&self.caller, self.name(), |_| patch.clone()).await;
        changed.expect("changed");
    }
}

/// A server, whose ids come after that number.
fn service(stores: &Stores, clock: &Arc<ManualClock>, after: u64) -> FlakyService {
    let host = FakeHost::new(clock.clone(), |_| CheckConclusion::Success);
    let name = HostId::new("git.local").expect("a host");
    let context = Context {
        stores: stores.clone(),
        hosts: Arc::new(FakeHosts::one(&name, Arc::new(host))),
        clock: clock.clone(),
        ids: Arc::new(CountingIds::after(after)),
        observer: Arc::new(Quiet),
        events: Arc::new(PlainEvents),
        notifier: Arc::new(Quiet),
    };
    FlakyService::new(context)
}
