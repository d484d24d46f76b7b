//! Answers.

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// An answer, or a part of one: what this client knows of it, and all of it.
#[derive(Clone, Debug)]
pub struct Reply<T> {
    /// The decoded value.
    pub value: T,
    /// All of it, with fields that this client does not know.
    pub json: Value,
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Reply<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Value::deserialize(deserializer)?;
        let value = T::deserialize(&json).map_err(D::Error::custom)?;
        Ok(Self { value, json })
    }
}

/// The reply of an operation without content.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Done {}
