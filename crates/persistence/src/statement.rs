//! Statements that write the rows of a JSON array.

use diesel::backend::Backend;
use diesel::query_builder::{AstPass, QueryFragment, QueryId};
use diesel::result::QueryResult;
use diesel::serialize::ToSql;
use diesel::sql_types::{HasSqlType, Text};

/// A statement with one parameter, the rows as JSON. Unlike `diesel::sql_query`, it is prepared once
/// for each connection: the number of different statements is small.
#[derive(Debug)]
pub(crate) struct Statement {
    before: String,
    rows: String,
    after: String,
}

impl Statement {
    /// A statement that contains its parameter once, as `$1`.
    pub(crate) fn new(sql: &str, rows: String) -> Self {
        let (before, after) = sql.split_once("$1").unwrap_or((sql, ""));
        Self { before: before.to_owned(), rows, after: after.to_owned() }
    }
}

impl QueryId for Statement {
    type QueryId = ();

    const HAS_STATIC_QUERY_ID: bool = false;
}

/// On connections that block.
impl<C> diesel::RunQueryDsl<C> for Statement {}

impl<DB> QueryFragment<DB> for Statement
where
    DB: Backend + HasSqlType<Text>,
    String: ToSql<Text, DB>,
{
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql(&self.before);
        out.push_bind_param::<Text, _>(&self.rows)?;
        out.push_sql(&self.after);
        Ok(())
    }
}
