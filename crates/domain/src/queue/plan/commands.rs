//! Commands: one function for each.

use std::sync::Arc;

use crate::ids::PrNumber;

use super::super::state::QueueState;
use super::super::{
    Actor, CancelReason, ChangeSource, Command, Decision, Dependency, DependencyState, Effect,
    Entry, EntryState, EventKind, Exit, Header, LinePosition, Management, Priority, PullRequest,
    PullRequestState, QueuedReason, Refusal, RequestedState, Retries, SettingsPatch, Submission,
};
use super::builder::{Because, TransitionBuilder};
use super::{advance, checks, dependencies, facts, frozen, leave, targets};

pub(super) fn carry_out(builder: &mut TransitionBuilder, command: &Command) -> Result<(), Refusal> {
    match command {
        Command::Submit(submission) => submit(builder, submission),
        Command::Cancel { pr, by } => cancel(builder, *pr, by),
        Command::Restart { pr, by } => restart(builder, *pr, by),
        Command::SetTargets { pr, targets } => {
            targets::reported(builder, *pr, targets);
            Ok(())
        }
        Command::Update { settings, state, reason, by, source } => {
            let before = builder.queue.header.clone();
            update(builder, settings, *state, reason.as_deref(), by)?;
            manage(builder, &before, *source, by);
            Ok(())
        }
        Command::ReportCheck(report) => checks::report_external(builder, report),
        Command::Delete => delete(builder),
    }
}

fn submit(builder: &mut TransitionBuilder, submission: &Submission) -> Result<(), Refusal> {
    let pull_request = &submission.pull_request;
    let pr = pull_request.number;
    if pull_request.state != PullRequestState::Open {
        return Err(Refusal::PullRequestNotOpen { pr });
    }
    if builder.queue.entry_of(pr).is_some() {
        resubmit(builder, submission);
        // The submission carries a fresh read, which reveals pushes that the host did not report.
        facts::pull_request_seen(builder, pull_request, submission.read_at);
        return Ok(());
    }
    refuse_cycle(builder, pull_request)?;
    let entry = Entry {
        id: builder.queue.entry_id(pr),
        pr,
        pull_request: Arc::new(pull_request.clone()),
        seen_at: submission.read_at,
        priority: submission.priority.unwrap_or(Priority::DEFAULT),
        no_batch: submission.no_batch.unwrap_or(false),
        force_enqueued: submission.force,
        submit_reason: submission.reason,
        submitted_by: submission.by.clone(),
        submitted_at: builder.at,
        targets: submission.targets.clone().map(Arc::new),
        state: EntryState::NotReady,
        state_changed_at: builder.at,
        place: LinePosition::Outside,
        entered_line_at: None,
        verified_by: None,
        off_target_since: None,
        part: None,
        proven: None,
        unready_since: None,
        reparented: false,
        returned_at: None,
        absolved: None,
        retries: Retries::default(),
        dependencies: Vec::new(),
    };
    forget_earlier(builder, pr);
    let because = Because::new(submission.reason, &submission.by);
    builder.emit(&entry, None, &EntryState::NotReady, because);
    let id = entry.id;
    builder.put_entry(entry);
    if builder.queue.header.target.head.is_none() {
        builder.effect(Effect::InspectTarget { branch: builder.queue.header.branch.clone() });
    }
    targets::request(builder, id);
    dependencies::update(builder, id);
    dependencies::seen(builder, &Dependency::Own(pr), DependencyState::Open);
    advance::admit(builder, id);
    Ok(())
}

/// Refuses a pull request that would wait for itself forever.
fn refuse_cycle(builder: &TransitionBuilder, pull_request: &PullRequest) -> Result<(), Refusal> {
    let queue = &builder.queue;
    let own = pull_request.depends_on.iter().filter_map(|on| match on {
        Dependency::Own(pr) => Some(*pr),
        Dependency::Other(..) | Dependency::Unknown(_) => None,
    });
    let own = own.filter(|_| queue.header.settings.dependencies_enabled);
    match dependencies::cycle(queue, pull_request.number, own) {
        Some(cycle) => {
            let others = cycle.into_iter().skip(1).collect();
            Err(Refusal::DependencyCycle { pr: pull_request.number, others })
        }
        None => Ok(()),
    }
}

/// Candidates that contain an earlier, landed submission do not wait for this one.
fn forget_earlier(builder: &mut TransitionBuilder, pr: PrNumber) {
    if !builder.queue.may_contain_earlier(pr) {
        return;
    }
    let runs = builder.queue.runs().filter(|run| run.contains(pr)).map(|run| run.id);
    for run in runs.collect::<Vec<_>>() {
        builder.change_run(run, |run| {
            run.ahead = run.ahead.iter().filter(|(_, ahead)| *ahead != pr).copied().collect();
        });
    }
}

/// Applies a resubmission of a live entry: it changes priority and batching only.
fn resubmit(builder: &mut TransitionBuilder, submission: &Submission) {
    let pr = submission.pull_request.number;
    let id = builder.queue.entry_id(pr);
    let Some(before) = builder.entry(id) else { return };
    let priority = submission.priority.unwrap_or(before.priority);
    let no_batch = submission.no_batch.unwrap_or(before.no_batch);
    let force = submission.force || before.force_enqueued;
    let same = priority == before.priority && no_batch == before.no_batch;
    if same && force == before.force_enqueued {
        return;
    }
    if priority.value != before.priority.value {
        advance::turn_changed(builder, id, priority, &before.pull_request);
    }
    builder.change_entry(id, |entry| {
        entry.priority = priority;
        entry.no_batch = no_batch;
        entry.force_enqueued = force;
    });
    let batching = if no_batch { "alone" } else { "in a batch" };
    let forced = if force && !before.force_enqueued { ", forced" } else { "" };
    let what = format!("priority {}, {batching}{forced}", priority.name());
    builder.decision(Decision::Changed { pr, what });
    // The host's answer or the limit for its author may no longer keep it outside.
    advance::admit(builder, id);
    if same || before.state == EntryState::NotReady {
        return;
    }
    if priority.is_urgent() && !before.priority.is_urgent() {
        advance::turned_urgent(builder, id);
    } else if !priority.is_urgent() {
        advance::turned_ordinary(builder, id);
    }
}

fn live(builder: &TransitionBuilder, pr: PrNumber) -> Result<Arc<Entry>, Refusal> {
    let entry = builder.entry(builder.queue.entry_id(pr)).ok_or(Refusal::NotInQueue { pr })?;
    if leave::is_landing(&builder.queue, &entry) {
        return Err(Refusal::Landing { pr });
    }
    Ok(entry)
}

fn cancel(builder: &mut TransitionBuilder, pr: PrNumber, by: &Actor) -> Result<(), Refusal> {
    let entry = live(builder, pr)?;
    let exit = Exit::Cancelled { reason: CancelReason::UserRequested, by: by.clone() };
    leave::leave(builder, entry.id, exit, by);
    Ok(())
}

fn restart(builder: &mut TransitionBuilder, pr: PrNumber, by: &Actor) -> Result<(), Refusal> {
    let entry = live(builder, pr)?;
    let state = entry.state.name();
    let run = match &entry.state {
        EntryState::Testing { run, .. } | EntryState::PendingFailure { run, .. } => *run,
        EntryState::NotReady
        | EntryState::Pending { .. }
        | EntryState::TestsPassed { .. }
        | EntryState::Ended(_) => return Err(Refusal::NothingToRestart { pr, state }),
    };
    let reason = match by {
        Actor::Token(_) => QueuedReason::RestartedByApi,
        Actor::User(_) | Actor::Host | Actor::Queue => QueuedReason::RestartedByUser,
    };
    // The candidates behind contain the same changes on the same base, so only this run starts
    // again.
    leave::requeue_run(builder, run, reason, by);
    Ok(())
}

fn update(
    builder: &mut TransitionBuilder,
    patch: &SettingsPatch,
    state: Option<RequestedState>,
    reason: Option<&str>,
    by: &Actor,
) -> Result<(), Refusal> {
    let header = &builder.queue.header;
    let settings = patch.applied_to(&header.settings)?;
    let mut next = header.state.clone();
    let mut switching_from = header.state.switching_from();
    if settings.mode != header.settings.mode {
        if switching_from.is_some() {
            return Err(Refusal::ModeChangeInProgress);
        }
        if !advance::line_is_empty(&builder.queue) {
            switching_from = Some(header.settings.mode);
        }
    }
    match state {
        // A client that sends the whole configuration repeats the drain that it has requested.
        Some(RequestedState::Draining)
            if matches!(header.state, QueueState::SwitchingModes { draining: true, .. }) => {}
        Some(RequestedState::Draining) if header.state.switching_from().is_some() => {
            return Err(Refusal::ModeChangeInProgress);
        }
        Some(RequestedState::Running) => next = QueueState::Running,
        Some(RequestedState::Draining) => next = QueueState::Draining,
        Some(RequestedState::Paused) => {
            let (by, reason) = (by.clone(), reason.map(ToOwned::to_owned));
            next = QueueState::Paused { by, reason, switching_from: None };
        }
        None => {}
    }
    // A pause outlasts a mode switch: the entries in the line wait in the old mode. A drain
    // continues after the switch.
    next = match (next, switching_from) {
        (QueueState::Paused { by, reason, .. }, switching_from) => {
            QueueState::Paused { by, reason, switching_from }
        }
        (QueueState::Running, Some(from)) => QueueState::SwitchingModes { from, draining: false },
        (QueueState::Draining, Some(from)) => QueueState::SwitchingModes { from, draining: true },
        (QueueState::SwitchingModes { draining, .. }, Some(from)) => {
            QueueState::SwitchingModes { from, draining }
        }
        (next, None) => next,
    };
    if settings != *header.settings {
        let has_other_freezes = settings.freezes != header.settings.freezes;
        let other_dependencies =
            settings.dependencies_enabled != header.settings.dependencies_enabled;
        let has_other_shares = settings.fair_share != header.settings.fair_share
            || (settings.fair_share && settings.agent_labels != header.settings.agent_labels);
        let has_other_rules = settings.impacted_target_rules
            != header.settings.impacted_target_rules
            || settings.merge_method != header.settings.merge_method;
        builder.queue.header.settings = Arc::new(settings);
        builder.queue.index_lanes();
        if has_other_shares {
            advance::turns_changed(builder);
        }
        if has_other_rules {
            targets::apply_rules(builder);
        }
        if other_dependencies {
            dependencies::apply_setting(builder);
        }
        if has_other_freezes {
            frozen::apply_rules(builder);
        }
        builder.queue.waiting.wake_all();
        builder.decision(Decision::SettingsChanged { actor: by.clone() });
        let state = builder.queue.header.state.name();
        builder.emit_queue(EventKind::QueueConfigChanged, by, state, None);
    }
    let paused_by = |state: &QueueState| match state {
        QueueState::Paused { by, reason, .. } => Some((by.clone(), reason.clone())),
        QueueState::Running | QueueState::Draining | QueueState::SwitchingModes { .. } => None,
    };
    let now = &builder.queue.header.state;
    if next.name() == now.name() && paused_by(&next) == paused_by(now) {
        builder.queue.header.state = next;
        advance::admit_all(builder);
    } else {
        advance::change_state(builder, next, by, reason);
    }
    Ok(())
}

/// Keeps which tool has changed the queue.
fn manage(builder: &mut TransitionBuilder, before: &Header, source: ChangeSource, by: &Actor) {
    let at = builder.at;
    let after = &builder.queue.header;
    let management = match source {
        ChangeSource::Terraform => Some(Management::applied(by.clone(), at)),
        ChangeSource::Direct => {
            before.management.as_ref().map(|known| known.drifted(before, after, by, at))
        }
    };
    builder.queue.header.management = management;
}

fn delete(builder: &mut TransitionBuilder) -> Result<(), Refusal> {
    let live = builder.queue.live();
    if live > 0 {
        return Err(Refusal::QueueNotEmpty { live });
    }
    builder.queue.header.deleted = true;
    Ok(())
}
