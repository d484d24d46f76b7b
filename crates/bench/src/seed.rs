//! Queues with many entries, written in one commit: the planner decides each submission, and only
//! where it all led to is stored. What the planner wants done is not: a server that runs on these
//! queues would do it, and empty them.

use std::sync::Arc;

use signalbox_domain::ids::{BranchName, PrNumber, QueueId, Sha, TreeId};
use signalbox_domain::ports::{Clock, Commit, IdSource, Loaded, QueueRef};
use signalbox_domain::queue::{
    Actor, Changes, Command, Fact, Input, JournalRecord, Mode, PullRequest, Queue, Settings,
    Submission, SubmitReason, absorb, decide, next_deadline,
};

use crate::failure::{During, Failure};
use crate::parts::{RandomIds, SystemClock};
use crate::product::Product;

/// Makes a queue for a branch: one line, one pull request under test at a time.
pub(crate) async fn queue(product: &Product, branch: &BranchName) -> Result<QueueRef, Failure> {
    let queue = Queue::new(
        QueueId(RandomIds.new_id()),
        product.org.id,
        product.repository.id,
        branch.clone(),
        Settings::new(Mode::Single, 1).during("settings")?,
        SystemClock.now(),
    )
    .during("a queue")?;
    product.stores.queue.queues.create(&queue).await.during("a queue")?;
    Ok(QueueRef { org: product.org.id, id: queue.header.id })
}

/// Opens pull requests on the host and submits them, past the API.
pub(crate) async fn submit(product: &Product, queue: QueueRef, many: usize) -> Result<(), Failure> {
    let loaded = product.stores.queue.queues.load(queue, None).await.during("a queue")?;
    let Some(Loaded::Fresh(before, version)) = loaded else {
        return Err(Failure::new("a queue", "does not exist"));
    };
    let at = SystemClock.now();
    let head = Sha::new("f".repeat(40)).during("a commit")?;
    let tree = TreeId::new("e".repeat(40)).during("a tree")?;
    let seen = Fact::TargetSeen { head, tree, read_at: at };
    let mut state = absorb(&before, &seen, at).queue;
    let mut decisions = Vec::new();
    for _ in 0..many {
        let pull_request = opened(product, &before.header.branch);
        let submission = Submission {
            pull_request,
            read_at: at,
            targets: None,
            priority: None,
            force: false,
            no_batch: None,
            reason: SubmitReason::ApiRequested,
            by: Actor::Token("bench".to_owned()),
        };
        let command = Command::Submit(Box::new(submission));
        let transition = decide(&state, &command, at).during("a submission")?;
        state = transition.queue;
        decisions.extend(transition.decisions);
    }
    let changes = Changes {
        entries: state.entries_in_order().cloned().map(Arc::new).collect(),
        runs: state.runs().cloned().map(Arc::new).collect(),
        targets: Vec::new(),
    };
    let number = state.header.sequence;
    let journal = JournalRecord { number, at, input: Input::Fact(seen), decisions };
    let for_ever = signalbox_domain::time::Timestamp::from_unix_micros(i64::MAX);
    let watched_until = if many == 0 { at } else { for_ever };
    let commit = Commit {
        queue,
        expected: version,
        header: &state.header,
        next_deadline: next_deadline(&state),
        changes: &changes,
        journal: &journal,
        effects: &[],
        events: &[],
        at,
        audit: None,
        request: None,
        shown: &[],
        watched_until: Some(watched_until),
    };
    product.stores.queue.queues.commit(&[commit]).await.during("a commit").map(drop)
}

/// A pull request that was just opened on the host, for a branch.
pub(crate) fn opened(product: &Product, base: &BranchName) -> PullRequest {
    let name = &product.repository.name;
    let number = product.host.open(name, "main", &[("file", "change")]);
    let base = base.clone();
    product.host.edit(name, number, |it| it.base = base);
    product.host.shown(name, number)
}

/// Opens that many pull requests; returns their numbers.
pub(crate) fn open_many(product: &Product, base: &BranchName, many: usize) -> Vec<PrNumber> {
    (0..many).map(|_| opened(product, base).number).collect()
}
