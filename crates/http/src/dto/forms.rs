//! The JSON types of single fields.

use serde::de::{IgnoredAny, SeqAccess};
use signalbox_domain::queue::{Priority, TargetSet, TargetSetBuilder};
use signalbox_domain::time::Timestamp;

use super::field::{Field, Form};

/// The most items of a list that are kept: one more than any list may have.
const KEPT_ITEMS: usize = 101;

/// A string.
#[derive(Debug)]
pub(crate) struct Text(pub(crate) String);

impl Form for Text {
    const RULE: &'static str = "must be a string";

    fn from_text(text: &str) -> Option<Self> {
        Some(Self(text.to_owned()))
    }
}

/// A boolean.
#[derive(Debug)]
pub(crate) struct Flag(pub(crate) bool);

impl Form for Flag {
    const RULE: &'static str = "must be true or false";

    fn from_flag(flag: bool) -> Option<Self> {
        Some(Self(flag))
    }
}

/// A time by RFC 3339.
#[derive(Debug)]
pub(crate) struct Time(pub(crate) Timestamp);

impl Form for Time {
    const RULE: &'static str = "must be a time by RFC 3339, such as 2026-09-17T10:16:02Z";

    fn from_text(text: &str) -> Option<Self> {
        Timestamp::parse(text).map(Self)
    }
}

/// A whole number.
#[derive(Debug)]
pub(crate) struct Count(pub(crate) u32);

impl Form for Count {
    const RULE: &'static str = "must be a whole number from 0 to 4294967295";

    fn from_integer(value: u64) -> Option<Self> {
        u32::try_from(value).ok().map(Self)
    }
}

/// A pull request's number: an integer, or the same as a decimal string.
#[derive(Debug)]
pub(crate) struct Number(pub(crate) u32);

impl Form for Number {
    const RULE: &'static str = "must be a whole number from 0 to 4294967295";

    fn from_integer(value: u64) -> Option<Self> {
        u32::try_from(value).ok().map(Self)
    }

    fn from_text(text: &str) -> Option<Self> {
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|_| digits).map(Self)
    }
}

/// A priority by number or by name.
#[derive(Debug)]
pub(crate) struct PriorityForm(pub(crate) Priority);

impl Form for PriorityForm {
    const RULE: &'static str =
        "must be urgent, high, medium, low or a whole number from 0 to 4294967295";

    fn from_integer(value: u64) -> Option<Self> {
        u32::try_from(value).ok().map(|value| Self(Priority::number(value)))
    }

    fn from_text(text: &str) -> Option<Self> {
        Priority::named(text).map(Self)
    }
}

/// A list whose items are fields themselves.
#[derive(Debug)]
pub(crate) struct List<T>(pub(crate) Vec<Field<T>>);

impl<T: Form> Form for List<T> {
    const RULE: &'static str = "must be an array";

    fn from_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Option<Self>, A::Error> {
        let mut items = Vec::new();
        while items.len() < KEPT_ITEMS {
            let Some(item) = list.next_element()? else { return Ok(Some(Self(items))) };
            items.push(item);
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Some(Self(items)))
    }
}

/// Impacted targets: a list, or `ALL`.
#[derive(Debug)]
pub(crate) enum TargetsForm {
    /// All targets.
    All,
    /// Exactly these.
    Only(TargetSet),
    /// An item that is not a valid string: a description of it.
    WrongItem(usize, String),
}

impl Form for TargetsForm {
    const RULE: &'static str = "must be an array of strings or \"ALL\"";

    fn from_text(text: &str) -> Option<Self> {
        let all = text.eq_ignore_ascii_case("ALL") || text.eq_ignore_ascii_case("IMPACTS_ALL");
        all.then_some(Self::All)
    }

    fn from_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Option<Self>, A::Error> {
        let (mut names, mut at, mut refused) = (TargetSetBuilder::default(), 0, None);
        while let Some(item) = list.next_element::<Field<Text>>()? {
            let wrong = match item {
                Field::Given(Text(name)) => {
                    if !name.is_empty() && refused.is_none() {
                        names.add(&name);
                    }
                    None
                }
                Field::Absent => Some("null".to_owned()),
                Field::Wrong(found) => Some(found),
            };
            if let Some(found) = wrong {
                refused.get_or_insert(Self::WrongItem(at, found));
            }
            at += 1;
        }
        Ok(Some(refused.unwrap_or_else(|| Self::Only(names.build()))))
    }
}
