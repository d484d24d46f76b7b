//! Troubles of a database, recognized by its messages, and remembered for a short time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::DbError;

/// How long a trouble is remembered. Writes are frequent, so a lasting trouble is met again.
const LATELY: Duration = Duration::from_secs(10);

/// A trouble of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// No space: the disk, a quota or a limit of the file.
    Full,
    /// Read-only: permissions of a file, or a standby after a failover.
    ReadOnly,
    /// The disk fails.
    Disk,
    /// A statement or a lock timed out.
    Late,
    /// Locks of other transactions, or too little memory or too few connections.
    Busy,
    /// The server is not reachable, or closed the connection.
    Gone,
    /// Stored data is corrupt.
    Damaged,
}

impl Trouble {
    /// The message for operators.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Full => "no space is left for the database",
            Self::ReadOnly => "the database is read-only",
            Self::Disk => "the database cannot use its disk",
            Self::Late => "the database did not answer in time",
            Self::Busy => "the database is busy",
            Self::Gone => "the database does not answer",
            Self::Damaged => "the database is damaged: restore a backup",
        }
    }

    /// Recognizes a trouble by the database's message, because drivers do not expose the codes.
    /// Messages of SQLite are in English, those of PostgreSQL if `lc_messages` is.
    pub(crate) fn of(message: &str) -> Option<Self> {
        let message = message.to_lowercase();
        let found = MESSAGES.iter().find(|(part, _)| message.contains(part));
        found.map(|(_, trouble)| *trouble)
    }
}

/// Parts of messages, more specific ones first.
const MESSAGES: &[(&str, Trouble)] = &[
    // SQLITE_CORRUPT, SQLITE_NOTADB
    ("database disk image is malformed", Trouble::Damaged),
    ("malformed database schema", Trouble::Damaged),
    ("file is not a database", Trouble::Damaged),
    // SQLITE_FULL, SQLITE_IOERR, SQLITE_READONLY, SQLITE_CANTOPEN
    ("database or disk is full", Trouble::Full),
    ("disk i/o error", Trouble::Disk),
    ("readonly database", Trouble::ReadOnly),
    ("unable to open database file", Trouble::Disk),
    // SQLITE_BUSY, SQLITE_LOCKED, SQLITE_PROTOCOL
    ("database is locked", Trouble::Busy),
    ("database table is locked", Trouble::Busy),
    ("database schema is locked", Trouble::Busy),
    ("locking protocol", Trouble::Busy),
    // 53100 disk_full, 53400 configuration_limit_exceeded
    ("no space left on device", Trouble::Full),
    ("disk quota exceeded", Trouble::Full),
    ("exceeds temp_file_limit", Trouble::Full),
    // 58030 io_error
    ("input/output error", Trouble::Disk),
    // XX001 data_corrupted, XX002 index_corrupted
    ("invalid page in block", Trouble::Damaged),
    ("could not read block", Trouble::Damaged),
    ("unexpected zero page", Trouble::Damaged),
    ("contains corrupted page", Trouble::Damaged),
    ("missing chunk number", Trouble::Damaged),
    ("unexpected chunk", Trouble::Damaged),
    ("data is corrupt", Trouble::Damaged),
    ("could not access status of transaction", Trouble::Damaged),
    // 25006 read_only_sql_transaction
    ("read-only transaction", Trouble::ReadOnly),
    ("read-only file system", Trouble::ReadOnly),
    // 53200 out_of_memory, 53300 too_many_connections
    ("out of memory", Trouble::Busy),
    ("out of shared memory", Trouble::Busy),
    ("too many clients", Trouble::Busy),
    ("too many connections", Trouble::Busy),
    ("remaining connection slots", Trouble::Busy),
    // 40P01 deadlock_detected, 40001 on a standby
    ("deadlock detected", Trouble::Busy),
    ("conflict with recovery", Trouble::Busy),
    // 57014 query_canceled, 55P03 lock_not_available
    ("due to statement timeout", Trouble::Late),
    ("due to lock timeout", Trouble::Late),
    ("canceling statement", Trouble::Late),
    // 57P01 to 57P05, 25P03, 08xxx
    ("terminating connection", Trouble::Gone),
    ("terminating session", Trouble::Gone),
    ("the database system is", Trouble::Gone),
    ("connection closed", Trouble::Gone),
];

/// The trouble of recent writes, which reads may not meet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Troubles(Arc<Mutex<Option<(Instant, Trouble)>>>);

impl Troubles {
    /// Remembers the trouble that an error indicates.
    pub(crate) fn note(&self, error: &DbError) {
        let Some(trouble) = error.trouble() else { return };
        match trouble {
            Trouble::Full | Trouble::ReadOnly | Trouble::Disk | Trouble::Damaged => {
                let mut met = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                *met = Some((Instant::now(), trouble));
            }
            // Temporary, and detected by the health checks' own read and write.
            Trouble::Late | Trouble::Busy | Trouble::Gone => {}
        }
    }

    /// The last trouble, unless it is too long ago.
    pub(crate) fn lately(&self) -> Option<Trouble> {
        let met = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        met.filter(|(at, _)| at.elapsed() < LATELY).map(|(_, trouble)| trouble)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_both_databases_are_recognized() {
        for (message, trouble) in [
            ("database or disk is full", Trouble::Full),
            ("database disk image is malformed", Trouble::Damaged),
            ("attempt to write a readonly database", Trouble::ReadOnly),
            ("could not extend file \"base/16384/2619\": No space left on device", Trouble::Full),
            (
                "could not read block 3 in file \"base/5/1259\": read only 0 of 8192 bytes",
                Trouble::Damaged,
            ),
            ("could not read block 3 in file \"base/5/1259\": Input/output error", Trouble::Disk),
            ("invalid page in block 0 of relation base/5/16390", Trouble::Damaged),
            ("cannot execute INSERT in a read-only transaction", Trouble::ReadOnly),
            ("canceling statement due to lock timeout", Trouble::Late),
            ("terminating connection due to idle-in-transaction timeout", Trouble::Gone),
            ("the database system is starting up", Trouble::Gone),
            ("sorry, too many clients already", Trouble::Busy),
        ] {
            assert_eq!(Trouble::of(message), Some(trouble), "{message}");
        }
        assert_eq!(Trouble::of("syntax error at or near \"FORM\""), None);
    }
}
