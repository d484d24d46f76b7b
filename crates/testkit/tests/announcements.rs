//! Announcements follow the queue: once, by one server, and retried until they succeed.

use std::sync::Arc;

use signalbox_conformance::PlainEvents;
use signalbox_conformance::fake_host::{FakeForge, FakeHost, FakeHosts};
use signalbox_domain::ids::{BranchName, OrgId, OrgSlug, PrNumber, RepoName, Sha, TokenId};
use signalbox_domain::ports::SHOWN_AFTER;
use signalbox_domain::queue::{
    ChangeSource, CheckConclusion, EffectClass, Mode, RequestedState, SettingsPatch,
};
use signalbox_domain::testing::{CountingIds, ManualClock, Quiet};
use signalbox_domain::time::Span;
use signalbox_domain::token::{Caller, Compatibility, Scope};
use signalbox_services::{
    Context, EffectRunner, QueueChange, QueueService, StatusReporter, SubmitOptions,
};
use signalbox_testkit::memory::MemoryDatabase;
use uuid::Uuid;

/// A server without a process, on a fake host with a forge.
struct Fixture {
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

impl Fixture {
    async fn new() -> Self {
        let (clock, database) = (Arc::new(ManualClock::default()), MemoryDatabase::new());
        let repo = RepoName::parse("git.test/acme/calc").expect("valid");
        let host = Arc::new(FakeHost::new(clock.clone(), |_| CheckConclusion::Success));
        host.add_repository(&repo, &[("readme", "calc")]);
        let forge = Arc::new(FakeForge::default());
        let hosts = FakeHosts::one(&repo.host, host.clone());
        let context = Context {
            stores: database.stores(),
            hosts: Arc::new(hosts.with_forge(forge.clone())),
            clock: clock.clone(),
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
            .create_queue(&caller, &repo, &main, Mode::Single, Some(1), ChangeSource::Direct)
            .await;
        created.expect("a new queue");
        Self { clock, database, host, forge, context, queues, caller, repo, main }
    }

    /// Creates a landed pull request.
    async fn landed(&self) -> PrNumber {
        let pr = self.host.open(&self.repo, "main", &[("one", "1")]);
        let submitted =
            self.queues.submit(&self.caller, &self.repo, &self.main, pr, SubmitOptions::default());
        submitted.await.expect("accepted");
        let runner = EffectRunner::new(self.context.clone(), self.queues.clone());
        while !self.database.waiting().is_empty() {
            for class in EffectClass::ALL {
                for leased in runner.lease(*class, 8).await.expect("the store answers") {
                    let sink = runner.sink(&leased);
                    runner.run(&leased, &sink).await.expect("the store answers");
                }
            }
            self.clock.advance(Span::seconds(1));
        }
        pr
    }

    /// A reporter of a newly started server.
    fn status_reporter(&self) -> StatusReporter {
        StatusReporter::new(self.context.clone(), self.queues.clone())
    }

    /// Runs a reporter for some rounds.
    async fn rounds(&self, status_reporter: &StatusReporter, rounds: u32) {
        for _ in 0..rounds {
            while status_reporter.next().await.expect("the store answers") {}
            self.clock.advance(Span::seconds(2));
        }
    }
}

#[tokio::test]
async fn restarts_and_several_servers_repeat_no_announcement() {
    let bench = Fixture::new().await;
    bench.landed().await;
    let (one, two) = (bench.status_reporter(), bench.status_reporter());
    for _ in 0..3 {
        let (first, second) = tokio::join!(one.next(), two.next());
        first.and(second).expect("the store answers");
        bench.clock.advance(SHOWN_AFTER);
    }
    for _ in 0..20 {
        bench.rounds(&bench.status_reporter(), 3).await;
    }
    for part in ["status", "comment", "close"] {
        let shown = bench.forge.shown(part);
        assert_eq!(shown.len(), 1, "{part}: {shown:?}");
    }
    assert!(bench.forge.shown("comment")[0].contains("Merged"), "the end is shown");
}

#[tokio::test]
async fn a_failed_announcement_is_retried_until_the_host_accepts_it() {
    let bench = Fixture::new().await;
    bench.forge.deny(&["comment", "close"]);
    bench.landed().await;
    bench.rounds(&bench.status_reporter(), 5).await;
    assert_eq!(bench.forge.shown("status").len(), 1, "one part does not wait for another");
    assert_eq!(bench.forge.shown("comment"), [""; 0]);
    // Long after the exit, by a server that was started since.
    bench.clock.advance(Span::hours(30));
    let anew = bench.status_reporter();
    bench.rounds(&anew, 3).await;
    bench.forge.deny(&[]);
    bench.clock.advance(Span::minutes(1));
    bench.rounds(&anew, 3).await;
    for part in ["status", "comment", "close"] {
        assert_eq!(bench.forge.shown(part).len(), 1, "{part}");
    }
    bench.rounds(&bench.status_reporter(), 3).await;
    assert_eq!(bench.forge.shown("comment").len(), 1, "it is settled");
}

#[tokio::test]
async fn a_comment_names_commits_that_were_not_merged() {
    let bench = Fixture::new().await;
    let newer = Sha::new("f".repeat(40)).expect("a commit");
    bench.forge.set_newer_head(newer.clone());
    bench.landed().await;
    bench.rounds(&bench.status_reporter(), 3).await;
    bench.rounds(&bench.status_reporter(), 3).await;
    let comments = bench.forge.shown("comment");
    let [comment] = comments.as_slice() else { panic!("{comments:?}") };
    assert!(comment.contains("Newer commits were not merged"), "{comment}");
    assert!(comment.contains(newer.as_str()), "{comment}");
}

#[tokio::test]
async fn a_rejected_announcement_is_not_retried() {
    let bench = Fixture::new().await;
    bench.forge.refuse(&["comment"]);
    bench.landed().await;
    bench.rounds(&bench.status_reporter(), 3).await;
    bench.clock.advance(Span::minutes(5));
    bench.rounds(&bench.status_reporter(), 3).await;
    assert_eq!(bench.forge.shown("comment").len(), 1, "a locked conversation stays locked");
    assert_eq!(bench.forge.shown("status").len(), 1);
}

#[tokio::test]
async fn a_lasting_state_is_announced_once_and_a_short_one_is_not() {
    let bench = Fixture::new().await;
    let pr = bench.host.open(&bench.repo, "main", &[("one", "1")]);
    let submitted =
        bench.queues.submit(&bench.caller, &bench.repo, &bench.main, pr, SubmitOptions::default());
    submitted.await.expect("accepted");
    let status_reporter = bench.status_reporter();
    assert!(!status_reporter.next().await.expect("the store answers"), "nothing is due yet");
    bench.clock.advance(SHOWN_AFTER);
    bench.rounds(&status_reporter, 5).await;
    assert_eq!(bench.forge.shown("status").len(), 1, "it still waits");
    // It is built, tested and landed before the announcement is due.
    let runner = EffectRunner::new(bench.context.clone(), bench.queues.clone());
    while !bench.database.waiting().is_empty() {
        for class in EffectClass::ALL {
            for leased in runner.lease(*class, 8).await.expect("the store answers") {
                let sink = runner.sink(&leased);
                runner.run(&leased, &sink).await.expect("the store answers");
            }
        }
    }
    bench.rounds(&status_reporter, 5).await;
    let shown = bench.forge.shown("comment");
    assert_eq!(shown.len(), 2, "{shown:?}");
    assert!(shown[1].contains("Merged"), "{shown:?}");
}

#[tokio::test]
async fn a_setting_of_announcements_updates_all_live_pull_requests() {
    let bench = Fixture::new().await;
    let change = async |patch: SettingsPatch, state| {
        let (caller, repo, main) = (&bench.caller, &bench.repo, &bench.main);
        let change = QueueChange { settings: patch, state, ..QueueChange::default() };
        let changed = bench.queues.update_queue(caller, repo, main, change);
        changed.await.expect("accepted")
    };
    let off =
        |enabled| SettingsPatch { comments_enabled: Some(enabled), ..SettingsPatch::default() };
    change(off(false), Some(RequestedState::Paused)).await;
    for name in ["one", "two"] {
        let pr = bench.host.open(&bench.repo, "main", &[(name, "1")]);
        let submitted = bench.queues.submit(
            &bench.caller,
            &bench.repo,
            &bench.main,
            pr,
            SubmitOptions::default(),
        );
        submitted.await.expect("accepted");
    }
    let status_reporter = bench.status_reporter();
    bench.clock.advance(SHOWN_AFTER);
    bench.rounds(&status_reporter, 3).await;
    assert_eq!((bench.forge.shown("status").len(), bench.forge.shown("comment").len()), (2, 0));
    change(off(true), None).await;
    bench.clock.advance(SHOWN_AFTER);
    bench.rounds(&status_reporter, 3).await;
    assert_eq!((bench.forge.shown("status").len(), bench.forge.shown("comment").len()), (2, 2));
}
