//! A change of a queue.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use signalbox_domain::queue::{RequestedState, SETTINGS, SettingSpec, SettingsPatch, setting};
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, SchemaType, Type};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::field::{Errors, Field, object_form, shown};
use super::forms::{Flag, Text};
use super::place::{RepoBranch, RepoRef, Request, check_place};
use super::setting::{self as wire, Sent};
use super::shapes::BranchText;
use super::words::RequestedStateWord;

/// The most characters of the reason of a pause.
const MAX_REASON: usize = 500;

/// A change of a queue; omitted fields are unchanged.
#[derive(Debug)]
pub(crate) struct UpdateRequest {
    repo: Field<RepoRef>,
    target_branch: Field<Text>,
    state: Field<Text>,
    reason: Field<Text>,
    delete_required_statuses: Field<Flag>,
    settings: Vec<(&'static SettingSpec, Sent)>,
}

object_form!(UpdateRequest);

impl<'de> Deserialize<'de> for UpdateRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Reading)
    }
}

struct Reading;

/// Reads a field that may be sent once.
fn once<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
    map: &mut A,
    name: &'static str,
    field: &mut Option<T>,
) -> Result<(), A::Error> {
    if field.is_some() {
        return Err(A::Error::duplicate_field(name));
    }
    *field = Some(map.next_value()?);
    Ok(())
}

impl<'de> Visitor<'de> for Reading {
    type Value = UpdateRequest;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<UpdateRequest, A::Error> {
        let (mut repo, mut target_branch, mut state) = (None, None, None);
        let (mut reason, mut drops) = (None, None);
        let mut settings: Vec<(&'static SettingSpec, Sent)> = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "repo" => once(&mut map, "repo", &mut repo)?,
                "targetBranch" => once(&mut map, "targetBranch", &mut target_branch)?,
                "state" => once(&mut map, "state", &mut state)?,
                "reason" => once(&mut map, "reason", &mut reason)?,
                "deleteRequiredStatuses" => once(&mut map, "deleteRequiredStatuses", &mut drops)?,
                other => match setting(other) {
                    Some(spec) if settings.iter().any(|(known, _)| known.name == spec.name) => {
                        return Err(A::Error::duplicate_field(spec.name));
                    }
                    Some(spec) => settings.push((spec, Sent::read(spec, &mut map)?)),
                    None => {
                        map.next_value::<IgnoredAny>()?;
                    }
                },
            }
        }
        Ok(UpdateRequest {
            repo: repo.unwrap_or(Field::Absent),
            target_branch: target_branch.unwrap_or(Field::Absent),
            state: state.unwrap_or(Field::Absent),
            reason: reason.unwrap_or(Field::Absent),
            delete_required_statuses: drops.unwrap_or(Field::Absent),
            settings,
        })
    }
}

#[expect(deprecated, reason = "the other requests have their examples in this form too")]
impl PartialSchema for UpdateRequest {
    fn schema() -> RefOr<Schema> {
        let or_null = |plain: Type, description: &str| {
            ObjectBuilder::new()
                .schema_type(SchemaType::Array(vec![plain, Type::Null]))
                .description(Some(description))
        };
        let described = |name: &str, description: &str| {
            let mut schema = Ref::from_schema_name(name);
            description.clone_into(&mut schema.description);
            schema
        };
        let state = described(&RequestedStateWord::name(), "The new state.");
        let null = ObjectBuilder::new().schema_type(Type::Null);
        let branch = described(&BranchText::name(), "The branch that the merge queue targets.");
        let reason = or_null(Type::String, "The reason, shown on every waiting pull request.");
        let mut object = ObjectBuilder::new()
            .description(Some("A change of a queue; omitted fields are unchanged."))
            .property("repo", described(&RepoRef::name(), "The repository."))
            .required("repo")
            .property("targetBranch", branch)
            .required("targetBranch")
            .property("state", OneOfBuilder::new().item(state).item(null))
            .property("reason", reason.max_length(Some(MAX_REASON)));
        for spec in SETTINGS {
            object = object.property(spec.name, wire::schema(spec, true));
        }
        let drops = or_null(Type::Boolean, "Removes the queue's own list of required statuses.");
        object
            .property("deleteRequiredStatuses", drops)
            .example(Some(serde_json::json!({
                "repo": {"host": "github.com", "owner": "acme", "name": "calc"},
                "targetBranch": "main",
                "state": "PAUSED",
                "reason": "release freeze",
                "concurrency": 10
            })))
            .into()
    }
}

impl ToSchema for UpdateRequest {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((RepoRef::name().into_owned(), RepoRef::schema()));
        RepoRef::schemas(schemas);
        let state = (RequestedStateWord::name().into_owned(), RequestedStateWord::schema());
        schemas.push(state);
        schemas.push((BranchText::name().into_owned(), BranchText::schema()));
        wire::schemas(schemas);
    }
}

/// A checked update.
#[derive(Debug)]
pub(crate) struct Update {
    pub(crate) place: RepoBranch,
    pub(crate) settings: SettingsPatch,
    pub(crate) state: Option<RequestedState>,
    pub(crate) reason: Option<String>,
}

fn state(errors: &mut Errors, field: Field<Text>) -> Option<RequestedState> {
    let Text(given) = errors.optional("/state", field)?;
    let found = RequestedState::parse(&given);
    if found.is_none() {
        let words = RequestedState::NAMES.join(", ");
        errors.add("/state", format!("must be one of {words}, but is {}", shown(&given)));
    }
    found
}

impl Request for UpdateRequest {
    type Checked = Update;

    fn check(self, errors: &mut Errors) -> Option<Update> {
        let place = check_place(self.repo, self.target_branch, errors);
        let state = state(errors, self.state);
        let reason = errors.optional("/reason", self.reason).map(|it| it.0);
        if reason.as_ref().is_some_and(|reason| reason.chars().count() > MAX_REASON) {
            errors.add("/reason", format!("must have at most {MAX_REASON} characters"));
        }
        let mut settings = SettingsPatch::default();
        for (spec, sent) in self.settings {
            let Some(value) = sent.value(spec, errors) else { continue };
            if wire::keep(errors, spec.check(&value)).is_some() {
                spec.set(&mut settings, value);
            }
        }
        settings.delete_required_statuses = errors
            .optional("/deleteRequiredStatuses", self.delete_required_statuses)
            .is_some_and(|it| it.0);
        Some(Update { place: place?, settings, state, reason })
    }
}
