//! Names and ids: newtypes that cannot be confused, validated by their constructors.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use thiserror::Error;
use uuid::Uuid;

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
        pub struct $name(pub Uuid);

        /// The order of the bytes, compared as numbers: sorted maps compare ids often.
        impl Ord for $name {
            fn cmp(&self, other: &Self) -> std::cmp::Ordering {
                self.0.as_u128().cmp(&other.0.as_u128())
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

uuid_id!(
    /// An organization: the owner of tokens, repositories and queues.
    OrgId
);
uuid_id!(
    /// A repository registered with an organization.
    RepoId
);
uuid_id!(
    /// A merge queue: one per repository and target branch.
    QueueId
);
uuid_id!(
    /// A pull request's entry in a queue; the same for every submission.
    EntryId
);
uuid_id!(
    /// A test run of a group of entries on one candidate commit.
    RunId
);
uuid_id!(
    /// An API token.
    TokenId
);

/// A name that breaks the rules of its kind.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{kind} {value:?} {rule}")]
pub struct InvalidName {
    /// The kind of name: `branch name`.
    pub kind: &'static str,
    /// The invalid value, truncated to 100 characters.
    pub value: String,
    /// The rule that it breaks: `must …`.
    pub rule: &'static str,
}

impl InvalidName {
    fn new(kind: &'static str, value: &str, rule: &'static str) -> Self {
        Self { kind, value: value.chars().take(100).collect(), rule }
    }
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $check:expr) => {
        text_id!($(#[$doc])* $name, $check, |value| value);
    };
    ($(#[$doc:meta])* $name:ident, $check:expr, $normal:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(try_from = "String", into = "String"))]
        pub struct $name(Arc<str>);

        impl $name {
            /// Validates a name; fails with the rule that it breaks.
            pub fn new(value: impl Into<String>) -> Result<Self, InvalidName> {
                let value = value.into();
                let check: fn(&str) -> Result<(), InvalidName> = $check;
                let normal: fn(String) -> String = $normal;
                check(&value)?;
                Ok(Self(normal(value).into()))
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = InvalidName;
            fn from_str(value: &str) -> Result<Self, InvalidName> {
                Self::new(value)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidName;
            fn try_from(value: String) -> Result<Self, InvalidName> {
                Self::new(value)
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> Self {
                value.as_str().to_owned()
            }
        }
    };
}

text_id!(
    /// A git host by its DNS name: `github.com`, `git.local`. Stored in lower case, because DNS
    /// names are case-insensitive.
    HostId,
    |value| {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
        if value.is_empty() || value.len() > 253 || !value.chars().all(plain) {
            return Err(InvalidName::new(
                "host",
                value,
                "must be a host name of at most 253 letters, digits, '.', '-', '_' or ':'",
            ));
        }
        Ok(())
    },
    |mut value| {
        value.make_ascii_lowercase();
        value
    }
);

text_id!(
    /// The slug of an organization: lower-case letters, digits and inner hyphens, at most 64.
    OrgSlug,
    |value| {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if value.is_empty()
            || value.len() > 64
            || value.starts_with('-')
            || value.ends_with('-')
            || !value.chars().all(plain)
        {
            return Err(InvalidName::new(
                "organization",
                value,
                "must be 1 to 64 lower-case letters, digits or inner hyphens",
            ));
        }
        Ok(())
    }
);

text_id!(
    /// A branch name without `refs/heads/`, by the rules of `git check-ref-format`, at most 244 bytes.
    BranchName,
    |value| check_ref_part("branch", value)
);

text_id!(
    /// The object id of a commit: 40 or 64 lower-case hexadecimal digits.
    Sha,
    |value| check_object_id("commit", value)
);

text_id!(
    /// The object id of a tree: 40 or 64 lower-case hexadecimal digits.
    TreeId,
    |value| check_object_id("tree", value)
);

fn check_object_id(kind: &'static str, value: &str) -> Result<(), InvalidName> {
    let hex = |c: char| c.is_ascii_digit() || matches!(c, 'a'..='f');
    if !matches!(value.len(), 40 | 64) || !value.chars().all(hex) {
        return Err(InvalidName::new(
            kind,
            value,
            "must be an object id of 40 or 64 lower-case hexadecimal digits",
        ));
    }
    Ok(())
}

fn check_ref_part(kind: &'static str, value: &str) -> Result<(), InvalidName> {
    let refuse = |rule| Err(InvalidName::new(kind, value, rule));
    if value.is_empty() || value.len() > 244 {
        return refuse("must have 1 to 244 bytes");
    }
    if value == "@" || value == "HEAD" || value.starts_with('-') {
        return refuse("must not be '@' or 'HEAD' or start with '-'");
    }
    if value.contains("..") || value.contains("@{") || value.contains("//") {
        return refuse("must not contain '..', '@{' or '//'");
    }
    if value.starts_with('/') || value.ends_with('/') || value.ends_with('.') {
        return refuse("must not start or end with '/' or end with '.'");
    }
    let forbidden =
        |c: char| c.is_control() || matches!(c, ' ' | '~' | '^' | ':' | '?' | '*' | '[' | '\\');
    if value.chars().any(forbidden) {
        return refuse("must not contain spaces, control characters or any of ~^:?*[\\");
    }
    if value.split('/').any(|part| {
        part.starts_with('.')
            || std::path::Path::new(part)
                .extension()
                .is_some_and(|extension| extension.eq_ignore_ascii_case("lock"))
    }) {
        return refuse("must have no part that starts with '.' or ends with '.lock'");
    }
    Ok(())
}

/// A pull request's number on its host, 1 to 4,294,967,295.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct PrNumber(pub u32);

impl fmt::Display for PrNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A repository as clients name it: host, owner (may contain `/` on hosts with groups) and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RepoName {
    /// The git host.
    pub host: HostId,
    /// The owner; a path of groups on hosts that nest them.
    pub owner: String,
    /// The repository's own name.
    pub name: String,
}

impl RepoName {
    /// Validates each part: letters, digits, `.`, `-` and `_`, 1 to 255 bytes, no empty path part
    /// and none that starts with `.` or `-`.
    pub fn new(
        host: &str,
        owner: impl Into<String>,
        name: impl Into<String>,
    ) -> Result<Self, InvalidName> {
        let (host, owner, name) = (HostId::new(host)?, owner.into(), name.into());
        check_path_part("repository owner", &owner, true)?;
        check_path_part("repository name", &name, false)?;
        Ok(Self { host, owner, name })
    }

    /// Parses `HOST/OWNER/NAME`, where OWNER may contain `/`.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        let rule = "must have the form HOST/OWNER/NAME";
        let refused = || InvalidName::new("repository", text, rule);
        let (host, rest) = text.split_once('/').ok_or_else(refused)?;
        let (owner, name) = rest.rsplit_once('/').ok_or_else(refused)?;
        Self::new(host, owner, name)
    }

    /// The key by which the repository is looked up: owner and name in lower case if the host's
    /// names are case-insensitive (`any_case`).
    #[must_use]
    pub fn key(&self, any_case: bool) -> Self {
        if any_case {
            Self {
                host: self.host.clone(),
                owner: self.owner.to_lowercase(),
                name: self.name.to_lowercase(),
            }
        } else {
            self.clone()
        }
    }

    /// Whether both names denote one repository. Owner and name are compared case-insensitively if
    /// the host's names are (`any_case`).
    pub fn is_same(&self, other: &Self, any_case: bool) -> bool {
        self.key(any_case) == other.key(any_case)
    }
}

impl fmt::Display for RepoName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.host, self.owner, self.name)
    }
}

fn check_path_part(kind: &'static str, value: &str, slashes: bool) -> Result<(), InvalidName> {
    let plain =
        |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_') || (slashes && c == '/');
    if value.is_empty() || value.len() > 255 || !value.chars().all(plain) {
        return Err(InvalidName::new(
            kind,
            value,
            "must have 1 to 255 bytes of letters, digits, '.', '-' or '_'",
        ));
    }
    if value
        .split('/')
        .any(|part| part.is_empty() || part.starts_with('.') || part.starts_with('-'))
    {
        return Err(InvalidName::new(
            kind,
            value,
            "must have no part that is empty or starts with '.' or '-'",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branch_names_follow_the_rules_of_git() {
        for good in ["main", "release/1.2", "a-b_c", "feature/#12", "übung"] {
            assert!(BranchName::new(good).is_ok(), "{good}");
        }
        for bad in [
            "", "-x", "@", "HEAD", "a..b", "a b", "a~1", "/a", "a/", "a.lock", "a/.b", "a\n",
            "a:b", "a@{1}",
        ] {
            assert!(BranchName::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn repository_names_are_parsed_with_nested_owners() {
        let repo = RepoName::parse("git.local/group/sub/calc").expect("valid");
        assert_eq!((repo.owner.as_str(), repo.name.as_str()), ("group/sub", "calc"));
        assert!(RepoName::parse("git.local/calc").is_err());
        assert!(RepoName::new("git.local", "../etc", "calc").is_err());
        assert!(RepoName::new("git.local", "acme", ".git").is_err());
    }

    #[test]
    fn hosts_are_case_insensitive_and_owners_and_names_follow_their_host() {
        let one = RepoName::parse("GitHub.com/Acme/Widgets").expect("valid");
        let other = RepoName::parse("github.com/acme/WIDGETS").expect("valid");
        assert_eq!((one.host.as_str(), &one.host), ("github.com", &other.host));
        assert_eq!(one.to_string(), "github.com/Acme/Widgets", "shown as it was written");
        assert!(one.is_same(&other, true) && !one.is_same(&other, false));
        assert!(HostId::new("Git Hub").is_err_and(|error| error.value == "Git Hub"));
    }

    #[test]
    fn object_ids_are_complete_and_lower_case() {
        assert!(Sha::new("a".repeat(40)).is_ok());
        assert!(Sha::new("A".repeat(40)).is_err());
        assert!(Sha::new("abc").is_err());
    }
}
