//! A repository with a queue in it, and commits on that queue.

use std::collections::BTreeSet;
use std::sync::Arc;

use signalbox_domain::audit::AuditRecord;
use signalbox_domain::ids::{
    BranchName, OrgId, OrgSlug, PrNumber, QueueId, RepoId, RepoName, RunId, Sha, TokenId, TreeId,
};
use signalbox_domain::ports::{
    Commit, CommitError, EventRecord, EventWriter, Loaded, Org, QueuePlace, QueueRef, Repository,
    Stores, Version,
};
use signalbox_domain::queue::{
    Candidate, Command, Effect, Event, Fact, Input, JournalRecord, Land, MergeMethod, Mode,
    NumberedEffect, Queue, Settings, Submission, Transition, absorb, decide, next_deadline,
};
use signalbox_domain::testing::{Rules, World};
use signalbox_domain::time::{Span, Timestamp};
use signalbox_domain::token::{Caller, Compatibility, Scope};
use uuid::Uuid;

use crate::plain_events::PlainEvents;

/// The time this many seconds after the start of the samples.
pub fn at(seconds: u32) -> Timestamp {
    Timestamp::from_unix_seconds(1_767_225_600).plus(Span::seconds(seconds))
}

/// An organization with a repository and a queue for `main`.
pub struct Sample<'a> {
    /// The stores.
    pub stores: &'a Stores,
    /// The repository.
    pub repository: Repository,
    /// The queue.
    pub queue: QueueRef,
    /// The world of the queue.
    pub world: World,
    /// The version of the last commit.
    pub version: Version,
}

impl<'a> Sample<'a> {
    /// Creates a sample.
    pub async fn new(stores: &'a Stores) -> Self {
        Self::with(stores, Rules::default()).await
    }

    /// Creates a sample in a world with these rules.
    pub async fn with(stores: &'a Stores, rules: Rules) -> Self {
        Self::of(stores, "acme", rules).await
    }

    /// Creates a sample of an organization.
    pub async fn of(stores: &'a Stores, org: &str, rules: Rules) -> Self {
        let org = Self::org(stores, org).await;
        let repository = Self::repository(stores, org.id, "calc").await;
        let mut world = World::new(Settings::new(Mode::Single, 2).expect("valid settings"), rules);
        let header = &mut world.queue.header;
        (header.id, header.org, header.repo) = (QueueId(Uuid::new_v4()), org.id, repository.id);
        let queue = QueueRef { org: org.id, id: header.id };
        stores.queue.queues.create(&world.queue).await.expect("a new queue");
        Self { stores, repository, queue, world, version: Version(0) }
    }

    /// Creates an organization.
    pub async fn org(stores: &Stores, slug: &str) -> Org {
        let slug = OrgSlug::new(slug).expect("a slug");
        let org = Org { id: OrgId(Uuid::new_v4()), slug, created_at: at(0) };
        stores.account.orgs.create(&org).await.expect("an organization")
    }

    /// A caller with every right in an organization.
    pub fn caller(org: &Org) -> Caller {
        Caller {
            org: org.id,
            org_slug: org.slug.clone(),
            token: TokenId(Uuid::from_u128(1)),
            name: "tests".to_owned(),
            scopes: Scope::ALL.to_vec(),
            repos: Vec::new(),
            compatibility: Compatibility::Specification,
            source: None,
        }
    }

    /// Creates a repository of an organization.
    pub async fn repository(stores: &Stores, org: OrgId, name: &str) -> Repository {
        let repository = Repository {
            id: RepoId(Uuid::new_v4()),
            org,
            name: RepoName::new("git.local", "acme", name).expect("a name"),
            path: None,
            created_at: at(0),
        };
        stores.account.repos.register(&repository, false).await.expect("a repository")
    }

    /// A new queue for a branch of the repository, not written to the store.
    pub fn new_queue(&self, branch: &str) -> Queue {
        let settings = Settings::new(Mode::Single, 2).expect("valid settings");
        let branch = BranchName::new(branch).expect("a branch");
        let id = QueueId(Uuid::new_v4());
        Queue::new(id, self.queue.org, self.repository.id, branch, settings, at(0))
            .expect("valid settings")
    }

    /// Carries out a command and commits it.
    pub async fn ask(&mut self, command: Command) {
        let transition = decide(&self.world.queue, &command, self.world.at).expect("not refused");
        self.commit(&transition, Input::Command(command)).await.expect("a commit");
        self.world.outbox.extend(transition.effects);
        self.world.queue = transition.queue;
    }

    /// Submits a pull request and commits it.
    pub async fn submit(&mut self, pr: u32) {
        self.submit_with(pr, |_| ()).await;
    }

    /// Submits a pull request that differs from the world's.
    pub async fn submit_with(&mut self, pr: u32, change: impl FnOnce(&mut Submission)) {
        let command = self.submission(pr, change);
        self.ask(command).await;
    }

    /// The command that submits a pull request that differs from the world's.
    pub fn submission(&mut self, pr: u32, change: impl FnOnce(&mut Submission)) -> Command {
        let (before, outbox) = (self.world.queue.clone(), self.world.outbox.clone());
        self.world.submit(pr, None).expect("not refused");
        let Some((_, Input::Command(mut command))) = self.world.journal.last().cloned() else {
            panic!("a submission is a command");
        };
        if let Command::Submit(submission) = &mut command {
            change(submission);
        }
        (self.world.queue, self.world.outbox) = (before, outbox);
        command
    }

    /// Absorbs a fact and commits it.
    pub async fn tell(&mut self, fact: Fact) {
        let transition = absorb(&self.world.queue, &fact, self.world.at);
        self.commit(&transition, Input::Fact(fact)).await.expect("a commit");
        self.world.outbox.extend(transition.effects);
        self.world.queue = transition.queue;
    }

    /// Runs effects and absorbs facts, each with a commit of its own, until none is left.
    pub async fn settle(&mut self) {
        loop {
            if !self.world.facts.is_empty() {
                let fact = self.world.facts.remove(0);
                self.tell(fact).await;
            } else if !self.world.outbox.is_empty() {
                let effect = self.world.outbox.remove(0);
                self.world.run(&effect.effect);
            } else {
                return;
            }
            self.world.wait(Span::seconds(1));
        }
    }

    /// Commits a transition on [`Self::version`].
    pub async fn commit(
        &mut self,
        transition: &Transition,
        input: Input,
    ) -> Result<(), CommitError> {
        self.commit_audited(transition, input, None, None).await
    }

    /// Commits a transition with an audit record and the id of a request.
    pub async fn commit_audited(
        &mut self,
        transition: &Transition,
        input: Input,
        audit: Option<&AuditRecord>,
        request: Option<&str>,
    ) -> Result<(), CommitError> {
        let parts = self.parts(transition, input, request);
        let commit = Commit { audit, request, ..self.step(transition, &parts, self.version) };
        self.version = self.stores.queue.queues.commit(&[commit]).await?;
        Ok(())
    }

    /// Carries out commands, a second after each other, and commits all of them together.
    pub async fn ask_together(&mut self, commands: Vec<Command>) -> Result<(), CommitError> {
        let (mut queue, mut steps) = (self.world.queue.clone(), Vec::new());
        for command in commands {
            self.world.wait(Span::seconds(1));
            let transition = decide(&queue, &command, self.world.at).expect("not refused");
            queue = transition.queue.clone();
            let parts = self.parts(&transition, Input::Command(command), None);
            steps.push((transition, parts));
        }
        let versions = (self.version.0..).map(Version);
        let commits: Vec<Commit<'_>> = versions
            .zip(&steps)
            .map(|(version, (transition, parts))| self.step(transition, parts, version))
            .collect();
        self.version = self.stores.queue.queues.commit(&commits).await?;
        self.world.outbox.extend(steps.into_iter().flat_map(|(transition, _)| transition.effects));
        self.world.queue = queue;
        Ok(())
    }

    fn parts(&self, transition: &Transition, input: Input, request: Option<&str>) -> Parts {
        let place = QueuePlace {
            repo: self.repository.name.clone(),
            branch: self.world.queue.header.branch.clone(),
        };
        let told = |event: &Event| EventRecord {
            id: Uuid::new_v4(),
            kind: event.kind.as_str(),
            at: event.at,
            payload: PlainEvents.queue_event(&place, event),
            request: request.map(ToOwned::to_owned),
        };
        Parts {
            at: self.world.at,
            journal: transition.record(input, self.world.at),
            events: transition.events.iter().map(told).collect(),
            shown: transition.shown.iter().copied().collect(),
        }
    }

    fn step<'t>(
        &self,
        transition: &'t Transition,
        parts: &'t Parts,
        expected: Version,
    ) -> Commit<'t> {
        let waits = transition.queue.entries_in_order().next().is_some();
        let watched_until = if waits { Timestamp::from_unix_micros(i64::MAX) } else { parts.at };
        Commit {
            queue: self.queue,
            expected,
            header: &transition.queue.header,
            next_deadline: next_deadline(&transition.queue),
            changes: &transition.changes,
            journal: &parts.journal,
            effects: &transition.effects,
            events: &parts.events,
            at: parts.at,
            audit: None,
            request: None,
            shown: &parts.shown,
            watched_until: Some(watched_until),
        }
    }

    /// Adds effects to the outbox, by a commit without other changes.
    pub async fn put_effects(&mut self, effects: Vec<Effect>) {
        let mut transition = absorb(&self.world.queue, &Fact::TimePassed, self.world.at);
        transition.effects = effects
            .into_iter()
            .map(|effect| {
                transition.queue.header.sequence += 1;
                NumberedEffect { number: transition.queue.header.sequence, effect }
            })
            .collect();
        transition.queue.header.sequence += 1;
        self.commit(&transition, Input::Fact(Fact::TimePassed)).await.expect("a commit");
        self.world.queue = transition.queue;
    }

    /// Loads the latest state.
    pub async fn load(&self) -> (Queue, Version) {
        match self.stores.queue.queues.load(self.queue, None).await.expect("a load") {
            Some(Loaded::Fresh(queue, version)) => (*queue, version),
            other => panic!("expected a fresh state, got {other:?}"),
        }
    }

    /// The runs of the stored state.
    pub async fn kept_runs(&self) -> BTreeSet<RunId> {
        self.load().await.0.runs().map(|run| run.id).collect()
    }

    /// An effect that lands a run's candidate.
    pub fn land(run: RunId) -> Effect {
        let sha = |digit: &str| Sha::new(digit.repeat(40)).expect("a commit");
        Effect::Land(Land {
            run,
            target: BranchName::new("main").expect("a branch"),
            expected: sha("a"),
            candidate: Candidate {
                sha: sha("b"),
                tree: TreeId::new("c".repeat(40)).expect("a tree"),
            },
            exact: true,
            changes: Vec::new(),
            method: MergeMethod::Squash,
        })
    }

    /// An effect that reads a target, which has that number.
    pub fn inspect(number: u32) -> Effect {
        let branch = BranchName::new(format!("target-{number}")).expect("a branch");
        Effect::InspectTarget { branch }
    }
}

/// What a step writes besides its transition.
struct Parts {
    at: Timestamp,
    journal: JournalRecord,
    events: Vec<EventRecord>,
    shown: Vec<PrNumber>,
}

/// Shares stores between tasks.
pub(super) fn shared(stores: &Stores) -> Arc<Stores> {
    Arc::new(stores.clone())
}
