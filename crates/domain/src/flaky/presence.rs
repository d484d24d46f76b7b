//! Whether a test still exists: where stable branches reported it last, and which later runs would have
//! contained it and did not.
//!
//! A run without a test proves nothing on its own: it may be a shard, a part of the tests, or another
//! job. So a run counts only when it reports other tests of the same place, from a job and branch that
//! have reported the test before.

use std::collections::{BTreeMap, BTreeSet};

use data_encoding::HEXLOWER;

use crate::time::{Span, Timestamp};

use super::digest::digest_of;
use super::{
    Admission, RENAMED_AFTER_COMMITS, RENAMED_AFTER_MINUTES, SameCode, TestId, TestKey, Upload,
};

/// Commits without a test, one after the other, after which it retires.
pub const RETIRED_AFTER_COMMITS: u32 = 10;
/// Hours from the first run without a test until it retires, at least.
pub const RETIRED_AFTER_HOURS: u32 = 24;
/// A test that was missing before and came back must be missing for this many times as many commits.
const TIMES_THE_LONGEST_GAP: u32 = 3;
/// The most jobs and branches that are remembered of a test.
const MAX_HOMES: usize = 16;

/// A run of a job on a stable branch: which tests exist there. Runs of pull requests and of uploads
/// without a token are none, so that the author of a change can neither retire a test nor bring it back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StableRun {
    /// The job and the branch; `None` when the job or its matrix entry is unknown.
    home: Option<String>,
    /// Whether it shows which tests are missing: a broken machine may omit any.
    is_sound: bool,
    code: SameCode,
    /// When the commit was made, or the report was received where that is unknown: reports of earlier
    /// commits may arrive late.
    code_at: Timestamp,
    at: Timestamp,
    places: BTreeSet<String>,
}

impl StableRun {
    /// The run that an upload reports, if it is one. `places` are those of its tests.
    pub fn of(upload: &Upload, admission: Admission, places: BTreeSet<String>) -> Option<Self> {
        let code_at = upload.stable_at()?;
        let knows_entry = upload.origin.shared_attempt().is_none();
        let job = upload.origin.job().or_else(|| upload.job_name.clone());
        let job = job.filter(|job| knows_entry && !job.is_empty());
        Some(Self {
            home: job.map(|job| digest(&[&job, &upload.branch])),
            is_sound: admission == Admission::Counts,
            code: upload.code(),
            code_at,
            at: upload.received_at,
            places,
        })
    }

    /// The places of its tests.
    pub fn places(&self) -> Vec<String> {
        self.places.iter().cloned().collect()
    }

    /// When its commit was made, or it was received.
    pub const fn code_at(&self) -> Timestamp {
        self.code_at
    }
}

/// A digest of what surrounds a test: its file, or its class or outermost suite where no file is known;
/// of its variant. `None` when all are unknown.
pub fn place(key: &TestKey) -> Option<String> {
    let parts = [("file", &key.file), ("class", &key.classname), ("suite", &key.parent)];
    let (kind, name) = parts.into_iter().find(|(_, name)| !name.is_empty())?;
    Some(digest(&[kind, name, &key.variant]))
}

/// 64 bits of the parts, in hexadecimal.
fn digest(parts: &[&str]) -> String {
    let digest = digest_of(parts.iter().copied());
    HEXLOWER.encode(digest.get(..8).unwrap_or_default())
}

/// What stable branches show of whether a test exists. It is kept only of tests whose absence would
/// show: unhealthy ones, and ones that something was decided about.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Presence {
    /// What surrounds it: [`place`].
    pub place: String,
    /// The jobs and branches that have reported it, with the newest commit of each; at most 16.
    homes: BTreeMap<String, Timestamp>,
    /// The newest commit that contained it.
    seen_at: Timestamp,
    /// The runs without it since.
    missing: Option<Missing>,
    /// The most commits without it after which it came back.
    longest_gap: u32,
}

/// Runs that would have contained a test and did not.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Missing {
    /// When the first of them was received.
    since: Timestamp,
    /// The first commit.
    first_code_at: Timestamp,
    /// The last run of the first commit: a new name may have appeared in another shard of it.
    first_until: Timestamp,
    /// The last commit.
    last_code_at: Timestamp,
    last_code: SameCode,
    commits: u32,
}

impl Presence {
    /// The presence of a test that a run reports, also as skipped. `None` for a test that nothing
    /// surrounds.
    pub fn seen(before: Option<Self>, key: &TestKey, run: &StableRun) -> Option<Self> {
        let new = |place| Self {
            place,
            homes: BTreeMap::new(),
            seen_at: run.code_at,
            missing: None,
            longest_gap: 0,
        };
        let mut presence = before.or_else(|| place(key).map(new))?;
        presence.seen_at = presence.seen_at.max(run.code_at);
        if let Some(home) = &run.home {
            let last = presence.homes.entry(home.clone()).or_insert(run.code_at);
            *last = (*last).max(run.code_at);
            if presence.homes.len() > MAX_HOMES {
                let oldest = presence.homes.iter().min_by_key(|(_, at)| **at);
                let oldest = oldest.map(|(home, _)| home.clone());
                oldest.map(|home| presence.homes.remove(&home));
            }
        }
        // A report of an older commit that comes late does not show that the test is back.
        let ended = presence.missing.take_if(|missing| missing.first_code_at <= run.code_at);
        // A job that did not contain it on this commit was a shard.
        let commits = |it: Missing| it.commits.saturating_sub(u32::from(it.last_code == run.code));
        presence.longest_gap = presence.longest_gap.max(ended.map_or(0, commits));
        Some(presence)
    }

    /// Counts a run that does not report the test; `false` if that changes nothing, because it would not
    /// have contained it, or its commit is counted already. Each commit counts once, in the order of commits.
    pub fn missed(&mut self, run: &StableRun) -> bool {
        let surrounds = run.home.as_ref().is_some_and(|home| self.homes.contains_key(home))
            && run.places.contains(&self.place);
        if !run.is_sound || !surrounds || run.code_at <= self.seen_at {
            return false;
        }
        match &mut self.missing {
            Some(known) if known.commits == 1 && known.last_code == run.code => {
                known.first_until = known.first_until.max(run.code_at);
            }
            Some(known) if known.last_code == run.code || run.code_at <= known.last_code_at => {
                return false;
            }
            Some(known) => {
                known.commits = known.commits.saturating_add(1);
                (known.last_code, known.last_code_at) = (run.code.clone(), run.code_at);
            }
            None => {
                self.missing = Some(Missing {
                    since: run.at,
                    first_code_at: run.code_at,
                    first_until: run.code_at,
                    last_code_at: run.code_at,
                    last_code: run.code.clone(),
                    commits: 1,
                });
            }
        }
        true
    }

    /// Whether a test that stable branches have contained since that commit may be this one: it appeared
    /// after the job of this run contained this one for the last time, and not later than in the
    /// first commit without this one.
    pub fn could_be(&self, stable_since: Timestamp, run: &StableRun) -> bool {
        let last = run.home.as_ref().and_then(|home| self.homes.get(home));
        let missing = self.missing.as_ref();
        last.is_some_and(|last| *last < stable_since)
            && missing.is_some_and(|missing| stable_since <= missing.first_until)
    }

    /// The retirement of a test that was renamed, if there are enough runs without it.
    pub fn renamed(&self, run: &StableRun, to: TestId, at: Timestamp) -> Option<Retirement> {
        let missing = self.missing.as_ref()?;
        let is_gone = missing.commits >= self.least().max(RENAMED_AFTER_COMMITS)
            && run.at >= missing.since.plus(Span::minutes(RENAMED_AFTER_MINUTES));
        is_gone.then(|| self.retired(Some(to), at)).flatten()
    }

    /// The retirement of a test whose earlier name is back.
    pub fn renamed_back(&self, to: TestId, at: Timestamp) -> Option<Retirement> {
        self.retired(Some(to), at)
    }

    /// Commits without it that are no more than usual, and one.
    const fn least(&self) -> u32 {
        self.longest_gap.saturating_mul(TIMES_THE_LONGEST_GAP).saturating_add(1)
    }

    /// The retirement that follows from the runs without the test, if there are enough of them.
    pub fn retirement(&self, run: &StableRun, at: Timestamp) -> Option<Retirement> {
        let missing = self.missing.as_ref()?;
        let is_gone = missing.commits >= self.least().max(RETIRED_AFTER_COMMITS)
            && run.at >= missing.since.plus(Span::hours(RETIRED_AFTER_HOURS));
        is_gone.then(|| self.retired(None, at)).flatten()
    }

    fn retired(&self, renamed_to: Option<TestId>, at: Timestamp) -> Option<Retirement> {
        let missing = self.missing.as_ref()?;
        Some(Retirement {
            at,
            missing_since: missing.since,
            commits: missing.commits,
            code_at: missing.last_code_at,
            renamed_to,
        })
    }
}

/// A test no longer exists on stable branches. What was found and decided about it is kept, and holds
/// again when it returns.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Retirement {
    /// When it retired.
    pub at: Timestamp,
    /// The first run without it.
    pub missing_since: Timestamp,
    /// Commits without it, one after the other.
    pub commits: u32,
    /// The last of them; a report of an older commit does not bring the test back.
    pub code_at: Timestamp,
    /// The test that it was renamed to.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub renamed_to: Option<TestId>,
}
