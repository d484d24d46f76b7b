//! Planned faults.

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
    /// Reading the required statuses.
    RequiredStatuses,
    /// Building a candidate.
    BuildCandidate,
    /// Landing one.
    Land,
    /// Looking for landings on the target.
    Contained,
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
    /// The host does not answer, and has done nothing.
    Unavailable,
    /// The host does what was asked, and its answer is lost.
    AnswerLost,
    /// The host wants fewer calls until then.
    RateLimited(Timestamp),
    /// The host does not let this installation do it.
    AccessDenied,
    /// The host does not accept the credential.
    CredentialRejected,
    /// The host says no.
    Rejected,
    /// The host knows no such thing.
    NotFound,
    /// Something is not where it was expected.
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

/// What is planned, and how often each call was made.
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

    /// Drops all plans.
    pub(super) fn forget(&mut self) {
        self.planned.clear();
    }

    pub(super) fn made(&self, call: Call) -> u32 {
        self.made.get(&call).copied().unwrap_or(0)
    }

    /// Counts a call. `Err`: it fails before anything is done; `Ok(Some(_))`: what was asked is
    /// done, and the caller gets that error all the same.
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
