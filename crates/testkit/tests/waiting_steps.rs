//! Steps of a queue that wait while another one is committed: they are committed together, and each
//! is answered as if it had been committed alone.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures_util::future::{BoxFuture, FutureExt as _, join_all};
use signalbox_conformance::PlainEvents;
use signalbox_conformance::fake_host::{FakeHost, FakeHosts};
use signalbox_domain::flaky::{self, ImportSummary, Incident, IncidentState};
use signalbox_domain::ids::{BranchName, OrgId, OrgSlug, PrNumber, RepoId, RepoName, TokenId};
use signalbox_domain::ports::{
    Commit, CommitError, CreateError, EventWriter, Loaded, Located, PullRequestQuery, QueueKey,
    QueuePlace, QueueRef, QueueStore, StoreError, TestSnapshot, Version,
};
use signalbox_domain::queue::{
    ChangeSource, CheckConclusion, Event, Mode, PrState, Queue, Refusal, ReportedTargets, Subject,
};
use signalbox_domain::testing::{CountingIds, ManualClock, Quiet};
use signalbox_domain::time::Timestamp;
use signalbox_domain::token::{Caller, Compatibility, Scope};
use signalbox_services::{Context, Error, QueueService, SubmitOptions};
use signalbox_testkit::memory::MemoryDatabase;
use tokio::sync::Semaphore;
use uuid::Uuid;

/// What a store does with a commit of several steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Trouble {
    #[default]
    None,
    /// It refuses a statement, whenever the commit contains a submission of this pull request.
    Refuses(u32),
    /// The same, and afterwards it does not answer.
    RefusesThenUnavailable(u32),
    /// It says that it has refused a statement of several steps, which it has written.
    Written,
    /// It does not answer.
    Unavailable,
}

/// A queue store whose commits wait for a permit.
struct HeldStore {
    inner: Arc<dyn QueueStore>,
    permits: Semaphore,
    /// Replies to `locate` wait for one of these.
    locates: Semaphore,
    /// The number of steps of each commit.
    commits: Mutex<Vec<usize>>,
    trouble: Mutex<Trouble>,
    /// Whether the next commit finds another one of another server.
    conflict: AtomicBool,
    /// Whether commits are held after they are written, and not before.
    late: AtomicBool,
    /// How often a whole queue was read.
    whole: AtomicUsize,
}

#[async_trait]
impl QueueStore for HeldStore {
    async fn create(&self, queue: &Queue) -> Result<(), CreateError> {
        self.inner.create(queue).await
    }

    async fn find(
        &self,
        org: OrgId,
        repo: RepoId,
        branch: &BranchName,
    ) -> Result<Option<QueueRef>, StoreError> {
        self.inner.find(org, repo, branch).await
    }

    async fn locate(
        &self,
        org: OrgId,
        name: &RepoName,
        any_case: bool,
        branch: &BranchName,
        pr: Option<PrNumber>,
    ) -> Result<Option<Located>, StoreError> {
        let located = self.inner.locate(org, name, any_case, branch, pr).await;
        self.locates.acquire().await.expect("open").forget();
        located
    }

    async fn load(
        &self,
        queue: QueueRef,
        known: Option<Version>,
    ) -> Result<Option<Loaded>, StoreError> {
        let loaded = self.inner.load(queue, known).await?;
        let whole = matches!(loaded, Some(Loaded::Fresh(..)));
        self.whole.fetch_add(usize::from(whole), Ordering::Relaxed);
        Ok(loaded)
    }

    async fn commit(&self, steps: &[Commit<'_>]) -> Result<Version, CommitError> {
        self.commits.lock().expect("not poisoned").push(steps.len());
        if self.late.load(Ordering::Relaxed) {
            let written = self.inner.commit(steps).await;
            self.permits.acquire().await.expect("open").forget();
            return written;
        }
        self.permits.acquire().await.expect("open").forget();
        let trouble = *self.trouble.lock().expect("not poisoned");
        let contains = |pr: u32| {
            let mut entries = steps.iter().flat_map(|step| &step.changes.entries);
            entries.any(|entry| entry.pr == PrNumber(pr))
        };
        if self.conflict.swap(false, Ordering::Relaxed) {
            return Err(CommitError::Conflict);
        }
        let refused = || Err(StoreError::Failed("it is refused".into()).into());
        match trouble {
            Trouble::Refuses(pr) if contains(pr) => refused(),
            Trouble::RefusesThenUnavailable(pr) if contains(pr) => {
                *self.trouble.lock().expect("not poisoned") = Trouble::Unavailable;
                refused()
            }
            Trouble::Written if steps.len() > 1 => {
                self.inner.commit(steps).await?;
                refused()
            }
            Trouble::Unavailable => Err(StoreError::Unavailable("it is away".into()).into()),
            Trouble::None
            | Trouble::Written
            | Trouble::Refuses(_)
            | Trouble::RefusesThenUnavailable(_) => self.inner.commit(steps).await,
        }
    }

    async fn list(
        &self,
        org: Option<OrgId>,
        repo: Option<RepoId>,
    ) -> Result<Vec<QueueKey>, StoreError> {
        self.inner.list(org, repo).await
    }

    async fn versions(
        &self,
        watched_at: Option<Timestamp>,
    ) -> Result<Vec<(QueueKey, Version)>, StoreError> {
        self.inner.versions(watched_at).await
    }

    async fn due(&self, at: Timestamp, limit: u32) -> Result<Vec<QueueRef>, StoreError> {
        self.inner.due(at, limit).await
    }

    async fn targets(
        &self,
        queue: QueueRef,
        pr: PrNumber,
    ) -> Result<Option<ReportedTargets>, StoreError> {
        self.inner.targets(queue, pr).await
    }
}

type Answer = Result<(), Error>;

/// Writes events, and panics at those of pull request 13.
struct NoThirteen;

impl EventWriter for NoThirteen {
    fn queue_event(&self, place: &QueuePlace, event: &Event) -> String {
        let is_thirteen = |pr: &PrNumber| *pr == PrNumber(13);
        let panics = matches!(&event.subject, Subject::PullRequest { pr, .. } if is_thirteen(pr));
        assert!(!panics, "an event of 13");
        PlainEvents.queue_event(place, event)
    }

    fn test_event(&self, test: &TestSnapshot, event: &flaky::Event) -> String {
        PlainEvents.test_event(test, event)
    }

    fn incident_event(
        &self,
        repo: &RepoName,
        before: Option<IncidentState>,
        incident: &Incident,
    ) -> String {
        PlainEvents.incident_event(repo, before, incident)
    }

    fn import_event(
        &self,
        repo: (RepoId, &RepoName),
        summary: &ImportSummary,
        at: Timestamp,
    ) -> String {
        PlainEvents.import_event(repo, summary, at)
    }
}

/// A queue on a store whose commits are held.
struct Bench {
    store: Arc<HeldStore>,
    context: Context,
    queues: Arc<QueueService>,
    caller: Caller,
    repo: RepoName,
    main: BranchName,
}

impl Bench {
    /// With `prs` open pull requests, and a queue that has one more.
    async fn new(prs: u32) -> Self {
        let (clock, database) = (Arc::new(ManualClock::default()), MemoryDatabase::new());
        let repo = RepoName::parse("git.test/acme/calc").expect("valid");
        let host = Arc::new(FakeHost::new(clock.clone(), |_| CheckConclusion::Success));
        host.add_repository(&repo, &[("readme", "calc")]);
        for pr in 0..=prs {
            host.open(&repo, "main", &[(&format!("file-{pr}"), "1")]);
        }
        let mut stores = database.stores();
        let store = Arc::new(HeldStore {
            inner: stores.queue.queues.clone(),
            permits: Semaphore::new(1_000),
            locates: Semaphore::new(1_000_000),
            commits: Mutex::default(),
            trouble: Mutex::default(),
            conflict: AtomicBool::new(false),
            late: AtomicBool::new(false),
            whole: AtomicUsize::new(0),
        });
        stores.queue.queues = store.clone();
        let context = Context {
            stores,
            hosts: Arc::new(FakeHosts::one(&repo.host, host.clone())),
            clock,
            ids: Arc::new(CountingIds::default()),
            observer: Arc::new(Quiet),
            events: Arc::new(NoThirteen),
            notifier: Arc::new(Quiet),
        };
        let caller = Caller {
            org: OrgId(Uuid::from_u128(77)),
            org_slug: OrgSlug::new("acme").expect("valid"),
            token: TokenId(Uuid::from_u128(78)),
            name: "tests".to_owned(),
            scopes: Scope::ALL.to_vec(),
            repos: Vec::new(),
            compatibility: Compatibility::Specification,
            source: None,
        };
        let queues = Arc::new(QueueService::new(context.clone()));
        let main = BranchName::new("main").expect("valid");
        let created = queues
            .create_queue(&caller, &repo, &main, Mode::Parallel, Some(50), ChangeSource::Direct)
            .await;
        created.expect("a new queue");
        let bench = Self { store, context, queues, caller, repo, main };
        // The target of a queue without entries would be read first.
        bench.submit(prs + 1).await.expect("submitted");
        bench.store.commits.lock().expect("not poisoned").clear();
        bench
    }

    fn submit(&self, pr: u32) -> BoxFuture<'_, Answer> {
        let options = SubmitOptions::default();
        self.queues.submit(&self.caller, &self.repo, &self.main, PrNumber(pr), options).boxed()
    }

    fn cancel(&self, pr: u32) -> BoxFuture<'_, Answer> {
        self.queues.cancel(&self.caller, &self.repo, &self.main, PrNumber(pr)).boxed()
    }

    fn report(&self, pr: u32, target: &str) -> BoxFuture<'_, Answer> {
        let targets = ReportedTargets::only(None, [target.to_owned()]);
        let (caller, repo, main) = (&self.caller, &self.repo, &self.main);
        self.queues.set_targets(caller, repo, main, PrNumber(pr), targets).boxed()
    }

    /// Holds commits, lets all steps wait, and then releases the commits.
    async fn together(&self, mut steps: Vec<BoxFuture<'_, Answer>>) -> Vec<Answer> {
        self.store.permits.forget_permits(1_000_000);
        for step in &mut steps {
            // Each passes its reads, which answer immediately, and waits for its turn or its commit.
            for _ in 0..50 {
                assert!(futures_util::poll!(&mut *step).is_pending());
                tokio::task::yield_now().await;
            }
        }
        self.store.permits.add_permits(1_000);
        join_all(steps).await
    }

    async fn state(&self, pr: u32) -> Option<PrState> {
        let query = PullRequestQuery::Number(PrNumber(pr));
        let found = self.queues.entry(&self.caller, &self.repo, &self.main, &query).await;
        found.ok().map(|it| it.state)
    }

    async fn targets(&self, pr: u32) -> Option<Arc<ReportedTargets>> {
        let query = PullRequestQuery::Number(PrNumber(pr));
        let found = self.queues.entry(&self.caller, &self.repo, &self.main, &query).await;
        found.expect("it was submitted").entry.targets
    }

    async fn version(&self) -> Version {
        let listed = self.context.stores.queue.queues.versions(None).await.expect("a read");
        listed.first().expect("a queue").1
    }

    fn commits(&self) -> Vec<usize> {
        self.store.commits.lock().expect("not poisoned").clone()
    }
}

#[tokio::test]
async fn steps_that_wait_are_committed_together() {
    let bench = Bench::new(6).await;
    let before = bench.version().await;
    let answers = bench.together((1..=6).map(|pr| bench.submit(pr)).collect()).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(bench.commits(), [1, 5]);
    assert_eq!(bench.version().await, Version(before.0 + 6), "one for each step");
    for pr in 1..=6 {
        assert!(bench.state(pr).await.is_some(), "{pr}");
    }
}

#[tokio::test]
async fn each_step_is_answered_as_if_it_was_alone() {
    let bench = Bench::new(4).await;
    let steps = vec![
        bench.submit(1),
        bench.submit(2),
        bench.submit(2),
        bench.cancel(2),
        bench.cancel(3),
        bench.submit(4),
        bench.cancel(2),
    ];
    let answers = bench.together(steps).await;
    let refused =
        |answer: &Answer| matches!(answer, Err(Error::Refused(Refusal::NotInQueue { .. })));
    let refusals: Vec<bool> = answers.iter().map(refused).collect();
    assert_eq!(refusals, [false, false, false, false, true, false, true], "{answers:?}");
    assert_eq!(answers.iter().filter(|it| it.is_err()).count(), 2, "{answers:?}");
    // A submission of an entry that is live, and refusals, write nothing.
    assert_eq!(bench.commits(), [1, 3]);
    assert_eq!(bench.state(2).await, Some(PrState::Cancelled));
}

#[tokio::test]
async fn targets_that_are_reported_in_the_same_commit_count() {
    let bench = Bench::new(4).await;
    bench.store.permits.forget_permits(1_000_000);
    let (mut first, mut report) = (bench.submit(1), bench.report(4, "late"));
    let mut second = bench.submit(2);
    for step in [&mut first, &mut report, &mut second] {
        assert!(futures_util::poll!(step).is_pending());
    }
    // The report reads the queue after the first commit, and waits behind the second submission.
    bench.store.permits.add_permits(1);
    first.await.expect("submitted");
    assert!(futures_util::poll!(&mut report).is_pending());
    let mut third = bench.submit(4);
    assert!(futures_util::poll!(&mut third).is_pending());
    bench.store.permits.add_permits(1_000);
    for answer in join_all([second, report, third]).await {
        answer.expect("done");
    }
    assert_eq!(bench.commits(), [1, 3]);
    let reported = ReportedTargets::only(None, ["late".to_owned()]);
    assert_eq!(bench.targets(4).await.as_deref(), Some(&reported));
}

#[tokio::test]
async fn a_step_that_the_store_refuses_fails_no_other() {
    let bench = Bench::new(5).await;
    *bench.store.trouble.lock().expect("not poisoned") = Trouble::Refuses(3);
    let answers = bench.together((1..=5).map(|pr| bench.submit(pr)).collect()).await;
    for (pr, answer) in (1..).zip(&answers) {
        let refused = matches!(answer, Err(Error::Store(StoreError::Failed(_))));
        assert_eq!(refused, pr == 3, "{pr}: {answer:?}");
        assert_eq!(bench.state(pr).await.is_some(), pr != 3, "{pr}");
    }
    assert_eq!(bench.commits(), [1, 4, 1, 1, 1, 1]);
}

#[tokio::test]
async fn steps_fail_together_while_the_store_is_away() {
    let bench = Bench::new(4).await;
    *bench.store.trouble.lock().expect("not poisoned") = Trouble::Unavailable;
    let answers = bench.together((1..=4).map(|pr| bench.submit(pr)).collect()).await;
    for answer in &answers {
        assert!(matches!(answer, Err(Error::Store(StoreError::Unavailable(_)))), "{answer:?}");
    }
    assert_eq!(bench.commits(), [1, 3], "each waits for the store once");
    *bench.store.trouble.lock().expect("not poisoned") = Trouble::None;
    let answers = bench.together((1..=4).map(|pr| bench.submit(pr)).collect()).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
}

#[tokio::test]
async fn steps_are_decided_again_after_a_commit_of_another_server() {
    let bench = Bench::new(5).await;
    let (before, other) = (bench.version().await, QueueService::new(bench.context.clone()));
    bench.store.permits.forget_permits(1_000_000);
    let mut steps: Vec<_> = (1..=4).map(|pr| bench.submit(pr)).collect();
    for step in &mut steps {
        for _ in 0..50 {
            assert!(futures_util::poll!(&mut *step).is_pending());
        }
    }
    // The first commit fails as if the other server had committed before.
    bench.store.conflict.store(true, Ordering::Relaxed);
    bench.store.permits.add_permits(1_000);
    let options = SubmitOptions::default();
    let (caller, repo, main) = (&bench.caller, &bench.repo, &bench.main);
    let five = other.submit(caller, repo, main, PrNumber(5), options);
    let (answers, five) = futures_util::future::join(join_all(steps), five).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    five.expect("submitted");
    for pr in 1..=5 {
        assert!(bench.state(pr).await.is_some(), "{pr}");
    }
    assert_eq!(bench.version().await, Version(before.0 + 5));
}

#[tokio::test]
async fn steps_behind_a_deletion_find_no_queue() {
    let bench = Bench::new(3).await;
    let (caller, repo, main) = (&bench.caller, &bench.repo, &bench.main);
    bench.cancel(4).await.expect("cancelled");
    bench.store.commits.lock().expect("not poisoned").clear();
    let steps = vec![
        bench.report(1, "a"),
        bench.cancel(3),
        bench.queues.delete_queue(caller, repo, main).boxed(),
        bench.cancel(1),
        bench.submit(2),
    ];
    let answers = bench.together(steps).await;
    let gone = |answer: &Answer| matches!(answer, Err(Error::UnknownQueue { .. }));
    let gone: Vec<bool> = answers.iter().map(gone).collect();
    assert_eq!(gone, [false, false, false, true, true], "{answers:?}");
    assert!(answers[2].is_ok(), "{answers:?}");
    assert_eq!(bench.commits(), [1, 1]);
    let (mode, source) = (Mode::Single, ChangeSource::Direct);
    let again = bench.queues.create_queue(caller, repo, main, mode, None, source).await;
    again.expect("the branch has no queue");
}

#[tokio::test]
async fn a_step_of_a_caller_that_has_disconnected_is_not_executed() {
    let bench = Bench::new(4).await;
    bench.store.permits.forget_permits(1_000_000);
    let mut steps: Vec<_> = (1..=4).map(|pr| bench.submit(pr)).collect();
    for step in &mut steps {
        for _ in 0..50 {
            assert!(futures_util::poll!(&mut *step).is_pending());
        }
    }
    // The second step began the group that waits.
    drop(steps.remove(1));
    bench.store.permits.add_permits(1_000);
    let answers = join_all(steps).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(bench.commits(), [1, 2]);
    assert_eq!(bench.state(2).await, None);
    assert!(bench.state(3).await.is_some() && bench.state(4).await.is_some());
}

#[tokio::test]
async fn a_read_while_a_commit_ends_does_not_read_the_whole_queue() {
    let bench = Bench::new(2).await;
    let before = bench.store.whole.load(Ordering::Relaxed);
    bench.store.late.store(true, Ordering::Relaxed);
    bench.store.permits.forget_permits(1_000_000);
    let mut submission = bench.submit(1);
    assert!(futures_util::poll!(&mut submission).is_pending());
    // The database has the new version already, and the cache does not.
    let (caller, repo, main) = (&bench.caller, &bench.repo, &bench.main);
    let mut read = bench.queues.queue(caller, repo, main).boxed();
    assert!(futures_util::poll!(&mut read).is_pending());
    bench.store.permits.add_permits(1);
    submission.await.expect("submitted");
    assert_eq!(read.await.expect("a queue").live(), 2);
    assert_eq!(bench.store.whole.load(Ordering::Relaxed), before);
}

#[tokio::test]
async fn steps_stop_waiting_for_a_store_that_goes_away_after_a_refusal() {
    let bench = Bench::new(5).await;
    *bench.store.trouble.lock().expect("not poisoned") = Trouble::RefusesThenUnavailable(3);
    let answers = bench.together((1..=5).map(|pr| bench.submit(pr)).collect()).await;
    assert!(answers[0].is_ok(), "{answers:?}");
    for answer in &answers[1..] {
        assert!(matches!(answer, Err(Error::Store(StoreError::Unavailable(_)))), "{answer:?}");
    }
    assert_eq!(bench.commits(), [1, 4, 1], "one more attempt shows that the store is away");
}

#[tokio::test]
async fn steps_that_were_written_after_all_are_not_executed_again() {
    let bench = Bench::new(3).await;
    *bench.store.trouble.lock().expect("not poisoned") = Trouble::Written;
    let answers = bench.together((1..=3).map(|pr| bench.submit(pr)).collect()).await;
    assert!(answers[0].is_ok(), "{answers:?}");
    for answer in &answers[1..] {
        assert!(matches!(answer, Err(Error::Store(StoreError::Failed(_)))), "{answer:?}");
    }
    assert_eq!(bench.commits(), [1, 2]);
    assert!(bench.state(3).await.is_some());
}

#[tokio::test]
async fn a_step_that_panics_fails_no_other() {
    let bench = Bench::new(13).await;
    bench.store.permits.forget_permits(1_000_000);
    let mut steps: Vec<_> = [1, 2, 13, 4]
        .map(|pr| AssertUnwindSafe(bench.submit(pr)).catch_unwind().boxed())
        .into_iter()
        .collect();
    for step in &mut steps {
        assert!(futures_util::poll!(step).is_pending());
    }
    bench.store.permits.add_permits(1_000);
    let answers = join_all(steps).await;
    let panicked: Vec<bool> = answers.iter().map(Result::is_err).collect();
    assert_eq!(panicked, [false, false, true, false]);
    for (pr, is_submitted) in [(1, true), (2, true), (13, false), (4, true)] {
        assert_eq!(bench.state(pr).await.is_some(), is_submitted, "{pr}");
    }
}

#[tokio::test]
async fn an_answer_without_a_commit_is_of_the_latest_version() {
    let bench = Bench::new(4).await;
    let mut stores = bench.context.stores.clone();
    stores.queue.queues = bench.store.inner.clone();
    let other = QueueService::new(Context { stores, ..bench.context.clone() });
    bench.store.locates.forget_permits(10_000_000);
    // This server has just read that 4 is not in the queue.
    let mut cancellation = bench.cancel(4);
    assert!(futures_util::poll!(&mut cancellation).is_pending());
    let options = SubmitOptions::default();
    let (caller, repo, main) = (&bench.caller, &bench.repo, &bench.main);
    other.submit(caller, repo, main, PrNumber(4), options).await.expect("submitted");
    bench.store.locates.add_permits(1_000);
    cancellation.await.expect("it is in the queue");
    assert_eq!(bench.state(4).await, Some(PrState::Cancelled));
}
