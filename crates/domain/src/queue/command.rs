//! Commands: requests to change a queue, which the planner may refuse.

use std::fmt;

use crate::ids::PrNumber;

use crate::time::Timestamp;

use super::{
    ChangeSource, ExternalReport, Priority, PullRequest, ReportedTargets, RequestedState,
    SettingsPatch, SubmitReason,
};

/// Who caused a change. `Display` gives `token NAME`, a login, `git host` or `merge queue`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Actor {
    /// A caller of the API, by its token's name.
    Token(String),
    /// A user of the git host, by login.
    User(String),
    /// The git host itself.
    Host,
    /// The queue, by its own rules.
    Queue,
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token(name) => write!(f, "token {name}"),
            Self::User(login) => f.write_str(login),
            Self::Host => f.write_str(HOST),
            Self::Queue => f.write_str(QUEUE),
        }
    }
}

const HOST: &str = "git host";
const QUEUE: &str = "merge queue";

impl Actor {
    /// Parses what `Display` writes. Any other text is a login, which contains no space.
    pub fn parse(text: &str) -> Self {
        match text {
            HOST => Self::Host,
            QUEUE => Self::Queue,
            _ => text
                .strip_prefix("token ")
                .map_or_else(|| Self::User(text.to_owned()), |name| Self::Token(name.to_owned())),
        }
    }
}

/// Serializes actors as text, as the journal stores them.
#[cfg(feature = "serde")]
pub(super) mod actor_text {
    use serde::{Deserialize as _, Deserializer, Serializer};

    use super::Actor;

    pub(crate) fn serialize<S: Serializer>(actor: &Actor, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(actor)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Actor, D::Error> {
        String::deserialize(from).map(|text| Actor::parse(&text))
    }
}

/// A request to test and merge a pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Submission {
    /// The pull request as the host shows it now.
    pub pull_request: PullRequest,
    /// When the host was read; older reads never overwrite newer ones.
    pub read_at: Timestamp,
    /// The impacted targets, if they were reported before the submission.
    pub targets: Option<ReportedTargets>,
    /// `None` gives a new entry the default and leaves a live one unchanged.
    pub priority: Option<Priority>,
    /// Whether it must be tested alone; `None` has the same meaning as for `priority`.
    pub no_batch: Option<bool>,
    /// Whether it enters the line even if the host reports it as not mergeable.
    #[cfg_attr(feature = "serde", serde(default))]
    pub force: bool,
    /// The channel of the request: the host, an operator or the API.
    pub reason: SubmitReason,
    /// The caller, recorded in the journal.
    pub by: Actor,
}

impl Submission {
    /// Builds a submission of a pull request that was read from the host at `read_at`. Defaults:
    /// submitted through the API, default priority, may share a batch.
    pub const fn builder(
        pull_request: PullRequest,
        by: Actor,
        read_at: Timestamp,
    ) -> SubmissionBuilder {
        SubmissionBuilder(Self {
            pull_request,
            read_at,
            targets: None,
            priority: None,
            no_batch: None,
            force: false,
            reason: SubmitReason::ApiRequested,
            by,
        })
    }
}

/// Builder of a [`Submission`].
#[derive(Clone, Debug)]
pub struct SubmissionBuilder(Submission);

impl SubmissionBuilder {
    /// The impacted targets, which a queue in PARALLEL mode waits for.
    #[must_use]
    pub fn targets(mut self, targets: impl Into<Option<ReportedTargets>>) -> Self {
        self.0.targets = targets.into();
        self
    }

    /// The priority; the default is 100 for a new entry.
    #[must_use]
    pub fn priority(mut self, priority: impl Into<Option<Priority>>) -> Self {
        self.0.priority = priority.into();
        self
    }

    /// Whether it must be tested alone.
    #[must_use]
    pub fn no_batch(mut self, no_batch: impl Into<Option<bool>>) -> Self {
        self.0.no_batch = no_batch.into();
        self
    }

    /// Whether it enters the line even if the host reports it as not mergeable.
    #[must_use]
    pub const fn force(mut self, force: bool) -> Self {
        self.0.force = force;
        self
    }

    /// The channel of the request: the host, an operator or the API.
    #[must_use]
    pub const fn reason(mut self, reason: SubmitReason) -> Self {
        self.0.reason = reason;
        self
    }

    /// Returns the submission. Every combination is valid.
    pub fn build(self) -> Submission {
        self.0
    }
}

impl From<Submission> for Command {
    fn from(submission: Submission) -> Self {
        Self::Submit(Box::new(submission))
    }
}

/// A request to change a queue. [`decide`](crate::queue::decide) carries it out or refuses it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Command {
    /// Submits a pull request, or changes the priority and batching of a live entry.
    Submit(Box<Submission>),
    /// Cancels a live entry; refused while it is landing.
    Cancel {
        /// The pull request.
        pr: PrNumber,
        /// The caller, recorded in the journal.
        by: Actor,
    },
    /// Tests a pull request again; it keeps its place. Refused unless it is TESTING or
    /// PENDING_FAILURE.
    Restart {
        /// The pull request.
        pr: PrNumber,
        /// The caller, recorded in the journal.
        by: Actor,
    },
    /// Reports the impacted targets of a pull request, which need not be in the queue yet.
    SetTargets {
        /// The pull request.
        pr: PrNumber,
        /// The targets, and the head that they were computed for.
        targets: ReportedTargets,
    },
    /// Changes settings, the state, or both.
    Update {
        /// The settings to change; a patch without values changes none.
        settings: Box<SettingsPatch>,
        /// The requested state; `None` keeps the present one.
        state: Option<RequestedState>,
        /// The reason for a pause, shown on every waiting pull request.
        reason: Option<String>,
        /// The caller, recorded in the journal.
        by: Actor,
        /// The tool that the change came from.
        #[cfg_attr(
            feature = "serde",
            serde(default, skip_serializing_if = "ChangeSource::is_default")
        )]
        source: ChangeSource,
    },
    /// Reports the state of an external check. [`TestRun::accepts`](super::TestRun::accepts) has the
    /// rules of what is refused.
    ReportCheck(Box<ExternalReport>),
    /// Deletes the queue; refused while it has live entries.
    Delete,
}

impl Command {
    /// A short name for logs and metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Submit(_) => "submit",
            Self::Cancel { .. } => "cancel",
            Self::Restart { .. } => "restart",
            Self::SetTargets { .. } => "set_targets",
            Self::Update { .. } => "update",
            Self::ReportCheck(_) => "report_check",
            Self::Delete => "delete",
        }
    }
}
