//! A small world around one queue: a host with branches and pull requests, where the content of a
//! commit is a set of changes and checks are a rule over that set. Effects and facts are queued
//! until a test runs them: in order, out of order, repeated or late.

mod external;
mod host;
mod proposals;

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use crate::ids::{BranchName, EntryId, OrgId, PrNumber, QueueId, RepoId, Sha, TreeId};
use crate::queue::{
    Actor, ChangedPaths, Command, Decision, Dependency, DependencyState, Entry, EntryState, Event,
    Exit, Fact, FailureCause, HostTrouble, HostTroubleKind, Input, Mergeability, Mode,
    NumberedEffect, Outcomes, Priority, PullRequest, PullRequestState, Queue, Refusal,
    ReportedTargets, Settings, SharedPolicy, Submission, TargetRules, Transition, absorb, decide,
};
use crate::time::{Span, Timestamp};

pub use external::ExternalRequest;

/// The content of a commit: pairs of pull request and version; pushes from outside have number 0.
pub type Content = BTreeSet<(u32, u32)>;

/// Which changes fail or conflict, alone or together.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Pull requests whose own tests fail.
    pub bad: BTreeSet<u32>,
    /// Pairs that fail together, though each passes alone, if they share a target.
    pub clash: BTreeSet<(u32, u32)>,
    /// Pairs of which the first fails without the second.
    pub needs: BTreeSet<(u32, u32)>,
    /// Pairs with a merge conflict.
    pub conflict: BTreeSet<(u32, u32)>,
    /// Pull requests whose own first run fails, whatever it contains.
    pub flaky: BTreeSet<u32>,
    /// The impacted targets of each; a pull request without an entry impacts all targets.
    pub targets: BTreeMap<u32, BTreeSet<u32>>,
    /// What is known about the cause of a failed check, by the first pull request under test.
    pub causes: BTreeMap<u32, FailureCause>,
    /// The cause that awaited reports name, by the first pull request in the candidate.
    pub awaited: BTreeMap<u32, FailureCause>,
    /// Whether an external CI runs the check of candidates, so that the host runs none.
    pub external: bool,
}

impl Rules {
    /// Whether a content passes.
    pub fn passes(&self, content: &Content) -> bool {
        let has = |pr: u32| content.iter().any(|(it, _)| *it == pr);
        !self.bad.iter().any(|pr| has(*pr))
            && !self.needs.iter().any(|(a, b)| has(*a) && !has(*b))
            && !self.clash.iter().any(|(a, b)| has(*a) && has(*b) && self.meet(*a, *b))
    }

    /// Whether two pull requests share a target.
    pub fn meet(&self, one: u32, two: u32) -> bool {
        match (self.targets.get(&one), self.targets.get(&two)) {
            (Some(one), Some(two)) => !one.is_disjoint(two),
            (None, _) | (_, None) => true,
        }
    }

    fn conflicts(&self, content: &Content, pr: u32) -> bool {
        content.iter().any(|(other, _)| {
            self.conflict.contains(&(*other, pr)) || self.conflict.contains(&(pr, *other))
        })
    }
}

#[derive(Clone, Debug)]
struct Proposed {
    version: u32,
    state: PullRequestState,
    base: BranchName,
    draft: bool,
    mergeability: Mergeability,
    depends_on: Vec<Dependency>,
    labels: Vec<String>,
}

/// A queue and the world around it.
#[derive(Clone, Debug)]
pub struct World {
    /// The queue as committed.
    pub queue: Queue,
    /// The queue as it was created.
    pub new_queue: Queue,
    /// The time.
    pub at: Timestamp,
    /// Committed effects that have not been run.
    pub outbox: Vec<NumberedEffect>,
    /// Facts that have not been absorbed.
    pub facts: Vec<Fact>,
    /// Requested external checks that the CI has not reported.
    pub requests: Vec<ExternalRequest>,
    /// Every input, including refused commands.
    pub inputs: Vec<(Timestamp, Input)>,
    /// Every input that was not refused.
    pub journal: Vec<(Timestamp, Input)>,
    /// The content of the target.
    pub target: Content,
    /// Pull requests that the queue landed, in order.
    pub landed: Vec<u32>,
    /// The decisions of the last step.
    pub decisions: Vec<Decision>,
    /// The events of the last step.
    pub events: Vec<Event>,
    /// Pull requests that ended in the last step.
    pub ended: BTreeSet<PrNumber>,
    /// Pull requests whose public state may have changed in the last step.
    pub shown: BTreeSet<PrNumber>,
    /// The entries that the queue landed, as they were stored last.
    pub merged: BTreeMap<EntryId, Entry>,
    /// Whether submissions report targets, if the mode requires them.
    pub reports_targets: bool,
    rules: Rules,
    target_sha: Sha,
    commits: BTreeMap<Sha, (Content, Option<Sha>)>,
    /// The flaky pull requests whose first run has ended.
    pub flaked: BTreeSet<u32>,
    proposed: BTreeMap<u32, Proposed>,
    made: u32,
}

fn object(kind: u32, number: u64) -> String {
    format!("{kind:08x}{number:032x}")
}

fn tree_of(content: &Content) -> TreeId {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for (pr, version) in content {
        for part in [pr, version] {
            hash = (hash ^ u64::from(*part)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    TreeId::new(object(2, hash)).expect("forty hexadecimal digits")
}

impl World {
    /// The fact of an outage of the host.
    pub fn host_lost() -> Fact {
        let words = "no answer".to_owned();
        Fact::HostUnreachable { trouble: HostTrouble { kind: HostTroubleKind::Unreachable, words } }
    }

    /// Creates a world with a new queue for `main`; its target is already read.
    pub fn new(settings: Settings, rules: Rules) -> Self {
        let at = Timestamp::from_unix_seconds(1_767_225_600);
        let id = |number: u128| Uuid::from_u128(number);
        let branch = BranchName::new("main").expect("a branch name");
        let queue = Queue::new(QueueId(id(1)), OrgId(id(2)), RepoId(id(3)), branch, settings, at);
        let queue = queue.expect("settings within their bounds");
        let target_sha = Sha::new(object(1, 0)).expect("forty hexadecimal digits");
        let mut world = Self {
            new_queue: queue.clone(),
            queue,
            at,
            outbox: Vec::new(),
            facts: Vec::new(),
            requests: Vec::new(),
            inputs: Vec::new(),
            journal: Vec::new(),
            target: Content::new(),
            landed: Vec::new(),
            decisions: Vec::new(),
            events: Vec::new(),
            ended: BTreeSet::new(),
            shown: BTreeSet::new(),
            merged: BTreeMap::new(),
            reports_targets: true,
            rules,
            commits: BTreeMap::from([(target_sha.clone(), (Content::new(), None))]),
            target_sha,
            flaked: BTreeSet::new(),
            proposed: BTreeMap::new(),
            made: 0,
        };
        let seen = world.target_seen();
        world.take_in(&seen);
        world
    }

    fn commit(&mut self, content: Content, parent: Sha) -> Sha {
        self.made += 1;
        let sha = Sha::new(object(1, u64::from(self.made))).expect("forty hexadecimal digits");
        self.commits.insert(sha.clone(), (content, Some(parent)));
        sha
    }

    fn head_of(pr: u32, version: u32) -> Sha {
        Sha::new(object(3, u64::from(pr) << 32 | u64::from(version))).expect("hexadecimal")
    }

    /// The world with a queue that has this policy.
    #[must_use]
    pub fn with_policy(mut self, policy: impl Into<SharedPolicy>) -> Self {
        let policy = policy.into();
        self.new_queue = self.new_queue.with_policy(policy.clone());
        self.queue = self.queue.with_policy(policy);
        self
    }

    /// The world with a queue in which these pull requests of these authors have ended before.
    #[must_use]
    pub fn after(mut self, outcomes: &[(&str, Outcomes)]) -> Self {
        for header in [&mut self.new_queue.header, &mut self.queue.header] {
            for (author, of_author) in outcomes {
                header.outcomes.merged += of_author.merged;
                header.outcomes.failed += of_author.failed;
                header.share_outcomes.add(author, *of_author);
            }
        }
        self
    }

    /// Reads a pull request from the host; opens it if it does not exist.
    pub fn pull_request(&mut self, pr: u32) -> PullRequest {
        let main = self.queue.header.branch.clone();
        let proposed = self.proposed.entry(pr).or_insert(Proposed {
            version: 1,
            state: PullRequestState::Open,
            base: main,
            draft: false,
            mergeability: Mergeability::Mergeable,
            depends_on: Vec::new(),
            labels: Vec::new(),
        });
        let head = Self::head_of(pr, proposed.version);
        PullRequest::builder(PrNumber(pr), head, proposed.base.clone())
            .title(format!("change {pr}"))
            .author(if pr.is_multiple_of(2) { "grace" } else { "ada" })
            .state(proposed.state)
            .draft(proposed.draft)
            .mergeability(proposed.mergeability.clone())
            .depends_on(proposed.depends_on.clone())
            .labels(proposed.labels.clone())
            .url(format!("http://localhost/{pr}"))
            .build()
            .expect("a number and a short title")
    }

    fn target_seen(&self) -> Fact {
        Fact::TargetSeen {
            head: self.target_sha.clone(),
            tree: tree_of(&self.target),
            read_at: self.at,
        }
    }

    fn commit_transition(&mut self, input: Input, transition: Transition) {
        let ended = transition.changes.entries.iter().filter(|entry| !entry.is_live());
        self.ended = ended.map(|entry| entry.pr).collect();
        for entry in &transition.changes.entries {
            if let EntryState::Ended(Exit::Merged { proof: Some(_), .. }) = &entry.state {
                self.merged.insert(entry.id, entry.as_ref().clone());
            }
        }
        self.decisions = transition.decisions;
        self.requests.extend(transition.events.iter().filter_map(ExternalRequest::of));
        self.events = transition.events;
        self.shown = transition.shown;
        self.outbox.extend(transition.effects);
        self.queue = transition.queue;
        self.journal.push((self.at, input));
    }

    /// Gives the queue a command.
    pub fn ask(&mut self, command: Command) -> Result<(), Refusal> {
        self.inputs.push((self.at, Input::Command(command.clone())));
        let transition = decide(&self.queue, &command, self.at)?;
        self.commit_transition(Input::Command(command), transition);
        Ok(())
    }

    /// Lets the queue absorb a fact.
    pub fn take_in(&mut self, fact: &Fact) {
        self.inputs.push((self.at, Input::Fact(fact.clone())));
        let transition = absorb(&self.queue, fact, self.at);
        self.commit_transition(Input::Fact(fact.clone()), transition);
    }

    /// Submits a pull request through the API.
    pub fn submit(&mut self, pr: u32, priority: Option<u32>) -> Result<(), Refusal> {
        self.submit_with(pr, priority, None)
    }

    /// Submits a pull request with a choice of batching.
    pub fn submit_with(
        &mut self,
        pr: u32,
        priority: Option<u32>,
        no_batch: Option<bool>,
    ) -> Result<(), Refusal> {
        let pull_request = self.pull_request(pr);
        let wanted = self.reports_targets && self.queue.mode() == Mode::Parallel;
        let targets = wanted.then(|| self.targets(pr));
        let submission = Submission::builder(pull_request, self.caller(), self.at)
            .targets(targets)
            .priority(priority.map(Priority::number))
            .no_batch(no_batch)
            .build();
        self.ask(submission.into())
    }

    /// The impacted targets of a pull request, for its present head.
    pub fn targets(&mut self, pr: u32) -> ReportedTargets {
        let head = Some(self.pull_request(pr).head);
        match self.rules.targets.get(&pr) {
            Some(names) => ReportedTargets::only(head, names.iter().map(|name| format!("t{name}"))),
            None => ReportedTargets::all(head),
        }
    }

    /// The paths that a pull request changes: one for each of its targets, or one that is part of all.
    pub fn paths(&self, pr: u32) -> Vec<String> {
        match self.rules.targets.get(&pr) {
            Some(names) => names.iter().map(|name| format!("t{name}/file")).collect(),
            None => vec!["Makefile".to_owned()],
        }
    }

    /// The answer to an [`Effect::ComputeTargets`](crate::queue::Effect::ComputeTargets) for the present head; `None` without rules.
    pub fn computed_targets(&mut self, pr: PrNumber) -> Option<Fact> {
        let head = self.pull_request(pr.0).head;
        let header = &self.queue.header;
        let rules = TargetRules::new(&header.settings.impacted_target_rules).ok();
        let rules = rules.filter(|_| header.computes_targets())?;
        let computed = rules.computed(&ChangedPaths::Complete(self.paths(pr.0)));
        Some(Fact::TargetsComputed { pr, head, revision: header.rules_revision, computed })
    }

    /// Gives a pull request other targets, and reports them.
    pub fn retouch(&mut self, pr: u32, targets: BTreeSet<u32>) {
        self.rules.targets.insert(pr, targets);
        // Targets that were computed from other paths are none of the same head.
        self.facts
            .retain(|fact| !matches!(fact, Fact::TargetsComputed { pr: of, .. } if of.0 == pr));
        let targets = self.targets(pr);
        let _never_refused = self.ask(Command::SetTargets { pr: PrNumber(pr), targets });
    }

    /// The caller of commands.
    pub fn caller(&self) -> Actor {
        Actor::Token("test".into())
    }

    /// The state of a dependency on the host, which knows only the pull requests of this world.
    pub fn dependency_state(&self, on: &Dependency) -> DependencyState {
        let Dependency::Own(pr) = on else { return DependencyState::Missing };
        self.proposed.get(&pr.0).map_or(DependencyState::Missing, |it| it.state.into())
    }

    fn dependency_seen(&self, on: &Dependency) -> Fact {
        Fact::DependencySeen { on: on.clone(), state: self.dependency_state(on) }
    }

    /// The rules, which a test may change at any time.
    pub const fn rules_mut(&mut self) -> &mut Rules {
        &mut self.rules
    }

    /// Merges a pull request outside the queue.
    pub fn merge_by_hand(&mut self, pr: u32) {
        let version = self.proposed.get(&pr).filter(|it| it.state == PullRequestState::Open);
        let Some(version) = version.map(|it| it.version) else { return };
        let mut content = self.target.clone();
        content.insert((pr, version));
        self.move_target(content);
        self.facts.push(self.target_seen());
        self.change(pr, |it| it.state = PullRequestState::Merged);
    }

    /// Pushes another change to the target, outside the queue.
    pub fn push_target(&mut self) {
        let mut content = self.target.clone();
        content.insert((0, self.made + 1));
        self.move_target(content);
        self.facts.push(self.target_seen());
    }

    fn move_target(&mut self, content: Content) {
        self.target_sha = self.commit(content.clone(), self.target_sha.clone());
        self.target = content;
    }

    /// Advances the time.
    pub fn wait(&mut self, span: Span) {
        self.at = self.at.plus(span);
    }

    /// Absorbs every waiting fact, in order.
    pub fn absorb_all(&mut self) {
        while !self.facts.is_empty() {
            let fact = self.facts.remove(0);
            self.take_in(&fact);
        }
    }

    /// Absorbs the next fact, or runs the next effect if no fact waits, or lets the external CI
    /// report if no effect does; `false` if nothing is left.
    pub fn step(&mut self) -> bool {
        if !self.facts.is_empty() {
            let fact = self.facts.remove(0);
            self.take_in(&fact);
        } else if !self.outbox.is_empty() {
            let effect = self.outbox.remove(0);
            self.run(&effect.effect);
        } else if !self.requests.is_empty() {
            let request = self.requests.remove(0);
            // The run may have ended meanwhile.
            let _refused = self.report(&request);
        } else {
            return false;
        }
        true
    }

    /// Runs effects and absorbs facts, in order, until none is left.
    pub fn settle(&mut self) {
        for _ in 0..10_000 {
            if !self.step() {
                return;
            }
        }
        panic!("the queue does not settle");
    }

    /// Queues a read of every live pull request and every dependency, as a reconcile loop does.
    pub fn reconcile(&mut self) {
        self.facts.push(self.target_seen());
        let live: Vec<u32> = self.queue.entries_in_order().map(|entry| entry.pr.0).collect();
        for pr in live {
            let pull_request = Box::new(self.pull_request(pr));
            self.facts.push(Fact::PullRequestSeen { pull_request, read_at: self.at });
        }
        let is_live = |on: &&Dependency| matches!(on, Dependency::Own(pr) if self.queue.entry_of(*pr).is_some());
        let dependencies = self.queue.dependencies().filter(|on| !is_live(on));
        let dependencies: Vec<Dependency> = dependencies.cloned().collect();
        for on in dependencies {
            let seen = self.dependency_seen(&on);
            self.facts.push(seen);
        }
    }

    /// Whether the target passes its checks; pushes from outside always pass.
    pub fn target_is_green(&self) -> bool {
        self.rules.passes(&self.target)
    }
}
