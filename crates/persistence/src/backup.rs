//! Copies of an embedded database, and what a database says of itself.

use std::path::Path;

use diesel::prelude::*;
use diesel::sql_types::Text;
use diesel_async::{RunQueryDsl, SimpleAsyncConnection};
use signalbox_domain::ports::StoreError;
use signalbox_domain::time::Timestamp;
use thiserror::Error;

use crate::database::{Database, Kind};
use crate::error::DbError;
use crate::sql_types::Moment;

/// Why there is no copy.
#[derive(Debug, Error)]
pub enum BackupError {
    /// The database is not a file of this program.
    #[error("only an embedded database is copied by this program: use pg_dump")]
    NotEmbedded,
    /// There is something already.
    #[error("{0} already exists; choose another file")]
    Exists(String),
    /// The copy is not what it should be.
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
struct Now {
    #[diesel(sql_type = Moment)]
    now: Timestamp,
}

/// At most that many complaints are told.
const COMPLAINTS: usize = 5;

impl Database {
    /// Writes a copy of an embedded database to a new file, as it is at one moment, while servers
    /// go on. The copy is one file without a journal beside it.
    pub async fn copy_to(&self, file: &Path) -> Result<(), BackupError> {
        let Kind::Sqlite(store) = self.kind() else { return Err(BackupError::NotEmbedded) };
        let shown = file.display().to_string();
        if file.exists() {
            return Err(BackupError::Exists(shown));
        }
        let mut conn = store.connection().await?;
        let copy = diesel::sql_query("VACUUM INTO $1").bind::<Text, _>(shown);
        copy.execute(&mut conn).await.map_err(DbError::from)?;
        Ok(())
    }

    /// What is wrong with the database itself; nothing when it is whole. A database of a server of
    /// its own is only asked whether it answers.
    pub async fn check(&self) -> Result<Vec<String>, StoreError> {
        match self.kind() {
            Kind::Sqlite(store) => {
                let mut conn = store.connection().await?;
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

    /// What the clock of the database's server says; `None` where it is this machine's.
    pub async fn now(&self) -> Result<Option<Timestamp>, StoreError> {
        let Kind::Postgres(store) = self.kind() else { return Ok(None) };
        let mut conn = store.connection().await?;
        let sql = "SELECT clock_timestamp() AS now";
        let row: Now = diesel::sql_query(sql).get_result(&mut conn).await.map_err(DbError::from)?;
        Ok(Some(row.now))
    }

    /// The language of the server's messages when it is not English: then errors that pass, such as
    /// a full disk, are not told from others. `None` where messages are understood.
    pub async fn foreign_messages(&self) -> Result<Option<String>, StoreError> {
        let Kind::Postgres(store) = self.kind() else { return Ok(None) };
        let mut conn = store.connection().await?;
        let sql = "SELECT current_setting('lc_messages') AS line";
        let row: Line =
            diesel::sql_query(sql).get_result(&mut conn).await.map_err(DbError::from)?;
        let english = ["C", "POSIX", "en"].iter().any(|it| row.line.starts_with(it));
        Ok((!english && !row.line.is_empty()).then_some(row.line))
    }

    /// Ends the use of an embedded database: what its journal holds goes into the file.
    pub async fn fold(&self) -> Result<(), StoreError> {
        let Kind::Sqlite(store) = self.kind() else { return Ok(()) };
        let mut conn = store.connection().await?;
        let fold = "PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode = DELETE;";
        conn.batch_execute(fold).await.map_err(DbError::from)?;
        Ok(())
    }
}
