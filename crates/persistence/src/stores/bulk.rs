//! Many rows in one statement, as one JSON array that both databases read as rows, so that a
//! statement has one parameter for any number of rows and columns.

use diesel_async::RunQueryDsl;
use serde::Serialize;
use zstd::bulk::{Compressor, Decompressor};

use super::super::{IF_DONE, rows_of_json};
use super::Conn;
use crate::columns::Column;
use crate::error::DbError;
use crate::statement::Statement;

/// The most rows in one statement.
const CHUNK: usize = 1_000;
/// The level of compression of rows that wait: the fastest.
const LEVEL: i32 = 1;

/// The target of an insert or update.
pub(super) struct Target {
    /// The table.
    pub(super) table: &'static str,
    /// The written columns; rows are structs with these fields.
    pub(super) columns: &'static [Column],
    /// The clause for existing rows: `ON CONFLICT …`, or empty.
    pub(super) conflict: &'static str,
}

/// Declares a row struct and its target.
macro_rules! bulk_rows {
    ($($(#[$doc:meta])* $target:ident = $row:ident in $table:literal {
        $($column:ident: $kind:ty),+ $(,)?
    } $conflict:literal;)+) => {
        $(
            $(#[$doc])*
            #[derive(serde::Serialize)]
            pub(super) struct $row { $(pub(super) $column: $kind),+ }

            pub(super) const $target: Target = Target {
                table: $table,
                columns: &[$(crate::columns::Column::of::<$kind>(stringify!($column))),+],
                conflict: $conflict,
            };
        )+
    };
}
pub(super) use bulk_rows;

impl Target {
    /// Inserts rows.
    pub(super) async fn insert<T: Serialize>(
        &self,
        conn: &mut Conn,
        rows: &[T],
    ) -> Result<(), DbError> {
        execute(conn, &self.insert_sql("TRUE"), rows).await
    }

    /// The statements that insert rows in [`transact`](super::super::transact).
    pub(super) fn inserts<T: Serialize>(&self, rows: &[T]) -> Result<Vec<Statement>, DbError> {
        self.inserts_if("", IF_DONE, rows)
    }

    /// The statements that insert rows on a condition, with a clause before each.
    pub(super) fn inserts_if<T: Serialize>(
        &self,
        before: &str,
        condition: &str,
        rows: &[T],
    ) -> Result<Vec<Statement>, DbError> {
        let sql = format!("{before}{}", self.insert_sql(condition));
        rows.chunks(CHUNK).map(|chunk| Ok(Statement::new(&sql, array(chunk)?))).collect()
    }

    /// The statement that updates one existing row, as [`Target::update`] does.
    pub(super) fn update_of<T: Serialize>(
        &self,
        keys: usize,
        set: &str,
        row: T,
    ) -> Result<Statement, DbError> {
        Ok(Statement::new(&self.update_sql(keys, set), array(&[row])?))
    }

    fn insert_sql(&self, condition: &str) -> String {
        let names: Vec<&str> = self.columns.iter().map(|column| column.name).collect();
        format!(
            "INSERT INTO {} ({}) {} WHERE {condition} {}",
            self.table,
            names.join(", "),
            rows_of_json(self.columns),
            self.conflict
        )
    }

    /// Updates existing rows, which the first `keys` columns identify. `set` is the SET clause,
    /// with the new values as `new`.
    pub(super) async fn update<T: Serialize>(
        &self,
        conn: &mut Conn,
        keys: usize,
        set: &str,
        rows: &[T],
    ) -> Result<(), DbError> {
        execute(conn, &self.update_sql(keys, set), rows).await
    }

    fn update_sql(&self, keys: usize, set: &str) -> String {
        let table = self.table;
        let same = |Column { name, .. }: &Column| format!("{table}.{name} = new.{name}");
        let keys: Vec<String> = self.columns.iter().take(keys).map(same).collect();
        format!(
            "UPDATE {table} SET {set} FROM ({}) AS new WHERE {}",
            rows_of_json(self.columns),
            keys.join(" AND ")
        )
    }
}

/// Statements that are executed later. Their rows are kept compressed: those of an upload resemble
/// each other, and there may be very many.
#[derive(Default)]
pub(super) struct Script {
    later: Vec<Later>,
    /// Made once: a new one costs more than what it compresses.
    compressor: Option<Compressor<'static>>,
}

struct Later {
    target: &'static Target,
    /// The number of keys and the SET clause of an update.
    update: Option<(usize, &'static str)>,
    /// The rows that must exist for an update.
    rows: usize,
    bytes: usize,
    compressed: Vec<u8>,
}

impl Script {
    pub(super) const fn is_empty(&self) -> bool {
        self.later.is_empty()
    }

    pub(super) fn insert<T: Serialize>(
        &mut self,
        target: &'static Target,
        rows: &[T],
    ) -> Result<(), DbError> {
        self.add(target, None, rows)
    }

    /// As [`Target::update`]; every row must still exist.
    pub(super) fn update<T: Serialize>(
        &mut self,
        target: &'static Target,
        keys: usize,
        set: &'static str,
        rows: &[T],
    ) -> Result<(), DbError> {
        self.add(target, Some((keys, set)), rows)
    }

    fn add<T: Serialize>(
        &mut self,
        target: &'static Target,
        update: Option<(usize, &'static str)>,
        rows: &[T],
    ) -> Result<(), DbError> {
        for chunk in rows.chunks(CHUNK) {
            let json = array(chunk)?;
            let corrupt = |error: std::io::Error| DbError::corrupt("rows", error);
            let compressor = match &mut self.compressor {
                Some(made) => made,
                none => none.insert(Compressor::new(LEVEL).map_err(corrupt)?),
            };
            let mut compressed = compressor.compress(json.as_bytes()).map_err(corrupt)?;
            // It has room for rows that cannot be compressed.
            compressed.shrink_to_fit();
            let (rows, bytes) = (chunk.len(), json.len());
            self.later.push(Later { target, update, rows, bytes, compressed });
        }
        Ok(())
    }

    /// Executes all statements in order. [`DbError::Conflict`] when a row to update is gone.
    pub(super) async fn execute(self, conn: &mut Conn) -> Result<(), DbError> {
        let corrupt = |error: String| DbError::corrupt("rows", error);
        let decompressor = Decompressor::new().map_err(|error| corrupt(error.to_string()));
        let mut decompressor = decompressor?;
        for Later { target, update, rows, bytes, compressed } in self.later {
            let json = decompressor
                .decompress(&compressed, bytes)
                .map_err(|error| corrupt(error.to_string()))?;
            let json = String::from_utf8(json).map_err(|error| corrupt(error.to_string()))?;
            let sql = match update {
                Some((keys, set)) => target.update_sql(keys, set),
                None => target.insert_sql("TRUE"),
            };
            let done = Statement::new(&sql, json).execute(conn).await?;
            if update.is_some() && done != rows {
                return Err(DbError::Conflict);
            }
        }
        Ok(())
    }
}

async fn execute<T: Serialize>(conn: &mut Conn, sql: &str, rows: &[T]) -> Result<(), DbError> {
    for chunk in rows.chunks(CHUNK) {
        Statement::new(sql, array(chunk)?).execute(conn).await?;
    }
    Ok(())
}

/// Serializes rows as one JSON array.
pub(super) fn array<T: Serialize>(rows: &[T]) -> Result<String, DbError> {
    serde_json::to_string(rows).map_err(|error| DbError::corrupt("rows", error))
}

/// Splits ids into chunks for one statement each.
pub(super) fn pieces<T>(ids: &[T]) -> impl Iterator<Item = &[T]> {
    ids.chunks(CHUNK)
}
