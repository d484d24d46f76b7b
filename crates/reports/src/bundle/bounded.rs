//! Lists and maps of `meta.json` that end early when they are too long: a few bytes of JSON can be
//! hundreds in memory.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// A list of at most so many items.
struct List<T, const MOST: usize>(Vec<T>);
/// At most so many texts with names.
struct Texts<const MOST: usize>(BTreeMap<String, String>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for List<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Items<T, const MOST: usize>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for Items<T, MOST> {
            type Value = List<T, MOST>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "at most {MOST} items")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
                let mut list = Vec::new();
                while let Some(item) = items.next_element()? {
                    check::<A::Error>(list.len(), MOST)?;
                    list.push(item);
                }
                Ok(List(list))
            }
        }
        input.deserialize_seq(Items(PhantomData))
    }
}

impl<'de, const MOST: usize> Deserialize<'de> for Texts<MOST> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Entries<const MOST: usize>;
        impl<'de, const MOST: usize> Visitor<'de> for Entries<MOST> {
            type Value = Texts<MOST>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "at most {MOST} texts with names")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
                let mut map = BTreeMap::new();
                while let Some((name, value)) = entries.next_entry()? {
                    check::<A::Error>(map.len(), MOST)?;
                    map.insert(name, value);
                }
                Ok(Texts(map))
            }
        }
        input.deserialize_map(Entries)
    }
}

fn check<E: Error>(length: usize, most: usize) -> Result<(), E> {
    if length == most {
        return Err(E::custom(format_args!("must have at most {most} items")));
    }
    Ok(())
}

/// A list of at most so many items.
pub(super) fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>, const MOST: usize>(
    input: D,
) -> Result<Vec<T>, D::Error> {
    List::<T, MOST>::deserialize(input).map(|it| it.0)
}

/// A list of at most so many items, or null.
pub(super) fn some_list<'de, D: Deserializer<'de>, T: Deserialize<'de>, const MOST: usize>(
    input: D,
) -> Result<Option<Vec<T>>, D::Error> {
    Option::<List<T, MOST>>::deserialize(input).map(|it| it.map(|it| it.0))
}

/// At most so many texts with names.
pub(super) fn texts<'de, D: Deserializer<'de>, const MOST: usize>(
    input: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    Texts::<MOST>::deserialize(input).map(|it| it.0)
}

/// At most so many texts with names, or null.
pub(super) fn some_texts<'de, D: Deserializer<'de>, const MOST: usize>(
    input: D,
) -> Result<Option<BTreeMap<String, String>>, D::Error> {
    Option::<Texts<MOST>>::deserialize(input).map(|it| it.map(|it| it.0))
}
