//! The ids of tests, as the public uploader derives them.
//!
//! Two derivations exist. [`TestKey::id`] is the id that a server computes for a received test;
//! [`TestKey::asked_id`] is the id that the uploader sends to find out which failures are
//! quarantined. They differ for tests with an `id` attribute. Neither is a proof of identity: the
//! parts are joined by `#` without escaping, so keep the key next to the id.

use std::fmt;

use uuid::Uuid;

/// The identity of a test within an organization. An absent part is the empty string.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TestKey<'a> {
    /// The organization's slug.
    pub org: &'a str,
    /// The repository's full name, `host/owner/name`; see [`RepoName`].
    pub repo: &'a str,
    /// The test's file.
    pub file: &'a str,
    /// The class.
    pub classname: &'a str,
    /// The outermost suite's name.
    pub parent: &'a str,
    /// The test's name.
    pub name: &'a str,
    /// The `id` attribute of the test case.
    pub info: &'a str,
    /// The variant that the uploader was given.
    pub variant: &'a str,
}

impl TestKey<'_> {
    /// The test's id: a UUID of version 5 in lower case with hyphens, except that an `info` which
    /// is such a UUID already is answered as it is written when there is no variant.
    ///
    /// With a variant the base id, which contains the variant already, is hashed with it again.
    pub fn id(&self) -> String {
        let base = self.base();
        if self.variant.is_empty() { base } else { hashed(&[&base, self.variant]) }
    }

    /// The id by which the uploader asks whether a failure is quarantined: `info` as it is written,
    /// whatever it holds; the test's id when there is none.
    pub fn asked_id(&self) -> String {
        if self.info.is_empty() { self.id() } else { self.info.to_owned() }
    }

    fn base(&self) -> String {
        let parts: &[&str] = if self.info.starts_with("trunk:") {
            &[self.org, self.repo, self.info]
        } else if is_version_5(self.info) {
            &[self.info]
        } else {
            let Self { org, repo, file, classname, parent, name, .. } = self;
            &[org, repo, file, classname, parent, name, "JUNIT_TESTCASE"]
        };
        match (parts, self.variant) {
            ([info], "") => (*info).to_owned(),
            (parts, "") => hashed(parts),
            (parts, variant) => hashed(&[parts, &[variant]].concat()),
        }
    }
}

fn is_version_5(text: &str) -> bool {
    Uuid::try_parse(text).is_ok_and(|it| it.get_version_num() == 5)
}

fn hashed(parts: &[&str]) -> String {
    Uuid::new_v5(&Uuid::NAMESPACE_URL, parts.join("#").as_bytes()).to_string()
}

/// A repository by its place: shown as `host/owner/name`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Deserialize)]
pub struct RepoName {
    /// The host, with its port if one is given.
    pub host: String,
    /// The owner; with nested groups, all of them with slashes between.
    pub owner: String,
    /// The repository.
    pub name: String,
}

impl RepoName {
    /// Reads a remote's URL: `https://host/owner/name.git`, `ssh://git@host:22/owner/name` or
    /// `git@host:owner/name`. None when one of the three parts is missing.
    pub fn from_remote(url: &str) -> Option<Self> {
        let url = url.trim();
        let (authority, path) = match url.split_once("://") {
            Some((_, rest)) => rest.split_once('/')?,
            None => url.split_once(':')?,
        };
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let path = path.trim_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path).trim_end_matches('/');
        let (owner, name) = path.rsplit_once('/')?;
        if host.is_empty() || owner.is_empty() || name.is_empty() {
            return None;
        }
        Some(Self { host: host.to_owned(), owner: owner.to_owned(), name: name.to_owned() })
    }
}

impl fmt::Display for RepoName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.host, self.owner, self.name)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EXAMPLE: TestKey<'static> = TestKey {
        org: "example_org",
        repo: "example_repo",
        file: "src/lib.rs",
        classname: "ExampleClass",
        parent: "parent/fact/path",
        name: "example_name",
        info: "",
        variant: "",
    };
    const WITH_INFO: TestKey<'static> = TestKey {
        org: "test-org",
        repo: "github.com/test-org/rspec",
        file: "",
        classname: "",
        parent: "parent_name",
        name: "test_name",
        info: "trunk:./spec/example_spec.rb[2:1]-./spec/example_spec.rb:28",
        variant: "",
    };
    const VERSION_5: &str = "a6e84936-3ee9-57d5-b041-ae124896f654";

    #[test]
    fn published_vectors() {
        assert_eq!(EXAMPLE.id(), "06cb6db5-f807-5198-b072-af67a0636f8a");
        let unix = TestKey { variant: "unix", ..EXAMPLE };
        assert_eq!(unix.id(), "1bf61475-b542-5faf-aa85-e66a691257a3");
        assert_eq!(WITH_INFO.id(), "1defca6d-177c-5958-b1df-4c4da091b71a");
        let quarantined = TestKey { variant: "quarantined", ..WITH_INFO };
        assert_eq!(quarantined.id(), "941fb8fd-93eb-5370-894b-734b16d8b2f0");
    }

    #[test]
    fn another_implementation_agrees() {
        let acme = TestKey { org: "acme", repo: "github.com/acme/widgets", ..TestKey::default() };
        let named = TestKey { name: "a", ..acme };
        let odd =
            TestKey { file: "é.py", classname: "C", parent: "s", name: "a#b \u{1F600}", ..acme };
        let version_4 = "a6e84936-3ee9-47d5-b041-ae124896f654";
        for (key, id) in [
            (acme, "dc7a4ebd-5854-521c-a40d-56f184bd94f1"),
            (odd, "cbaa2d02-93bf-5e33-a279-def9adfa3dc1"),
            (named, "d52d2522-4729-59f6-93c8-123e2b774c87"),
            (TestKey { info: version_4, ..named }, "d52d2522-4729-59f6-93c8-123e2b774c87"),
            (
                TestKey { info: VERSION_5, variant: "unix", ..named },
                "931cae54-0fcd-56eb-8eac-afa833699e53",
            ),
            (
                TestKey { info: "123", variant: "unix", ..named },
                "7f8cb51d-692d-59ab-96a9-82293d94040b",
            ),
            (TestKey { info: "trunk:", ..named }, "44dc220d-1ab8-528e-96ba-b53e30872605"),
        ] {
            assert_eq!(key.id(), id, "{key:?}");
        }
    }

    #[test]
    fn an_id_attribute_counts_when_it_is_of_version_5() {
        let key = TestKey { info: VERSION_5, ..EXAMPLE };
        assert_eq!(key.id(), VERSION_5);
        let unix = TestKey { variant: "unix", ..key };
        let base = hashed(&[VERSION_5, "unix"]);
        assert_eq!(unix.id(), hashed(&[&base, "unix"]));
        for info in ["", "123", "a6e84936-3ee9-47d5-b041-ae124896f654", "not a uuid"] {
            assert_eq!(TestKey { info, ..EXAMPLE }.id(), EXAMPLE.id(), "{info}");
        }
    }

    #[test]
    fn the_uploader_asks_by_the_attribute() {
        for info in ["123", "trunk:abc", VERSION_5] {
            let key = TestKey { info, variant: "unix", ..EXAMPLE };
            assert_eq!(key.asked_id(), info);
        }
        let unix = TestKey { variant: "unix", ..EXAMPLE };
        assert_eq!(unix.asked_id(), unix.id());
    }

    #[test]
    fn remotes_of_one_repository_agree() {
        for url in [
            "https://example.com/acme/widgets",
            "https://example.com/acme/widgets.git",
            "https://user:secret@example.com/acme/widgets.git/",
            "ssh://git@example.com/acme/widgets.git",
            "git@example.com:acme/widgets.git",
        ] {
            let name = RepoName::from_remote(url).map(|it| it.to_string());
            assert_eq!(name.as_deref(), Some("example.com/acme/widgets"), "{url}");
        }
        let name = |url| RepoName::from_remote(url).map(|it| it.to_string());
        assert_eq!(name("ssh://git@h:2222/a/b/c").as_deref(), Some("h:2222/a/b/c"));
        for url in ["", "widgets", "https://example.com/widgets", "git@example.com:widgets"] {
            assert_eq!(name(url), None, "{url}");
        }
    }

    proptest! {
        #[test]
        fn ids_are_of_version_5_and_variants_apart(
            name in ".{0,40}",
            info in prop_oneof!["", "trunk:.{0,9}", ".{0,20}"],
            variant in "[a-z]{1,8}",
        ) {
            let key = TestKey { name: &name, info: &info, ..EXAMPLE };
            prop_assert!(is_version_5(&key.id()));
            prop_assert_ne!(TestKey { variant: &variant, ..key }.id(), key.id());
        }
    }
}
