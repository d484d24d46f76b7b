//! Many rows in one statement, as one JSON array that both databases read as rows, so that a
//! statement has one parameter for any number of rows and columns.

use diesel::sql_types::Text;
use diesel_async::RunQueryDsl;
use serde::Serialize;

use super::super::rows_of_json;
use super::Conn;
use crate::columns::Column;
use crate::error::DbError;

/// The most rows in one statement.
const CHUNK: usize = 1_000;

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
        let names: Vec<&str> = self.columns.iter().map(|column| column.name).collect();
        let sql = format!(
            "INSERT INTO {} ({}) {} WHERE TRUE {}",
            self.table,
            names.join(", "),
            rows_of_json(self.columns),
            self.conflict
        );
        execute(conn, &sql, rows).await
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
        let table = self.table;
        let same = |Column { name, .. }: &Column| format!("{table}.{name} = new.{name}");
        let keys: Vec<String> = self.columns.iter().take(keys).map(same).collect();
        let sql = format!(
            "UPDATE {table} SET {set} FROM ({}) AS new WHERE {}",
            rows_of_json(self.columns),
            keys.join(" AND ")
        );
        execute(conn, &sql, rows).await
    }
}

async fn execute<T: Serialize>(conn: &mut Conn, sql: &str, rows: &[T]) -> Result<(), DbError> {
    for chunk in rows.chunks(CHUNK) {
        diesel::sql_query(sql).bind::<Text, _>(array(chunk)?).execute(conn).await?;
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
