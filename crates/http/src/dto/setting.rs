//! Settings of queues in the API: parsed, checked, serialized and documented from the domain's
//! table of settings. No setting is named here.

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize};
use signalbox_domain::queue::{
    BatchingRule, LineSyntax, MAX_LIST, MAX_NAME, Refusal, SETTINGS, SettingKind, SettingSpec,
    SettingValue, Settings,
};
use utoipa::openapi::schema::{
    ArrayBuilder, KnownFormat, ObjectBuilder, OneOfBuilder, SchemaFormat, SchemaType, Type,
};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::Words;
use super::field::{Errors, Field, Form as _, object_form, shown};
use super::forms::{Count, Flag, List, Text};
use super::words::{BatchingPolicyWord, in_the_tokens_case};

/// A rule that keeps targets out of shared batches.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BatchingRuleReply {
    /// The pattern of targets; `*` matches any text.
    #[schema(min_length = 1)]
    target_pattern: String,
    /// Always `isolate`.
    #[schema(value_type = BatchingPolicyWord)]
    policy: String,
}

/// An unchecked rule that keeps targets out of shared batches.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RuleForm {
    target_pattern: Field<Text>,
    policy: Field<Text>,
}

object_form!(RuleForm);

/// An unchecked setting.
#[derive(Debug)]
pub(super) enum Sent {
    Count(Field<Count>),
    Flag(Field<Flag>),
    Text(Field<Text>),
    Names(Field<List<Text>>),
    Rules(Field<List<RuleForm>>),
}

impl Sent {
    /// Parses the next value of a request as the type of this setting.
    pub(super) fn read<'de, A: serde::de::MapAccess<'de>>(
        spec: &SettingSpec,
        map: &mut A,
    ) -> Result<Self, A::Error> {
        Ok(match spec.kind {
            SettingKind::Whole { .. } => Self::Count(map.next_value()?),
            SettingKind::Flag => Self::Flag(map.next_value()?),
            SettingKind::Word(_) | SettingKind::Text { .. } => Self::Text(map.next_value()?),
            SettingKind::Names { .. } | SettingKind::Lines(_) => Self::Names(map.next_value()?),
            SettingKind::Rules => Self::Rules(map.next_value()?),
        })
    }

    /// The value, if it is present and valid.
    pub(super) fn value(self, spec: &SettingSpec, errors: &mut Errors) -> Option<SettingValue> {
        let pointer = format!("/{}", spec.name);
        Some(match self {
            Self::Count(field) => SettingValue::Whole(errors.optional(&pointer, field)?.0),
            Self::Flag(field) => SettingValue::Flag(errors.optional(&pointer, field)?.0),
            Self::Text(field) => {
                let Text(text) = errors.optional(&pointer, field)?;
                let Some(value) = spec.parse(&text) else {
                    errors.add(pointer, wrong_word(spec, &text));
                    return None;
                };
                value
            }
            Self::Names(field) => {
                let List(items) = errors.optional(&pointer, field)?;
                let names = items.into_iter().enumerate().filter_map(|(at, item)| {
                    errors.required(&format!("{pointer}/{at}"), item).map(|text| text.0)
                });
                SettingValue::Names(names.collect())
            }
            Self::Rules(field) => {
                let List(items) = errors.optional(&pointer, field)?;
                let rules = items.into_iter().enumerate();
                let rules = rules.filter_map(|(at, item)| rule(errors, &pointer, at, item));
                SettingValue::Rules(rules.collect())
            }
        })
    }
}

/// The value of a setting as text, if it is valid.
pub(super) fn from_text(
    spec: &SettingSpec,
    text: &str,
    errors: &mut Errors,
) -> Option<SettingValue> {
    let Some(value) = spec.parse(text) else {
        let rule = match spec.kind {
            SettingKind::Whole { .. } => Count::RULE.to_owned(),
            SettingKind::Flag => Flag::RULE.to_owned(),
            SettingKind::Word(_)
            | SettingKind::Text { .. }
            | SettingKind::Names { .. }
            | SettingKind::Lines(_)
            | SettingKind::Rules => wrong_word(spec, text),
        };
        errors.add(format!("/{}", spec.name), rule);
        return None;
    };
    keep(errors, spec.check(&value))?;
    Some(value)
}

/// The schema of a setting that is a parameter.
pub(super) fn parameter_schema(spec: &SettingSpec) -> RefOr<Schema> {
    match spec.kind {
        SettingKind::Whole { min, max, .. } => ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(min))
            .maximum(Some(max))
            .into(),
        SettingKind::Flag => ObjectBuilder::new().schema_type(Type::Boolean).into(),
        SettingKind::Word(_)
        | SettingKind::Text { .. }
        | SettingKind::Names { .. }
        | SettingKind::Lines(_)
        | SettingKind::Rules => Ref::from_schema_name(word_name(spec)).into(),
    }
}

fn wrong_word(spec: &SettingSpec, given: &str) -> String {
    let SettingKind::Word(words) = spec.kind else { return "has another type".to_owned() };
    format!("must be one of {}, but is {}", words.join(", "), shown(given))
}

fn rule(
    errors: &mut Errors,
    pointer: &str,
    at: usize,
    item: Field<RuleForm>,
) -> Option<BatchingRule> {
    let RuleForm { target_pattern, policy } = errors.required(&format!("{pointer}/{at}"), item)?;
    let pattern = errors.required(&format!("{pointer}/{at}/targetPattern"), target_pattern);
    let policy = errors.required(&format!("{pointer}/{at}/policy"), policy);
    Some(BatchingRule { target_pattern: pattern?.0, policy: policy?.0 })
}

/// Adds the error of a check of the queue's rules to the errors of a request.
pub(super) fn keep<T>(errors: &mut Errors, checked: Result<T, Refusal>) -> Option<T> {
    match checked {
        Ok(value) => return Some(value),
        Err(Refusal::InvalidSetting { field, rule }) => errors.add(format!("/{field}"), rule),
        Err(refusal) => errors.add("", refusal.to_string()),
    }
    None
}

/// Serializes all settings into a reply.
pub(super) fn write<M: SerializeMap>(
    map: &mut M,
    settings: &Settings,
    words: Words,
) -> Result<(), M::Error> {
    for spec in SETTINGS {
        let name = spec.name;
        match spec.value(settings) {
            SettingValue::Whole(number) => map.serialize_entry(name, &number)?,
            SettingValue::Flag(flag) => map.serialize_entry(name, &flag)?,
            SettingValue::Word(word) => map.serialize_entry(name, &words.word(word))?,
            SettingValue::Text(text) => map.serialize_entry(name, &text)?,
            SettingValue::Names(names) => map.serialize_entry(name, &names)?,
            SettingValue::Rules(rules) => {
                let rules = rules.into_iter().map(|BatchingRule { target_pattern, policy }| {
                    BatchingRuleReply { target_pattern, policy }
                });
                map.serialize_entry(name, &rules.collect::<Vec<_>>())?;
            }
        }
    }
    Ok(())
}

/// The name of the schema of an enum: `ModeWord`.
fn word_name(spec: &SettingSpec) -> String {
    let (first, rest) = spec.name.split_at(1);
    format!("{}{rest}Word", first.to_uppercase())
}

/// The schemas that the schemas of settings refer to.
pub(super) fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
    for spec in SETTINGS {
        if let SettingKind::Word(words) = spec.kind {
            schemas.push((word_name(spec), in_the_tokens_case(spec.doc(), words)));
        }
    }
    schemas.push((BatchingRuleReply::name().into_owned(), BatchingRuleReply::schema()));
    BatchingRuleReply::schemas(schemas);
}

/// The characters of a rule, without commas and control characters. A pattern cannot say which dates and
/// time zones there are, and which patterns for paths are complete.
const fn form(syntax: LineSyntax) -> &'static str {
    match syntax {
        LineSyntax::Freeze => concat!(
            r"^[^\[,/\x00-\x1f\x7f-\x9f]+/[^\[,\x00-\x1f\x7f-\x9f]+",
            r"\[[^\],\x00-\x1f\x7f-\x9f]+\][^,\x00-\x1f\x7f-\x9f]*$"
        ),
        LineSyntax::TargetRule => concat!(
            r"^ *[^\s,/!\x00-\x1f\x7f-\x9f]([^\s,\x00-\x1f\x7f-\x9f]*[^\s,/\x00-\x1f\x7f-\x9f])?",
            r"( +[^\s,\x00-\x1f\x7f-\x9f]+)+ *$"
        ),
        LineSyntax::Capacity => concat!(
            r"^ *[^ ,\x00-\x1f\x7f-\x9f]([^,\x00-\x1f\x7f-\x9f]*[^ ,\x00-\x1f\x7f-\x9f])?",
            r" +([1-9][0-9]{0,2}|1000) *$"
        ),
    }
}

/// The schema of a setting in a reply or, with its bounds and `null`, in a request.
pub(super) fn schema(spec: &SettingSpec, request: bool) -> RefOr<Schema> {
    let of = |plain: Type| {
        if request { SchemaType::Array(vec![plain, Type::Null]) } else { SchemaType::Type(plain) }
    };
    let doc = Some(spec.doc());
    match spec.kind {
        SettingKind::Whole { min, max, .. } => ObjectBuilder::new()
            .schema_type(of(Type::Integer))
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int32)))
            .minimum(Some(if request { min } else { 0 }))
            .maximum(request.then_some(max))
            .description(doc)
            .into(),
        SettingKind::Flag => {
            ObjectBuilder::new().schema_type(of(Type::Boolean)).description(doc).into()
        }
        SettingKind::Text { max } => ObjectBuilder::new()
            .schema_type(of(Type::String))
            .min_length(request.then_some(1))
            .max_length(request.then_some(max))
            .description(doc)
            .into(),
        SettingKind::Word(_) => {
            let mut word = Ref::from_schema_name(word_name(spec));
            spec.doc().clone_into(&mut word.description);
            if request {
                let null = ObjectBuilder::new().schema_type(Type::Null);
                OneOfBuilder::new().item(word).item(null).into()
            } else {
                word.into()
            }
        }
        SettingKind::Names { .. } | SettingKind::Rules | SettingKind::Lines(_) => {
            let item: RefOr<Schema> = if spec.kind == SettingKind::Rules {
                Ref::from_schema_name(BatchingRuleReply::name()).into()
            } else {
                let name = ObjectBuilder::new().schema_type(Type::String);
                let (least, most) = (request.then_some(1), request.then_some(MAX_NAME));
                let form = match spec.kind {
                    SettingKind::Lines(syntax) if request => Some(form(syntax)),
                    _ => None,
                };
                name.min_length(least).max_length(most).pattern(form).into()
            };
            let list = ArrayBuilder::new().items(item).description(doc);
            let list = list.max_items(request.then_some(MAX_LIST));
            list.schema_type(of(Type::Array)).into()
        }
    }
}
