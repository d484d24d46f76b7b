//! A merge queue in memory: three pull requests, of which the second breaks the tests. The queue
//! names the culprit and lands the other two.
//!
//! `cargo run -p signalbox-domain --example queue_in_memory`

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::error::Error;
use std::io::Write;

use signalbox_domain::ids::{BranchName, OrgId, PrNumber, QueueId, RepoId, Sha, TreeId};
use signalbox_domain::queue::{
    Actor, Candidate, Check, CheckConclusion, CheckStatus, Culprit, Decision, Effect, EntryState,
    Exit, Fact, HostStatuses, PullRequest, Queue, Settings, Submission, Transition, absorb, decide,
};
use signalbox_domain::time::Timestamp;
use uuid::Uuid;

type Failure = Box<dyn Error>;

/// The pull request whose change breaks the tests.
const BROKEN: u32 = 2;

fn main() -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    for line in run()? {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// Submits #1 to #3, runs the queue until it settles, and returns what happened, line by line.
pub(crate) fn run() -> Result<Vec<String>, Failure> {
    let at = Timestamp::from_unix_seconds(0);
    let main = BranchName::new("main")?;
    let settings = Settings::builder().concurrency(3_u32).build()?;
    let id = Uuid::from_u128(1);
    let queue = Queue::new(QueueId(id), OrgId(id), RepoId(id), main.clone(), settings, at)?;

    let mut shop = Server { host: Host::new()?, queue, outbox: VecDeque::new(), lines: Vec::new() };
    for number in 1..=3 {
        let pull_request = PullRequest::builder(PrNumber(number), head_of(number)?, main.clone())
            .title(format!("Change {number}"))
            .author("ada")
            .build()?;
        let by = Actor::User("ada".to_owned());
        let submission = Submission::builder(pull_request, by, at).build();
        let transition = decide(&shop.queue, &submission.into(), at)?;
        shop.commit(transition);
    }
    while let Some(effect) = shop.outbox.pop_front() {
        for fact in shop.host.run(&effect, at)? {
            let transition = absorb(&shop.queue, &fact, at);
            shop.commit(transition);
        }
    }
    Ok(shop.lines)
}

/// The parts of a server around the planner: a store, an outbox and a host.
struct Server {
    host: Host,
    queue: Queue,
    outbox: VecDeque<Effect>,
    lines: Vec<String>,
}

impl Server {
    /// A server writes all of this in one database transaction.
    fn commit(&mut self, transition: Transition) {
        for decision in &transition.decisions {
            if let Decision::Moved(moved) = decision {
                let (to, why) = (moved.to.as_str(), moved.reason.as_str());
                self.lines.push(format!("#{} {to}: {why}", moved.pr));
            }
        }
        for entry in &transition.changes.entries {
            if let EntryState::Ended(Exit::Failed { culprit: Culprit::Itself, .. }) = &entry.state {
                self.lines.push(format!("#{} is the culprit", entry.pr));
            }
        }
        self.outbox.extend(transition.effects.into_iter().map(|numbered| numbered.effect));
        self.queue = transition.queue;
    }
}

/// A git host in memory: a commit is the set of pull requests that it contains.
struct Host {
    commits: BTreeMap<Sha, BTreeSet<u32>>,
    target: Sha,
}

fn head_of(number: u32) -> Result<Sha, Failure> {
    Ok(Sha::new(format!("{number:040x}"))?)
}

/// Commits with the same content have the same tree.
fn tree_of(content: &BTreeSet<u32>) -> Result<TreeId, Failure> {
    let bits = content.iter().fold(0_u64, |bits, number| bits | 1 << number);
    Ok(TreeId::new(format!("{bits:040x}"))?)
}

impl Host {
    fn new() -> Result<Self, Failure> {
        let target = Sha::new("f".repeat(40))?;
        Ok(Self { commits: BTreeMap::from([(target.clone(), BTreeSet::new())]), target })
    }

    fn content(&self, sha: &Sha) -> BTreeSet<u32> {
        self.commits.get(sha).cloned().unwrap_or_default()
    }

    /// Runs an effect and returns the facts that answer it.
    fn run(&mut self, effect: &Effect, at: Timestamp) -> Result<Vec<Fact>, Failure> {
        Ok(match effect {
            Effect::InspectTarget { .. } => {
                let tree = tree_of(&self.content(&self.target))?;
                vec![Fact::TargetSeen { head: self.target.clone(), tree, read_at: at }]
            }
            Effect::BuildCandidate(build) => {
                let mut content = self.content(&build.base);
                let before = build.before.iter().map(|(_, change)| &**change);
                content.extend(before.chain(&build.changes).map(|change| change.pr.0));
                let sha = Sha::new(format!("c{:039x}", self.commits.len()))?;
                let candidate = Candidate { sha: sha.clone(), tree: tree_of(&content)? };
                self.commits.insert(sha, content);
                vec![Fact::CandidateBuilt {
                    run: build.run,
                    branch: build.branch.clone(),
                    candidate,
                    statuses: HostStatuses {
                        repository: Some(vec!["test".to_owned()]),
                        ..HostStatuses::default()
                    },
                    head_checks: Vec::new(),
                    empty: Vec::new(),
                    composition: None,
                    has_forge: false,
                }]
            }
            Effect::RunChecks(checks) => {
                let sha = checks.candidate.sha.clone();
                let broken = self.content(&sha).contains(&BROKEN);
                let conclusion =
                    if broken { CheckConclusion::Failure } else { CheckConclusion::Success };
                let check = Check {
                    name: "test".to_owned(),
                    status: CheckStatus::Completed,
                    conclusion: Some(conclusion),
                    url: String::new(),
                    summary: None,
                    at,
                    excused: Vec::new(),
                };
                vec![Fact::ChecksReported {
                    run: checks.run,
                    sha,
                    checks: vec![check],
                    read: false,
                }]
            }
            Effect::Land(land) => {
                self.target = land.candidate.sha.clone();
                let (sha, tree) = (self.target.clone(), land.candidate.tree.clone());
                vec![Fact::Landed { run: land.run, sha, tree, composition: None }]
            }
            Effect::InspectDependency { .. }
            | Effect::ComputeTargets { .. }
            | Effect::CancelChecks { .. }
            | Effect::DeleteBranch { .. }
            | Effect::OpenTestPullRequest { .. }
            | Effect::FindCauses { .. }
            | Effect::CheckLandings { .. } => Vec::new(),
        })
    }
}
