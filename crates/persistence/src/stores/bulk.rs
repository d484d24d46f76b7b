//! Many rows in one statement: they travel as one JSON array, which both databases can read as
//! rows. So a statement has one parameter, whatever the number of rows and columns.

use diesel::sql_types::Text;
use diesel_async::RunQueryDsl;
use serde::Serialize;

use super::super::rows_of_json;
use super::Conn;
use crate::columns::Column;
use crate::error::DbError;

/// The most rows of one statement.
const CHUNK: usize = 1_000;

/// Where rows go.
pub(super) struct Target {
    /// The table.
    pub(super) table: &'static str,
    /// The columns that are written. Rows are structs with these fields.
    pub(super) columns: &'static [Column],
    /// What happens to a row that is there already: `ON CONFLICT …`, or nothing.
    pub(super) conflict: &'static str,
}

/// Structs whose fields are columns, and where they go.
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

    /// Updates the rows that are there. The first `keys` columns say which; `set` says what
    /// becomes of them, with the new values as `new`.
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

/// Rows as one JSON array.
pub(super) fn array<T: Serialize>(rows: &[T]) -> Result<String, DbError> {
    serde_json::to_string(rows).map_err(|error| DbError::corrupt("rows", error))
}

/// Ids in pieces that a statement can take.
pub(super) fn pieces<T>(ids: &[T]) -> impl Iterator<Item = &[T]> {
    ids.chunks(CHUNK)
}
