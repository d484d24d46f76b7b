//! Parameters of monitors in the API: parsed, serialized and documented from the domain's table of
//! each kind. No parameter is named here.

use std::fmt;
use std::marker::PhantomData;
use std::sync::LazyLock;

use serde::de::value::MapAccessDeserializer;
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IntoDeserializer as _, MapAccess, Visitor,
};
use serde::ser::{SerializeMap, Serializer};
use signalbox_domain::flaky::{MonitorKind, ParameterSpec, Refusal, Rule};
use utoipa::Modify;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, SchemaType, Type};
use utoipa::openapi::{OpenApi, RefOr, Schema};

use super::super::field::{Errors, Field, Form, read_object};
use super::super::forms::Count;

/// The schemas that have the parameters of all kinds, and whether it is a request's.
const WITH_PARAMETERS: [(&str, bool); 4] = [
    ("MonitorReply", false),
    ("CreateMonitorRequest", true),
    ("PreviewMonitorRequest", true),
    ("UpdateMonitorRequest", true),
];

/// A request with the parameters of a monitor among its fields.
#[derive(Debug)]
pub(crate) struct WithParameters<T> {
    pub(super) request: T,
    parameters: Vec<(&'static str, Field<Count>)>,
}

impl<T> WithParameters<T> {
    /// The parameters that were given.
    pub(super) fn take(&mut self, errors: &mut Errors) -> Vec<(&'static str, u32)> {
        let given = std::mem::take(&mut self.parameters).into_iter();
        let read = given.filter_map(|(name, field)| {
            let value = errors.optional(&format!("/{name}"), field)?.0;
            let spec = PARAMETERS.iter().find(|(spec, _)| spec.name == name).map(|(spec, _)| spec);
            if let Some(spec) = spec {
                add_refusal(errors, spec.check(value));
            }
            Some((name, value))
        });
        read.collect()
    }
}

impl<T: for<'de> Deserialize<'de>> Form for WithParameters<T> {
    const RULE: &'static str = "must be an object";

    fn from_object<'de, A: MapAccess<'de>>(object: A) -> Result<Option<Self>, A::Error> {
        read_object(object).map(Some)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for WithParameters<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Reading(PhantomData))
    }
}

struct Reading<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Reading<T> {
    type Value = WithParameters<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        let mut parameters = Vec::new();
        let others = WithoutParameters { map, parameters: &mut parameters };
        let request = T::deserialize(MapAccessDeserializer::new(others))?;
        Ok(WithParameters { request, parameters })
    }
}

/// Keeps the parameters of an object and passes everything else on.
struct WithoutParameters<'a, A> {
    map: A,
    parameters: &'a mut Vec<(&'static str, Field<Count>)>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for WithoutParameters<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        while let Some(key) = self.map.next_key::<String>()? {
            let Some((spec, _)) = PARAMETERS.iter().find(|(spec, _)| spec.name == key) else {
                return seed.deserialize(key.into_deserializer()).map(Some);
            };
            let name = spec.name;
            if self.parameters.iter().any(|(known, _)| *known == name) {
                return Err(A::Error::duplicate_field(name));
            }
            self.parameters.push((name, self.map.next_value()?));
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

/// Writes the parameters of a rule into a reply.
pub(super) fn serialize<S: Serializer>(rule: &Rule, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    for (name, value) in rule.values() {
        map.serialize_entry(name, &value)?;
    }
    map.end()
}

/// Adds the refusal of a field, also of one that the monitor does not use.
pub(super) fn add_refusal(errors: &mut Errors, checked: Result<(), Refusal>) {
    if let Err(Refusal::InvalidSetting { field, rule }) = checked {
        errors.add(format!("/{field}"), rule);
    }
}

/// Every parameter once, with the kinds that have it.
static PARAMETERS: LazyLock<Vec<(ParameterSpec, Vec<MonitorKind>)>> = LazyLock::new(|| {
    let mut known: Vec<(ParameterSpec, Vec<MonitorKind>)> = Vec::new();
    for kind in MonitorKind::ALL {
        for spec in kind.parameters() {
            match known.iter_mut().find(|(known, _)| known.name == spec.name) {
                Some((_, kinds)) => kinds.push(*kind),
                None => known.push((spec, vec![*kind])),
            }
        }
    }
    known
});

/// A list in a sentence: `a, b or c`.
fn listed(words: &[&str], last: &str) -> String {
    match words.split_last() {
        Some((end, others)) if !others.is_empty() => {
            format!("{} {last} {end}", others.join(", "))
        }
        _ => words.concat(),
    }
}

/// The kinds as an error lists them.
pub(super) fn kinds() -> String {
    listed(MonitorKind::NAMES, "or")
}

/// Describes the parameters in the schemas that have them.
pub(crate) struct DescribeParameters;

impl Modify for DescribeParameters {
    fn modify(&self, openapi: &mut OpenApi) {
        let Some(components) = &mut openapi.components else { return };
        for (name, is_request) in WITH_PARAMETERS {
            let Some(RefOr::T(Schema::Object(object))) = components.schemas.get_mut(name) else {
                continue;
            };
            for (spec, kinds) in PARAMETERS.iter() {
                object.properties.insert(spec.name.to_owned(), schema(spec, kinds, is_request));
            }
        }
    }
}

fn schema(spec: &ParameterSpec, kinds: &[MonitorKind], is_request: bool) -> RefOr<Schema> {
    let kinds: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
    let plain = Type::Integer;
    let types = if is_request {
        SchemaType::Array(vec![plain, Type::Null])
    } else {
        SchemaType::Type(plain)
    };
    ObjectBuilder::new()
        .schema_type(types)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int32)))
        .minimum(Some(spec.min))
        .maximum(Some(spec.max))
        .description(Some(format!("For {}: {}.", listed(&kinds, "and"), spec.doc)))
        .into()
}
