//! Injected faults.

use std::collections::BTreeMap;

use signalbox_domain::ports::HostError;
use signalbox_domain::time::Timestamp;

/// The calls that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    /// Whether a repository exists.
    Locate,
    /// Reading a pull request.
    PullRequest,
    /// Reading a branch's head.
    Head,
    /// Listing the paths that a pull request changes.
    ChangedPaths,
    /// Reading the required statuses.
    RequiredStatuses,
    /// Building a candidate.
    BuildCandidate,
    /// Landing a candidate.
    Land,
    /// Looking for landings on the target.
    Contained,
    /// Proving a landing again.
    Prove,
    /// Deleting a test branch.
    DeleteBranch,
    /// Listing test branches.
    TestBranches,
    /// Running checks.
    RunChecks,
}

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The host does not answer and has done nothing.
    Unavailable,
    /// The call succeeds, but its answer is lost.
    AnswerLost,
    /// The rate limit is exceeded until this time.
    RateLimited(Timestamp),
    /// The host denies access.
    AccessDenied,
    /// The host rejects the credential.
    CredentialRejected,
    /// The host refuses the change.
    Rejected,
    /// The object does not exist.
    NotFound,
    /// A branch or an object is not in the expected state.
    Conflict,
}

impl Failure {
    fn error(self) -> HostError {
        let words = "a planned fault".to_owned();
        match self {
            Self::Unavailable | Self::AnswerLost => HostError::Unavailable { words },
            Self::RateLimited(retry_at) => HostError::RateLimited { retry_at },
            Self::AccessDenied => HostError::AccessDenied { words },
            Self::CredentialRejected => HostError::CredentialRejected { words },
            Self::Rejected => HostError::Rejected { words },
            Self::NotFound => HostError::NotFound { what: words },
            Self::Conflict => HostError::Conflict { what: words },
        }
    }
}

/// The planned faults, and the number of calls of each kind.
#[derive(Debug, Default)]
pub(super) struct Faults {
    pub(super) down: bool,
    planned: BTreeMap<(Call, u32), Failure>,
    made: BTreeMap<Call, u32>,
}

impl Faults {
    /// Plans the failure of the `nth` call from now on, counted from 1.
    pub(super) fn plan(&mut self, call: Call, nth: u32, failure: Failure) {
        let nth = self.made(call) + nth;
        self.planned.insert((call, nth), failure);
    }

    /// Drops all planned faults.
    pub(super) fn forget(&mut self) {
        self.planned.clear();
    }

    pub(super) fn made(&self, call: Call) -> u32 {
        self.made.get(&call).copied().unwrap_or(0)
    }

    /// Counts a call. `Err`: it fails without an effect. `Ok(Some(_))`: it takes effect, but the
    /// caller gets this error.
    pub(super) fn meet(&mut self, call: Call) -> Result<Option<HostError>, HostError> {
        let made = self.made.entry(call).or_default();
        *made += 1;
        let planned = self.planned.remove(&(call, *made));
        if self.down {
            return Err(Failure::Unavailable.error());
        }
        match planned {
            Some(Failure::AnswerLost) => Ok(Some(Failure::AnswerLost.error())),
            Some(failure) => Err(failure.error()),
            None => Ok(None),
        }
    }
}
