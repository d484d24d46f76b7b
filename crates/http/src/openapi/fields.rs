//! Rules between the fields of a request, which the types do not have: the combinations that are refused.
//! They are one part of an `allOf` without properties, which generators of clients leave out.

use serde_json::{Map, Value, json};
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::{Components, RefOr, Schema};

/// Fields that are given, and fields that are absent or null.
struct Combination {
    given: &'static [&'static str],
    missing: &'static [&'static str],
    /// A field with exactly this value, or with any other one.
    constant: Option<(&'static str, &'static str, bool)>,
}

const fn given(given: &'static [&'static str]) -> Combination {
    Combination { given, missing: &[], constant: None }
}

const fn missing(missing: &'static [&'static str]) -> Combination {
    Combination { given: &[], missing, constant: None }
}

/// The combinations that are refused, by schema.
const REFUSED: [(&str, &[Combination]); 5] = [
    ("CreateMonitorRequest", &[missing(&["type", "template"])]),
    ("PreviewMonitorRequest", &[missing(&["type", "template"])]),
    ("PrByEither", &[given(&["number", "branch"]), missing(&["number", "branch"])]),
    (
        "ReplayWebhookRequest",
        &[
            missing(&["messageId", "failedSince", "since"]),
            given(&["messageId", "failedSince"]),
            given(&["messageId", "since"]),
            given(&["messageId", "until"]),
            given(&["failedSince", "since"]),
            given(&["failedSince", "until"]),
        ],
    ),
    (
        "CheckResultRequest",
        &[
            Combination {
                given: &[],
                missing: &["conclusion"],
                constant: Some(("status", "COMPLETED", true)),
            },
            Combination {
                given: &["conclusion"],
                missing: &[],
                constant: Some(("status", "COMPLETED", false)),
            },
        ],
    ),
];

impl Combination {
    fn schema(&self) -> Value {
        let mut properties = Map::new();
        for field in self.given {
            properties.insert((*field).to_owned(), json!({"not": {"type": "null"}}));
        }
        for field in self.missing {
            properties.insert((*field).to_owned(), json!({"type": "null"}));
        }
        if let Some((field, value, is_equal)) = self.constant {
            let constant = json!({"const": value});
            let rule = if is_equal { constant } else { json!({"not": constant}) };
            properties.insert(field.to_owned(), rule);
        }
        json!({"required": self.given, "properties": properties})
    }
}

/// Adds the rules to the schemas.
pub(super) fn refuse_combinations(components: &mut Components) {
    for (name, combinations) in REFUSED {
        if let Some(RefOr::T(Schema::Object(object))) = components.schemas.get_mut(name) {
            let refused: Vec<Value> = combinations.iter().map(Combination::schema).collect();
            let rule = json!([{"not": {"anyOf": refused}}]);
            object.extensions = Some(Extensions::from_iter([("allOf", rule)]));
        }
    }
}
