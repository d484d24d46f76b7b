//! Indexes of runs: how many are active, which have ended and wait to land or to be settled, and
//! when the next one is due.
//!
//! Like [`Waiting`](super::waiting::Waiting) this is derived from the queue and no part of its
//! state.

use std::sync::Arc;

use crate::ids::{PrNumber, RunId, Sha};
use crate::time::Timestamp;

use super::sorted::{SortedMap, SortedSet};
use super::{RunStatus, TestRun};

/// A run by its number, so that sets list earlier runs first.
pub(super) type Numbered = (u64, RunId);

/// The runs by status.
#[derive(Clone, Debug, Default)]
pub(super) struct RunsByStatus {
    /// The active runs: of the main line, and of bisections.
    pub(super) active: (u32, u32),
    /// Failed runs.
    failed: SortedSet<Numbered>,
    /// Passed runs not known to wait for a pull request ahead.
    passed: SortedSet<Numbered>,
    /// Passed runs that cannot land before this pull request changes.
    waiting: SortedMap<RunId, PrNumber>,
    /// The same, by pull request.
    awaited: SortedSet<(PrNumber, Numbered)>,
    /// The runs by the commit of their candidate.
    candidates: SortedSet<(Sha, RunId)>,
    /// When each active run times out, or its silent statuses are recorded.
    due: SortedSet<(Timestamp, RunId)>,
}

/// When an active run needs attention.
fn due(run: &TestRun) -> Option<Timestamp> {
    let running = Some(run).filter(|run| run.status.is_running())?;
    let reports = running.reports_until();
    running.deadline.into_iter().chain(running.silence_due()).chain(reports).min()
}

impl RunsByStatus {
    /// Replaces the old version of a run by the new one.
    pub(super) fn replace(&mut self, old: Option<&TestRun>, new: Option<&TestRun>) {
        let (was, is) = (old.and_then(due), new.and_then(due));
        if was != is {
            let of = |run: Option<&TestRun>, at: Option<Timestamp>| at.zip(run.map(|run| run.id));
            of(old, was).map(|key| self.due.remove(&key));
            if let Some(key) = of(new, is) {
                self.due.insert(key);
            }
        }
        let built = |run: Option<&TestRun>| {
            run.and_then(|run| Some((run.candidate.as_ref()?.sha.clone(), run.id)))
        };
        let (was, is) = (built(old), built(new));
        if was != is {
            was.map(|key| self.candidates.remove(&key));
            if let Some(key) = is {
                self.candidates.insert(key);
            }
        }
        let same = old.zip(new).is_some_and(|(old, new)| {
            std::mem::discriminant(&old.status) == std::mem::discriminant(&new.status)
                && Arc::ptr_eq(&old.ahead, &new.ahead)
        });
        if !same {
            if let Some(old) = old {
                self.remove(old);
            }
            if let Some(new) = new {
                self.add(new);
            }
        }
    }

    fn counter(&mut self, run: &TestRun) -> &mut u32 {
        if run.bisection { &mut self.active.1 } else { &mut self.active.0 }
    }

    fn add(&mut self, run: &TestRun) {
        match run.status {
            RunStatus::Building | RunStatus::Testing => *self.counter(run) += 1,
            RunStatus::Passed => {
                self.passed.insert((run.number, run.id));
            }
            RunStatus::Failed { .. } => {
                self.failed.insert((run.number, run.id));
            }
            RunStatus::Cancelled { .. } => {}
        }
    }

    fn remove(&mut self, run: &TestRun) {
        let key = (run.number, run.id);
        match run.status {
            RunStatus::Building | RunStatus::Testing => *self.counter(run) -= 1,
            RunStatus::Passed => {
                if !self.passed.remove(&key)
                    && let Some(pr) = self.waiting.get(&run.id).copied()
                {
                    self.waiting.remove(&run.id);
                    self.awaited.remove(&(pr, key));
                }
            }
            RunStatus::Failed { .. } => {
                self.failed.remove(&key);
            }
            RunStatus::Cancelled { .. } => {}
        }
    }

    /// The failed runs, earliest first.
    pub(super) fn failed(&self) -> impl Iterator<Item = RunId> {
        self.failed.iter().map(|(_, id)| *id)
    }

    /// The passed runs that may be able to land, earliest first.
    pub(super) fn passed(&self) -> impl Iterator<Item = Numbered> {
        self.passed.iter().copied()
    }

    /// The first run whose candidate is this commit.
    pub(super) fn with_candidate(&self, sha: &Sha) -> Option<RunId> {
        let first = self.candidates.range((sha.clone(), RunId(uuid::Uuid::nil()))..).next();
        first.filter(|(of, _)| of == sha).map(|(_, run)| *run)
    }

    /// When the next run is due.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Records that a passed run cannot land before this pull request changes.
    pub(super) fn wait(&mut self, run: Numbered, pr: PrNumber) {
        if self.passed.remove(&run) {
            self.waiting.insert(run.1, pr);
            self.awaited.insert((pr, run));
        }
    }

    /// Considers again the passed runs that wait for this pull request.
    pub(super) fn wake(&mut self, pr: PrNumber) {
        let first = (pr, (0, RunId(uuid::Uuid::nil())));
        let woken: Vec<Numbered> = self
            .awaited
            .range(first..)
            .take_while(|(awaited, _)| *awaited == pr)
            .map(|(_, run)| *run)
            .collect();
        for run in woken {
            self.awaited.remove(&(pr, run));
            self.waiting.remove(&run.1);
            self.passed.insert(run);
        }
    }
}
