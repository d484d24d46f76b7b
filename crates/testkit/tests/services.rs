//! The use cases on stores and a host in memory: every decision of the planner takes effect once,
//! also when the host fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signalbox_conformance::PlainEvents;
use signalbox_conformance::fake_host::{Call, Failure, FakeHost, FakeHosts, Tree};
use signalbox_domain::ids::{BranchName, OrgId, OrgSlug, PrNumber, RepoName, RunId, TokenId};
use signalbox_domain::ports::{
    CheckLog, CheckOutput, Clock as _, HostError, PullRequestQuery, StoreError,
};
use signalbox_domain::queue::{
    ChangeSource, CheckConclusion, Effect, EffectClass, Entry, Mode, Policy, PolicyId, PolicyView,
    PrState, PullRequestState, ReportedTargets, SettingsPatch, Targets, WaitReason,
};
use signalbox_domain::testing::{CountingIds, ManualClock, Quiet};
use signalbox_domain::time::{Span, Timestamp};
use signalbox_domain::token::{Caller, Compatibility, Scope};
use signalbox_services::{
    Context, EffectRunner, EntrySnapshot, Error, Looked, QueueChange, QueueService, SubmitOptions,
    Sweeper, Watch,
};
use signalbox_testkit::memory::MemoryDatabase;
use uuid::Uuid;

/// A server without a process: services on stores in memory, a queue for `main`, and a manual
/// clock.
struct Fixture {
    clock: Arc<ManualClock>,
    database: MemoryDatabase,
    host: Arc<FakeHost>,
    context: Context,
    queues: Arc<QueueService>,
    caller: Caller,
    repo: RepoName,
    main: BranchName,
}

/// Files named `broken…` fail the checks.
fn judge(files: &Tree) -> CheckConclusion {
    if files.keys().any(|path| path.starts_with("broken")) {
        CheckConclusion::Failure
    } else {
        CheckConclusion::Success
    }
}

impl Fixture {
    async fn new(concurrency: u32) -> Self {
        let (clock, database) = (Arc::new(ManualClock::default()), MemoryDatabase::new());
        let repo = RepoName::parse("git.test/acme/calc").expect("valid");
        let host = Arc::new(FakeHost::new(clock.clone(), judge));
        host.add_repository(&repo, &[("readme", "calc")]);
        let context = Context {
            stores: database.stores(),
            hosts: Arc::new(FakeHosts::one(&repo.host, host.clone())),
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
            .create_queue(
                &caller,
                &repo,
                &main,
                Mode::Single,
                Some(concurrency),
                ChangeSource::Direct,
            )
            .await;
        created.expect("a new queue");
        Self { clock, database, host, context, queues, caller, repo, main }
    }

    fn open(&self, path: &str) -> PrNumber {
        self.host.open(&self.repo, "main", &[(path, "1")])
    }

    async fn submit(&self, pr: PrNumber) -> Result<(), Error> {
        self.queues.submit(&self.caller, &self.repo, &self.main, pr, SubmitOptions::default()).await
    }

    async fn entry(&self, pr: PrNumber) -> EntrySnapshot {
        let query = PullRequestQuery::Number(pr);
        let entry = self.queues.entry(&self.caller, &self.repo, &self.main, &query).await;
        entry.expect("it was submitted")
    }

    /// Runs effects, advancing the clock when none is due, until none is left.
    async fn run_until_idle(&self) {
        let runner = EffectRunner::new(self.context.clone(), self.queues.clone());
        for _ in 0..1_000 {
            if self.database.waiting().is_empty() {
                return;
            }
            for class in EffectClass::ALL {
                for leased in runner.lease(*class, 8).await.expect("the store answers") {
                    let sink = runner.sink(&leased);
                    runner.run(&leased, &sink).await.expect("the store answers");
                }
            }
            self.clock.advance(Span::seconds(1));
        }
        panic!("effects never end: {:?}", self.database.waiting());
    }

    /// Runs the short effects that are due now.
    async fn run_host_effects(&self, runner: &EffectRunner) {
        for leased in runner.lease(EffectClass::Host, 8).await.expect("the store answers") {
            runner.run(&leased, &runner.sink(&leased)).await.expect("the store answers");
        }
    }

    fn past_mains(&self) -> Vec<Tree> {
        self.host.past_files(&self.repo, "main")
    }
}

#[tokio::test]
async fn good_changes_land_in_order_and_bad_ones_do_not() {
    let bench = Fixture::new(3).await;
    let prs = ["one", "broken", "three"].map(|path| bench.open(path));
    for pr in prs {
        bench.submit(pr).await.expect("accepted");
    }
    bench.run_until_idle().await;
    let mut states = Vec::new();
    for pr in prs {
        states.push(bench.entry(pr).await.state);
    }
    assert_eq!(states, [PrState::Merged, PrState::Failed, PrState::Merged]);
    let sizes: Vec<usize> = bench.past_mains().iter().map(Tree::len).collect();
    assert_eq!(sizes, [1, 2, 3], "each landed once, one at a time");
    assert!(bench.past_mains().iter().all(|files| judge(files) == CheckConclusion::Success));
}

#[tokio::test]
async fn a_landing_whose_answer_is_lost_is_not_repeated() {
    let bench = Fixture::new(2).await;
    let pr = bench.open("one");
    bench.host.fail(Call::Land, 1, Failure::AnswerLost);
    bench.submit(pr).await.expect("accepted");
    bench.run_until_idle().await;
    assert_eq!(bench.entry(pr).await.state, PrState::Merged);
    assert_eq!(bench.host.calls(Call::Land), 2);
    assert_eq!(bench.past_mains().len(), 2, "main moved once");
}

/// A policy with which nothing is tested alone.
#[derive(Debug)]
struct Together;

impl Policy for Together {
    fn id(&self) -> PolicyId {
        PolicyId::new("together", 1)
    }

    fn batch_size(&self, _view: &PolicyView<'_>, _first: &Entry) -> u32 {
        2
    }
}

#[tokio::test]
async fn a_server_with_another_policy_acts_without_an_event() {
    let bench = Fixture::new(2).await;
    let batches = SettingsPatch {
        batch: Some(true),
        batching_min_size: Some(9),
        batching_max_wait_time_minutes: Some(60),
        ..SettingsPatch::default()
    };
    let change = QueueChange { settings: batches, ..QueueChange::default() };
    let changed = bench.queues.update_queue(&bench.caller, &bench.repo, &bench.main, change).await;
    changed.expect("valid settings");
    let prs = [bench.open("one"), bench.open("two")];
    for pr in prs {
        bench.submit(pr).await.expect("accepted");
    }
    assert_eq!(bench.entry(prs[0]).await.state, PrState::Pending, "its batch waits to fill");
    // The server is started again with a policy of its own.
    let queues = QueueService::new(bench.context.clone()).with_policy(Together.into());
    let bench = Fixture { queues: Arc::new(queues), ..bench };
    let watch = Watch::new(bench.context.clone(), bench.queues.clone());
    assert_eq!(watch.look().await.expect("the store answers"), Looked::default());
    for pr in prs {
        assert_eq!(bench.entry(pr).await.state, PrState::Testing);
    }
    bench.run_until_idle().await;
    for pr in prs {
        assert_eq!(bench.entry(pr).await.state, PrState::Merged);
    }
}

#[tokio::test]
async fn a_lost_effect_is_detected_and_repeated() {
    let bench = Fixture::new(2).await;
    let watch = Watch::new(bench.context.clone(), bench.queues.clone());
    let runner = EffectRunner::new(bench.context.clone(), bench.queues.clone());
    let pr = bench.open("one");
    bench.submit(pr).await.expect("accepted");
    assert_eq!(watch.look().await.expect("the store answers"), Looked::default());
    // Finish leased effects without an answer, which no correct server does: first the build, then
    // the landing.
    for state in [PrState::Testing, PrState::TestsPassed] {
        for _ in 0..10 {
            if bench.entry(pr).await.state == state && wants_an_answer(&bench) {
                break;
            }
            bench.run_host_effects(&runner).await;
            for leased in runner.lease(EffectClass::Checks, 8).await.expect("the store answers") {
                runner.run(&leased, &runner.sink(&leased)).await.expect("the store answers");
            }
        }
        for leased in runner.lease(EffectClass::Host, 8).await.expect("the store answers") {
            let outbox = &bench.context.stores.queue.outbox;
            assert!(outbox.finish(leased.token).await.expect("the store answers"));
        }
        let looked = watch.look().await.expect("the store answers");
        assert_eq!((looked.lost.len(), looked.unexplained.len()), (1, 0), "{state:?}");
        assert_eq!(watch.look().await.expect("the store answers"), Looked::default());
    }
    bench.run_until_idle().await;
    assert_eq!(bench.entry(pr).await.state, PrState::Merged);
}

/// Whether a build or a landing is in the outbox.
fn wants_an_answer(bench: &Fixture) -> bool {
    let asks = |effect: &Effect| matches!(effect, Effect::BuildCandidate(_) | Effect::Land(_));
    bench.database.waiting().iter().any(|(effect, _)| asks(effect))
}

#[tokio::test]
async fn nothing_fails_during_an_outage_of_the_host_and_the_wait_reason_names_it() {
    let bench = Fixture::new(2).await;
    let pr = bench.open("one");
    bench.submit(pr).await.expect("accepted");
    bench.host.set_down(true);
    let runner = EffectRunner::new(bench.context.clone(), bench.queues.clone());
    bench.run_host_effects(&runner).await;
    let waits = bench.entry(pr).await.waits;
    assert!(matches!(waits, Some(WaitReason::HostUnreachable { .. })), "{waits:?}");
    assert!(bench.database.waiting().iter().any(|(_, error)| error.is_some()));
    let refused = bench.submit(bench.open("two")).await;
    assert!(matches!(refused, Err(Error::Host(HostError::Unavailable { .. }))), "{refused:?}");

    bench.clock.advance(Span::hours(20));
    bench.host.set_down(false);
    bench.run_until_idle().await;
    assert_eq!(bench.entry(pr).await.state, PrState::Merged);
}

#[tokio::test]
async fn the_effects_of_a_dead_server_are_run_by_the_next_one() {
    let bench = Fixture::new(2).await;
    let pr = bench.open("one");
    bench.submit(pr).await.expect("accepted");
    let dead = EffectRunner::new(bench.context.clone(), bench.queues.clone());
    let mut leased = dead.lease(EffectClass::Host, 8).await.expect("the store answers");
    assert!(!leased.is_empty());
    bench.run_until_idle().await;
    assert_eq!(bench.entry(pr).await.state, PrState::Merged);
    // It was not dead, only slow: its late calls change nothing.
    let late = leased.pop().expect("one");
    let sink = dead.sink(&late);
    dead.run(&late, &sink).await.expect("the store answers");
    bench.run_until_idle().await;
    assert_eq!(bench.past_mains().len(), 2, "main moved once");
    assert!(!dead.renew(&late).await.expect("the store answers"));
}

#[tokio::test]
async fn the_sweep_finds_changes_whose_hint_was_lost() {
    let bench = Fixture::new(1).await;
    let pr = bench.open("one");
    bench.host.edit(&bench.repo, pr, |it| it.draft = true);
    bench.submit(pr).await.expect("accepted");
    bench.run_until_idle().await;
    assert_eq!(bench.entry(pr).await.waits, Some(WaitReason::Draft));
    bench.host.edit(&bench.repo, pr, |it| it.draft = false);
    bench.clock.advance(Span::seconds(1));
    let sweeper = Sweeper::new(bench.context.clone(), bench.queues.clone());
    sweeper.look_often().await.expect("everything answers");
    bench.run_until_idle().await;
    assert_eq!(bench.entry(pr).await.state, PrState::Merged);
}

impl Fixture {
    fn describe(&self, pr: PrNumber, description: &str) {
        self.host.edit(&self.repo, pr, |it| description.clone_into(&mut it.body));
    }

    fn merge_on_host(&self, repo: &RepoName, pr: PrNumber) {
        self.host.merge_by_hand(repo, pr, |_| true).expect("merged");
    }

    async fn waits(&self, pr: PrNumber) -> Option<WaitReason> {
        self.entry(pr).await.waits
    }
}

fn waits_for(name: &str) -> WaitReason {
    WaitReason::Dependencies { on: vec![name.to_owned()] }
}

#[tokio::test]
async fn a_dependency_that_is_not_in_the_queue_is_read_and_followed() {
    let bench = Fixture::new(1).await;
    let [pr, first, late] = ["one", "two", "three"].map(|path| bench.open(path));
    bench.describe(pr, &format!("Depends-On: #{first}"));
    bench.submit(pr).await.expect("accepted");
    bench.run_until_idle().await;
    assert_eq!(bench.waits(pr).await, Some(waits_for("#2")));
    let sweeper = Sweeper::new(bench.context.clone(), bench.queues.clone());
    sweeper.look_at_all().await.expect("everything answers");
    assert_eq!(bench.waits(pr).await, Some(waits_for("#2")));
    bench.merge_on_host(&bench.repo, first);
    bench.clock.advance(Span::seconds(1));
    sweeper.look_at_all().await.expect("everything answers");
    bench.run_until_idle().await;
    assert_eq!(bench.entry(pr).await.state, PrState::Merged, "without a hint");
    bench.describe(late, "Depends-On: #99");
    bench.submit(late).await.expect("accepted");
    bench.run_until_idle().await;
    let missing = WaitReason::DependencyUnknown { on: vec!["#99".to_owned()] };
    assert_eq!(bench.waits(late).await, Some(missing));
}

/// As on hosts where a squash is not a merge.
#[tokio::test]
async fn a_dependency_that_the_queue_landed_has_merged_although_the_host_shows_it_as_closed() {
    let bench = Fixture::new(1).await;
    let [first, second, third] = ["one", "two", "three"].map(|path| bench.open(path));
    bench.submit(first).await.expect("accepted");
    bench.run_until_idle().await;
    assert_eq!(bench.entry(first).await.state, PrState::Merged);
    bench.host.edit(&bench.repo, first, |it| it.state = PullRequestState::Closed);
    bench.describe(second, &format!("Depends-On: #{first}"));
    bench.submit(second).await.expect("accepted");
    bench.run_until_idle().await;
    assert_eq!(bench.entry(second).await.state, PrState::Merged);
    // With other commits it is another change.
    bench.host.push(&bench.repo, first, &[("more", "1")]);
    bench.describe(third, &format!("Depends-On: #{first}"));
    bench.submit(third).await.expect("accepted");
    bench.run_until_idle().await;
    let closed = WaitReason::DependencyClosed { on: vec!["#1".to_owned()] };
    assert_eq!(bench.waits(third).await, Some(closed));
}

#[tokio::test]
async fn a_dependency_that_another_queue_landed_has_merged() {
    let bench = Fixture::new(1).await;
    let release = BranchName::new("release").expect("valid");
    bench.host.push_branch(&bench.repo, "release", &[("readme", "calc")]);
    let (queues, source) = (&bench.queues, ChangeSource::Direct);
    let created =
        queues.create_queue(&bench.caller, &bench.repo, &release, Mode::Single, None, source);
    created.await.expect("a new queue");
    let first = bench.host.open(&bench.repo, "release", &[("one", "1")]);
    let second = bench.open("two");
    bench.describe(second, &format!("Depends-On: #{first}"));
    bench.submit(second).await.expect("accepted");
    bench.run_until_idle().await;
    assert_eq!(bench.waits(second).await, Some(waits_for("#1")));
    let options = SubmitOptions::default();
    let submitted = queues.submit(&bench.caller, &bench.repo, &release, first, options);
    submitted.await.expect("accepted");
    bench.run_until_idle().await;
    bench.host.edit(&bench.repo, first, |it| it.state = PullRequestState::Closed);
    bench.clock.advance(Span::seconds(1));
    let sweeper = Sweeper::new(bench.context.clone(), bench.queues.clone());
    sweeper.look_at_all().await.expect("everything answers");
    bench.run_until_idle().await;
    assert_eq!(bench.entry(second).await.state, PrState::Merged);
}

#[tokio::test]
async fn more_dependencies_than_one_round_reads_are_all_followed() {
    let bench = Fixture::new(1).await;
    let dependencies: Vec<PrNumber> =
        (0..120).map(|number| bench.open(&format!("file-{number}"))).collect();
    let mut dependents = Vec::new();
    for (at, ten) in dependencies.chunks(10).enumerate() {
        let pr = bench.open(&format!("dependent-{at}"));
        let names: Vec<String> = ten.iter().map(|it| format!("#{it}")).collect();
        bench.describe(pr, &format!("Depends-On: {}", names.join(", ")));
        bench.submit(pr).await.expect("accepted");
        dependents.push(pr);
    }
    bench.run_until_idle().await;
    for pr in &dependencies {
        bench.host.edit(&bench.repo, *pr, |it| it.state = PullRequestState::Merged);
    }
    let sweeper = Sweeper::new(bench.context.clone(), bench.queues.clone());
    for _ in 0..3 {
        bench.clock.advance(Span::seconds(1));
        sweeper.look_often().await.expect("everything answers");
        sweeper.look_at_all().await.expect("everything answers");
    }
    bench.run_until_idle().await;
    for pr in dependents {
        assert_eq!(bench.entry(pr).await.state, PrState::Merged);
    }
}

#[tokio::test]
async fn one_unreadable_dependency_does_not_keep_others_from_being_read() {
    let bench = Fixture::new(1).await;
    let [pr, first, second] = ["one", "two", "three"].map(|path| bench.open(path));
    bench.describe(pr, &format!("Depends-On: #{first}, #{second}"));
    bench.submit(pr).await.expect("accepted");
    bench.run_until_idle().await;
    bench.merge_on_host(&bench.repo, second);
    // The first read is that of the pull request itself.
    bench.host.fail(Call::PullRequest, 2, Failure::Unavailable);
    bench.clock.advance(Span::seconds(1));
    let sweeper = Sweeper::new(bench.context.clone(), bench.queues.clone());
    sweeper.look_at_all().await.expect("everything answers");
    assert_eq!(bench.waits(pr).await, Some(waits_for("#2")));
}

#[tokio::test]
async fn a_dependency_in_another_repository_of_the_organization_is_followed() {
    let bench = Fixture::new(1).await;
    let web = RepoName::parse("git.test/acme/web").expect("valid");
    bench.host.add_repository(&web, &[("readme", "web")]);
    let first = bench.host.open(&web, "main", &[("page", "1")]);
    let pr = bench.open("one");
    bench.describe(pr, &format!("Depends-On: acme/web#{first}"));
    bench.submit(pr).await.expect("accepted");
    bench.run_until_idle().await;
    let unknown = WaitReason::DependencyUnknown { on: vec!["acme/web#1".to_owned()] };
    let waits = bench.waits(pr).await;
    assert_eq!(waits, Some(unknown.clone()), "the server does not know the repository");
    let (queues, source) = (&bench.queues, ChangeSource::Direct);
    let created = queues.create_queue(&bench.caller, &web, &bench.main, Mode::Single, None, source);
    created.await.expect("a new queue");
    let sweeper = Sweeper::new(bench.context.clone(), bench.queues.clone());
    let look = async || {
        bench.clock.advance(Span::hours(1));
        sweeper.look_at_all().await.expect("everything answers");
        bench.run_until_idle().await;
    };
    look().await;
    assert_eq!(bench.waits(pr).await, Some(waits_for("acme/web#1")));
    // The first read is that of the pull request itself.
    bench.host.fail(Call::PullRequest, 2, Failure::AccessDenied);
    look().await;
    assert_eq!(bench.waits(pr).await, Some(unknown));
    let other = bench.open("two");
    bench.submit(other).await.expect("accepted");
    bench.run_until_idle().await;
    assert_eq!(bench.entry(other).await.state, PrState::Merged, "the queue itself continues");
    bench.merge_on_host(&web, first);
    look().await;
    assert_eq!(bench.entry(pr).await.state, PrState::Merged);
}

impl Fixture {
    async fn set(&self, settings: SettingsPatch) {
        let change = QueueChange { settings, ..QueueChange::default() };
        let updated = self.queues.update_queue(&self.caller, &self.repo, &self.main, change).await;
        updated.expect("not refused");
    }
}

fn target_rules(mode: Mode, rules: &[&str]) -> SettingsPatch {
    let rules = rules.iter().map(|rule| (*rule).to_owned()).collect();
    SettingsPatch {
        mode: Some(mode),
        impacted_target_rules: Some(rules),
        ..SettingsPatch::default()
    }
}

#[tokio::test]
async fn targets_are_computed_from_the_changed_paths_on_the_host() {
    let bench = Fixture::new(3).await;
    bench.set(target_rules(Mode::Parallel, &["api/** api", "docs/** NONE"])).await;
    let [api, docs, make] = ["api/a", "docs/b", "Makefile"].map(|path| bench.open(path));
    bench.host.fail(Call::ChangedPaths, 1, Failure::Unavailable);
    for pr in [api, docs, make] {
        bench.submit(pr).await.expect("accepted");
        assert_eq!(bench.waits(pr).await, Some(WaitReason::ComputingTargets));
    }
    bench.run_until_idle().await;
    for pr in [api, docs, make] {
        assert_eq!(bench.entry(pr).await.state, PrState::Merged);
    }
    let targets = async |pr| {
        let known = bench.entry(pr).await.entry.targets.clone().expect("known");
        known.targets.clone()
    };
    assert_eq!(targets(api).await, Targets::Only(["api"].into_iter().collect()));
    assert_eq!(targets(docs).await, Targets::Only([""; 0].into_iter().collect()));
    assert_eq!(targets(make).await, Targets::All);
    assert_eq!(bench.host.calls(Call::ChangedPaths), 4, "one of them failed");
}

#[tokio::test]
async fn a_host_that_does_not_list_paths_for_half_an_hour_leaves_all_targets() {
    let bench = Fixture::new(1).await;
    bench.set(target_rules(Mode::Parallel, &["api/** api"])).await;
    let pr = bench.open("api/a");
    for nth in 1..100 {
        bench.host.fail(Call::ChangedPaths, nth, Failure::Unavailable);
    }
    bench.submit(pr).await.expect("accepted");
    let runner = EffectRunner::new(bench.context.clone(), bench.queues.clone());
    for _ in 0..29 {
        bench.run_host_effects(&runner).await;
        bench.clock.advance(Span::minutes(1));
    }
    assert_eq!(bench.waits(pr).await, Some(WaitReason::ComputingTargets));
    for _ in 0..3 {
        bench.clock.advance(Span::minutes(1));
        bench.run_host_effects(&runner).await;
    }
    let entry = bench.entry(pr).await.entry;
    let known = entry.targets.as_deref().expect("known");
    assert_eq!(known.targets, Targets::All);
    assert_ne!(bench.waits(pr).await, Some(WaitReason::ComputingTargets));
}

#[tokio::test]
async fn paths_are_not_read_for_reported_targets() {
    let bench = Fixture::new(1).await;
    bench.set(target_rules(Mode::Parallel, &["api/** api"])).await;
    let pr = bench.open("api/a");
    bench.submit(pr).await.expect("accepted");
    let head = bench.host.shown(&bench.repo, pr).head;
    let targets = ReportedTargets::only(Some(head), ["reported"]);
    let (caller, repo, main) = (&bench.caller, &bench.repo, &bench.main);
    bench.queues.set_targets(caller, repo, main, pr, targets.clone()).await.expect("accepted");
    bench.run_until_idle().await;
    assert_eq!(bench.host.calls(Call::ChangedPaths), 0);
    assert_eq!(bench.entry(pr).await.entry.targets.as_deref(), Some(&targets));
    assert_eq!(bench.entry(pr).await.state, PrState::Merged);
}

#[tokio::test]
async fn checks_that_never_complete_time_out() {
    let bench = Fixture::new(1).await;
    let pr = bench.open("one");
    bench.host.set_checks_hang(true);
    bench.submit(pr).await.expect("accepted");
    let runner = EffectRunner::new(bench.context.clone(), bench.queues.clone());
    // Read the target, then build the candidate, then run its checks.
    for _ in 0..2 {
        bench.run_host_effects(&runner).await;
    }
    let checks = runner.lease(EffectClass::Checks, 8).await.expect("the store answers").remove(0);
    let sink = runner.sink(&checks);
    let sweeper = Sweeper::new(bench.context.clone(), bench.queues.clone());
    let deadline = async {
        // The checks have started: the first report has been absorbed.
        while bench.entry(pr).await.state != PrState::Testing
            || bench.host.calls(Call::RunChecks) == 0
        {
            tokio::task::yield_now().await;
        }
        bench.clock.advance(Span::hours(6));
        assert_eq!(sweeper.deadlines().await.expect("the store answers"), 1);
        // The timeout has revoked the checks: the next renewal fails.
        bench.run_host_effects(&runner).await;
        assert!(!runner.renew(&checks).await.expect("the store answers"));
        sink.close();
    };
    let (ran, ()) = tokio::join!(runner.run(&checks, &sink), deadline);
    ran.expect("the store answers");
    assert_eq!(bench.entry(pr).await.state, PrState::Failed);
}

#[tokio::test]
async fn orphaned_branches_are_swept() {
    let bench = Fixture::new(1).await;
    let pr = bench.open("one");
    // The branch is created, and both its report and its deletion are lost.
    bench.submit(pr).await.expect("accepted");
    bench.host.fail(Call::DeleteBranch, 1, Failure::Rejected);
    bench.run_until_idle().await;
    let repository = bench.context.stores.account.repos.list(None).await.expect("a list").remove(0);
    let host =
        bench.context.hosts.git_host(bench.caller.org, &bench.repo.host).expect("it is there");
    assert_eq!(host.test_branches(&repository).await.expect("up").len(), 1);
    let sweeper = Sweeper::new(bench.context.clone(), bench.queues.clone());
    let sweep = async || sweeper.stray_branches().await.expect("everything answers");
    assert_eq!(sweep().await, 0, "another server may be using it");
    bench.clock.advance(Span::minutes(14));
    assert_eq!(sweep().await, 0, "it may still be in use");
    bench.clock.advance(Span::minutes(1));
    assert_eq!(sweep().await, 1, "it has not moved for a while");
    assert!(host.test_branches(&repository).await.expect("up").is_empty());
}

#[tokio::test]
async fn branches_of_live_runs_and_of_other_servers_are_not_swept() {
    let bench = Fixture::new(1).await;
    let pr = bench.open("one");
    bench.host.set_checks_hang(true);
    bench.submit(pr).await.expect("accepted");
    let runner = EffectRunner::new(bench.context.clone(), bench.queues.clone());
    for _ in 0..2 {
        bench.run_host_effects(&runner).await;
    }
    let there = || bench.host.test_branches_there(&bench.repo);
    let tested = there().remove(0);
    let run = tested.as_str().rsplit('/').next().expect("a run").to_owned();
    // A server died during a build: the repeated build reuses its scratch branch.
    let (scratch, other) = (format!("signalbox-temp/build/{run}"), "signalbox-temp/build/other");
    bench.host.leave_test_branch(&bench.repo, &scratch);
    bench.host.leave_test_branch(&bench.repo, other);
    let sweeper = Sweeper::new(bench.context.clone(), bench.queues.clone());
    for _ in 0..3 {
        // Another server updates its own branch every ten minutes.
        bench.host.push_branch(&bench.repo, other, &[("used", &bench.clock.now().to_string())]);
        assert_eq!(sweeper.stray_branches().await.expect("everything answers"), 0);
        bench.clock.advance(Span::minutes(10));
    }
    assert_eq!(there().len(), 3);
    bench.clock.advance(Span::minutes(10));
    assert_eq!(sweeper.stray_branches().await.expect("everything answers"), 1);
    let left: Vec<String> = there().iter().map(ToString::to_string).collect();
    assert!(!left.contains(&other.to_owned()) && left.contains(&scratch), "{left:?}");
}

/// A check log whose first write fails.
struct FailsOnce {
    log: Arc<dyn CheckLog>,
    failed: AtomicBool,
}

#[async_trait::async_trait]
impl CheckLog for FailsOnce {
    async fn write(&self, output: &CheckOutput) -> Result<(), StoreError> {
        if self.failed.swap(true, Ordering::SeqCst) {
            return self.log.write(output).await;
        }
        Err(StoreError::Unavailable("the connection broke".into()))
    }

    async fn replace(&self, output: &CheckOutput, written: Timestamp) -> Result<bool, StoreError> {
        self.log.replace(output, written).await
    }

    async fn read(
        &self,
        org: OrgId,
        run: RunId,
        check: &str,
    ) -> Result<Option<CheckOutput>, StoreError> {
        self.log.read(org, run, check).await
    }

    async fn written(&self, org: OrgId, run: RunId) -> Result<Option<Timestamp>, StoreError> {
        self.log.written(org, run).await
    }

    async fn prune(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.log.prune(before, limit).await
    }
}

#[tokio::test]
async fn checks_whose_output_could_not_be_stored_run_again() {
    let mut bench = Fixture::new(1).await;
    let log = bench.context.stores.queue.check_log.clone();
    let log = Arc::new(FailsOnce { log, failed: AtomicBool::new(false) });
    bench.context.stores.queue.check_log = log.clone();
    bench.queues = Arc::new(QueueService::new(bench.context.clone()));
    let pr = bench.open("one");
    bench.submit(pr).await.expect("accepted");
    let runner = EffectRunner::new(bench.context.clone(), bench.queues.clone());
    let mut failures = 0;
    for _ in 0..100 {
        for class in EffectClass::ALL {
            for leased in runner.lease(*class, 8).await.expect("the store answers") {
                let ran = runner.run(&leased, &runner.sink(&leased)).await;
                failures += u32::from(ran.is_err());
            }
        }
        bench.clock.advance(Span::seconds(1));
    }
    assert_eq!((failures, bench.entry(pr).await.state), (1, PrState::Merged));
}
