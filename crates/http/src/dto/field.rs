//! Fields of requests. Reading one never fails, so that a reply can report all invalid fields of a
//! request together; unknown fields take no memory.

use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::problem::{FieldError, Problem};

/// The most characters of a value that are repeated in a message.
const SHOWN: usize = 100;

/// A field as it was sent. `null` counts as absent.
#[derive(Debug)]
pub(crate) enum Field<T> {
    /// Absent.
    Absent,
    /// Present, with a valid value.
    Given(T),
    /// Present, with an invalid value: a description of it.
    Wrong(String),
}

/// The JSON types that a field accepts. Types without a method here are refused.
pub(crate) trait Form: Sized {
    /// The rule as a message: `must be a string`.
    const RULE: &'static str;

    fn from_flag(_: bool) -> Option<Self> {
        None
    }

    fn from_integer(_: u64) -> Option<Self> {
        None
    }

    fn from_text(_: &str) -> Option<Self> {
        None
    }

    fn from_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Option<Self>, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn from_object<'de, A: MapAccess<'de>>(mut object: A) -> Result<Option<Self>, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

/// Makes an object of fields readable as a field itself.
macro_rules! object_form {
    ($($object:ty),+ $(,)?) => {
        $(impl $crate::dto::field::Form for $object {
            const RULE: &'static str = "must be an object";

            fn from_object<'de, A: serde::de::MapAccess<'de>>(
                object: A,
            ) -> Result<Option<Self>, A::Error> {
                $crate::dto::field::read_object(object).map(Some)
            }
        })+
    };
}
pub(crate) use object_form;

pub(crate) fn read_object<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
    object: A,
) -> Result<T, A::Error> {
    T::deserialize(MapAccessDeserializer::new(object))
}

/// A text as it may be repeated in a message.
pub(crate) fn shown(text: &str) -> String {
    let cut: String = text.chars().take(SHOWN).collect();
    if cut.len() < text.len() { format!("{cut:?}…") } else { format!("{cut:?}") }
}

impl<'de, T: Form> Deserialize<'de> for Field<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // As an option, so that a key that is missing is read as absent.
        deserializer.deserialize_option(Reading(PhantomData))
    }
}

struct Reading<T>(PhantomData<T>);

impl<'de, T: Form> Visitor<'de> for Reading<T> {
    type Value = Field<T>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("any value")
    }

    fn visit_none<E: Error>(self) -> Result<Field<T>, E> {
        Ok(Field::Absent)
    }

    fn visit_unit<E: Error>(self) -> Result<Field<T>, E> {
        Ok(Field::Absent)
    }

    fn visit_some<D: Deserializer<'de>>(self, value: D) -> Result<Field<T>, D::Error> {
        value.deserialize_any(self)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Field<T>, E> {
        Ok(T::from_flag(value).map_or_else(|| Field::Wrong(value.to_string()), Field::Given))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Field<T>, E> {
        let wrong = || Field::Wrong(format!("the number {value}"));
        Ok(T::from_integer(value).map_or_else(wrong, Field::Given))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Field<T>, E> {
        Ok(Field::Wrong(format!("the number {value}")))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Field<T>, E> {
        // JSON has one kind of number: 1.0 and 1e0 are whole too.
        let is_whole = value.fract() == 0.0;
        let whole = is_whole.then(|| format!("{:.0}", value + 0.0).parse().ok()).flatten();
        let wrong = || Field::Wrong(format!("the number {value:?}"));
        Ok(whole.and_then(T::from_integer).map_or_else(wrong, Field::Given))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Field<T>, E> {
        // No valid name or text contains it, and PostgreSQL cannot store it.
        if value.contains('\0') {
            return Ok(Field::Wrong("a string with the character U+0000".to_owned()));
        }
        let wrong = || Field::Wrong(format!("the string {}", shown(value)));
        Ok(T::from_text(value).map_or_else(wrong, Field::Given))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Field<T>, A::Error> {
        let wrong = || Field::Wrong("an array".to_owned());
        Ok(T::from_list(list)?.map_or_else(wrong, Field::Given))
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Field<T>, A::Error> {
        let wrong = || Field::Wrong("an object".to_owned());
        Ok(T::from_object(object)?.map_or_else(wrong, Field::Given))
    }
}

/// The errors of a request.
#[derive(Debug, Default)]
pub(crate) struct Errors(Vec<FieldError>);

impl Errors {
    pub(crate) fn add(&mut self, pointer: impl Into<String>, message: impl Into<String>) {
        self.0.push(FieldError { pointer: pointer.into(), message: message.into() });
    }

    /// An optional field.
    pub(crate) fn optional<T: Form>(&mut self, pointer: &str, field: Field<T>) -> Option<T> {
        match field {
            Field::Absent => None,
            Field::Given(value) => Some(value),
            Field::Wrong(found) => {
                self.add(pointer, format!("{}, but is {found}", T::RULE));
                None
            }
        }
    }

    /// A required field.
    pub(crate) fn required<T: Form>(&mut self, pointer: &str, field: Field<T>) -> Option<T> {
        if let Field::Absent = field {
            self.add(pointer, "is required");
        }
        self.optional(pointer, field)
    }

    /// The value of a check, or its error.
    pub(crate) fn keep<T, E: std::fmt::Display>(
        &mut self,
        pointer: &str,
        checked: Result<T, E>,
    ) -> Option<T> {
        checked.map_err(|error| self.add(pointer, error.to_string())).ok()
    }

    /// The checked request, unless there are errors.
    pub(crate) fn finish<T>(self, read: Option<T>) -> Result<T, Problem> {
        match read {
            Some(read) if self.0.is_empty() => Ok(read),
            Some(_) | None => Err(Problem::fields(self.0)),
        }
    }
}
