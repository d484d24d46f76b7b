//! What the derived description lacks, by rules that hold for all of it.

use std::collections::BTreeSet;

use serde_json::Value;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{Operation, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::schema::{
    AdditionalProperties, ArrayItems, Discriminator, KnownFormat, Object, ObjectBuilder,
    SchemaFormat, SchemaType, Type,
};
use utoipa::openapi::{Components, OpenApi, Ref, RefOr, Required, Schema};
use utoipa::{Modify, Number};

use super::fields::refuse_combinations;
use crate::admission::only_reads;
use crate::failures::add_those_of_keys;
use crate::idempotency::MOST;

/// Every string of a request is refused with U+0000.
const WITHOUT_NUL: &str = r"^[^\x00]*$";

/// Operations of uploads, which are recognized by what they contain.
const WITHOUT_KEYS: [&str; 4] =
    ["createBundleUpload", "uploadTestReports", "importTestReports", "uploadMetrics"];

/// Requests of the public uploader, where any text is accepted.
const ANY_TEXT: [&str; 3] = ["AnyRepository", "FailedTest", "QuarantineConfigRequest"];

/// Completes the description.
pub(super) struct Complete;

impl Modify for Complete {
    fn modify(&self, openapi: &mut OpenApi) {
        let requests = requests(openapi);
        let mut components = openapi.components.take().unwrap_or_default();
        unite_steps(&mut components);
        name_reasons(&mut components);
        refuse_combinations(&mut components);
        for (name, schema) in &mut components.schemas {
            visit(schema, &mut widen);
            if requests.contains(name) && !ANY_TEXT.contains(&name.as_str()) {
                visit(schema, &mut refuse_nul);
            }
        }
        for operation in openapi.paths.paths.values_mut().flat_map(operations) {
            for parameter in operation.parameters.iter_mut().flatten() {
                if let RefOr::T(parameter) = parameter
                    && let Some(schema) = &mut parameter.schema
                {
                    visit(schema, &mut widen);
                    visit(schema, &mut refuse_nul);
                }
            }
            show_example(operation, &components);
        }
        for operation in openapi.paths.paths.values_mut().filter_map(|item| item.post.as_mut()) {
            if takes_keys(operation) {
                describe_keys(operation);
            }
        }
        openapi.components = Some(components);
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let PathItem { get, put, post, delete, .. } = item;
    [get, put, post, delete].into_iter().flatten()
}

/// Visits every object of a schema.
fn visit(schema: &mut RefOr<Schema>, change: &mut impl FnMut(&mut Object)) {
    let RefOr::T(schema) = schema else { return };
    match schema {
        Schema::Object(object) => {
            change(object);
            object.properties.values_mut().for_each(|property| visit(property, change));
            if let Some(AdditionalProperties::RefOr(others)) =
                object.additional_properties.as_deref_mut()
            {
                visit(others, change);
            }
        }
        Schema::Array(array) => {
            if let ArrayItems::RefOrSchema(items) = &mut array.items {
                visit(items, change);
            }
        }
        Schema::OneOf(choice) => choice.items.iter_mut().for_each(|item| visit(item, change)),
        Schema::AllOf(parts) => parts.items.iter_mut().for_each(|item| visit(item, change)),
        Schema::AnyOf(choice) => choice.items.iter_mut().for_each(|item| visit(item, change)),
        _ => {}
    }
}

/// A step is an object with one of several details, which generators cannot read as a combination:
/// its schema has all of them as optional properties, and the number of properties.
fn unite_steps(components: &mut Components) {
    let Some(RefOr::T(Schema::OneOf(details))) = components.schemas.remove("What") else { return };
    let Some(RefOr::T(Schema::AllOf(parts))) = components.schemas.get("StepReply").cloned() else {
        return;
    };
    let own = parts.items.into_iter().find_map(|part| match part {
        RefOr::T(Schema::Object(object)) => Some(object),
        _ => None,
    });
    let Some(mut step) = own else { return };
    for detail in details.items {
        if let RefOr::T(Schema::Object(detail)) = detail {
            step.properties.extend(detail.properties);
        }
    }
    let properties = step.required.len() + 1;
    (step.min_properties, step.max_properties) = (Some(properties), Some(properties));
    step.description = parts.description;
    components.schemas.insert("StepReply".to_owned(), RefOr::T(Schema::Object(step)));
}

/// A reason has the fields of its kind. Each kind gets a schema of its own, so that clients can tell them
/// apart by the kind.
fn name_reasons(components: &mut Components) {
    let Some(RefOr::T(Schema::OneOf(mut reasons))) = components.schemas.remove("WaitReasonReply")
    else {
        return;
    };
    let mut discriminator = Discriminator::new("kind");
    for reason in &mut reasons.items {
        let Some(kind) = kind_of(reason) else { continue };
        let name = format!("{}Reason", in_camel_case(&kind));
        let reference = RefOr::Ref(Ref::from_schema_name(&name));
        discriminator.mapping.insert(kind, format!("#/components/schemas/{name}"));
        components.schemas.insert(name, std::mem::replace(reason, reference));
    }
    reasons.discriminator = Some(discriminator);
    let reasons = RefOr::T(Schema::OneOf(reasons));
    components.schemas.insert("WaitReasonReply".to_owned(), reasons);
}

fn kind_of(reason: &RefOr<Schema>) -> Option<String> {
    let RefOr::T(Schema::Object(object)) = reason else { return None };
    let RefOr::T(Schema::Object(kind)) = object.properties.get("kind")? else { return None };
    kind.enum_values.as_ref()?.first()?.as_str().map(ToOwned::to_owned)
}

/// `slots_full`: `SlotsFull`.
pub(super) fn in_camel_case(text: &str) -> String {
    let words = text.split(['.', '_']).filter_map(|word| {
        let mut letters = word.chars();
        Some(letters.next()?.to_uppercase().chain(letters).collect::<String>())
    });
    words.collect()
}

/// Numbers of 32 bits without a sign do not fit into `int32`. Only they have a minimum and no
/// maximum.
fn widen(schema: &mut Object) {
    let is_32_bits = matches!(schema.format, Some(SchemaFormat::KnownFormat(KnownFormat::Int32)));
    if is_32_bits && schema.minimum.is_some() && schema.maximum.is_none() {
        schema.format = Some(SchemaFormat::KnownFormat(KnownFormat::Int64));
        schema.maximum = Some(Number::from(u32::MAX));
    }
}

fn refuse_nul(schema: &mut Object) {
    let is_text = match &schema.schema_type {
        SchemaType::Type(only) => *only == Type::String,
        SchemaType::Array(types) => types.contains(&Type::String),
        SchemaType::AnyValue => false,
    };
    let is_formal = matches!(
        schema.format,
        Some(SchemaFormat::KnownFormat(
            KnownFormat::Uuid | KnownFormat::DateTime | KnownFormat::Binary
        ))
    );
    if is_text && !is_formal && schema.pattern.is_none() && schema.enum_values.is_none() {
        schema.pattern = Some(WITHOUT_NUL.to_owned());
    }
}

/// Whether an idempotency key counts: the operation changes something, for the holder of a token.
fn takes_keys(operation: &Operation) -> bool {
    let id = operation.operation_id.as_deref().unwrap_or_default();
    let is_json = matches!(
        &operation.request_body,
        Some(RefOr::T(body)) if body.content.contains_key("application/json")
    );
    is_json && !only_reads(id) && !WITHOUT_KEYS.contains(&id)
}

/// Describes the header with the key, that of a repeated reply, and the failures.
fn describe_keys(operation: &mut Operation) {
    let text = || ObjectBuilder::new().schema_type(Type::String);
    let key = ParameterBuilder::new()
        .name("Idempotency-Key")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(
            "A key of the client's choice: for 24 hours, a repeat of the request with the same key gets the reply of the first \
             one and changes nothing.",
        ))
        .schema(Some(
            text().min_length(Some(1)).max_length(Some(MOST)).pattern(Some("^[!-~]+$")).build(),
        ))
        .example(Some("7f6d0d6e-2f5b-4a61-9c5d-0d7c1f1f3c57".into()))
        .build();
    operation.parameters.get_or_insert_default().push(key.into());
    if let Some(RefOr::T(reply)) = operation.responses.responses.get_mut("200") {
        let replayed = HeaderBuilder::new()
            .schema(Some(text().enum_values(Some(["true"])).build()))
            .description(Some("Present if the reply is that of an earlier request."))
            .build();
        reply.headers.insert("Idempotent-Replayed".to_owned(), replayed.into());
    }
    add_those_of_keys(&mut operation.responses.responses);
}

/// Adds the names of the schemas that a description refers to.
fn names(description: &Value, found: &mut Vec<String>) {
    match description {
        Value::Object(object) => {
            if let Some(Value::String(target)) = object.get("$ref") {
                found.extend(target.rsplit('/').next().map(ToOwned::to_owned));
            }
            object.values().for_each(|value| names(value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| names(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The schemas that bodies of requests are made of.
fn requests(openapi: &mut OpenApi) -> BTreeSet<String> {
    let mut open = Vec::new();
    for operation in openapi.paths.paths.values_mut().flat_map(operations) {
        let body = serde_json::to_value(&operation.request_body).unwrap_or_default();
        names(&body, &mut open);
    }
    let schemas = openapi.components.as_ref().map(|components| &components.schemas);
    let mut known = BTreeSet::new();
    while let Some(name) = open.pop() {
        if let Some(schema) = schemas.and_then(|schemas| schemas.get(&name)) {
            names(&serde_json::to_value(schema).unwrap_or_default(), &mut open);
        }
        known.insert(name);
    }
    known
}

/// The example of a successful reply is that of its schema, unless it has one of its own.
fn show_example(operation: &mut Operation, components: &Components) {
    let Some(RefOr::T(reply)) = operation.responses.responses.get_mut("200") else { return };
    for content in reply.content.values_mut() {
        let RefOr::T(content) = content else { continue };
        if content.example.is_some() || !content.examples.is_empty() {
            continue;
        }
        let Some(RefOr::Ref(named)) = &content.schema else { continue };
        let name = named.ref_location.rsplit('/').next().unwrap_or_default();
        if let Some(RefOr::T(Schema::Object(object))) = components.schemas.get(name) {
            content.example.clone_from(&object.example);
        }
    }
}
