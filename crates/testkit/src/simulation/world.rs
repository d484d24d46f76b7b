//! The world around the servers: the repository, its pull requests, the callers, and the rates of
//! faults.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use signalbox_domain::ids::{BranchName, OrgId, OrgSlug, PrNumber, RepoName, Sha, TokenId};
use signalbox_domain::ports::Stores;
use signalbox_domain::queue::{
    BisectionMode, MergeMethod, Mode, OptimizationMode, ReparentingMode, SettingsPatch,
    SuccessEstimates,
};
use signalbox_domain::testing::{CountingIds, Quiet};
use signalbox_domain::token::{Caller, Compatibility, Scope};
use signalbox_services::Context;
use uuid::Uuid;

use super::host::{OneHost, UnreliableHost, Witnessed};
use super::random::Random;
use super::rules::{BAD, FLAKY, Rules};
use super::schedule::Schedule;
use super::server::{Scribe, Server};
use super::stores::UnreliableStores;
use super::watch::Watch;
use signalbox_conformance::fake_host::FakeHost;

/// The most pull requests in a simulation.
const MOST: u32 = 14;
/// The number of areas of the repository. A pull request only clashes within its area, or with a
/// push from outside.
const AREAS: u32 = 3;

/// A pull request, from its author's view.
#[derive(Clone, Debug)]
pub(super) struct Authored {
    pub(super) number: PrNumber,
    pub(super) area: String,
    pub(super) path: String,
    /// Whether its files were never at fault and never conflicted with another pull request.
    pub(super) spotless: bool,
}

/// The random parameters of a simulation.
#[derive(Clone, Debug)]
pub(super) struct Temper {
    pub(super) mode: Mode,
    /// Whether some pull requests have flaky tests.
    pub(super) flaky: bool,
    /// The most concurrent servers.
    pub(super) servers: u32,
    /// The number of random actions.
    pub(super) acts: u32,
}

/// The world of a simulation.
pub(super) struct World {
    pub(super) schedule: Arc<Schedule>,
    pub(super) watch: Arc<Watch>,
    pub(super) host: Arc<UnreliableHost>,
    pub(super) stores: Stores,
    pub(super) context: Context,
    pub(super) caller: Arc<Caller>,
    pub(super) repo: RepoName,
    pub(super) main: BranchName,
    pub(super) temper: Temper,
    pub(super) prs: Vec<Authored>,
    pub(super) servers: Vec<Server>,
    /// The number of pushes to the target outside the queue.
    pub(super) outside: u32,
    /// The heads of the target after pushes outside the queue.
    pub(super) pushed: BTreeSet<Sha>,
    last_server: u32,
}

impl World {
    pub(super) fn new(seed: u64, stores: Stores, schedule: &Arc<Schedule>) -> Self {
        let watch = Watch::new(schedule.clone());
        let repo = RepoName::parse("git.test/acme/calc").expect("valid");
        let (temper, rules) = schedule.draw(|random| (temper(random), rules(seed, random)));
        let inner = {
            let rules = rules.clone();
            let judge = move |files: &signalbox_conformance::fake_host::Tree| {
                rules.verdict(files, "test", signalbox_domain::ids::RunId(Uuid::nil()))
            };
            Arc::new(FakeHost::new(schedule.clock.clone(), judge))
        };
        inner.add_repository(&repo, &[("readme", "calc")]);
        inner.push_branch(&repo, "release", &[("readme", "calc")]);
        let main = BranchName::new("main").expect("valid");
        let pushed = inner.past_heads(&repo, &main).into_iter().collect();
        let host = Arc::new(UnreliableHost {
            schedule: schedule.clone(),
            watch: watch.clone(),
            inner,
            rules,
            seen: Mutex::new(Witnessed::default()),
        });
        let wrapped = UnreliableStores::around(stores.clone(), schedule.clone(), watch.clone());
        let context = Context {
            stores: wrapped,
            hosts: Arc::new(OneHost(host.clone())),
            clock: schedule.clock.clone(),
            ids: Arc::new(CountingIds::default()),
            observer: Arc::new(Scribe(schedule.clone())),
            events: Arc::new(signalbox_conformance::PlainEvents),
            notifier: Arc::new(Quiet),
        };
        let caller = Caller {
            org: OrgId(Uuid::from_u128(77)),
            org_slug: OrgSlug::new("acme").expect("valid"),
            token: TokenId(Uuid::from_u128(78)),
            name: "simulation".to_owned(),
            scopes: Scope::ALL.to_vec(),
            repos: Vec::new(),
            compatibility: Compatibility::Specification,
            source: None,
        };
        schedule.note(format!("{temper:?} {:?}", host.rules.clashes));
        Self {
            schedule: schedule.clone(),
            watch,
            host,
            stores,
            context,
            caller: Arc::new(caller),
            repo,
            main,
            temper,
            prs: Vec::new(),
            servers: Vec::new(),
            outside: 0,
            pushed,
            last_server: 0,
        }
    }

    /// Draws from the random number generator.
    pub(super) fn draw<T>(&self, draw: impl FnOnce(&mut Random) -> T) -> T {
        self.schedule.draw(draw)
    }

    /// Starts another server.
    pub(super) fn start_server(&mut self) {
        self.last_server += 1;
        let alone = self.servers.is_empty() && self.draw(|random| random.per_mille(500));
        let server = Server::start(self.last_server, &self.context, &self.schedule, alone);
        self.servers.push(server);
    }

    /// Opens a pull request. It may be at fault, and it may write to a file that others of its
    /// area write to.
    pub(super) fn open(&mut self) -> Option<Authored> {
        let number = u32::try_from(self.prs.len()).unwrap_or(MOST) + 1;
        if number > MOST {
            return None;
        }
        let area = area(number);
        let path = path(number);
        let content = self.content(number);
        let shared = self.draw(|random| random.per_mille(200)).then(|| format!("{area}/shared"));
        let own = number.to_string();
        let mut files = vec![(path.as_str(), content.as_str())];
        if let Some(shared) = &shared {
            files.push((shared, &own));
        }
        let opened = self.host.inner.open(&self.repo, "main", &files);
        self.schedule.note(format!("#{opened} is opened: {files:?}"));
        let clashes = self.host.rules.clashes.iter().any(|(a, b)| *a == path || *b == path);
        let spotless = shared.is_none() && !clashes && !is_at_fault(&content);
        self.prs.push(Authored { number: opened, area, path, spotless });
        self.prs.last().cloned()
    }

    /// The content of a file: mostly good.
    pub(super) fn content(&self, number: u32) -> String {
        let (drawn, version) = self.draw(|random| (random.below(100), random.below(1_000)));
        let word = match drawn {
            0..18 => BAD,
            18..32 if self.temper.flaky => FLAKY,
            _ => "good",
        };
        format!("{word} {number} {version}")
    }

    /// A patch that changes each setting with this probability (per mille).
    pub(super) fn some_settings(&self, per_mille: u32) -> SettingsPatch {
        self.draw(|random| {
            let mut of = |low: u32, high: u32| {
                let value = random.between(low, high);
                random.per_mille(per_mille).then_some(value)
            };
            SettingsPatch {
                concurrency: of(1, 4),
                bisection_concurrency: of(0, 3),
                testing_timeout_minutes: of(0, 2).map(|it| it * 15),
                pending_failure_depth: of(0, 3),
                can_optimistically_merge: of(0, 1).map(|it| it == 1),
                batch: of(0, 1).map(|it| it == 1),
                batching_min_size: of(1, 4),
                batching_max_wait_time_minutes: of(0, 3),
                required_statuses: of(0, 2).map(|it| match it {
                    0 => Vec::new(),
                    1 => vec!["test".to_owned()],
                    _ => vec!["test".to_owned(), "lint".to_owned()],
                }),
                optimization_mode: of(0, 1).map(|it| match it {
                    0 => OptimizationMode::Off,
                    _ => OptimizationMode::BisectionSkipRedundantTests,
                }),
                bisection_mode: of(0, 1).map(|it| match it {
                    0 => BisectionMode::InPlace,
                    _ => BisectionMode::Aside,
                }),
                merge_method: of(0, 2).map(|it| match it {
                    0 => MergeMethod::Squash,
                    1 => MergeMethod::MergeCommit,
                    _ => MergeMethod::Rebase,
                }),
                reparenting_mode: of(0, 2).map(|it| match it {
                    0 => ReparentingMode::Off,
                    1 => ReparentingMode::Batches,
                    _ => ReparentingMode::All,
                }),
                pretest_threshold: of(0, 2).map(|it| it * 50),
                author_limit: of(0, 3),
                author_hourly_limit: of(0, 2).map(|it| 20 * it),
                fair_share: of(0, 1).map(|it| it == 1),
                success_estimates: of(0, 1).map(|it| match it {
                    0 => SuccessEstimates::Queue,
                    _ => SuccessEstimates::Authors,
                }),
                dependencies_enabled: of(0, 3).map(|it| it > 0),
                freezes: of(0, 5).map(freezes),
                impacted_target_rules: of(0, 3).map(target_rules),
                target_capacities: of(0, 3).map(target_capacities),
                test_while_frozen: of(0, 1).map(|it| it == 1),
                adaptive_window: of(0, 1).map(|it| it == 1),
                window_floor: of(1, 3),
                ..SettingsPatch::default()
            }
        })
    }
}

/// Capacities of targets, or none.
fn target_capacities(which: u32) -> Vec<String> {
    let rules: &[&str] = match which {
        0 | 1 => &[],
        2 => &["* 1"],
        _ => &["a* 1", "* 2"],
    };
    rules.iter().map(ToString::to_string).collect()
}

/// Rules that compute the areas of pull requests, or all; or none.
fn target_rules(which: u32) -> Vec<String> {
    match which {
        0 => Vec::new(),
        1 => vec!["** ALL".to_owned()],
        _ => (0..AREAS).map(|at| format!("{area}/** {area}", area = area(at))).collect(),
    }
}

/// Rules for freezes within the first hour of a day, in which histories begin.
fn freezes(which: u32) -> Vec<String> {
    let rules: &[&str] = match which {
        0 => &[],
        1 => &["00:02/00:12[UTC] a reason"],
        2 => &["00:00/00:20[UTC]", "00:15/00:30[UTC]"],
        3 => &["00:01/00:25[UTC]{target:area-1; target:area-2}"],
        4 => &["00:03/00:20[UTC]{!target:area-*} a reason", "00:10/00:15[UTC]"],
        _ => &["00:05/01:00[Europe/London]"],
    };
    rules.iter().map(|&rule| rule.to_owned()).collect()
}

/// Whether a content can fail on its own.
pub(super) fn is_at_fault(content: &str) -> bool {
    content.contains(BAD) || content.contains(FLAKY)
}

fn area(number: u32) -> String {
    format!("area-{}", number % AREAS)
}

fn path(number: u32) -> String {
    format!("{}/change-{number}", area(number))
}

/// The file of a push from outside.
pub(super) fn outside_path(number: u32) -> String {
    format!("outside/{number}")
}

fn temper(random: &mut Random) -> Temper {
    Temper {
        mode: if random.per_mille(300) { Mode::Parallel } else { Mode::Single },
        flaky: random.per_mille(300),
        servers: random.between(1, 3),
        acts: random.between(40, 120),
    }
}

/// Clashes between pull requests of one area, and with pushes from outside.
fn rules(seed: u64, random: &mut Random) -> Rules {
    let mut clashes = BTreeSet::new();
    for one in 1..=MOST {
        for other in one + 1..=MOST {
            if area(one) == area(other) && random.per_mille(80) {
                clashes.insert((path(one), path(other)));
            }
        }
        for pushed in 1..=3 {
            if random.per_mille(40) {
                clashes.insert((path(one), outside_path(pushed)));
            }
        }
    }
    Rules { seed, clashes }
}
