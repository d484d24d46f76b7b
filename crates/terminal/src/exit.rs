//! Exit codes.

use std::fmt::Write;
use std::process::ExitCode;

/// How a command ended, as its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// It succeeded.
    Success = 0,
    /// Any other failure.
    Failure = 1,
    /// The arguments or their values are wrong; nothing was done.
    Usage = 2,
    /// What was awaited has failed.
    Failed = 3,
    /// What was awaited was cancelled.
    Cancelled = 4,
    /// The server cannot be reached.
    Unreachable = 5,
    /// The token is missing, unknown or lacks a scope.
    Unauthorized = 6,
    /// The object that the command names does not exist.
    NotFound = 7,
    /// It conflicts with what exists.
    Conflict = 8,
    /// The server is busy or restarts: the same command may succeed later.
    Busy = 9,
}

impl Exit {
    /// All of them, by code.
    pub const ALL: [Self; 10] = [
        Self::Success,
        Self::Failure,
        Self::Usage,
        Self::Failed,
        Self::Cancelled,
        Self::Unreachable,
        Self::Unauthorized,
        Self::NotFound,
        Self::Conflict,
        Self::Busy,
    ];

    /// The code.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// What the code says.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "any other failure",
            Self::Usage => {
                "wrong usage: an argument or its value is missing or invalid (400, 422), or the token is missing"
            }
            Self::Failed => "with `--wait`: the pull request failed",
            Self::Cancelled => "with `--wait`: the pull request was cancelled",
            Self::Unreachable => "the server could not be reached",
            Self::Unauthorized => {
                "the server does not accept the token, or the token may not do this (401, 403)"
            }
            Self::NotFound => {
                "the repository, queue, pull request or other object that the command names does not exist (404)"
            }
            Self::Conflict => {
                "a conflict with what exists, such as a queue that is not empty, a file that exists, or a running server (409)"
            }
            Self::Busy => {
                "the server is busy or restarting, also after several attempts (429, 502, 503, 504)"
            }
        }
    }

    /// The codes for the help of the program.
    pub fn help() -> String {
        let mut help = String::from("Exit codes:");
        for exit in Self::ALL {
            let meaning = exit.meaning().replace('`', "");
            // Writing to a string never fails.
            let _ = write!(help, "\n  {}  {meaning}", exit.code());
        }
        help
    }

    /// A table of the codes in Markdown.
    pub fn page() -> String {
        let mut page = String::from("| code | meaning |\n|---|---|\n");
        for exit in Self::ALL {
            // Writing to a string never fails.
            let _ = writeln!(page, "| {} | {} |", exit.code(), exit.meaning());
        }
        page
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codes_are_the_numbers_from_zero() {
        assert!((0..).zip(Exit::ALL).all(|(code, exit)| exit.code() == code));
    }
}
