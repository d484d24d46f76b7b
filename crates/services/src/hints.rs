//! Webhook deliveries from hosts: each is a hint, and the object is read again before the queue
//! acts on it.

use std::collections::{BTreeSet, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use thiserror::Error;

use signalbox_domain::ids::{BranchName, HostId, OrgId, PrNumber, RepoId, RepoName, Sha};
use signalbox_domain::ports::{
    DecodeError, Forge, Hint, HostError, HostEvent, InboundDeliveryStore, Permission,
    PullRequestQuery, QueueKey, Repository,
};
use signalbox_domain::queue::{
    Actor, Command, Dependency, EntryState, Fact, Input, Queue, STATE_LABELS, Settings,
    SubmitReason,
};
use signalbox_domain::time::{Span, Timestamp};

use super::step::Step;
use super::submit::SubmitOptions;
use super::{CommentCommand, Error, QueueContext, QueueService};

/// The age, in hours, up to which a comment's command is carried out; a later redelivery has no
/// effect.
const COMMAND_HOURS: u32 = 24;
/// How far back, in minutes, comments are listed for commands whose delivery was lost.
const LOOK_BACK_MINUTES: u32 = 30;
/// How long deliveries are remembered, in days.
const REMEMBERED_DAYS: u32 = 30;

/// Why a delivery was not processed.
#[derive(Debug, Error)]
pub enum HookError {
    /// No organization has a webhook secret for a host of this name.
    #[error("no organization receives webhooks of this host")]
    UnknownHost,
    /// The signature or the payload is invalid.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// Processing failed; the host may deliver it again.
    #[error(transparent)]
    Service(#[from] Error),
}

/// Processes webhook deliveries from hosts.
pub struct HintService {
    pub(super) context: QueueContext,
    pub(super) inbound_deliveries: Arc<dyn InboundDeliveryStore>,
    pub(super) queues: Arc<QueueService>,
    pub(super) lookups: Mutex<VecDeque<(Timestamp, IpAddr)>>,
}

impl HintService {
    /// Creates the service.
    pub fn new(
        context: impl Into<QueueContext>,
        inbound_deliveries: Arc<dyn InboundDeliveryStore>,
        queues: Arc<QueueService>,
    ) -> Self {
        Self {
            context: context.into(),
            inbound_deliveries,
            queues,
            lookups: Mutex::new(VecDeque::new()),
        }
    }

    /// Whether a delivery with these headers may be meant for this server: an organization receives
    /// webhooks of the host, and the headers contain a signature. Nothing is verified yet.
    pub fn expects(
        &self,
        host: &HostId,
        header: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(), HookError> {
        let decoders = self.context.hosts.webhook_decoders(host);
        if decoders.is_empty() {
            return Err(HookError::UnknownHost);
        }
        if decoders.iter().any(|(_, decoder)| decoder.has_signature(header)) {
            return Ok(());
        }
        Err(DecodeError::WrongSignature.into())
    }

    /// Processes one delivery, for every organization whose secret has signed it. A delivery that
    /// was processed before has no effect.
    pub async fn hear(
        &self,
        host: &HostId,
        header: &(dyn Fn(&str) -> Option<String> + Sync),
        body: &[u8],
    ) -> Result<(), HookError> {
        let decoders = self.context.hosts.webhook_decoders(host);
        if decoders.is_empty() {
            return Err(HookError::UnknownHost);
        }
        // Decode everything before the first await, because the headers are borrowed.
        let mut events = Vec::new();
        for (org, decoder) in decoders {
            match decoder.decode(header, body) {
                Ok(event) => events.push((org, event)),
                Err(DecodeError::WrongSignature) => {}
                Err(error @ DecodeError::Malformed(_)) => return Err(error.into()),
            }
        }
        if events.is_empty() {
            return Err(DecodeError::WrongSignature.into());
        }
        for (org, event) in events {
            self.take_in(org, host, &event).await?;
        }
        Ok(())
    }

    /// Deletes records of old deliveries; returns the number of deleted records.
    pub async fn forget(&self) -> Result<u64, Error> {
        let before = self.context.clock.now().minus(Span::days(REMEMBERED_DAYS));
        Ok(self.inbound_deliveries.forget(before, 1_000).await?)
    }

    async fn take_in(&self, org: OrgId, host: &HostId, event: &HostEvent) -> Result<(), Error> {
        let heard = &self.inbound_deliveries;
        if heard.was_taken(org, host, &event.id).await.map_err(Error::from)? {
            return Ok(());
        }
        if let Some(repository) = self.repository(org, host, event).await? {
            for hint in &event.hints {
                self.follow(&repository, hint).await?;
            }
        }
        heard.taken(org, host, &event.id, self.context.clock.now()).await?;
        Ok(())
    }

    async fn repository(
        &self,
        org: OrgId,
        host: &HostId,
        event: &HostEvent,
    ) -> Result<Option<Repository>, Error> {
        let Some((owner, name)) = &event.repository else { return Ok(None) };
        let Ok(name) = RepoName::new(host.as_str(), owner.as_str(), name.as_str()) else {
            return Ok(None);
        };
        Ok(self.context.repositories.named(org, &name).await?)
    }

    async fn follow(&self, repository: &Repository, hint: &Hint) -> Result<(), Error> {
        let done = match hint {
            Hint::PullRequest(pr) => self.pull_request(repository, *pr).await,
            Hint::Branch { name, at } => self.branch(repository, name, at.as_ref()).await,
            Hint::Checks(sha) => self.checks(repository, sha).await,
            Hint::Comment { pr, id } => return self.comment(repository, *pr, *id).await,
            Hint::Labelled { pr, label, by } => {
                self.label(repository, *pr, label, by, true).await?;
                self.labels_changed(repository, *pr, label).await
            }
            Hint::Unlabelled { pr, label, by } => {
                self.label(repository, *pr, label, by, false).await?;
                self.labels_changed(repository, *pr, label).await
            }
        };
        match done {
            // The reconcile loop finds what could not be read now.
            Err(Error::Host(_)) => Ok(()),
            other => other,
        }
    }

    async fn keys(&self, repository: &Repository) -> Result<Vec<QueueKey>, Error> {
        let queues = &self.context.stores.queues;
        Ok(queues.list(Some(repository.org), Some(repository.id)).await?)
    }

    /// The queues of a repository with their latest states.
    async fn queues(&self, repository: &Repository) -> Result<Vec<(QueueKey, Arc<Queue>)>, Error> {
        let mut found = Vec::new();
        for key in self.keys(repository).await? {
            if let Some(state) = self.queues.state(key.queue).await? {
                found.push((key, state));
            }
        }
        Ok(found)
    }

    /// Only pull requests in a queue and their dependencies are read, except landing ones, whose landing
    /// has an answer of its own.
    async fn pull_request(&self, repository: &Repository, pr: PrNumber) -> Result<(), Error> {
        let known = self.queues(repository).await?;
        let is_waiting = |queue: &Queue| {
            let Some(entry) = queue.entry_of(pr) else {
                return queue.waits_for(&Dependency::Own(pr));
            };
            let landing = queue.header.landing.as_ref();
            !entry.state.run().is_some_and(|run| landing.is_some_and(|it| it.runs.contains(&run)))
        };
        if known.iter().any(|(_, queue)| is_waiting(queue)) {
            self.queues.pull_request_hinted(repository.org, repository.id, pr).await?;
        }
        Ok(())
    }

    async fn branch(
        &self,
        repository: &Repository,
        name: &BranchName,
        at: Option<&Sha>,
    ) -> Result<(), Error> {
        for (key, queue) in self.queues(repository).await? {
            let header = &queue.header;
            // Pushes by the queue itself are reported too and contain nothing new. An active
            // landing has an answer of its own.
            let known = header.target.head.as_ref() == at && !header.target.missing;
            let news = !known && header.landing.is_none();
            if header.branch != *name || !news {
                continue;
            }
            let host = self.queues.git_host(repository)?;
            let read_at = self.context.clock.now();
            let fact = match host.head(repository, name).await.map_err(Error::Host)? {
                Some(head) => Fact::TargetSeen { head: head.sha, tree: head.tree, read_at },
                None => Fact::TargetMissing,
            };
            self.queues.absorb(key.queue, fact).await?;
        }
        Ok(())
    }

    /// Wakes the runners that wait for a candidate's checks, and reads pull requests again whose
    /// head is this commit and which the host did not report as mergeable.
    async fn checks(&self, repository: &Repository, sha: &Sha) -> Result<(), Error> {
        if let Some(forge) = self.context.hosts.forge(repository.org, &repository.name.host) {
            forge.checks_hinted(sha);
        }
        for (_, queue) in self.queues(repository).await? {
            let waiting = queue.entries_in_order().filter(|entry| {
                entry.state == EntryState::NotReady && entry.pull_request.head == *sha
            });
            for pr in waiting.map(|entry| entry.pr).collect::<Vec<_>>() {
                self.queues.pull_request_hinted(repository.org, repository.id, pr).await?;
            }
        }
        Ok(())
    }

    /// Carries out the command in a comment, as the host shows it now, if its author may push.
    async fn comment(&self, repository: &Repository, pr: PrNumber, id: u64) -> Result<(), Error> {
        let (org, host) = (repository.org, &repository.name.host);
        let Some(forge) = self.context.hosts.forge(org, host) else { return Ok(()) };
        if !self.takes_commands(repository).await? {
            return Ok(());
        }
        let seen = format!("comment {id}");
        if self.inbound_deliveries.was_taken(org, host, &seen).await? {
            return Ok(());
        }
        let comment = forge.comment(repository, id).await.map_err(Error::Host)?;
        let now = self.context.clock.now();
        let Some(comment) = comment
            .filter(|it| it.pr == pr && now < it.created_at.plus(Span::hours(COMMAND_HOURS)))
        else {
            return Ok(());
        };
        let lines = forge.plain_lines(&comment.body);
        let Some(command) = CommentCommand::parse(forge.command_prefix(), &lines) else {
            return Ok(());
        };
        let done = match command {
            Ok(command) => {
                self.obey(repository, forge.as_ref(), pr, &comment.author, &command).await
            }
            Err(_) => Ok(false),
        };
        let taken = match done {
            Ok(taken) => taken,
            // A temporary error is retried with the redelivery; any other was a refusal.
            Err(Error::Host(error)) if error.is_passing() => return Err(Error::Host(error)),
            Err(Error::Store(error)) => return Err(Error::Store(error)),
            Err(Error::Busy) => return Err(Error::Busy),
            Err(_) => false,
        };
        self.inbound_deliveries.taken(org, host, &seen, now).await?;
        // The reaction is optional.
        let _seen = forge.react(repository, id, taken).await;
        Ok(())
    }

    async fn takes_commands(&self, repository: &Repository) -> Result<bool, Error> {
        let queues = self.queues(repository).await?;
        Ok(queues.iter().any(|(_, queue)| queue.header.settings.commands_enabled))
    }

    /// Carries out commands whose delivery was lost, from the comments of the last minutes.
    /// Commands that were carried out before have no effect.
    pub async fn catch_up(&self) -> Result<(), Error> {
        // Rounded, so that the request stays the same for a while and conditional requests can be
        // used.
        let step = Span::minutes(LOOK_BACK_MINUTES);
        let since = self.context.clock.now().minus(step).floor(step);
        let repos = self.context.repositories.list(None).await?;
        let states = self.queues.states(false).await?;
        let taking = states.iter().filter(|(_, queue)| queue.header.settings.commands_enabled);
        let taking: BTreeSet<RepoId> = taking.map(|(key, _)| key.repo).collect();
        for repository in repos.iter().filter(|it| taking.contains(&it.id)) {
            let host = &repository.name.host;
            let Some(forge) = self.context.hosts.forge(repository.org, host) else { continue };
            // Comments that cannot be listed now are listed in the next round.
            let Ok(found) = forge.comments_since(repository, since).await else { continue };
            for (pr, id) in found {
                match self.comment(repository, pr, id).await {
                    Ok(()) | Err(Error::Host(_)) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Carries out a command; `false` if there is no queue for it, or its author may not give it.
    async fn obey(
        &self,
        repository: &Repository,
        forge: &dyn Forge,
        pr: PrNumber,
        login: &str,
        command: &CommentCommand,
    ) -> Result<bool, Error> {
        let Some((branch, settings)) = self.queue_of(repository, pr).await? else {
            return Ok(false);
        };
        let needed = match command {
            CommentCommand::Merge { force: true, .. } => Permission::Admin,
            CommentCommand::Merge { .. } | CommentCommand::Cancel | CommentCommand::Restart => {
                Permission::Write
            }
        };
        if !settings.commands_enabled || !may(forge, repository, &settings, login, needed).await? {
            return Ok(false);
        }
        let by = Actor::User(login.to_owned());
        match command {
            CommentCommand::Merge { priority, no_batch, force } => {
                let reason =
                    if *force { SubmitReason::AdminRequested } else { SubmitReason::UserRequested };
                let options =
                    SubmitOptions { priority: *priority, no_batch: *no_batch, force: *force };
                self.queues.submit_as(repository, &branch, pr, options, (reason, by)).await?;
            }
            CommentCommand::Cancel => {
                self.command(repository, &branch, Command::Cancel { pr, by }).await?;
            }
            CommentCommand::Restart => {
                self.command(repository, &branch, Command::Restart { pr, by }).await?;
            }
        }
        Ok(true)
    }

    async fn command(
        &self,
        repository: &Repository,
        branch: &BranchName,
        command: Command,
    ) -> Result<(), Error> {
        let queue = self.queues.find(repository.org, repository, branch).await?;
        self.queues
            .step(queue, repository, branch, Step::new(Input::Command(command)))
            .await
            .map(drop)
    }

    /// Reads a pull request again whose labels have changed, because freezes may name them; not
    /// for labels that show a state, or that submit it.
    async fn labels_changed(
        &self,
        repository: &Repository,
        pr: PrNumber,
        label: &str,
    ) -> Result<(), Error> {
        let queues = self.queues(repository).await?;
        let commands = queues.iter().map(|(_, queue)| &*queue.header.settings.enqueueing_label);
        let is_command = commands.into_iter().any(|own| own.eq_ignore_ascii_case(label));
        if is_command || label.starts_with(STATE_LABELS) {
            return Ok(());
        }
        self.pull_request(repository, pr).await
    }

    /// Handles the enqueueing label, if commands by label are on: adding it submits, removing it
    /// cancels.
    async fn label(
        &self,
        repository: &Repository,
        pr: PrNumber,
        label: &str,
        by: &str,
        put_on: bool,
    ) -> Result<(), Error> {
        let queues = self.queues(repository).await?;
        let carries = |settings: &Settings| {
            settings.label_commands_enabled && settings.enqueueing_label.eq_ignore_ascii_case(label)
        };
        if !queues.iter().any(|(_, queue)| carries(&queue.header.settings)) {
            return Ok(());
        }
        let Some(forge) = self.context.hosts.forge(repository.org, &repository.name.host) else {
            return Ok(());
        };
        let Some((branch, settings)) = self.queue_of(repository, pr).await? else {
            return Ok(());
        };
        let labels = forge.labels(repository, pr).await.map_err(Error::Host)?;
        let is_on = labels.iter().any(|it| it.eq_ignore_ascii_case(label));
        if !carries(&settings)
            || is_on != put_on
            || !may(forge.as_ref(), repository, &settings, by, Permission::Write).await?
        {
            return Ok(());
        }
        let by = Actor::User(by.to_owned());
        let done = if put_on {
            let by = (SubmitReason::UserRequested, by);
            self.queues.submit_as(repository, &branch, pr, SubmitOptions::default(), by).await
        } else {
            self.command(repository, &branch, Command::Cancel { pr, by }).await
        };
        match done {
            Err(Error::Refused(_) | Error::UnknownPullRequest { .. }) => Ok(()),
            other => other,
        }
    }

    /// The queue that a pull request is in, or else the queue of its base branch.
    async fn queue_of(
        &self,
        repository: &Repository,
        pr: PrNumber,
    ) -> Result<Option<(BranchName, Settings)>, Error> {
        let queues = self.queues(repository).await?;
        let named = |queue: &Arc<Queue>| {
            (queue.header.branch.clone(), Settings::clone(&queue.header.settings))
        };
        if let Some((_, queue)) = queues.iter().find(|(_, it)| it.entry_of(pr).is_some()) {
            return Ok(Some(named(queue)));
        }
        let host = self.queues.git_host(repository)?;
        let shown = host.pull_request(repository, &PullRequestQuery::Number(pr)).await;
        let Some(shown) = shown.map_err(Error::Host)? else { return Ok(None) };
        let queue = queues.iter().find(|(_, queue)| queue.header.branch == shown.base);
        Ok(queue.map(|(_, queue)| named(queue)))
    }
}

/// Whether a user may give commands: by their permission on the host, read now, or as a bot that
/// the queue's settings name.
async fn may(
    forge: &dyn Forge,
    repository: &Repository,
    settings: &Settings,
    login: &str,
    needed: Permission,
) -> Result<bool, Error> {
    let listed = settings.allowed_bot_submitters.iter().any(|bot| bot.eq_ignore_ascii_case(login));
    if listed && needed <= Permission::Write {
        return Ok(true);
    }
    match forge.permission(repository, login).await {
        Ok(has) => Ok(has >= needed),
        Err(HostError::NotFound { .. }) => Ok(false),
        Err(error) => Err(Error::Host(error)),
    }
}
