//! The SQL types of columns, and their representation on each database. All differences between the
//! two databases are in this file, in the scripts of `migrations`, in `among`, and in each
//! `rows_of_json`.
//!
//! | type | PostgreSQL | SQLite |
//! |---|---|---|
//! | [`Id`] | `uuid` | `BLOB`, 16 bytes |
//! | [`Moment`] | `timestamptz` | `INTEGER`, microseconds since 1970 in UTC |
//! | [`Document`] | `jsonb` | `TEXT`, JSON |

use std::io::Write;

use diesel::backend::Backend;
use diesel::deserialize::{self, FromSql, FromSqlRow, Queryable};
use diesel::expression::AsExpression;
use diesel::pg::{Pg, PgValue};
use diesel::query_builder::QueryId;
use diesel::serialize::{self, IsNull, Output, ToSql};
use diesel::sql_types::{BigInt, Binary, SqlOrd, SqlType, Text};
use diesel::sqlite::Sqlite;
use signalbox_domain::flaky::{IncidentId, TestId, UploadId};
use signalbox_domain::ids::{EntryId, OrgId, QueueId, RepoId, RunId, TokenId};
use signalbox_domain::time::Timestamp;
use signalbox_domain::webhook::EndpointId;
use uuid::Uuid;

use crate::documents::{self, Json, Kept};

/// A UUID.
#[derive(Clone, Copy, Debug, Default, QueryId, SqlType)]
#[diesel(postgres_type(oid = 2950, array_oid = 2951))]
#[diesel(sqlite_type(name = "Binary"))]
pub struct Id;

/// A point in time with microseconds, the precision of the domain's [`Timestamp`].
///
/// PostgreSQL has no finite times before 4714 BC: they are stored as `-infinity`, which is read as
/// the earliest [`Timestamp`]. The latest one is `infinity`.
#[derive(Clone, Copy, Debug, Default, QueryId, SqlType)]
#[diesel(postgres_type(oid = 1184, array_oid = 1185))]
#[diesel(sqlite_type(name = "Long"))]
pub struct Moment;

/// A document: see [`crate::documents`].
#[derive(Clone, Copy, Debug, Default, QueryId, SqlType)]
#[diesel(postgres_type(oid = 3802, array_oid = 3807))]
#[diesel(sqlite_type(name = "Text"))]
pub struct Document;

impl SqlOrd for Moment {}

/// The earliest time.
pub(crate) const FIRST: Timestamp = Timestamp::from_unix_micros(i64::MIN);
/// The latest time.
pub(crate) const LAST: Timestamp = Timestamp::from_unix_micros(i64::MAX);

/// The types of columns.
pub(crate) mod columns {
    pub(crate) use diesel::sql_types::{BigInt, Bool, Integer, Nullable, Text};

    pub(crate) use super::{Document, Id, Moment};
}

/// A domain value as a parameter. The orphan rule requires this wrapper; results are read without
/// it.
#[derive(AsExpression, Clone, Copy, Debug, FromSqlRow)]
#[diesel(sql_type = Id, sql_type = Moment)]
pub(crate) struct Sql<T>(pub(crate) T);

/// Wraps values as parameters.
pub(crate) fn each<T: Copy>(values: &[T]) -> impl Iterator<Item = Sql<T>> {
    values.iter().copied().map(Sql)
}

macro_rules! parameters {
    ($($sql_type:ident),+) => { $(
        impl<T, DB: Backend> ToSql<$sql_type, DB> for Sql<T>
        where
            T: ToSql<$sql_type, DB> + std::fmt::Debug,
        {
            fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, DB>) -> serialize::Result {
                self.0.to_sql(out)
            }
        }

        impl<T, DB: Backend> FromSql<$sql_type, DB> for Sql<T>
        where
            T: FromSql<$sql_type, DB>,
        {
            fn from_sql(value: DB::RawValue<'_>) -> deserialize::Result<Self> {
                T::from_sql(value).map(Self)
            }
        }
    )+ };
}

parameters!(Id, Moment);

/// Implements reading of domain values from results.
macro_rules! results {
    ($($value:ty: $sql_type:ty),+ $(,)?) => { $(
        impl<DB: Backend> Queryable<$sql_type, DB> for $value
        where
            Self: FromSql<$sql_type, DB>,
        {
            type Row = Self;

            fn build(row: Self) -> deserialize::Result<Self> {
                Ok(row)
            }
        }
    )+ };
}

// Diesel implements this for UUIDs of any SQL type.
results! {
    OrgId: Id, RepoId: Id, QueueId: Id, EntryId: Id, RunId: Id, TokenId: Id, TestId: Id,
    UploadId: Id, IncidentId: Id, EndpointId: Id, Timestamp: Moment,
}

impl ToSql<Id, Pg> for Uuid {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        out.write_all(self.as_bytes())?;
        Ok(IsNull::No)
    }
}

impl FromSql<Id, Pg> for Uuid {
    fn from_sql(value: PgValue<'_>) -> deserialize::Result<Self> {
        Ok(Self::from_slice(value.as_bytes())?)
    }
}

impl ToSql<Id, Sqlite> for Uuid {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Sqlite>) -> serialize::Result {
        out.set_value(self.as_bytes().as_slice());
        Ok(IsNull::No)
    }
}

impl FromSql<Id, Sqlite> for Uuid {
    fn from_sql(value: <Sqlite as Backend>::RawValue<'_>) -> deserialize::Result<Self> {
        Ok(Self::from_slice(&<Vec<u8> as FromSql<Binary, Sqlite>>::from_sql(value)?)?)
    }
}

/// Ids of the domain are stored as UUIDs.
macro_rules! ids {
    ($($id:ident),+ $(,)?) => { $(
        impl<DB: Backend> ToSql<Id, DB> for $id
        where
            Uuid: ToSql<Id, DB>,
        {
            fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, DB>) -> serialize::Result {
                self.0.to_sql(out)
            }
        }

        impl<DB: Backend> FromSql<Id, DB> for $id
        where
            Uuid: FromSql<Id, DB>,
        {
            fn from_sql(value: DB::RawValue<'_>) -> deserialize::Result<Self> {
                Uuid::from_sql(value).map(Self)
            }
        }
    )+ };
}

ids!(OrgId, RepoId, QueueId, EntryId, RunId, TokenId, TestId, UploadId, IncidentId, EndpointId);

/// Microseconds from 1970 to 2000, the epoch of PostgreSQL.
const POSTGRES_EPOCH: i64 = 946_684_800_000_000;
/// The first finite time of PostgreSQL, in its own epoch: 4714-11-24 BC.
const POSTGRES_FIRST: i64 = -211_813_488_000_000_000;

/// Converts a time to the epoch of PostgreSQL, where the ends of the range are infinite.
const fn to_postgres(at: Timestamp) -> i64 {
    match at.unix_micros() {
        i64::MAX => i64::MAX,
        micros => match micros.checked_sub(POSTGRES_EPOCH) {
            Some(micros) if micros >= POSTGRES_FIRST => micros,
            Some(_) | None => i64::MIN,
        },
    }
}

const fn from_postgres(micros: i64) -> Timestamp {
    Timestamp::from_unix_micros(match micros {
        i64::MIN => i64::MIN,
        micros => micros.saturating_add(POSTGRES_EPOCH),
    })
}

impl ToSql<Moment, Pg> for Timestamp {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        out.write_all(&to_postgres(*self).to_be_bytes())?;
        Ok(IsNull::No)
    }
}

impl FromSql<Moment, Pg> for Timestamp {
    fn from_sql(value: PgValue<'_>) -> deserialize::Result<Self> {
        Ok(from_postgres(i64::from_be_bytes(value.as_bytes().try_into()?)))
    }
}

impl ToSql<Moment, Sqlite> for Timestamp {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Sqlite>) -> serialize::Result {
        out.set_value(self.unix_micros());
        Ok(IsNull::No)
    }
}

impl FromSql<Moment, Sqlite> for Timestamp {
    fn from_sql(value: <Sqlite as Backend>::RawValue<'_>) -> deserialize::Result<Self> {
        <i64 as FromSql<BigInt, Sqlite>>::from_sql(value).map(Self::from_unix_micros)
    }
}

/// The version of the binary form of `jsonb`.
const JSONB: u8 = 1;

impl ToSql<Document, Pg> for Json {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        out.write_all(&[JSONB])?;
        out.write_all(self.as_str().as_bytes())?;
        Ok(IsNull::No)
    }
}

impl<T: documents::Document> FromSql<Document, Pg> for Kept<T> {
    fn from_sql(value: PgValue<'_>) -> deserialize::Result<Self> {
        match value.as_bytes().split_first() {
            Some((&JSONB, text)) => Ok(Self(documents::decode(text)?)),
            Some(_) | None => Err("unknown version of the binary jsonb format".into()),
        }
    }
}

impl ToSql<Document, Sqlite> for Json {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Sqlite>) -> serialize::Result {
        out.set_value(self.as_str());
        Ok(IsNull::No)
    }
}

impl<T: documents::Document> FromSql<Document, Sqlite> for Kept<T> {
    fn from_sql(value: <Sqlite as Backend>::RawValue<'_>) -> deserialize::Result<Self> {
        let text = <String as FromSql<Text, Sqlite>>::from_sql(value)?;
        Ok(Self(documents::decode(text.as_bytes())?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_their_microseconds_on_postgresql() {
        for micros in [
            i64::MIN,
            POSTGRES_FIRST + POSTGRES_EPOCH,
            -1,
            0,
            1,
            POSTGRES_EPOCH - 1,
            POSTGRES_EPOCH,
            1_767_225_600_123_457,
            i64::MAX - 1,
            i64::MAX,
        ] {
            let at = Timestamp::from_unix_micros(micros);
            assert_eq!(from_postgres(to_postgres(at)), at, "{micros}");
        }
        let stone_age = Timestamp::from_unix_micros(POSTGRES_FIRST + POSTGRES_EPOCH - 1);
        assert_eq!(to_postgres(stone_age), i64::MIN);
    }
}
