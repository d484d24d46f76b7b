//! Fields that clients send in more than one form, and words in the caller's case.

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};
use signalbox_domain::token::EnumCase;
use utoipa::ToSchema;

/// Writes words of states and modes in the case that the caller's token asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words(pub(crate) EnumCase);

impl Words {
    pub(crate) fn word(self, word: &str) -> String {
        match self.0 {
            EnumCase::Upper => word.to_owned(),
            EnumCase::Lower => word.to_lowercase(),
        }
    }
}

/// A pull request's number: an integer, or the same as a decimal string.
#[derive(Clone, Copy, Debug, ToSchema)]
#[schema(value_type = u32, example = 42)]
pub(crate) struct Number(pub(crate) u32);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl Visitor<'_> for Read {
            type Value = Number;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a whole number from 0 to 4294967295")
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Number, E> {
                let unexpected = de::Unexpected::Unsigned(value);
                u32::try_from(value).map(Number).map_err(|_| E::invalid_value(unexpected, &self))
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Number, E> {
                let unexpected = de::Unexpected::Signed(value);
                u32::try_from(value).map(Number).map_err(|_| E::invalid_value(unexpected, &self))
            }

            fn visit_str<E: de::Error>(self, value: &str) -> Result<Number, E> {
                let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
                let number = value.parse().ok().filter(|_| digits).map(Number);
                number.ok_or_else(|| E::invalid_value(de::Unexpected::Str(value), &self))
            }
        }
        deserializer.deserialize_any(Read)
    }
}

/// A priority: a number, lower is sooner, or one of the names.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(untagged, expecting = "must be a whole number from 0 to 4294967295 or a name")]
pub(crate) enum PriorityField {
    /// 0 is urgent.
    Number(u32),
    /// urgent, high, medium or low.
    Name(String),
}

/// Impacted targets: a list, or `ALL`.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(untagged, expecting = "must be an array of strings or \"ALL\"")]
pub(crate) enum TargetsField {
    /// Exactly these.
    List(Vec<String>),
    /// `ALL`.
    All(String),
}

/// A key that is present with any value, for documentation of open objects.
#[derive(Debug, Serialize, ToSchema)]
#[schema(value_type = Object)]
pub(crate) struct Anything(pub(crate) serde_json::Value);
