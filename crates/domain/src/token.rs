//! API tokens: their text, their scopes, and the callers that use them.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::ids::{OrgId, OrgSlug, RepoName, TokenId};
use crate::queue::Actor;
use crate::time::Timestamp;
use crate::upload::ProvenSource;

/// The alphabet of token texts: digits and lower-case letters without `i`, `l`, `o` and `u`.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const PREFIX: &str = "sbx_";
const RANDOM_CHARS: usize = 32;
const CHECK_CHARS: usize = 7;

/// The text of a token: `sbx_`, 160 random bits and a checksum, so that secret scanners can
/// recognize a leaked token without a request to the server. Never logged: `Debug` redacts it.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenText(String);

impl fmt::Debug for TokenText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenText(hidden)")
    }
}

impl TokenText {
    /// Builds a text from 160 random bits.
    pub fn from_random(random: [u8; 20]) -> Self {
        let body = base32(&random, RANDOM_CHARS);
        let check = checksum(&body);
        Self(format!("{PREFIX}{body}{check}"))
    }

    /// Parses a text; `None` if its form or checksum is wrong. Needs no lookup.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(PREFIX)?;
        if rest.len() != RANDOM_CHARS + CHECK_CHARS || !rest.is_ascii() {
            return None;
        }
        let (body, check) = rest.split_at(RANDOM_CHARS);
        (body.bytes().all(|byte| ALPHABET.contains(&byte)) && checksum(body) == check)
            .then(|| Self(text.to_owned()))
    }

    /// The text, shown once at creation.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The hash, which is stored instead of the text. A fast hash is enough for 160 random bits.
    pub fn hash(&self) -> TokenHash {
        TokenHash(Sha256::digest(self.0.as_bytes()).into())
    }
}

fn checksum(body: &str) -> String {
    let digest: [u8; 32] = Sha256::digest(format!("signalbox token {body}").as_bytes()).into();
    base32(&digest, CHECK_CHARS)
}

fn base32(bytes: &[u8], chars: usize) -> String {
    let bit =
        |index: usize| bytes.get(index / 8).is_some_and(|byte| byte >> (7 - index % 8) & 1 == 1);
    (0..chars)
        .map(|at| {
            (0..5).fold(0_usize, |value, offset| value << 1 | usize::from(bit(at * 5 + offset)))
        })
        .filter_map(|value| ALPHABET.get(value).copied())
        .map(char::from)
        .collect()
}

/// The SHA-256 of a token's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenHash(pub [u8; 32]);

/// A permission of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Scope {
    /// Read queues, pull requests, runs and metrics.
    QueueRead,
    /// Submit, cancel, restart and report targets.
    QueueSubmit,
    /// Submit with priority 0.
    QueueUrgent,
    /// Create, change, pause and delete queues.
    QueueAdmin,
    /// Read test results.
    TestsRead,
    /// Upload test results, and ask which tests are quarantined.
    TestsUpload,
    /// Change quarantine, monitors and settings of flaky tests.
    TestsAdmin,
    /// Report results of external checks.
    ChecksReport,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 8] = [
        Self::QueueRead,
        Self::QueueSubmit,
        Self::QueueUrgent,
        Self::QueueAdmin,
        Self::TestsRead,
        Self::TestsUpload,
        Self::TestsAdmin,
        Self::ChecksReport,
    ];

    /// The scopes of a token that is created without any: they read, submit and upload, and change
    /// no rule.
    pub const DEFAULT: [Self; 4] =
        [Self::QueueRead, Self::QueueSubmit, Self::TestsRead, Self::TestsUpload];

    /// Whether it changes the rules that decide what merges.
    pub const fn administers(self) -> bool {
        matches!(self, Self::QueueAdmin | Self::TestsAdmin)
    }

    /// Its name in the API: `queue:submit`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::QueueRead => "queue:read",
            Self::QueueSubmit => "queue:submit",
            Self::QueueUrgent => "queue:urgent",
            Self::QueueAdmin => "queue:admin",
            Self::TestsRead => "tests:read",
            Self::TestsUpload => "tests:upload",
            Self::TestsAdmin => "tests:admin",
            Self::ChecksReport => "checks:report",
        }
    }

    /// Parses its name in the API; `None` for an unknown one.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text)
    }
}

/// The case of states and modes in API replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EnumCase {
    /// `NOT_READY`, as the specification writes them.
    #[default]
    Upper,
    /// `not_ready`, as clients of the public service expect them.
    Lower,
}

/// The clients that API replies to a token are compatible with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Compatibility {
    /// Clients written against the specification.
    #[default]
    Specification,
    /// Clients written against the live version 1 of the public service: states and modes in lower
    /// case, and its statuses of deleteQueue.
    V1Live,
}

impl Compatibility {
    /// Every profile.
    pub const ALL: [Self; 2] = [Self::Specification, Self::V1Live];

    /// Its name in the API: `v1-live`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Specification => "specification",
            Self::V1Live => "v1-live",
        }
    }

    /// Parses its name in the API; `None` for an unknown one.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.as_str() == text)
    }

    /// The case of states and modes in replies.
    pub const fn enum_case(self) -> EnumCase {
        match self {
            Self::Specification => EnumCase::Upper,
            Self::V1Live => EnumCase::Lower,
        }
    }
}

/// A token as it is stored: everything but its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its id, safe to show.
    pub id: TokenId,
    /// The organization.
    pub org: OrgId,
    /// Its name, which identifies the caller in the journal.
    pub name: String,
    /// The hash of its text.
    pub hash: TokenHash,
    /// Its scopes.
    pub scopes: Vec<Scope>,
    /// The repositories that it is limited to; empty for all of the organization.
    pub repos: Vec<RepoName>,
    /// The clients that replies are compatible with.
    pub compatibility: Compatibility,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it expires; `None` never.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
}

impl Token {
    /// Whether it is neither expired nor revoked at this time.
    pub fn is_valid(&self, at: Timestamp) -> bool {
        self.revoked_at.is_none_or(|revoked| at < revoked)
            && self.expires_at.is_none_or(|expires| at < expires)
    }
}

/// An authenticated caller; created only by authentication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The organization that the token belongs to.
    pub org: OrgId,
    /// Its slug.
    pub org_slug: OrgSlug,
    /// The token's id.
    pub token: TokenId,
    /// The token's name.
    pub name: String,
    /// Its scopes.
    pub scopes: Vec<Scope>,
    /// The repositories that the token is limited to; empty for all.
    pub repos: Vec<RepoName>,
    /// The clients that replies are compatible with.
    pub compatibility: Compatibility,
    /// What a CI job tests, if the caller is one that its CI system has identified.
    pub source: Option<ProvenSource>,
}

impl Caller {
    /// Whether the token has this scope.
    pub fn may(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope)
    }

    /// Whether the token may access this repository. `any_case`: whether the host's names are
    /// case-insensitive.
    pub fn may_see(&self, repo: &RepoName, any_case: bool) -> bool {
        self.repos.is_empty() || self.repos.iter().any(|own| own.is_same(repo, any_case))
    }

    /// The caller as the actor of a change.
    pub fn actor(&self) -> Actor {
        Actor::Token(self.name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_parsed_back_and_a_typo_is_rejected() {
        let text = TokenText::from_random([7; 20]);
        assert_eq!(TokenText::parse(text.reveal()), Some(text.clone()));
        let typo = text.reveal().replacen('7', "8", 1).replacen("sbx_0", "sbx_1", 1);
        assert_ne!(typo, text.reveal());
        assert_eq!(TokenText::parse(&typo), None);
        assert_eq!(TokenText::parse("sbx_"), None);
        assert!(!format!("{text:?}").contains(text.reveal()));
    }
}
