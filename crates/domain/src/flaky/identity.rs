//! Who a test is: its natural key, the id made from it, and the ids that clients send for it.

use std::fmt;

use sha1::{Digest, Sha1};
use uuid::{Builder, Uuid};

/// The id of a test case: UUID version 5, made from its natural key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct TestId(pub Uuid);

impl fmt::Display for TestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The most bytes that are read of a name, a class name or a file.
pub const MAX_NAME_BYTES: usize = 8_000;

/// What `id` attributes of our kind of test runner start with; those are kept as a whole.
const RUNNER_ID_PREFIX: &str = "trunk:";

/// What joins the parts of a key.
const JOIN: &str = "#";

/// What every id of a JUnit test case is made with.
const KIND: &str = "JUNIT_TESTCASE";

/// What makes a test that test. Parts that a report does not give are empty.
///
/// Two different keys can in theory have one id, because the parts are joined with a sign that may
/// occur in them. So the key is kept beside the id, and the id alone proves nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TestKey {
    /// The slug of the organization.
    pub org: String,
    /// The repository in full: `host/owner/name`.
    pub repo: String,
    /// The name of the outermost suite.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "String::is_empty"))]
    pub parent: String,
    /// The class.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "String::is_empty"))]
    pub classname: String,
    /// The file.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "String::is_empty"))]
    pub file: String,
    /// The name of the case.
    pub name: String,
    /// Which variant of the run it belongs to, such as an operating system.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "String::is_empty"))]
    pub variant: String,
    /// The `id` attribute of the case.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "String::is_empty"))]
    pub info: String,
}

impl TestKey {
    /// The key as a report's reader makes it: names and file without surrounding blanks and cut to
    /// [`MAX_NAME_BYTES`].
    #[must_use]
    pub fn cleaned(mut self) -> Self {
        for part in [&mut self.parent, &mut self.name, &mut self.classname, &mut self.file] {
            let clean = cut(part.trim(), MAX_NAME_BYTES);
            if clean.len() == part.len() {
                part.shrink_to_fit();
            } else {
                *part = clean.into();
            }
        }
        self
    }

    /// The key without an `id` attribute that would become the id of the test as it is. A sender that
    /// is not trusted could take the id of any test with it.
    #[must_use]
    pub fn without_given_id(mut self) -> Self {
        if given_id(&self.info).is_some() {
            self.info.clear();
        }
        self
    }

    /// Whether no part contains the sign that joins them: no test with other parts has its id.
    pub(super) fn is_unambiguous(&self) -> bool {
        let Self { org: _, repo: _, parent, classname, file, name, variant, info } = self;
        [parent, classname, file, name, variant, info].iter().all(|part| !part.contains(JOIN))
    }

    /// The test's id.
    pub fn id(&self) -> TestId {
        self.id_with(&self.info)
    }

    /// The id that the test has with another `id` attribute.
    pub(super) fn id_with(&self, info: &str) -> TestId {
        let base = self.base(info);
        TestId(if self.variant.is_empty() {
            base
        } else {
            hash(&[&base.to_string(), &self.variant])
        })
    }

    /// Every id under which clients may request this test: its own first, then the
    /// [others](Self::other_ids).
    pub fn sent_ids(&self, other_files: &[&str]) -> Vec<String> {
        let own = self.id().to_string();
        let others = self.other_ids(other_files).into_iter().filter(|it| *it != own);
        std::iter::once(own.clone()).chain(others).collect()
    }

    /// Ids besides its own under which clients may request this test: the unchanged `id` attribute,
    /// then the ids that a client computes when it uses the suite's file for the case.
    ///
    /// `other_files` are the other files that the report names for the case.
    pub fn other_ids(&self, other_files: &[&str]) -> Vec<String> {
        let mut ids = Vec::new();
        let mut add = |id: String| {
            if !id.is_empty() && !ids.contains(&id) {
                ids.push(id);
            }
        };
        add(self.info.clone());
        for file in other_files {
            let other = Self { file: (*file).into(), ..self.clone() }.cleaned();
            add(other.id().to_string());
        }
        ids
    }

    fn base(&self, info: &str) -> Uuid {
        let with_variant = |parts: &[&str]| {
            if self.variant.is_empty() {
                hash(parts)
            } else {
                hash(&[parts, &[&self.variant]].concat())
            }
        };
        if info.starts_with(RUNNER_ID_PREFIX) {
            return with_variant(&[&self.org, &self.repo, info]);
        }
        match given_id(info) {
            Some(id) if self.variant.is_empty() => id,
            Some(_) => hash(&[info, &self.variant]),
            None => with_variant(&[
                &self.org,
                &self.repo,
                &self.file,
                &self.classname,
                &self.parent,
                &self.name,
                KIND,
            ]),
        }
    }
}

/// The id that an `id` attribute is, if it is one.
fn given_id(info: &str) -> Option<Uuid> {
    Uuid::try_parse(info).ok().filter(|id| id.get_version_num() == 5)
}

/// UUID version 5 of the parts, joined with [`JOIN`], among URLs. A lookup makes thousands, so the digest is
/// of a library that uses the processor's instructions for it.
fn hash(parts: &[&str]) -> Uuid {
    let mut digest = Sha1::new_with_prefix(Uuid::NAMESPACE_URL.as_bytes());
    for (number, part) in parts.iter().enumerate() {
        if number > 0 {
            digest.update(JOIN.as_bytes());
        }
        digest.update(part.as_bytes());
    }
    let digest: [u8; 20] = digest.finalize().into();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    Builder::from_sha1_bytes(bytes).into_uuid()
}

/// The longest start of a text that has at most that many bytes and cuts no character in two.
fn cut(text: &str, bytes: usize) -> &str {
    if text.len() <= bytes {
        return text;
    }
    let end = (0..=bytes).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text.get(..end).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(variant: &str, info: &str) -> TestKey {
        TestKey {
            org: "example_org".into(),
            repo: "example_repo".into(),
            parent: "parent/fact/path".into(),
            classname: "ExampleClass".into(),
            file: "src/lib.rs".into(),
            name: "example_name".into(),
            variant: variant.into(),
            info: info.into(),
        }
    }

    fn runner(variant: &str) -> TestKey {
        TestKey {
            org: "test-org".into(),
            repo: "github.com/test-org/rspec".into(),
            parent: "parent_name".into(),
            name: "test_name".into(),
            variant: variant.into(),
            info: "trunk:./spec/example_spec.rb[2:1]-./spec/example_spec.rb:28".into(),
            ..TestKey::default()
        }
    }

    #[test]
    fn ids_equal_the_ids_that_clients_compute() {
        for (key, id) in [
            (fields("", ""), "06cb6db5-f807-5198-b072-af67a0636f8a"),
            (fields("unix", ""), "1bf61475-b542-5faf-aa85-e66a691257a3"),
            (runner(""), "1defca6d-177c-5958-b1df-4c4da091b71a"),
            (runner("quarantined"), "941fb8fd-93eb-5370-894b-734b16d8b2f0"),
        ] {
            assert_eq!(key.id().to_string(), id, "{key:?}");
        }
    }

    #[test]
    fn only_an_id_of_version_five_stands_for_itself() {
        let five = "1defca6d-177c-5958-b1df-4c4da091b71a";
        let four = "7b0c1f9a-2a40-4d5e-9a43-1b1d1f2c3d4e";
        assert_eq!(fields("", five).id().to_string(), five);
        assert_ne!(fields("unix", five).id().to_string(), five);
        for plain in ["123", four, " "] {
            assert_eq!(fields("", plain).id(), fields("", "").id(), "{plain:?}");
        }
    }

    #[test]
    fn every_id_that_is_sent_for_a_test_is_known() {
        let key = fields("unix", "123");
        let suite = TestKey { file: "suite.xml".into(), ..key.clone() };
        let ids = key.sent_ids(&["suite.xml", "src/lib.rs"]);
        assert_eq!(ids, vec![key.id().to_string(), "123".into(), suite.id().to_string()]);
    }

    #[test]
    fn names_are_trimmed_and_cut_between_characters() {
        let key = TestKey { name: format!("  {}", "ü".repeat(5_000)), ..TestKey::default() };
        assert_eq!(key.cleaned().name.len(), MAX_NAME_BYTES);
        let odd = TestKey { name: format!("a{}", "ü".repeat(5_000)), ..TestKey::default() };
        assert_eq!(odd.cleaned().name.len(), MAX_NAME_BYTES - 1);
    }
}
