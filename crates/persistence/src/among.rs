//! Whether a column has one of many ids, in a statement that does not depend on their number.

use std::fmt::Debug;

use diesel::expression::{
    AppearsOnTable, Expression, SelectableExpression, ValidGrouping, is_aggregate,
};
use diesel::pg::Pg;
use diesel::query_builder::{AstPass, QueryFragment, QueryId};
use diesel::result::QueryResult;
use diesel::sql_types::{Array, Bool, Text};
use diesel::sqlite::Sqlite;
use serde::Serialize;

use crate::sql_types::{Id, Sql};

/// Whether a column has one of these ids. On SQLite they are one parameter, a JSON array, so that the
/// statement is prepared once for each connection; `eq_any` is a new statement for each number of
/// ids.
pub(crate) fn among<C, T>(column: C, ids: &[T]) -> Among<C, T>
where
    T: Copy + Serialize,
{
    let json = serde_json::to_string(ids).unwrap_or_else(|_| "[]".to_owned());
    Among { column, ids: ids.iter().copied().map(Sql).collect(), json }
}

/// See [`among`].
#[derive(Clone, Debug)]
pub(crate) struct Among<C, T> {
    column: C,
    ids: Vec<Sql<T>>,
    json: String,
}

impl<C, T> Expression for Among<C, T> {
    type SqlType = Bool;
}

impl<C, T> ValidGrouping<()> for Among<C, T> {
    type IsAggregate = is_aggregate::No;
}

impl<C: AppearsOnTable<S>, S, T> AppearsOnTable<S> for Among<C, T> {}

impl<C: SelectableExpression<S>, S, T> SelectableExpression<S> for Among<C, T> {}

impl<C: QueryId, T> QueryId for Among<C, T> {
    type QueryId = ();

    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<C, T> QueryFragment<Sqlite> for Among<C, T>
where
    C: QueryFragment<Sqlite>,
{
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Sqlite>) -> QueryResult<()> {
        self.column.walk_ast(out.reborrow())?;
        out.push_sql(" IN (SELECT unhex(value, '-') FROM json_each(");
        out.push_bind_param::<Text, _>(&self.json)?;
        out.push_sql("))");
        Ok(())
    }
}

impl<C, T> QueryFragment<Pg> for Among<C, T>
where
    C: QueryFragment<Pg>,
    Vec<Sql<T>>: diesel::serialize::ToSql<Array<Id>, Pg>,
{
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        self.column.walk_ast(out.reborrow())?;
        out.push_sql(" = ANY(");
        out.push_bind_param::<Array<Id>, _>(&self.ids)?;
        out.push_sql(")");
        Ok(())
    }
}
