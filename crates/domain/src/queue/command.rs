//! What somebody asks of a queue. A command may be refused.

use std::fmt;

use crate::ids::PrNumber;

use crate::time::Timestamp;

use super::{Priority, PullRequest, ReportedTargets, RequestedState, SettingsPatch, SubmitReason};

/// Who did something.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Actor {
    /// A caller of the API, by its token's name.
    Token(String),
    /// A person on the git host, by login.
    User(String),
    /// The git host itself.
    Host,
    /// The queue, on its own rules.
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
    /// Reads what `Display` writes. What is no token, host or queue is a login: those have no spaces.
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

/// Actors as text, which is how the journal stores them.
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
    /// When the host was asked.
    pub read_at: Timestamp,
    /// Targets that were reported before the submission.
    pub targets: Option<ReportedTargets>,
    /// `None`: the default for a new entry, no change for a live one.
    pub priority: Option<Priority>,
    /// Whether it must be tested alone; `None` as for `priority`.
    pub no_batch: Option<bool>,
    /// Whether it enters the line whatever the host says about merging it.
    #[cfg_attr(feature = "serde", serde(default))]
    pub force: bool,
    /// How the request came.
    pub reason: SubmitReason,
    /// Who asks.
    pub by: Actor,
}

impl Submission {
    /// A builder of a submission of a pull request as the host showed it at `read_at`. It comes by the
    /// API, has the default priority and may share a batch.
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

/// Makes a [`Submission`].
#[derive(Clone, Debug)]
pub struct SubmissionBuilder(Submission);

impl SubmissionBuilder {
    /// The impacted targets, which a queue in PARALLEL mode waits for.
    #[must_use]
    pub fn targets(mut self, targets: impl Into<Option<ReportedTargets>>) -> Self {
        self.0.targets = targets.into();
        self
    }

    /// Its priority.
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

    /// Whether it enters the line whatever the host says about merging it.
    #[must_use]
    pub const fn force(mut self, force: bool) -> Self {
        self.0.force = force;
        self
    }

    /// How the request came.
    #[must_use]
    pub const fn reason(mut self, reason: SubmitReason) -> Self {
        self.0.reason = reason;
        self
    }

    /// The submission.
    pub fn build(self) -> Submission {
        self.0
    }
}

impl From<Submission> for Command {
    fn from(submission: Submission) -> Self {
        Self::Submit(Box::new(submission))
    }
}

/// What somebody asks of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Command {
    /// Put a pull request into the queue, or change its priority there.
    Submit(Box<Submission>),
    /// Take a pull request out of the queue.
    Cancel {
        /// Which one.
        pr: PrNumber,
        /// Who asks.
        by: Actor,
    },
    /// Test a pull request once more, in its place.
    Restart {
        /// Which one.
        pr: PrNumber,
        /// Who asks.
        by: Actor,
    },
    /// Say which targets a pull request touches; it need not be in the queue yet.
    SetTargets {
        /// Which one.
        pr: PrNumber,
        /// What it touches.
        targets: ReportedTargets,
    },
    /// Change settings, the state, or both.
    Update {
        /// New values of settings.
        settings: Box<SettingsPatch>,
        /// A new state.
        state: Option<RequestedState>,
        /// The reason, shown on every pull request that waits.
        reason: Option<String>,
        /// Who asks.
        by: Actor,
    },
    /// Delete the queue; refused while it has entries.
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
            Self::Delete => "delete",
        }
    }
}
