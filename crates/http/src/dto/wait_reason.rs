//! Wait reasons in replies: the kind, and its particulars. No reason is named here.

use serde::ser::{Serialize, SerializeMap, Serializer};
use signalbox_domain::queue::{Particular, WaitReason};
use utoipa::openapi::schema::{
    ArrayBuilder, KnownFormat, ObjectBuilder, OneOfBuilder, SchemaFormat, SchemaType, Type,
};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// The wait reason: the kind, and its particulars.
#[derive(Debug)]
pub(crate) struct WaitReasonReply(WaitReason);

impl From<&WaitReason> for WaitReasonReply {
    fn from(reason: &WaitReason) -> Self {
        Self(reason.clone())
    }
}

impl Serialize for WaitReasonReply {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", self.0.kind())?;
        for (name, particular) in self.0.particulars() {
            match particular {
                Particular::Count(count) => map.serialize_entry(name, &count)?,
                Particular::Text(text) => map.serialize_entry(name, &text)?,
                Particular::OptionalText(text) => map.serialize_entry(name, &text)?,
                Particular::Names(names) => map.serialize_entry(name, &names)?,
                Particular::PullRequest(pr) => map.serialize_entry(name, &pr.0)?,
                Particular::PullRequests(prs) => {
                    map.serialize_entry(name, &prs.iter().map(|pr| pr.0).collect::<Vec<_>>())?;
                }
                Particular::OptionalTime(at) => {
                    map.serialize_entry(name, &at.map(|at| at.to_string()))?;
                }
                Particular::Time(at) => map.serialize_entry(name, &at.to_string())?,
            }
        }
        map.end()
    }
}

fn schema_of(particular: &Particular) -> RefOr<Schema> {
    let number = || {
        ObjectBuilder::new()
            .schema_type(Type::Integer)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int32)))
            .minimum(Some(0))
    };
    let text = || ObjectBuilder::new().schema_type(Type::String);
    match particular {
        Particular::Count(_) | Particular::PullRequest(_) => number().into(),
        Particular::Text(_) | Particular::Time(_) => text().into(),
        Particular::OptionalText(_) | Particular::OptionalTime(_) => {
            text().schema_type(SchemaType::Array(vec![Type::String, Type::Null])).into()
        }
        Particular::Names(_) => ArrayBuilder::new().items(text()).into(),
        Particular::PullRequests(_) => ArrayBuilder::new().items(number()).into(),
    }
}

impl PartialSchema for WaitReasonReply {
    fn schema() -> RefOr<Schema> {
        let mut kinds = OneOfBuilder::new();
        for (doc, sample) in WaitReason::samples() {
            let mut object = ObjectBuilder::new().description(Some(doc.trim()));
            for (name, particular) in sample.particulars() {
                object = object.property(name, schema_of(&particular));
                let is_optional =
                    matches!(particular, Particular::OptionalText(_) | Particular::OptionalTime(_));
                if !is_optional {
                    object = object.required(name);
                }
            }
            let kind =
                ObjectBuilder::new().schema_type(Type::String).enum_values(Some([sample.kind()]));
            kinds = kinds.item(object.property("kind", kind).required("kind"));
        }
        kinds
            .description(Some("The wait reason: the kind, and its particulars."))
            .examples([
                serde_json::json!({"kind": "slots_full", "used": 5, "limit": 5, "ahead": 0}),
            ])
            .into()
    }
}

impl ToSchema for WaitReasonReply {}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use signalbox_domain::ids::PrNumber;
    use signalbox_domain::time::Timestamp;

    use super::*;

    #[test]
    fn particulars_are_plain_numbers_texts_and_times() {
        let at = Timestamp::from_unix_seconds(1_767_225_600);
        let time = "2026-01-01T00:00:00.000Z";
        let prs = vec![PrNumber(3), PrNumber(5)];
        for (reason, expected) in [
            (WaitReason::Draft, json!({"kind": "draft"})),
            (
                WaitReason::BatchFilling { have: 2, target: 4, until: at },
                json!({"kind": "batch_filling", "have": 2, "target": 4, "until": time}),
            ),
            (
                WaitReason::BehindPrs { prs: prs.clone(), ahead: 2 },
                json!({"kind": "behind_prs", "prs": [3, 5], "ahead": 2}),
            ),
            (
                WaitReason::PredecessorTesting { prs },
                json!({"kind": "predecessor_testing", "prs": [3, 5]}),
            ),
            (
                WaitReason::SuccessorWindow { depth: 2 },
                json!({"kind": "successor_window", "depth": 2}),
            ),
            (
                WaitReason::ChecksSilent { names: vec!["test".into()], since: at },
                json!({"kind": "checks_silent", "names": ["test"], "since": time}),
            ),
            (
                WaitReason::ConflictWithAhead { pr: PrNumber(3) },
                json!({"kind": "conflict_with_ahead", "pr": 3}),
            ),
            (
                WaitReason::HostUnreachable { since: at, detail: "no answer".into() },
                json!({"kind": "host_unreachable", "since": time, "detail": "no answer"}),
            ),
            (
                WaitReason::HostAccessDenied { since: at, detail: "archived".into() },
                json!({"kind": "host_access_denied", "since": time, "detail": "archived"}),
            ),
        ] {
            let reply = serde_json::to_value(WaitReasonReply::from(&reason)).expect("JSON");
            assert_eq!(reply, expected);
        }
    }
}
