//! Which row of the table each error of a use case finds. The operator's causes are logged here,
//! once, and stay out of the reply.

use signalbox_domain::flaky;
use signalbox_domain::ports::{BlobError, HostError, SecretError, StoreError};
use signalbox_domain::queue::Refusal;
use signalbox_services::{Error, UploadError, WebhookError};
use signalbox_simulator::SimulationError;

use crate::problem::{Code, Problem};

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let detail = error.to_string();
        let code = match error {
            Error::Refused(refusal) => return refusal.into(),
            Error::FlakyRefused(refusal) => return refusal.into(),
            Error::UnknownTest { .. } => Code::UnknownTest,
            Error::UnknownIncident { .. } => Code::UnknownIncident,
            Error::UnknownRepository(_) => Code::UnknownRepository,
            Error::UnknownQueue { .. } => Code::UnknownQueue,
            Error::QueueExists { .. } => Code::QueueExists,
            Error::UnknownPullRequest { .. } => Code::UnknownPullRequest,
            Error::NeverSubmitted { .. } => Code::NotInQueue,
            Error::UnknownRun { .. } => Code::UnknownRun,
            Error::MissingScope(_) => Code::MissingScope,
            Error::Busy | Error::Simulating | Error::Issuer(_) => Code::Unavailable,
            Error::Simulation(error) => return error.into(),
            Error::Upload(error) => return error.into(),
            Error::Webhook(error) => return error.into(),
            Error::Host(error) => return error.into(),
            Error::Store(error) => return error.into(),
        };
        Self::new(code, detail)
    }
}

impl From<SimulationError> for Problem {
    fn from(error: SimulationError) -> Self {
        match error {
            SimulationError::Refused(refusal) => refusal.into(),
            error if error.is_internal() => {
                tracing::error!(error = %chain(&error), "a simulation failed");
                Self::internal()
            }
            error => Self::new(Code::NotSimulated, error.to_string()),
        }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let detail = refusal.to_string();
        let code = match refusal {
            Refusal::NotInQueue { .. } => Code::NotInQueue,
            Refusal::NothingToRestart { .. } => Code::NothingToRestart,
            Refusal::Landing { .. } => Code::Landing,
            Refusal::PullRequestNotOpen { .. } => Code::PullRequestNotOpen,
            Refusal::DependencyCycle { .. } => Code::DependencyCycle,
            Refusal::QueueNotEmpty { .. } => Code::QueueNotEmpty,
            Refusal::ModeChangeInProgress => Code::ModeChange,
            Refusal::UnknownRun { .. } => Code::UnknownRun,
            Refusal::RunEnded { .. } => Code::TestRunEnded,
            Refusal::OtherCommit { .. } => Code::OtherCommit,
            Refusal::NotExternal { .. } => Code::CheckNotExternal,
            Refusal::CheckCompleted { .. } => Code::CheckCompleted,
            Refusal::InvalidSetting { field, rule } => {
                return Self::invalid(format!("/{field}"), rule);
            }
        };
        Self::new(code, detail)
    }
}

impl From<UploadError> for Problem {
    fn from(error: UploadError) -> Self {
        let detail = error.to_string();
        let code = match error {
            UploadError::Unknown(_) => Code::UnknownUpload,
            UploadError::WrongSignature => Code::WrongSignature,
            UploadError::Expired
            | UploadError::NotOfPublicId { .. }
            | UploadError::WrongOrganization { .. }
            | UploadError::TooOften
            | UploadError::TooManyFiles { .. }
            | UploadError::Empty => Code::UploadRefused,
            UploadError::Blob(BlobError::TooLarge { .. }) => Code::TooLarge,
            UploadError::Blob(BlobError::Full) => {
                tracing::error!("no space left for uploads");
                Code::NoRoom
            }
            UploadError::Blob(BlobError::ShareFull { of }) => {
                tracing::warn!(of, "a share of the space for uploads is full");
                Code::NoRoom
            }
            UploadError::Blob(BlobError::Failed(cause)) => {
                tracing::error!(error = %chain(&*cause), "the upload store failed");
                return Self::internal();
            }
        };
        Self::new(code, detail)
    }
}

impl From<WebhookError> for Problem {
    fn from(error: WebhookError) -> Self {
        let detail = error.to_string();
        let code = match error {
            WebhookError::UnknownEndpoint(_) => Code::UnknownWebhook,
            WebhookError::UnknownMessage { .. } => Code::UnknownMessage,
            WebhookError::Pending(_) => Code::MessagePending,
            WebhookError::TooMany(_) => Code::TooManyWebhooks,
            WebhookError::LimitedToken => Code::LimitedToken,
            WebhookError::Off(_) => Code::WebhookOff,
            WebhookError::Settings(error) => {
                return Self::invalid(format!("/{}", error.field), error.rule);
            }
            WebhookError::Secret(error @ SecretError::Unavailable(_)) => {
                tracing::error!(error = %chain(&error), "webhook secrets could not be used");
                return Self::new(Code::Unavailable, error.to_string());
            }
            WebhookError::Secret(error) => {
                tracing::error!(error = %chain(&error), "webhook secrets could not be used");
                return Self::internal();
            }
        };
        Self::new(code, detail)
    }
}

impl From<flaky::Refusal> for Problem {
    fn from(refusal: flaky::Refusal) -> Self {
        use flaky::Refusal as R;
        let detail = refusal.to_string();
        let code = match refusal {
            R::InvalidSetting { field, rule } => return Self::invalid(format!("/{field}"), rule),
            R::NoSuchMonitor { .. } => Code::UnknownMonitor,
            R::MonitorKindFixed { .. } => Code::MonitorKindFixed,
            R::MonitorNeverFired { .. } | R::NotMuted { .. } => Code::MuteUnchanged,
            R::AlreadyFlagged | R::NotFlagged => Code::FlagUnchanged,
            R::Renamed { .. } => Code::TestRenamed,
        };
        Self::new(code, detail)
    }
}

impl From<HostError> for Problem {
    fn from(error: HostError) -> Self {
        tracing::warn!(error = %chain(&error), "could not reach the git host");
        match error {
            HostError::RateLimited { .. } | HostError::Unavailable { .. } => {
                Self::new(Code::Unavailable, "the git host does not respond; try again later")
            }
            HostError::AccessDenied { .. } => Self::new(
                Code::HostAccess,
                "the git host denies access to this server; an operator can run `signalbox doctor` to see what is missing",
            ),
            HostError::CredentialRejected { .. } => Self::new(
                Code::HostAccess,
                "the git host rejects this server's credential; an operator must replace it",
            ),
            HostError::Rejected { .. }
            | HostError::NotFound { .. }
            | HostError::Conflict { .. } => {
                Self::new(Code::Internal, "the git host sent an unexpected response")
            }
        }
    }
}

impl From<serde_json::Error> for Problem {
    fn from(error: serde_json::Error) -> Self {
        tracing::error!(error = %chain(&error), "a reply could not be serialized");
        Self::internal()
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        tracing::error!(error = %chain(&error), "the database failed");
        match error {
            StoreError::Unavailable(_) => {
                Self::new(Code::Unavailable, "the database is not available; try again later")
            }
            StoreError::Damaged(_) => Self::new(
                Code::Internal,
                "the database is damaged; an operator must restore a backup",
            ),
            StoreError::Corrupt { .. } | StoreError::Failed(_) => Self::internal(),
        }
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let words = cause.to_string();
        if !text.ends_with(&words) {
            text = format!("{text}: {words}");
        }
        source = cause.source();
    }
    text
}
