//! Views of a queue: the order, the states, and for each entry exactly one wait reason.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::PrNumber;

use super::batch::Filling;
use super::capacity::{Capacities, Full};
use super::usage::UsedUp;
use super::{
    Entry, EntryState, Freeze, HostTroubleKind, LinePosition, PartialFreeze, PrState, Queue,
    QueueState, Readiness, RedTarget, RunStatus, TestRun, WaitReason, batch, bisect, dependencies,
    frozen, lanes, parts, quota, red, share, window,
};

/// The view of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EntryView<'a> {
    /// The entry.
    pub entry: &'a Entry,
    /// Its state.
    pub state: PrState,
    /// The conditions for entering the line.
    pub readiness: Readiness,
    /// Why it waits; `None` once it has ended.
    pub waits: Option<WaitReason>,
    /// Its run, if it has one.
    pub run: Option<&'a TestRun>,
    /// Its position in the line, from 1; `None` outside the line.
    pub position: Option<usize>,
}

/// The view of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueView<'a> {
    /// The queue.
    pub queue: &'a Queue,
    /// Its live entries in queue order; those outside the line last.
    pub entries: Vec<EntryView<'a>>,
}

/// Builds the view of a whole queue.
pub fn view_queue(queue: &Queue) -> QueueView<'_> {
    let mut ahead = Ahead::new(queue);
    let mut entries = Vec::with_capacity(queue.live());
    for entry in queue.entries_in_order() {
        entries.push(view(queue, entry, &ahead));
        ahead.pass(queue, entry);
    }
    QueueView { queue, entries }
}

/// Builds the view of one live entry; `None` if the pull request has none.
pub fn view_entry(queue: &Queue, pr: PrNumber) -> Option<EntryView<'_>> {
    view_entries(queue, &BTreeSet::from([pr])).pop()
}

/// Builds the views of the live entries of these pull requests, in queue order, in one pass through the
/// queue.
pub fn view_entries<'a>(queue: &'a Queue, prs: &BTreeSet<PrNumber>) -> Vec<EntryView<'a>> {
    let mut ahead = Ahead::new(queue);
    let live = prs.iter().filter(|pr| queue.entry_of(**pr).is_some()).count();
    let mut views = Vec::with_capacity(live);
    let mut entries = queue.entries_in_order();
    while views.len() < live
        && let Some(entry) = entries.next()
    {
        if prs.contains(&entry.pr) {
            views.push(view(queue, entry, &ahead));
        }
        ahead.pass(queue, entry);
    }
    views
}

/// The pull requests that are being merged: they wait for [`WaitReason::Landing`].
pub fn view_landing(queue: &Queue) -> Vec<EntryView<'_>> {
    let runs = queue.header.landing.iter().flat_map(|landing| &landing.runs);
    let groups = runs.filter_map(|run| queue.run(*run)).flat_map(|run| run.group.iter());
    let prs = groups.map(|member| member.pr).collect();
    let mut views = view_entries(queue, &prs);
    views.retain(|it| it.waits == Some(WaitReason::Landing));
    views
}

/// The most pull requests that a wait reason names: those nearest to the front, which must move
/// first.
const NAMED: usize = 20;

/// What is ahead of an entry in the line.
struct Ahead<'a> {
    count: usize,
    /// The number of entries ahead that wait for a slot.
    waiting: u32,
    /// Entries that are not settled: waiting, being tested, or pending failure.
    unsettled: Vec<&'a Entry>,
    /// The unsettled entries without a candidate.
    unbuilt: Vec<&'a Entry>,
    /// With an author limit, the pull requests of each author or agent.
    of_authors: BTreeMap<&'a str, Vec<PrNumber>>,
    capacities: Capacities<'a>,
}

impl<'a> Ahead<'a> {
    fn new(queue: &'a Queue) -> Self {
        Self {
            count: 0,
            waiting: 0,
            unsettled: Vec::new(),
            unbuilt: Vec::new(),
            of_authors: BTreeMap::new(),
            capacities: Capacities::of(queue),
        }
    }

    fn pass(&mut self, queue: &Queue, entry: &'a Entry) {
        if entry.place == LinePosition::Outside {
            return;
        }
        self.count += 1;
        if queue.header.settings.author_limit > 0 {
            let of = share::of(&queue.header.settings, &entry.pull_request);
            self.of_authors.entry(of).or_default().push(entry.pr);
        }
        match &entry.state {
            EntryState::Pending { held_by: None, .. } => {
                self.waiting += 1;
                self.unsettled.push(entry);
                self.unbuilt.push(entry);
            }
            EntryState::Testing { run, .. } | EntryState::PendingFailure { run, .. } => {
                self.unsettled.push(entry);
                if queue.run(*run).is_none_or(|run| run.candidate.is_none()) {
                    self.unbuilt.push(entry);
                }
            }
            EntryState::Pending { held_by: Some(_), .. }
            | EntryState::NotReady
            | EntryState::TestsPassed { .. }
            | EntryState::Ended(_) => {}
        }
    }

    /// The direct dependencies of an entry without a candidate, or else the blocker `by`, whose
    /// candidate cannot be built on.
    fn blockers_of(&self, queue: &Queue, entry: &Entry, by: &Entry) -> WaitReason {
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let meets = |other: &&&Entry| lanes::meet(queue.mode(), other, entry);
        let met = || self.unbuilt.iter().filter(meets);
        let (first, ahead) = (named(met()), count(met().count()));
        if first.is_empty() {
            WaitReason::BehindPrs { prs: vec![by.pr], ahead: 1 }
        } else {
            WaitReason::BehindPrs { prs: first, ahead }
        }
    }

    /// The pull requests that must pass before the result of a part of a batch follows.
    fn before_part(&self, queue: &Queue, entry: &Entry) -> Vec<PrNumber> {
        let number = |entry: &Entry| entry.part.as_ref().map(|part| part.number);
        named(self.unsettled.iter().filter(|other| {
            number(other) != number(entry) && lanes::meet(queue.mode(), other, entry)
        }))
    }

    /// The pull requests that a run's candidate contains besides its group.
    fn under(&self, run: &TestRun) -> Vec<PrNumber> {
        named(self.unsettled.iter().filter(|other| run.contains(other.pr)))
    }
}

fn named<'a, 'b: 'a>(found: impl Iterator<Item = &'a &'b Entry>) -> Vec<PrNumber> {
    found.map(|other| other.pr).take(NAMED).collect()
}

fn view<'a>(queue: &'a Queue, entry: &'a Entry, ahead: &Ahead<'_>) -> EntryView<'a> {
    EntryView {
        entry,
        state: entry.state.name(),
        readiness: entry.readiness(&queue.header),
        waits: waits(queue, entry, ahead),
        run: entry.state.run().and_then(|run| queue.run(run)),
        position: (entry.place != LinePosition::Outside).then_some(ahead.count + 1),
    }
}

/// The reason that stops the whole queue: a pause or an outage of the host.
fn stopped(queue: &Queue) -> Option<WaitReason> {
    let paused = match &queue.header.state {
        QueueState::Paused { by, reason, .. } => {
            Some(WaitReason::QueuePaused { by: by.to_string(), reason: reason.clone() })
        }
        QueueState::Running | QueueState::Draining | QueueState::SwitchingModes { .. } => None,
    };
    paused.or_else(|| unreachable(queue))
}

/// The red target that holds the line.
fn red_target(queue: &Queue) -> Option<WaitReason> {
    let RedTarget { tests, since, until, .. } = red::in_force(queue)?.clone();
    Some(WaitReason::TargetRed { tests, since, until })
}

/// The freeze that is in force.
pub(super) fn freeze(queue: &Queue) -> Option<WaitReason> {
    let Freeze { until, reason } = frozen::in_force(queue)?.clone();
    Some(WaitReason::Frozen { until, reason })
}

/// The freeze with a scope that keeps an entry outside the line.
fn partial_freeze(queue: &Queue, entry: &Entry) -> Option<WaitReason> {
    let freeze = frozen::excluding(queue, entry).filter(|_| queue.header.state.lets_in());
    let PartialFreeze { until, reason, .. } = freeze?.clone();
    Some(WaitReason::Frozen { until, reason })
}

/// What keeps entries in the line from being tested, apart from urgent ones.
fn held(queue: &Queue) -> Option<WaitReason> {
    let tests = queue.header.settings.test_while_frozen;
    red_target(queue).or_else(|| freeze(queue).filter(|_| !tests))
}

/// The cycle of dependencies that an entry is part of, if it waits for dependencies.
fn dependency_cycle(queue: &Queue, entry: &Entry, missing: &WaitReason) -> Option<WaitReason> {
    let WaitReason::Dependencies { .. } = missing else { return None };
    let prs = dependencies::cycle(queue, entry.pr, entry.waits_for())?;
    Some(WaitReason::DependencyCycle { prs })
}

/// The limit for its author, if that keeps an entry outside the line.
fn author_limit(queue: &Queue, entry: &Entry, ahead: &Ahead<'_>) -> Option<WaitReason> {
    let settings = &queue.header.settings;
    let (limit, author) = (settings.author_limit, quota::limited(settings, entry)?);
    let own = ahead.of_authors.get(author)?;
    let is_reached = own.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
    let prs = own.iter().take(NAMED).copied().collect();
    (is_reached && queue.header.state.lets_in()).then(|| WaitReason::AuthorLimit {
        author: author.to_owned(),
        limit,
        prs,
    })
}

/// The quota that its author has used up, if that keeps an entry outside the line.
fn author_quota(queue: &Queue, entry: &Entry) -> Option<WaitReason> {
    let UsedUp { quota, limit, until } =
        quota::used_up(queue, entry).filter(|_| queue.header.state.lets_in())?;
    let author = quota::limited(&queue.header.settings, entry)?.to_owned();
    let of = quota.setting().to_owned();
    Some(WaitReason::Quota { author, of, limit, until })
}

fn unreachable(queue: &Queue) -> Option<WaitReason> {
    let host = &queue.header.host;
    let since = host.unreachable_since?;
    let Some(trouble) = &host.trouble else {
        return Some(WaitReason::HostUnreachable { since, detail: String::new() });
    };
    let detail = trouble.words.clone();
    Some(match trouble.kind {
        HostTroubleKind::Unreachable => WaitReason::HostUnreachable { since, detail },
        HostTroubleKind::AccessDenied => WaitReason::HostAccessDenied { since, detail },
        HostTroubleKind::CredentialRejected => WaitReason::HostCredentialRejected { since, detail },
    })
}

fn waits(queue: &Queue, entry: &Entry, ahead: &Ahead<'_>) -> Option<WaitReason> {
    let header = &queue.header;
    let run = entry.state.run().and_then(|run| queue.run(run));
    Some(match &entry.state {
        EntryState::Ended(_) => return None,
        EntryState::NotReady => entry
            .readiness(header)
            .missing()
            .map(|missing| dependency_cycle(queue, entry, &missing).unwrap_or(missing))
            .or_else(|| stopped(queue))
            .or_else(|| partial_freeze(queue, entry))
            .or_else(|| author_limit(queue, entry, ahead))
            .or_else(|| author_quota(queue, entry))
            .unwrap_or(match &header.state {
                QueueState::SwitchingModes { .. } => WaitReason::QueueSwitchingModes,
                QueueState::Running | QueueState::Paused { .. } | QueueState::Draining => {
                    WaitReason::QueueDraining
                }
            }),
        EntryState::Pending { held_by: Some(pr), .. } => WaitReason::ConflictWithAhead { pr: *pr },
        EntryState::Pending { held_by: None, .. } => {
            let held_itself = || held(queue).filter(|_| !entry.priority.is_urgent());
            stopped(queue).or_else(held_itself).unwrap_or_else(|| {
                let reason = waits_for_its_turn(queue, entry, ahead);
                // An urgent one behind one that is held.
                held(queue).filter(|_| reason == WaitReason::Unexplained).unwrap_or(reason)
            })
        }
        EntryState::Testing { .. } => {
            unreachable(queue).unwrap_or_else(|| waits_for_checks(queue, entry, run))
        }
        EntryState::TestsPassed { .. } => stopped(queue).unwrap_or_else(|| {
            if let Some(batch) = entry.aside() {
                return WaitReason::BatchBisected { prs: bisected(queue, batch) };
            }
            let prs = run.map(|run| ahead.under(run)).unwrap_or_default();
            if !prs.is_empty() {
                return WaitReason::PredecessorTesting { prs };
            }
            let prs = run.map(|run| not_passed(queue, run)).unwrap_or_default();
            if prs.is_empty() {
                waits_for_landing(queue, run, ahead)
            } else {
                WaitReason::SuccessorTesting { prs }
            }
        }),
        EntryState::PendingFailure { .. } => {
            let prs = run.map(|run| ahead.under(run)).unwrap_or_default();
            if !prs.is_empty() {
                return Some(WaitReason::PredecessorTesting { prs });
            }
            let depth = lanes::failure_window(queue);
            let window = run.and_then(|run| lanes::absolver(queue, run));
            stopped(queue).unwrap_or(match window {
                Some(_) => WaitReason::SuccessorWindow { depth },
                None => WaitReason::Unexplained,
            })
        }
    })
}

/// The pull requests of a batch beside the line that have not passed.
fn bisected(queue: &Queue, batch: u64) -> Vec<PrNumber> {
    let members = lanes::in_line(queue).filter(|it| it.aside() == Some(batch));
    let open = members.filter(|it| !matches!(it.state, EntryState::TestsPassed { .. }));
    open.map(|it| it.pr).take(NAMED).collect()
}

/// The pull requests that a run's candidate contains besides its group, and that have not passed.
fn not_passed(queue: &Queue, run: &TestRun) -> Vec<PrNumber> {
    let contained = run.ahead.iter().filter_map(|(_, pr)| queue.entry_of(*pr));
    let open = contained.filter(|it| !matches!(it.state, EntryState::TestsPassed { .. }));
    open.map(|it| it.pr).take(NAMED).collect()
}

/// Why a passed entry has not landed, although everything in its candidate has passed.
fn waits_for_landing(queue: &Queue, run: Option<&TestRun>, ahead: &Ahead<'_>) -> WaitReason {
    let header = &queue.header;
    let landing = header.landing.as_ref();
    if landing.is_some_and(|landing| run.is_some_and(|run| landing.runs.contains(&run.id))) {
        return WaitReason::Landing;
    }
    if header.target.missing {
        return WaitReason::TargetBranchMissing;
    }
    let held = freeze(queue).filter(|_| run.is_some_and(|run| frozen::holds_landing(queue, run)));
    let reason =
        held.or_else(|| behind_landing(queue)).or_else(|| behind_passed(queue, run?, ahead));
    reason.unwrap_or(match &header.target.head {
        Some(_) => WaitReason::Unexplained,
        None => WaitReason::TargetUnknown,
    })
}

/// What the passed entries in a run's candidate wait for that have passed by other runs: these land
/// first, and may contain entries that the candidate omits.
fn behind_passed(queue: &Queue, run: &TestRun, ahead: &Ahead<'_>) -> Option<WaitReason> {
    let (mut seen, mut open) = (BTreeSet::from([run.id]), vec![run]);
    while let Some(next) = open.pop() {
        let prs = ahead.under(next);
        if !prs.is_empty() {
            return Some(WaitReason::PredecessorTesting { prs });
        }
        let contained = next.ahead.iter().filter_map(|(_, pr)| queue.entry_of(*pr)?.state.run());
        open.extend(contained.filter(|by| seen.insert(*by)).filter_map(|by| queue.run(by)));
    }
    None
}

fn behind_landing(queue: &Queue) -> Option<WaitReason> {
    let landing = queue.header.landing.as_ref()?;
    let run = queue.run(landing.run);
    let live = run.into_iter().flat_map(TestRun::prs).filter(|pr| queue.entry_of(*pr).is_some());
    Some(WaitReason::BehindLanding { prs: live.take(NAMED).collect() })
}

/// Why an entry in the line has no run.
fn waits_for_its_turn(queue: &Queue, entry: &Entry, ahead: &Ahead<'_>) -> WaitReason {
    let (header, settings) = (&queue.header, &queue.header.settings);
    if header.target.missing {
        return WaitReason::TargetBranchMissing;
    }
    if header.target.head.is_none() {
        return WaitReason::TargetUnknown;
    }
    let prs: Vec<PrNumber> = bisect::waits_for(queue, entry).take(NAMED).collect();
    if !prs.is_empty() {
        let has_passed = |it: &Entry| matches!(it.state, EntryState::TestsPassed { .. });
        let all_passed = prs.iter().all(|pr| queue.entry_of(*pr).is_some_and(has_passed));
        return freeze(queue)
            .filter(|_| all_passed)
            .unwrap_or(WaitReason::PredecessorTesting { prs });
    }
    if let Some(part) = &entry.part
        && parts::follows(queue, part)
    {
        let prs = ahead.before_part(queue, entry);
        if prs.is_empty() {
            return WaitReason::Unexplained;
        }
        return WaitReason::PredecessorTesting { prs };
    }
    if let Some(part) = &entry.part {
        let mut prs = parts::left_under_test(queue, entry, part);
        prs.truncate(NAMED);
        if !prs.is_empty() {
            return WaitReason::PredecessorTesting { prs };
        }
    }
    let of_bisections = settings.bisection_concurrency;
    let has_own_slots = entry.is_bisected() && of_bisections > 0;
    let (used, limit) =
        if has_own_slots { (queue.slots_used().1, of_bisections) } else { queue.slots_of_line() };
    if used >= limit {
        let (most, ahead) = (settings.concurrency, ahead.waiting);
        return match window::in_force(queue).filter(|_| !has_own_slots) {
            Some(window) => WaitReason::WindowClosed { used, window, limit: most, ahead },
            None => WaitReason::SlotsFull { used, limit, ahead },
        };
    }
    if let Some(Filling { have, most, until }) = batch::filling(queue, entry) {
        return WaitReason::BatchFilling { have, target: most, until };
    }
    match lanes::blocker(queue, entry) {
        Some(by) => ahead.blockers_of(queue, entry, by),
        None => match ahead.capacities.keeps_waiting(entry) {
            Some(Full { target, used, limit }) => WaitReason::TargetFull { target, used, limit },
            None => behind_landing(queue).unwrap_or(WaitReason::Unexplained),
        },
    }
}

fn waits_for_checks(queue: &Queue, entry: &Entry, run: Option<&TestRun>) -> WaitReason {
    let Some(run) = run else { return WaitReason::RequiredChecksUnknown };
    if run.status == RunStatus::Building {
        return WaitReason::BuildingCandidate;
    }
    if run.required.is_none() {
        return WaitReason::RequiredChecksUnknown;
    }
    let names = || -> Vec<String> { run.unreported().map(ToOwned::to_owned).collect() };
    if let Some(until) = run.reports_until() {
        let names = run.awaited_reports().map(|(check, _)| check.name.clone()).collect();
        return WaitReason::AwaitingReports { names, until };
    }
    if let Some(retry) = run.retrying() {
        return WaitReason::Retrying {
            class: retry.class.as_str().to_owned(),
            attempt: entry.retries.of(retry.class),
            of: retry.class.budget(&queue.header.settings),
            evidence: retry.evidence.clone(),
        };
    }
    match (run.built_at, run.queued()) {
        (Some(since), _) if !run.silent.is_empty() && run.unreported().next().is_some() => {
            WaitReason::ChecksSilent { names: names(), since }
        }
        (Some(since), Some(names)) => WaitReason::ChecksQueued { names, since },
        _ => {
            let (done, of) = run.progress();
            let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
            WaitReason::ChecksRunning { done: count(done), of: count(of) }
        }
    }
}

impl Queue {
    /// The occupied and all test slots of the line. Its slots are the adaptive window, or else the
    /// concurrency; bisections occupy them, too, if they have none of their own.
    pub fn slots_of_line(&self) -> (u32, u32) {
        let (main, bisection) = self.slots_used();
        let shared = self.header.settings.bisection_concurrency == 0;
        (main + if shared { bisection } else { 0 }, window::limit(self))
    }

    /// The occupied slots: by runs of the main line, and by runs of bisections.
    pub fn slots_used(&self) -> (u32, u32) {
        lanes::running(self)
    }
}
