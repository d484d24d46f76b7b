//! Several servers on one database do the work of one: their calls to hosts are counted.

use std::collections::BTreeMap;
use std::sync::Arc;

use signalbox_domain::ids::{BranchName, RepoName};
use signalbox_domain::ports::{Org, Stores};
use signalbox_domain::queue::{ChangeSource, CheckConclusion, EffectClass, Mode, RequestedState};
use signalbox_domain::testing::{CountingIds, ManualClock, Quiet};
use signalbox_domain::time::Span;
use signalbox_domain::token::Caller;
use signalbox_services::{
    Context, EffectRunner, JobService, QueueChange, QueueService, StatusReporter, SubmitOptions,
    Sweeper,
};

use super::Sample;
use crate::fake_host::{Call, FakeForge, FakeHost, FakeHosts};
use crate::plain_events::PlainEvents;

/// The number of pull requests.
const PULL_REQUESTS: u32 = 3;
/// How long they wait in a paused queue, in seconds.
const PAUSED: u32 = 40;
/// The polling interval of hosts, in seconds.
const PERIOD: u32 = 2;

/// The background work of one server.
struct Server {
    queues: Arc<QueueService>,
    runner: EffectRunner,
    sweeper: Sweeper,
    status_reporter: StatusReporter,
    jobs: JobService,
}

impl Server {
    fn new(context: &Context) -> Self {
        let queues = Arc::new(QueueService::new(context.clone()));
        Self {
            runner: EffectRunner::new(context.clone(), queues.clone()),
            sweeper: Sweeper::new(context.clone(), queues.clone()),
            status_reporter: StatusReporter::new(context.clone(), queues.clone()),
            jobs: JobService::new(
                context.stores.runtime.jobs.clone(),
                context.clock.clone(),
                context.ids.new_id(),
            ),
            queues,
        }
    }

    /// Polls the hosts if due, and runs host effects.
    async fn call_hosts(&self) {
        let period = Span::seconds(PERIOD);
        self.jobs.declare(&[("watched queues", period)]).await.expect("declared");
        for leased in self.jobs.lease(&["watched queues"]).await.expect("leased") {
            self.sweeper.look_often().await.expect("polled");
            self.jobs.finish(&leased, period, None).await.expect("finished");
        }
        self.sweeper.deadlines().await.expect("deadlines");
        // Host effects run before checks, which take no time here.
        self.run(EffectClass::Host).await;
        self.run(EffectClass::Host).await;
    }

    /// Runs checks and announcements.
    async fn check_and_show(&self) {
        self.run(EffectClass::Checks).await;
        while self.status_reporter.next().await.expect("shown") {}
    }

    async fn run(&self, class: EffectClass) {
        for leased in self.runner.lease(class, 2).await.expect("leased") {
            let sink = self.runner.sink(&leased);
            self.runner.run(&leased, &sink).await.expect("run");
        }
    }
}

/// Several servers with a host of their own.
struct Cluster {
    clock: Arc<ManualClock>,
    host: Arc<FakeHost>,
    forge: Arc<FakeForge>,
    servers: Vec<Arc<Server>>,
    caller: Caller,
    repo: RepoName,
    main: BranchName,
}

impl Cluster {
    fn new(stores: &Stores, org: &Org, ids: &Arc<CountingIds>, servers: usize) -> Self {
        let clock = Arc::new(ManualClock::default());
        let repo = RepoName::new(&format!("git-of-{servers}"), "acme", "calc").expect("a name");
        let host = Arc::new(FakeHost::new(clock.clone(), |_| CheckConclusion::Success));
        host.add_repository(&repo, &[("readme", "calc")]);
        let forge = Arc::new(FakeForge::default());
        let hosts = FakeHosts::one(&repo.host, host.clone()).with_forge(forge.clone());
        let context = Context {
            stores: stores.clone(),
            hosts: Arc::new(hosts),
            clock: clock.clone(),
            ids: ids.clone(),
            observer: Arc::new(Quiet),
            events: Arc::new(PlainEvents),
            notifier: Arc::new(Quiet),
        };
        let caller = Sample::caller(org);
        let servers = (0..servers).map(|_| Arc::new(Server::new(&context))).collect();
        let main = BranchName::new("main").expect("a branch");
        Self { clock, host, forge, servers, caller, repo, main }
    }

    /// Runs all servers concurrently, once per second.
    async fn seconds(&self, seconds: u32) {
        for _ in 0..seconds {
            let call = |server: Arc<Server>| tokio::spawn(async move { server.call_hosts().await });
            for done in self.servers.iter().cloned().map(call).collect::<Vec<_>>() {
                done.await.expect("it works");
            }
            let show =
                |server: Arc<Server>| tokio::spawn(async move { server.check_and_show().await });
            for done in self.servers.iter().cloned().map(show).collect::<Vec<_>>() {
                done.await.expect("it works");
            }
            self.clock.advance(Span::seconds(1));
        }
    }

    async fn set(&self, state: RequestedState) {
        let queues = &self.servers[0].queues;
        let (caller, repo, main) = (&self.caller, &self.repo, &self.main);
        let change = QueueChange { state: Some(state), ..QueueChange::default() };
        let updated = queues.update_queue(caller, repo, main, change).await;
        updated.expect("not refused");
    }

    /// Lets pull requests wait in a paused queue and then land. Returns the number of reads of the
    /// host during the wait, and the number of calls and announcements in total.
    async fn history(&self) -> (u32, BTreeMap<String, usize>) {
        let queues = &self.servers[0].queues;
        let (caller, repo, main) = (&self.caller, &self.repo, &self.main);
        let created = queues
            .create_queue(caller, repo, main, Mode::Single, Some(1), ChangeSource::Direct)
            .await;
        created.expect("a queue");
        self.set(RequestedState::Paused).await;
        for number in 0..PULL_REQUESTS {
            let pr = self.host.open(repo, "main", &[(&format!("file-{number}"), "1")]);
            queues
                .submit(caller, repo, main, pr, SubmitOptions::default())
                .await
                .expect("accepted");
        }
        // The effects of the submissions themselves are done.
        self.seconds(6).await;
        let reads = || self.host.calls(Call::PullRequest) + self.host.calls(Call::Head);
        let before = reads();
        self.seconds(PAUSED).await;
        let waiting = reads() - before;
        self.set(RequestedState::Running).await;
        self.seconds(60).await;
        let shown = ["status", "comment", "close", "draft"];
        let mut done: BTreeMap<String, usize> =
            shown.iter().map(|part| ((*part).to_owned(), self.forge.shown(part).len())).collect();
        for call in [Call::BuildCandidate, Call::RunChecks, Call::Land] {
            let calls = usize::try_from(self.host.calls(call)).expect("a small number");
            done.insert(format!("{call:?}"), calls);
        }
        (waiting, done)
    }
}

/// Three servers read, announce, build, test and land exactly as often as one.
pub async fn three_servers_do_the_work_of_one(stores: &Stores) {
    let org = Sample::org(stores, "acme").await;
    let ids = Arc::new(CountingIds::default());
    let (one, three) = (Cluster::new(stores, &org, &ids, 1), Cluster::new(stores, &org, &ids, 3));
    let (reads, done) = one.history().await;
    // The single server stops, so that its jobs are free for the three.
    one.servers[0].jobs.hand_back(false).await.expect("handed back");
    let (reads_of_three, done_of_three) = three.history().await;
    let landed = usize::try_from(PULL_REQUESTS).expect("a small number");
    for once in ["close", "draft", "BuildCandidate", "RunChecks", "Land"] {
        assert_eq!(done.get(once), Some(&landed), "{once}: {done:?}");
    }
    assert!(done["status"] >= 2 * landed && done["comment"] >= 2 * landed, "{done:?}");
    for part in ["close", "draft", "BuildCandidate", "RunChecks", "Land"] {
        assert_eq!(done.get(part), done_of_three.get(part), "{part}: {done_of_three:?}");
    }
    for part in ["status", "comment"] {
        // Three servers are faster: a shorter state may not be announced at all.
        assert!(done_of_three[part] <= done[part], "{part}: {done_of_three:?} {done:?}");
        assert!(done_of_three[part] >= 2 * landed, "{part}: {done_of_three:?}");
    }
    assert!(reads >= PAUSED / PERIOD, "{reads} reads: the host is polled");
    assert_eq!(reads, reads_of_three);
}
