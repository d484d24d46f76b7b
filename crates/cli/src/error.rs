//! Why a command failed.

use std::path::PathBuf;

use signalbox_client::{ClientError, StatusCode};
use signalbox_domain::queue::InvalidTargetRule;
use signalbox_simulator::SimulationError;
use signalbox_terminal::Exit;
use thiserror::Error;

use crate::queue_set::SettingError;

/// Why a client command failed.
#[derive(Debug, Error)]
pub enum CliError {
    /// The server could not be reached, refused the request or sent an invalid response.
    #[error("{call}{}", advice(call))]
    Client {
        /// The error of the call.
        call: ClientError,
    },
    /// There is no token.
    #[error("no API token: set SIGNALBOX_TOKEN or give --token")]
    NoToken,
    /// An invalid setting of a queue.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A file of rules for impacted targets has an invalid one.
    #[error("{}: invalid rule: {invalid}", file.display())]
    TargetRule {
        /// The file.
        file: PathBuf,
        /// The rule of the syntax that it breaks.
        invalid: InvalidTargetRule,
    },
    /// A simulation has no result.
    #[error(transparent)]
    Simulation(SimulationError),
    /// A history has no durations of test runs, and no flag states one.
    #[error("{}; set one with --test-minutes", SimulationError::NoDurations)]
    NoDurations,
    /// A file pattern is malformed, or matches no file.
    #[error("{pattern:?}: {problem}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// The problem.
        problem: String,
    },
    /// The start of an import is malformed.
    #[error(
        "invalid time {text:?}: expected a duration such as 90d or 12h, or RFC 3339, such as \
         2026-11-21T04:50:22Z"
    )]
    Since {
        /// The text.
        text: String,
    },
    /// The layout of an import is malformed.
    #[error("invalid layout {pattern:?}: {problem}")]
    Layout {
        /// The layout.
        pattern: String,
        /// The problem.
        problem: String,
    },
    /// Files of an import are malformed, so nothing was sent.
    #[error("nothing was imported: {problems} problems in the files above")]
    Malformed {
        /// The number of problems, at most about 20.
        problems: usize,
    },
    /// An import stopped before its end.
    #[error("{error}; {sent} of {all} runs were sent: repeat the command to continue")]
    Interrupted {
        /// Runs that were sent.
        sent: usize,
        /// Runs of the import.
        all: usize,
        /// Why it stopped.
        error: Box<CliError>,
    },
    /// The server could not process runs of an import.
    #[error("{failed} runs were not imported")]
    NotImported {
        /// Their number.
        failed: u64,
    },
    /// The pull request has no record of a landing.
    #[error(
        "no record of a landing: pull request {number} is {state}; only a pull request that the \
         queue has merged has one"
    )]
    NoRecord {
        /// Its number.
        number: u64,
        /// Its state.
        state: String,
    },
    /// The record of a landing is malformed.
    #[error("invalid record of a landing: {problem}")]
    Record {
        /// The problem.
        problem: String,
    },
    /// A clone could not be read.
    #[error("{}: {problem}", clone.display())]
    Clone {
        /// Its folder.
        clone: PathBuf,
        /// The problem.
        problem: String,
    },
    /// A landing is not what its record says.
    #[error("not verified: pull request {number}, {faults} of the statements above do not hold")]
    NotVerified {
        /// The number of the pull request.
        number: u64,
        /// How many.
        faults: usize,
    },
    /// A command could not be run.
    #[error("could not run {program}: {error}")]
    Command {
        /// The program.
        program: String,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// The signals that end a command could not be waited for.
    #[error("could not wait for signals: {0}")]
    Signals(std::io::Error),
    /// A file could not be read.
    #[error("{}: {error}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The error of the operating system.
        error: std::io::Error,
    },
}

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> Self {
        Self::Client { call: error }
    }
}

impl From<SimulationError> for CliError {
    fn from(error: SimulationError) -> Self {
        match error {
            SimulationError::NoDurations => Self::NoDurations,
            error => Self::Simulation(error),
        }
    }
}

/// Where the setting comes from that may be wrong.
fn advice(error: &ClientError) -> &'static str {
    match error {
        ClientError::Server { .. }
        | ClientError::Redirected { .. }
        | ClientError::Unreachable { .. }
        | ClientError::Silent { .. } => "; check SIGNALBOX_SERVER or --server",
        ClientError::Token => "; check SIGNALBOX_TOKEN or --token",
        ClientError::Refused { status, .. } if *status == StatusCode::UNAUTHORIZED => {
            "; check SIGNALBOX_TOKEN or --token"
        }
        ClientError::Refused { .. } | ClientError::Setup(_) | ClientError::Unreadable { .. } => "",
    }
}

impl CliError {
    /// The exit code.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Client { call } => of_call(call),
            Self::NoToken
            | Self::Setting(_)
            | Self::TargetRule { .. }
            | Self::Pattern { .. }
            | Self::Since { .. }
            | Self::Layout { .. } => Exit::Usage,
            Self::Interrupted { error, .. } => error.exit(),
            Self::Malformed { .. }
            | Self::NotImported { .. }
            | Self::NoRecord { .. }
            | Self::Record { .. }
            | Self::Clone { .. }
            | Self::NotVerified { .. }
            | Self::Command { .. }
            | Self::Signals(_)
            | Self::Simulation(_)
            | Self::NoDurations
            | Self::File { .. } => Exit::Failure,
        }
    }
}

fn of_call(error: &ClientError) -> Exit {
    match error {
        ClientError::Server { .. } | ClientError::Token | ClientError::Redirected { .. } => {
            Exit::Usage
        }
        ClientError::Unreachable { .. } | ClientError::Silent { .. } => Exit::Unreachable,
        ClientError::Refused { code, .. } if code.as_deref() == Some("request_in_progress") => {
            Exit::Busy
        }
        ClientError::Refused { status, .. } => match *status {
            StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => Exit::Usage,
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Exit::Unauthorized,
            StatusCode::NOT_FOUND => Exit::NotFound,
            StatusCode::CONFLICT => Exit::Conflict,
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => Exit::Busy,
            _ => Exit::Failure,
        },
        ClientError::Setup(_) | ClientError::Unreadable { .. } => Exit::Failure,
    }
}
