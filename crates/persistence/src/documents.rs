//! Documents: domain values as JSON, under a format number.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::DbError;

/// The format that is written. A change that old programs cannot read gets the next number, and a
/// reader for this one.
pub(crate) const FORMAT: i32 = 1;

/// A value as JSON.
pub(crate) fn encode<T: Serialize>(what: &'static str, value: &T) -> Result<String, DbError> {
    serde_json::to_string(value).map_err(|error| DbError::corrupt(what, error))
}

/// A value from JSON of that format.
pub(crate) fn decode<T: DeserializeOwned>(
    what: &'static str,
    format: i32,
    text: &str,
) -> Result<T, DbError> {
    if format != FORMAT {
        let words = format!("format {format} is not known to this version");
        return Err(DbError::corrupt(what, words));
    }
    serde_json::from_str(text).map_err(|error| DbError::corrupt(what, error))
}

/// A UUID from its text.
pub(crate) fn uuid(what: &'static str, text: &str) -> Result<uuid::Uuid, DbError> {
    text.parse().map_err(|error: uuid::Error| DbError::corrupt(what, error))
}

/// A count or number from a signed column.
pub(crate) fn number<T: TryFrom<i64>>(what: &'static str, value: i64) -> Result<T, DbError> {
    T::try_from(value).map_err(|_| DbError::corrupt(what, format!("{value} is out of range")))
}

/// A number for a signed column; one that does not fit is the largest that does.
pub(crate) fn column(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
