//! Columns of rows that are sent as JSON.

use signalbox_domain::flaky::{IncidentId, TestId, UploadId};
use signalbox_domain::ids::{EntryId, OrgId, QueueId, RepoId, RunId, TokenId};
use signalbox_domain::time::Timestamp;
use uuid::Uuid;

use crate::documents::Json;

/// The kind of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// [`crate::sql_types::Id`], as its text.
    Id,
    /// [`crate::sql_types::Moment`], as microseconds since 1970.
    Moment,
    /// [`crate::sql_types::Document`], as a string that holds it.
    Document,
    /// Text.
    Text,
    /// A 64-bit integer.
    BigInt,
    /// A boolean.
    Bool,
}

/// A Rust type whose serde form has this kind.
pub(crate) trait Value {
    /// Its kind.
    const KIND: Kind;
}

macro_rules! values {
    ($($value:ty: $kind:ident),+ $(,)?) => {
        $(impl Value for $value {
            const KIND: Kind = Kind::$kind;
        })+
    };
}

values! {
    OrgId: Id, RepoId: Id, QueueId: Id, EntryId: Id, RunId: Id, TokenId: Id, TestId: Id,
    IncidentId: Id, UploadId: Id, Uuid: Id, Timestamp: Moment, Json: Document,
    String: Text, &'static str: Text, i64: BigInt, bool: Bool,
}

impl<T: Value> Value for Option<T> {
    const KIND: Kind = T::KIND;
}

/// A column by its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
}

impl Column {
    /// A column of values of this type.
    pub(crate) const fn of<T: Value>(name: &'static str) -> Self {
        Self { name, kind: T::KIND }
    }
}
