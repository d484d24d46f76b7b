//! What people see on a host follows the queue: once, by one server, and for as long as it takes.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use signalbox_domain::ids::{BranchName, HostId, OrgId, OrgSlug, PrNumber, RepoName, Sha, TokenId};
use signalbox_domain::ports::{
    Announcement, ChecksRunner, Comment, Finding, Forge, GitHost, HostError, Hosts, LandedNote,
    Notifier, Observed, Observer, Permission, QueueRef, Repository, TestPullRequest, WorkflowRun,
};
use signalbox_domain::queue::{CheckConclusion, Lane, Mode};
use signalbox_domain::testing::{CountingIds, ManualClock};
use signalbox_domain::time::{Span, Timestamp};
use signalbox_domain::token::{Caller, Compatibility, Scope};
use signalbox_services::{Announcer, Context, EffectRunner, QueueService};
use signalbox_testkit::PlainEvents;
use signalbox_testkit::fake_host::{FakeHost, FakeHosts};
use signalbox_testkit::memory::MemoryDatabase;
use uuid::Uuid;

struct Unseen;

impl Observer for Unseen {
    fn observe(&self, _: &Observed<'_>) {}
}

impl Notifier for Unseen {
    fn committed(&self, _: QueueRef, _: &[Lane]) {}
}

/// What people have seen, and what they are not let see.
#[derive(Default)]
struct Board {
    seen: Vec<(PrNumber, &'static str, String)>,
    denied: Vec<&'static str>,
    refused: Vec<&'static str>,
    newer: Option<Sha>,
}

#[derive(Default)]
struct FakeForge(Mutex<Board>);

impl FakeForge {
    fn board(&self) -> std::sync::MutexGuard<'_, Board> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn deny(&self, parts: &[&'static str]) {
        self.board().denied = parts.to_vec();
    }

    fn see(&self, pr: PrNumber, part: &'static str, text: String) -> Result<(), HostError> {
        let mut board = self.board();
        let words = format!("no {part}");
        if board.denied.contains(&part) {
            return Err(HostError::AccessDenied { words });
        }
        board.seen.push((pr, part, text));
        if board.refused.contains(&part) {
            return Err(HostError::Rejected { words });
        }
        Ok(())
    }

    /// What was shown of that part, oldest first.
    fn shown(&self, part: &str) -> Vec<String> {
        let board = self.board();
        let of = board.seen.iter().filter(|(_, of, _)| *of == part);
        of.map(|(_, _, text)| text.clone()).collect()
    }
}

#[async_trait]
impl Forge for FakeForge {
    async fn permission(&self, _: &Repository, _: &str) -> Result<Permission, HostError> {
        Ok(Permission::None)
    }

    async fn comment(&self, _: &Repository, _: u64) -> Result<Option<Comment>, HostError> {
        Ok(None)
    }

    async fn comments_since(
        &self,
        _: &Repository,
        _: Timestamp,
    ) -> Result<Vec<(PrNumber, u64)>, HostError> {
        Ok(Vec::new())
    }

    async fn react(&self, _: &Repository, _: u64, _: bool) -> Result<(), HostError> {
        Ok(())
    }

    async fn labels(&self, _: &Repository, _: PrNumber) -> Result<Vec<String>, HostError> {
        Ok(Vec::new())
    }

    async fn announce(&self, _: &Repository, it: &Announcement) -> Result<(), HostError> {
        if let Some(status) = &it.status {
            self.see(it.pr, "status", status.description.clone())?;
        }
        if let Some(comment) = &it.comment {
            self.see(it.pr, "comment", comment.clone())?;
        }
        Ok(())
    }

    async fn close_landed(
        &self,
        _: &Repository,
        landed: &LandedNote,
    ) -> Result<Option<Sha>, HostError> {
        assert!(landed.rewritten, "it was squashed");
        self.see(landed.pr, "close", landed.sha.to_string())?;
        Ok(self.board().newer.clone())
    }

    async fn open_test_pull_request(
        &self,
        _: &Repository,
        _: &TestPullRequest,
    ) -> Result<(), HostError> {
        Ok(())
    }

    async fn workflow_run(&self, _: &Repository, _: u64) -> Result<Option<WorkflowRun>, HostError> {
        Ok(None)
    }

    fn command_prefix(&self) -> &'static str {
        "/signalbox"
    }

    fn plain_lines(&self, comment: &str) -> Vec<String> {
        comment.lines().map(ToOwned::to_owned).collect()
    }

    fn neutral(&self, text: &str) -> String {
        text.to_owned()
    }

    fn checks_hinted(&self, _: &Sha) {}

    async fn diagnose(&self, _: &[Repository]) -> Vec<Finding> {
        Vec::new()
    }
}

/// Hosts in memory with a board.
struct WithForge(FakeHosts, Arc<FakeForge>);

impl Hosts for WithForge {
    fn git_host(&self, org: OrgId, host: &HostId) -> Option<Arc<dyn GitHost>> {
        self.0.git_host(org, host)
    }

    fn checks_runner(&self, org: OrgId, host: &HostId) -> Option<Arc<dyn ChecksRunner>> {
        self.0.checks_runner(org, host)
    }

    fn forge(&self, _: OrgId, _: &HostId) -> Option<Arc<dyn Forge>> {
        Some(self.1.clone())
    }
}

/// A server without a process, on a host with people.
struct Bench {
    clock: Arc<ManualClock>,
    database: MemoryDatabase,
    host: Arc<FakeHost>,
    forge: Arc<FakeForge>,
    context: Context,
    queues: Arc<QueueService>,
    caller: Caller,
    repo: RepoName,
    main: BranchName,
}

impl Bench {
    async fn new() -> Self {
        let (clock, database) = (Arc::new(ManualClock::default()), MemoryDatabase::new());
        let repo = RepoName::parse("git.test/acme/calc").expect("valid");
        let host = Arc::new(FakeHost::new(clock.clone(), |_| CheckConclusion::Success));
        host.add_repository(&repo, &[("readme", "calc")]);
        let forge = Arc::new(FakeForge::default());
        let hosts = FakeHosts::one(&repo.host, host.clone());
        let context = Context {
            stores: database.stores(),
            hosts: Arc::new(WithForge(hosts, forge.clone())),
            clock: clock.clone(),
            ids: Arc::new(CountingIds::default()),
            observer: Arc::new(Unseen),
            events: Arc::new(PlainEvents),
            notifier: Arc::new(Unseen),
        };
        let caller = Caller {
            org: OrgId(Uuid::from_u128(77)),
            org_slug: OrgSlug::new("acme").expect("valid"),
            token: TokenId(Uuid::from_u128(78)),
            name: "tests".to_owned(),
            scopes: Scope::ALL.to_vec(),
            repos: Vec::new(),
            compatibility: Compatibility::Specification,
        };
        let queues = Arc::new(QueueService::new(context.clone()));
        let main = BranchName::new("main").expect("valid");
        let created = queues.create_queue(&caller, &repo, &main, Mode::Single, Some(1)).await;
        created.expect("a new queue");
        Self { clock, database, host, forge, context, queues, caller, repo, main }
    }

    /// A pull request that has landed.
    async fn landed(&self) -> PrNumber {
        let pr = self.host.open(&self.repo, "main", &[("one", "1")]);
        let submitted = self.queues.submit(&self.caller, &self.repo, &self.main, pr, None, None);
        submitted.await.expect("accepted");
        let runner = EffectRunner::new(self.context.clone(), self.queues.clone());
        while !self.database.waiting().is_empty() {
            for lane in Lane::ALL {
                for leased in runner.lease(*lane, 8).await.expect("the store answers") {
                    let sink = runner.sink(&leased);
                    runner.run(&leased, &sink).await.expect("the store answers");
                }
            }
            self.clock.advance(Span::seconds(1));
        }
        pr
    }

    /// A server that was just started.
    fn announcer(&self) -> Announcer {
        Announcer::new(self.context.clone(), self.queues.clone())
    }

    /// Lets a server show what it can, for a while.
    async fn rounds(&self, announcer: &Announcer, rounds: u32) {
        for _ in 0..rounds {
            while announcer.next().await.expect("the store answers") {}
            self.clock.advance(Span::seconds(2));
        }
    }
}

#[tokio::test]
async fn nothing_is_shown_twice_by_restarts_or_by_several_servers() {
    let bench = Bench::new().await;
    bench.landed().await;
    let (one, two) = (bench.announcer(), bench.announcer());
    for _ in 0..3 {
        let (first, second) = tokio::join!(one.next(), two.next());
        first.and(second).expect("the store answers");
        bench.clock.advance(Span::seconds(2));
    }
    for _ in 0..20 {
        bench.rounds(&bench.announcer(), 3).await;
    }
    for part in ["status", "comment", "close"] {
        let shown = bench.forge.shown(part);
        assert_eq!(shown.len(), 1, "{part}: {shown:?}");
    }
    assert!(bench.forge.shown("comment")[0].contains("Merged"), "the end is shown");
}

#[tokio::test]
async fn what_could_not_be_shown_is_shown_when_the_host_takes_it() {
    let bench = Bench::new().await;
    bench.forge.deny(&["comment", "close"]);
    bench.landed().await;
    bench.rounds(&bench.announcer(), 5).await;
    assert_eq!(bench.forge.shown("status").len(), 1, "one part does not wait for another");
    assert_eq!(bench.forge.shown("comment"), [""; 0]);
    // Long after its end, by a server that was started since.
    bench.clock.advance(Span::hours(30));
    let anew = bench.announcer();
    bench.rounds(&anew, 3).await;
    bench.forge.deny(&[]);
    bench.clock.advance(Span::minutes(1));
    bench.rounds(&anew, 3).await;
    for part in ["status", "comment", "close"] {
        assert_eq!(bench.forge.shown(part).len(), 1, "{part}");
    }
    bench.rounds(&bench.announcer(), 3).await;
    assert_eq!(bench.forge.shown("comment").len(), 1, "it is settled");
}

#[tokio::test]
async fn commits_that_were_left_out_are_told() {
    let bench = Bench::new().await;
    let newer = Sha::new("f".repeat(40)).expect("a commit");
    bench.forge.board().newer = Some(newer.clone());
    bench.landed().await;
    bench.rounds(&bench.announcer(), 3).await;
    bench.rounds(&bench.announcer(), 3).await;
    let comments = bench.forge.shown("comment");
    let [comment] = comments.as_slice() else { panic!("{comments:?}") };
    assert!(comment.contains("Newer commits were left out"), "{comment}");
    assert!(comment.contains(newer.as_str()), "{comment}");
}

#[tokio::test]
async fn what_the_host_refuses_is_not_tried_again() {
    let bench = Bench::new().await;
    bench.forge.board().refused = vec!["comment"];
    bench.landed().await;
    bench.rounds(&bench.announcer(), 3).await;
    bench.clock.advance(Span::minutes(5));
    bench.rounds(&bench.announcer(), 3).await;
    assert_eq!(bench.forge.shown("comment").len(), 1, "a conversation that is locked stays so");
    assert_eq!(bench.forge.shown("status").len(), 1);
}
