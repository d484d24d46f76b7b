//! The public uploader's request for the failures to excuse. It may be large and come from
//! any client that knows a public id, so its parsed size is bounded.

use std::fmt;

use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use signalbox_domain::flaky::{AskedTest, TestKey};
use utoipa::ToSchema;

/// The most tests of a request: the most runs of an upload.
const TESTS: usize = 250_000;
/// The most bytes of their names, ids, files and variants together.
const KEPT_BYTES: usize = 64 * 1024 * 1024;

/// Failed tests. Other fields, such as messages, are skipped.
#[derive(Debug, serde::Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = QuarantineConfigRequest, example = json!({
    "repo": {"host": "github.com", "owner": "acme", "name": "calc"}, "orgUrlSlug": "acme",
    "testIdentifiers": [{"name": "adds", "parentName": "calc", "className": null, "file": null}]
}))]
pub(crate) struct Question {
    /// The repository.
    pub(crate) repo: AskedRepo,
    /// The slug of the organization.
    pub(crate) org_url_slug: Option<String>,
    /// The failed tests.
    #[serde(default, deserialize_with = "tests")]
    #[schema(value_type = Option<Vec<AskedCase>>, max_items = 250_000)]
    pub(crate) test_identifiers: Vec<AskedCase>,
}

/// A repository by any texts.
#[derive(Debug, serde::Deserialize, ToSchema)]
#[schema(as = AnyRepository)]
pub(crate) struct AskedRepo {
    /// The git host.
    pub(crate) host: String,
    /// The owner.
    pub(crate) owner: String,
    /// The repository's own name.
    pub(crate) name: String,
}

/// A failed test. `null` and absent fields are the same.
#[derive(Debug, serde::Deserialize, ToSchema)]
#[schema(as = FailedTest)]
pub(crate) struct AskedCase {
    /// Its name.
    name: Option<String>,
    /// Its parent, such as a suite.
    #[serde(rename = "parentName", alias = "parent_name")]
    parent: Option<String>,
    /// Its class.
    #[serde(rename = "className", alias = "class_name")]
    class: Option<String>,
    /// Its file.
    file: Option<String>,
    /// The id that the uploader computed.
    id: Option<String>,
    /// Its variant.
    variant: Option<String>,
}

impl AskedCase {
    /// Bytes of its texts.
    fn bytes(&self) -> usize {
        let Self { name, parent, class, file, id, variant } = self;
        [name, parent, class, file, id, variant].into_iter().flatten().map(String::len).sum()
    }

    pub(crate) fn asked(self) -> AskedTest {
        AskedTest {
            key: TestKey {
                parent: self.parent.unwrap_or_default(),
                classname: self.class.unwrap_or_default(),
                file: self.file.unwrap_or_default(),
                name: self.name.unwrap_or_default(),
                variant: self.variant.unwrap_or_default(),
                ..TestKey::default()
            },
            id: self.id.unwrap_or_default(),
        }
    }
}

fn tests<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<AskedCase>, D::Error> {
    struct Cases;

    impl<'de> Visitor<'de> for Cases {
        type Value = Vec<AskedCase>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array of tests")
        }

        fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
            Ok(Vec::new())
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
            let (mut cases, mut left) = (Vec::new(), KEPT_BYTES);
            while let Some(case) = items.next_element::<AskedCase>()? {
                if cases.len() >= TESTS {
                    let rule = format!("testIdentifiers has more than {TESTS} tests");
                    return Err(A::Error::custom(rule));
                }
                left = left.checked_sub(case.bytes()).ok_or_else(|| {
                    let rule = format!("the names of the tests have more than {KEPT_BYTES} bytes");
                    A::Error::custom(rule)
                })?;
                cases.push(case);
            }
            Ok(cases)
        }
    }

    input.deserialize_any(Cases)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize as _;
    use serde_json::json;

    use super::*;

    fn read(tests: &serde_json::Value) -> Result<Question, String> {
        let repo = json!({"host": "h", "owner": "o", "name": "n"});
        let question = json!({"repo": repo, "orgUrlSlug": null, "testIdentifiers": tests});
        Question::deserialize(question).map_err(|error| error.to_string())
    }

    #[test]
    fn null_and_nothing_are_the_same() {
        let question = read(&json!([{}, {"name": null, "parentName": null, "variant": null}]));
        let asked: Vec<AskedTest> = question
            .expect("a question")
            .test_identifiers
            .into_iter()
            .map(AskedCase::asked)
            .collect();
        let empty = AskedTest { id: String::new(), key: TestKey::default() };
        assert_eq!(asked, [empty.clone(), empty]);
        assert!(read(&json!(null)).expect("a question").test_identifiers.is_empty());
    }

    #[test]
    fn the_parsed_size_is_bounded() {
        let many = read(&json!(vec![json!({}); TESTS + 1])).expect_err("too many");
        assert!(many.contains("more than 250000 tests"), "{many}");
        let long = json!({"name": "x".repeat(KEPT_BYTES / 4), "failure_message": "m"});
        assert!(read(&json!(vec![long.clone(); 4])).is_ok());
        let bytes = read(&json!(vec![long; 5])).expect_err("too long");
        assert!(bytes.contains("more than 67108864 bytes"), "{bytes}");
    }
}
