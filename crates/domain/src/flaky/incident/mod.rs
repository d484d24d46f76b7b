//! Incidents: many tests that fail together for a reason that is not theirs.
//!
//! [`assess`] looks at an upload before it is counted: whether it is the start of an incident, a part
//! of one, or shows how one ended. While an incident [excludes](IncidentState::excludes) failures,
//! these feed no monitor and no rate. `docs/domain/flaky.md` says how an incident differs from a
//! regression, which must be seen.

mod assess;
mod history;
mod key;
mod recount;

use std::fmt;

use uuid::Uuid;

use crate::ids::{OrgId, RepoId};
use crate::time::Timestamp;
use crate::words::words;

use super::{Actor, Refusal, SameCode, TestId, UploadId};

pub use assess::{Assessment, Failing, Ran, UploadLook, assess};
pub use history::FailureHistory;
pub use key::{FailureKey, failure_keys};
pub use recount::{Recount, failures_of};

/// The public name of the event that an incident is new or has another state.
pub const INCIDENT_CHANGED: &str = "test_incident.status_changed";

/// The id of an incident: UUID version 5 of the repository and the upload that showed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct IncidentId(pub Uuid);

impl IncidentId {
    /// The id of the incident that an upload showed.
    pub fn of(repo: RepoId, upload: UploadId) -> Self {
        Self(Uuid::new_v5(&repo.0, format!("incident {upload}").as_bytes()))
    }
}

impl fmt::Display for IncidentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

words!(
    /// The status of an incident.
    IncidentState {
        /// Tests failed together as they never do; whether they are to blame is open.
        Suspected = "suspected",
        /// Its tests passed again on the same commit.
        Recovered = "recovered",
        /// Its tests stay red on later commits: the code is to blame.
        Regression = "regression",
        /// A user confirmed it.
        Confirmed = "confirmed",
        /// A person dismissed it: the failures are those of the tests.
        Dismissed = "dismissed",
    }
);

impl IncidentState {
    /// Whether its failures feed neither monitors nor rates.
    pub const fn excludes(self) -> bool {
        match self {
            Self::Suspected | Self::Recovered | Self::Confirmed => true,
            Self::Regression | Self::Dismissed => false,
        }
    }

    /// Whether a user decided, so that uploads no longer change it.
    pub const fn is_decided(self) -> bool {
        matches!(self, Self::Confirmed | Self::Dismissed)
    }
}

words!(
    /// How an incident was recognized.
    IncidentCause {
        /// Tests that rarely fail failed with the same message, in the same place or on the same
        /// host.
        SharedFailure = "shared_failure",
        /// Far more tests failed than do in the repository's usual upload.
        FailureJump = "failure_jump",
        /// Many tests failed together that had never failed before.
        NeverFailedBefore = "never_failed_before",
    }
);

/// The most tests by which an incident is recognized again.
const MAX_SAMPLE: usize = 200;
/// The most codes, branches and keys of an incident that are remembered, the newest ones.
const MAX_REMEMBERED: usize = 64;

/// What a user decided about an incident.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct IncidentDecision {
    /// Who.
    pub by: Actor,
    /// When.
    pub at: Timestamp,
    /// Why, at most 256 characters.
    pub reason: Option<String>,
}

/// Many tests that failed together.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Incident {
    /// Its id.
    pub id: IncidentId,
    /// The organization.
    pub org: OrgId,
    /// The repository.
    pub repo: RepoId,
    /// Its status.
    pub state: IncidentState,
    /// How it was recognized.
    pub cause: IncidentCause,
    /// What its failures have in common, or the most frequent failure; at most 160 characters.
    pub summary: String,
    /// The first failure.
    pub started_at: Timestamp,
    /// The last upload with a failure.
    pub last_at: Timestamp,
    /// When the state last changed.
    pub since: Timestamp,
    /// Uploads with a failure.
    pub uploads: u32,
    /// Failures: tests, counted once for each upload in which they failed.
    pub failures: u32,
    /// What a user decided.
    pub decision: Option<IncidentDecision>,
    /// Some of its tests, at most 200, in order: their later results decide its status.
    pub sample: Vec<TestId>,
    /// The codes on which they failed, the newest last.
    pub codes: Vec<SameCode>,
    /// The branches on which they failed, the newest last.
    pub branches: Vec<String>,
    /// The jobs in which they failed, the newest last.
    pub jobs: Vec<String>,
    /// Digests of what failures have in common, the newest last.
    pub keys: Vec<String>,
    /// Uploads after the first in which nearly all of the sample failed again.
    pub red: u32,
    /// Codes of those uploads, the newest last.
    pub red_codes: Vec<SameCode>,
    /// Whether its tests passed again on the same commit in the same job, so that it is no
    /// regression.
    pub proven: bool,
}

impl Incident {
    /// The incident as a user decides: `true` confirms, `false` dismisses it.
    pub fn decided(
        &self,
        confirm: bool,
        reason: Option<String>,
        by: Actor,
        at: Timestamp,
    ) -> Result<Self, Refusal> {
        let too_long = reason.as_ref().is_some_and(|it| it.chars().count() > super::MAX_REASON);
        if too_long {
            let rule = format!("must have at most {} characters", super::MAX_REASON);
            return Err(Refusal::setting("reason", rule));
        }
        let state = if confirm { IncidentState::Confirmed } else { IncidentState::Dismissed };
        let since = if self.state == state { self.since } else { at };
        let decision = Some(IncidentDecision { by, at, reason });
        Ok(Self { state, since, decision, ..self.clone() })
    }

    fn moved(&mut self, state: IncidentState, at: Timestamp) {
        if self.state != state {
            (self.state, self.since) = (state, at);
        }
    }
}

/// Adds to a list of different values, of which the newest are kept.
fn remember<T: PartialEq>(list: &mut Vec<T>, value: T) {
    list.retain(|known| *known != value);
    list.push(value);
    let surplus = list.len().saturating_sub(MAX_REMEMBERED);
    list.drain(..surplus);
}
