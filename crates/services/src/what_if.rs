//! What-if: the last days of a queue, simulated with other settings.

use std::sync::{Arc, Mutex, PoisonError};

use signalbox_domain::ids::{BranchName, OrgId, RepoName};
use signalbox_domain::ports::{Clock, EntryFilter, QueueRef};
use signalbox_domain::queue::{Entry, Mode, Move, Settings, SettingsPatch, SharedPolicy, Targets};
use signalbox_domain::shares::Shares;
use signalbox_domain::time::{Span, Timestamp, Window};
use signalbox_domain::token::Caller;
use signalbox_simulator::{
    AreaNumbers, Areas, Conditions, Effort, History, PastStay, PastStep, Replay, SimulationError,
};

use super::{Error, QueueService};

/// The maximum number of pull requests of a history; the last submitted ones are simulated.
const MOST: u32 = 1_000;
/// The maximum number of moves of a pull request; the newest are read, as for a timeline.
const MOST_MOVES: u32 = 200;
/// The number of pull requests whose targets are read together.
const AT_A_TIME: usize = 5;
/// The maximum number of targets of all submissions together.
const MOST_TARGETS: usize = 100_000;
/// The number of seeds, if the time suffices for them.
const SEEDS: u32 = 20;
/// The maximum number of seconds of a simulation, with the reading of the history.
const MOST_SECONDS: u32 = 10;
/// The time until the git host answers, in seconds.
const HOST_SECONDS: u32 = 2;

/// The simulations that run at the same time: each keeps a core busy.
const PLACES: u64 = 2;
/// How many of them may be of one organization.
const PLACES_OF_ONE: u64 = 1;

/// Simulates the histories of queues, a few at a time.
pub struct WhatIf {
    queues: Arc<QueueService>,
    places: Arc<Places>,
    most: u32,
}

/// A simulation that can be run.
pub struct Question {
    since: Timestamp,
    settings: Settings,
    changed: Settings,
    policy: SharedPolicy,
    past: Vec<Past>,
    clock: Arc<dyn Clock>,
    until: Timestamp,
    _place: Place,
}

type Places = Mutex<Shares<OrgId>>;

/// The place of a simulation, until it is dropped.
struct Place {
    places: Arc<Places>,
    org: OrgId,
}

impl Place {
    fn take(places: &Arc<Places>, org: OrgId) -> Result<Self, Error> {
        let mut shares = places.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = shares.take(1, &[(org, PLACES_OF_ONE)]);
        taken.map(|()| Self { places: places.clone(), org }).map_err(|_| Error::Simulating)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut shares = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        shares.give_back(1, [self.org]);
    }
}

/// A pull request that has left the queue: its moves, oldest first, and what it changes.
struct Past {
    entry: Entry,
    moves: Vec<Move>,
    areas: Option<Areas>,
}

impl WhatIf {
    /// The maximum number of days.
    pub const MOST_DAYS: u32 = 30;
    /// The default number of days.
    pub const DAYS: u32 = 14;

    /// Creates the service.
    pub fn new(queues: Arc<QueueService>) -> Self {
        Self { queues, places: Arc::new(Mutex::new(Shares::new(PLACES))), most: MOST }
    }

    /// With at most so many pull requests in a history.
    #[must_use]
    pub fn at_most(self, most: u32) -> Self {
        Self { most, ..self }
    }

    /// Reads what a queue did in the last days, to compare its settings with changed ones: the pull
    /// requests that left it, of which only the 1,000 that were submitted last are read. Refused while
    /// another simulation of the organization runs, or two of others.
    pub async fn question(
        &self,
        caller: &Caller,
        repo: &RepoName,
        branch: &BranchName,
        days: u32,
        change: SettingsPatch,
    ) -> Result<Question, Error> {
        let (queue_ref, queue) = self.queues.read(caller, repo, branch).await?;
        let settings = Settings::clone(&queue.header.settings);
        let changed = change.applied_to(&settings)?;
        let place = Place::take(&self.places, caller.org)?;
        let clock = self.queues.context().clock.clone();
        let now = clock.now();
        let mut question = Question {
            since: now.minus(Span::days(days)),
            settings,
            changed,
            policy: self.queues.stepper.policy.clone(),
            past: Vec::new(),
            clock,
            until: now.plus(Span::seconds(MOST_SECONDS)),
            _place: place,
        };
        self.read(&mut question, queue_ref).await?;
        Ok(question)
    }

    async fn read(&self, question: &mut Question, queue: QueueRef) -> Result<(), Error> {
        let history = &self.queues.context().stores.history;
        let left = Window { since: Some(question.since), until: None };
        let filter = EntryFilter { state: None, concluded: Some(left) };
        let entries = history.entries_by_submission(queue, &filter, None, self.most).await?;
        if let Some(last) = entries.last().filter(|_| entries.len() >= size(self.most)) {
            // Of earlier days, only what was submitted again later was read.
            question.since = question.since.max(last.submitted_at);
        }
        for entry in entries {
            question.check()?;
            let mut moves = history.moves_of(queue, entry.id, MOST_MOVES).await?;
            moves.reverse();
            question.past.push(Past { entry, moves, areas: None });
        }
        if [&question.settings, &question.changed].iter().all(|it| it.mode == Mode::Single) {
            return Ok(());
        }
        let (mut numbers, mut targets) = (AreaNumbers::default(), 0);
        let (clock, until) = (question.clock.clone(), question.until);
        for past in question.past.chunks_mut(AT_A_TIME) {
            in_time(&*clock, until)?;
            let prs: Vec<_> = past.iter().map(|it| it.entry.pr).collect();
            let found = history.entries(queue, &prs).await?;
            for past in past {
                let with_targets = found.iter().find(|entry| entry.id == past.entry.id);
                past.areas = with_targets.and_then(|entry| areas(entry, &mut numbers));
                let ends = past.moves.iter().filter(|it| it.to.is_terminal()).count();
                targets += ends * past.areas.as_ref().map_or(0, Areas::count);
                if targets > MOST_TARGETS {
                    let rule = "its pull requests have more than 100,000 targets";
                    return Err(SimulationError::Replay { rule }.into());
                }
            }
        }
        Ok(())
    }
}

fn size(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// What a pull request changes, as last reported; `None` if its targets were never reported.
fn areas(entry: &Entry, numbers: &mut AreaNumbers) -> Option<Areas> {
    match &entry.targets.as_ref()?.targets {
        Targets::All => Some(Areas::All),
        Targets::Only(names) => Some(numbers.of(names.iter())),
    }
}

fn in_time(clock: &dyn Clock, until: Timestamp) -> Result<(), SimulationError> {
    if clock.now() < until { Ok(()) } else { Err(SimulationError::Stopped) }
}

impl Question {
    fn check(&self) -> Result<(), SimulationError> {
        in_time(&*self.clock, self.until)
    }

    /// Runs the simulation, which keeps a thread busy until the ten seconds since the question began are
    /// over.
    pub fn answer(mut self) -> Result<Replay, Error> {
        let past = std::mem::take(&mut self.past);
        let stays = past.into_iter().flat_map(|it| it.stays(self.since)).collect();
        let conditions = Conditions { host_seconds: HOST_SECONDS, ..Conditions::default() };
        let changed = History::choice(&self.changed)?.with_policy(self.policy.clone());
        let history = History::new(Some(&self.settings), stays, conditions, None)?;
        let history = history.with_policy(self.policy.clone());
        let may_continue = || self.check().is_ok();
        let effort = Effort { seeds: SEEDS, may_continue: &may_continue };
        Ok(Replay::new(&history, vec![changed], effort)?)
    }
}

impl Past {
    fn stays(&self, since: Timestamp) -> Vec<PastStay> {
        let steps = self.moves.iter();
        let steps =
            steps.map(|it| PastStep { at: it.at, state: it.to, reason: it.reason.as_str() });
        let (number, priority) = (self.entry.pr.0, Some(self.entry.priority));
        let mut stays = PastStay::all(number, priority, steps, since);
        for stay in &mut stays {
            stay.areas.clone_from(&self.areas);
            stay.author.clone_from(&self.entry.pull_request.author);
        }
        stays
    }
}
