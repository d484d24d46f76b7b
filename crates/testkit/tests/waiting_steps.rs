//! Steps of a queue that wait while another one is committed: they are committed together, and each
//! is answered as if it had been committed alone.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures_util::future::{BoxFuture, FutureExt as _, join_all};
use signalbox_conformance::PlainEvents;
use signalbox_conformance::fake_host::{FakeHost, FakeHosts};
use signalbox_domain::ids::{BranchName, OrgId, OrgSlug, PrNumber, RepoId, RepoName, TokenId};
use signalbox_domain::ports::{
    Commit, CommitError, CreateError, Loaded, Located, PullRequestQuery, QueueKey, QueueRef,
    QueueStore, StoreError, Version,
};
use signalbox_domain::queue::{
    ChangeSource, CheckConclusion, Mode, PrState, Queue, Refusal, ReportedTargets,
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
    /// It does not answer.
    Unavailable,
}

/// A queue store whose commits wait for a permit.
struct HeldStore {
    inner: Arc<dyn QueueStore>,
    permits: Semaphore,
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
        self.inner.locate(org, name, any_case, branch, pr).await
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
        match trouble {
            Trouble::Refuses(pr) if contains(pr) => {
                Err(StoreError::Failed("it is refused".into()).into())
            }
            Trouble::Unavailable => Err(StoreError::Unavailable("it is away".into()).into()),
            Trouble::None | Trouble::Refuses(_) => self.inner.commit(steps).await,
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
            events: Arc::new(PlainEvents),
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
