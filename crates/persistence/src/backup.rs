//! Backups of an embedded database, and integrity checks.

use std::path::Path;

use diesel::prelude::*;
use diesel::sql_types::{Bool, Text};
use diesel_async::{RunQueryDsl, SimpleAsyncConnection};
use signalbox_domain::ports::StoreError;
use signalbox_domain::time::Timestamp;
use thiserror::Error;

use crate::database::{Database, Kind};
use crate::error::DbError;
use crate::private_file::create_private;
use crate::reach::Reach;
use crate::sql_types::Moment;

/// Why a backup failed.
#[derive(Debug, Error)]
pub enum BackupError {
    /// The database is not embedded.
    #[error("not an embedded database: use pg_dump to back it up")]
    NotEmbedded,
    /// The file exists.
    #[error("{0} already exists; choose another file")]
    Exists(String),
    /// The file could not be created.
    #[error("could not create {0}")]
    File(String, #[source] std::io::Error),
    /// The copy failed its integrity check.
    #[error("the copy is damaged: {0}")]
    Damaged(String),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<DbError> for BackupError {
    fn from(error: DbError) -> Self {
        Self::Store(error.into())
    }
}

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text)]
    line: String,
}

#[derive(QueryableByName)]
struct Role {
    #[diesel(sql_type = Bool)]
    sees_all: bool,
}

#[derive(QueryableByName)]
struct Now {
    #[diesel(sql_type = Moment)]
    now: Timestamp,
}

/// The most integrity errors that are reported.
const COMPLAINTS: usize = 5;

impl Database {
    /// Writes a consistent copy of an embedded database to a new file while servers keep running.
    /// The copy is one file without a journal, which only this user may read.
    pub async fn copy_to(&self, file: &Path) -> Result<(), BackupError> {
        let Kind::Sqlite(store) = self.kind() else { return Err(BackupError::NotEmbedded) };
        let shown = file.display().to_string();
        if file.exists() {
            return Err(BackupError::Exists(shown));
        }
        let mut conn = store.connection(Reach::ALL).await?;
        // SQLite accepts an empty file.
        create_private(file).map_err(|error| BackupError::File(shown.clone(), error))?;
        let copy = diesel::sql_query("VACUUM INTO $1").bind::<Text, _>(shown);
        copy.execute(&mut conn).await.map_err(DbError::from)?;
        Ok(())
    }

    /// Checks the integrity of the database; returns the errors. A PostgreSQL database is only
    /// checked for an answer.
    pub async fn check(&self) -> Result<Vec<String>, StoreError> {
        match self.kind() {
            Kind::Sqlite(store) => {
                let mut conn = store.connection(Reach::ALL).await?;
                let whole = "SELECT integrity_check AS line FROM pragma_integrity_check";
                let lines: Vec<Line> =
                    diesel::sql_query(whole).load(&mut conn).await.map_err(DbError::from)?;
                let mut found: Vec<String> = lines.into_iter().map(|it| it.line).collect();
                found.retain(|line| line != "ok");
                let keys = "SELECT DISTINCT 'a row of ' || \"table\" || ' belongs to nothing' \
                            AS line FROM pragma_foreign_key_check";
                let lines: Vec<Line> =
                    diesel::sql_query(keys).load(&mut conn).await.map_err(DbError::from)?;
                found.extend(lines.into_iter().map(|it| it.line));
                found.truncate(COMPLAINTS);
                Ok(found)
            }
            Kind::Postgres(_) => self.ping().await.map(|()| Vec::new()),
        }
    }

    /// The time of the database server; `None` for an embedded database, which uses this machine's
    /// clock.
    pub async fn now(&self) -> Result<Option<Timestamp>, StoreError> {
        let Kind::Postgres(store) = self.kind() else { return Ok(None) };
        let mut conn = store.connection(Reach::ALL).await?;
        let sql = "SELECT clock_timestamp() AS now";
        let row: Now = diesel::sql_query(sql).get_result(&mut conn).await.map_err(DbError::from)?;
        Ok(Some(row.now))
    }

    /// The language of the database server's messages if it is not English, because temporary
    /// errors, such as a full disk, are then not recognized. `None` if messages are recognized.
    pub async fn foreign_messages(&self) -> Result<Option<String>, StoreError> {
        let Kind::Postgres(store) = self.kind() else { return Ok(None) };
        let mut conn = store.connection(Reach::ALL).await?;
        let sql = "SELECT current_setting('lc_messages') AS line";
        let row: Line =
            diesel::sql_query(sql).get_result(&mut conn).await.map_err(DbError::from)?;
        let english = ["C", "POSIX", "en"].iter().any(|it| row.line.starts_with(it));
        Ok((!english && !row.line.is_empty()).then_some(row.line))
    }

    /// Whether the role of a PostgreSQL server is one for which it keeps organizations apart. A
    /// superuser sees every row, whatever the policies are.
    pub async fn keeps_organizations_apart(&self) -> Result<bool, StoreError> {
        let Kind::Postgres(store) = self.kind() else { return Ok(true) };
        let mut conn = store.connection(Reach::ALL).await?;
        let sql = "SELECT rolsuper OR rolbypassrls AS sees_all FROM pg_roles \
                   WHERE rolname = current_user";
        let role: Role =
            diesel::sql_query(sql).get_result(&mut conn).await.map_err(DbError::from)?;
        Ok(!role.sees_all)
    }

    /// Ends the use of an embedded database: merges its journal into the file.
    pub async fn fold(&self) -> Result<(), StoreError> {
        let Kind::Sqlite(store) = self.kind() else { return Ok(()) };
        let mut conn = store.connection(Reach::ALL).await?;
        let fold = "PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode = DELETE;";
        conn.batch_execute(fold).await.map_err(DbError::from)?;
        Ok(())
    }
}
