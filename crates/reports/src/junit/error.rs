//! Why a JUnit file was refused, and where.

use std::fmt;
use std::io;

use thiserror::Error;

use super::limits::Limit;

/// A place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position {
    /// Line, from 1.
    pub line: u64,
    /// Column in bytes of the text as UTF-8, from 1.
    pub column: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// Why reading stopped. The cases before the place were delivered.
#[derive(Debug, Error)]
pub enum JunitError {
    /// The reader below failed.
    #[error("could not read the report")]
    Io(#[from] io::Error),
    /// More than a limit allows.
    #[error("{at}: more {limit} than {most}")]
    Limit {
        /// Where the element starts that breaks the limit.
        at: Position,
        /// What there is too much of.
        limit: Limit,
        /// The limit's value.
        most: u64,
    },
    /// A document type or an entity declaration: these can read files and blow up, and no test
    /// framework needs them.
    #[error("{at}: declarations such as DOCTYPE and ENTITY are refused")]
    Declaration {
        /// Where it starts.
        at: Position,
    },
    /// The text is not well-formed XML.
    #[error("{at}: malformed XML: {rule}")]
    Malformed {
        /// Where it was noticed.
        at: Position,
        /// The rule that is broken.
        rule: String,
    },
    /// The file ends before its elements do.
    #[error("{at}: the file ends inside {open}")]
    Truncated {
        /// The end of the file.
        at: Position,
        /// The innermost element that is open, such as `<testcase>`.
        open: String,
    },
    /// The root element is none of JUnit's.
    #[error("{at}: root element <{root}> is not testsuites, testsuite or testcase")]
    NotJunit {
        /// Where the root element starts.
        at: Position,
        /// Its name, cut to 100 characters.
        root: String,
    },
    /// No element at all.
    #[error("the file has no XML element")]
    Empty,
}

impl JunitError {
    /// Where it was noticed, unless it is about the file as a whole.
    pub const fn position(&self) -> Option<Position> {
        match self {
            Self::Limit { at, .. }
            | Self::Declaration { at }
            | Self::Malformed { at, .. }
            | Self::Truncated { at, .. }
            | Self::NotJunit { at, .. } => Some(*at),
            Self::Io(_) | Self::Empty => None,
        }
    }
}

/// Why the source itself stopped the reading.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stop {
    Limit(Limit, u64),
    Declaration,
    UnknownMarkup,
}
