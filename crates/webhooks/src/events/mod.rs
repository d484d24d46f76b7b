//! Public events. Each is a struct: what leaves the house is the struct as JSON, and its JSON
//! Schema, the catalog and the page of the documentation are made from the struct too.

pub mod catalog;
mod imports;
mod incidents;
mod queues;
mod shapes;
mod test_case;
mod tests;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use serde::Serialize;
use serde_json::{Value, json};
use signalbox_domain::flaky::{ImportSummary, Incident, IncidentState};
use signalbox_domain::ids::{RepoId, RepoName};
use signalbox_domain::ports::{EventWriter, QueuePlace, TestSnapshot};
use signalbox_domain::time::Timestamp;
use signalbox_domain::{flaky, queue};

pub use test_case::Links;

/// A public event.
trait PublicEvent: Serialize + JsonSchema {
    /// Its public name.
    const NAME: &'static str;

    /// When it is sent, in one sentence.
    const DESCRIPTION: &'static str;

    /// The payload that leaves the house.
    fn payload(&self) -> String {
        serde_json::to_string(self).expect("fields have names and numbers are finite")
    }

    /// The JSON Schema of the payload, in the dialect 2020-12.
    fn schema() -> Value {
        let settings = SchemaSettings::draft2020_12().for_serialize();
        let settings = settings.with(|settings| settings.inline_subschemas = true);
        let settings = settings.with_transform(RecursiveTransform(Plain));
        let mut schema = settings.into_generator().into_root_schema_for::<Self>();
        schema.insert("title".to_owned(), json!(Self::NAME));
        schema.insert("description".to_owned(), json!(Self::DESCRIPTION.trim_start()));
        schema.to_value()
    }
}

/// Removes what is specific to Rust: the width of numbers, and `null` for omitted fields.
#[derive(Clone)]
struct Plain;

impl Transform for Plain {
    fn transform(&mut self, schema: &mut schemars::Schema) {
        let format = schema.get("format").and_then(Value::as_str).unwrap_or_default();
        if matches!(format, "uint32" | "uint64" | "double") {
            schema.remove("format");
        }
        let Some(object) = schema.as_object_mut() else { return };
        let required = object.get("required").and_then(Value::as_array).cloned();
        let Some(Value::Object(properties)) = object.get_mut("properties") else { return };
        let is_required = |name: &String| {
            required.as_ref().is_some_and(|required| required.iter().any(|it| it == name))
        };
        for (_, property) in properties.iter_mut().filter(|(name, _)| !is_required(name)) {
            without_null(property);
        }
    }
}

fn without_null(schema: &mut Value) {
    if let Some(words) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        words.retain(|word| !word.is_null());
    }
    if let Some(types) = schema.get_mut("type").and_then(Value::as_array_mut) {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            schema["type"] = only.clone();
        }
    }
}

/// Declares an event: when it is sent, the name of the struct, the public name, and the fields
/// beside `type`. Optional fields are omitted when they have no value.
macro_rules! public_event {
    (
        $(#[doc = $doc:literal])+
        $event:ident = $name:expr;
        { $($(#[$meta:meta])* $field:ident: $type:ty,)* }
        optional { $($(#[$maybe_meta:meta])* $maybe:ident: $maybe_type:ty,)* }
    ) => {
        $(#[doc = $doc])+
        #[derive(Debug, serde::Serialize, schemars::JsonSchema)]
        #[schemars(deny_unknown_fields)]
        struct $event {
            #[serde(rename = "type")]
            #[schemars(extend("const" = $event::NAME))]
            name: &'static str,
            $($(#[$meta])* $field: $type,)*
            $($(#[$maybe_meta])* #[serde(skip_serializing_if = "Option::is_none")]
            $maybe: Option<$maybe_type>,)*
        }

        impl $crate::events::PublicEvent for $event {
            const NAME: &'static str = $name;
            const DESCRIPTION: &'static str = concat!($($doc),+);
        }
    };
}
use public_event;

/// Writes the payloads of events.
#[derive(Clone, Debug, Default)]
pub struct EventPayloads(
    /// Where pages of tests and tickets are.
    pub Links,
);

impl EventWriter for EventPayloads {
    fn queue_event(&self, place: &QueuePlace, event: &queue::Event) -> String {
        queues::payload(place, event)
    }

    fn test_event(&self, snapshot: &TestSnapshot, event: &flaky::Event) -> String {
        tests::payload(&self.0, snapshot, event)
    }

    fn incident_event(
        &self,
        repo: &RepoName,
        before: Option<IncidentState>,
        incident: &Incident,
    ) -> String {
        incidents::payload(repo, before, incident)
    }

    fn import_event(
        &self,
        repo: (RepoId, &RepoName),
        summary: &ImportSummary,
        at: Timestamp,
    ) -> String {
        imports::payload(repo, summary, at)
    }
}
