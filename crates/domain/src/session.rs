//! Sessions of the pages. A session is created for a token and ends with it.

use std::fmt;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::ids::OrgId;
use crate::time::{Span, Timestamp};
use crate::token::TokenHash;

/// A session ends after this many hours without a request.
pub const IDLE_HOURS: u32 = 12;
/// A session ends this many days after its creation.
pub const ABSOLUTE_DAYS: u32 = 7;
/// The use of a session is recorded at most once in this many minutes.
pub const NOTE_MINUTES: u32 = 1;

/// The text of a session: 64 hexadecimal digits of two random ids. Stored only in the cookie and
/// never logged: `Debug` redacts it.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionText(String);

impl fmt::Debug for SessionText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionText(hidden)")
    }
}

impl SessionText {
    /// Builds a text from two random ids.
    pub fn from_random(one: Uuid, other: Uuid) -> Self {
        Self(format!("{}{}", one.simple(), other.simple()))
    }

    /// Parses a text; `None` if its form is wrong. Needs no lookup.
    pub fn parse(text: &str) -> Option<Self> {
        let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (text.len() == 64 && text.bytes().all(hex)).then(|| Self(text.to_owned()))
    }

    /// The text, for the cookie.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The hash, which is stored instead of the text.
    pub fn hash(&self) -> SessionHash {
        SessionHash(Sha256::digest(self.0.as_bytes()).into())
    }

    /// The hash of the session's own token, for a user who signed in without a token. No token text
    /// has this hash.
    pub fn own_token(&self) -> TokenHash {
        TokenHash(Sha256::digest(format!("signalbox session token {}", self.0)).into())
    }

    /// The CSRF token of the forms of a page: 96 hexadecimal digits, a random id of the page
    /// followed by a digest of the id and the session's text, which it does not reveal. It differs
    /// on every page, so that the compressed size of pages reveals nothing (BREACH).
    pub fn form_token(&self, page: Uuid) -> String {
        let page = page.simple();
        let digest: [u8; 32] = Sha256::digest(format!("signalbox form {page} {}", self.0)).into();
        format!("{page}{}", HEXLOWER.encode(&digest))
    }

    /// Whether a form's CSRF token belongs to a page of this session.
    pub fn is_form_token(&self, sent: &str) -> bool {
        let page = sent.get(..32).and_then(|page| Uuid::try_parse(page).ok());
        page.is_some_and(|page| self.form_token(page) == sent)
    }
}

/// The SHA-256 of a session's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionHash(pub [u8; 32]);

/// A session as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The hash of its text.
    pub hash: SessionHash,
    /// The organization.
    pub org: OrgId,
    /// The token of the session: the session has its scopes, while the token is valid.
    pub token: TokenHash,
    /// When the user signed in.
    pub created_at: Timestamp,
    /// When its use was last recorded.
    pub seen_at: Timestamp,
}

impl Session {
    /// Whether it is valid at this time.
    pub fn is_valid(&self, at: Timestamp) -> bool {
        at < self.seen_at.plus(Span::hours(IDLE_HOURS))
            && at < self.created_at.plus(Span::days(ABSOLUTE_DAYS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_parsed_back_and_redacted_in_debug() {
        let text = SessionText::from_random(Uuid::from_u128(7), Uuid::from_u128(9));
        assert_eq!(SessionText::parse(text.reveal()), Some(text.clone()));
        assert_eq!(SessionText::parse(&text.reveal().to_uppercase().replace('0', "g")), None);
        assert_eq!(SessionText::parse(""), None);
        assert!(!format!("{text:?}").contains(text.reveal()));
        let page = Uuid::from_u128(5);
        let token = text.form_token(page);
        assert!(!token.contains(text.reveal()));
        assert!(text.is_form_token(&token));
        assert_ne!(token, text.form_token(Uuid::from_u128(6)), "each page has its own");
        let other = SessionText::from_random(Uuid::from_u128(7), Uuid::from_u128(10));
        assert!(!other.is_form_token(&token), "of another session");
        for bad in ["", "5", &token[..95], &token[32..], &token.replace('5', "6")] {
            assert!(!text.is_form_token(bad), "{bad}");
        }
    }

    #[test]
    fn a_session_ends_when_idle_and_after_its_maximum_age() {
        let start = Timestamp::from_unix_seconds(1_000_000);
        let session = Session {
            hash: SessionHash([1; 32]),
            org: OrgId(Uuid::from_u128(1)),
            token: TokenHash([2; 32]),
            created_at: start,
            seen_at: start,
        };
        assert!(session.is_valid(start.plus(Span::hours(11))));
        assert!(!session.is_valid(start.plus(Span::hours(12))));
        let used = Session { seen_at: start.plus(Span::days(6)), ..session };
        assert!(used.is_valid(start.plus(Span::days(6))));
        let used = Session { seen_at: start.plus(Span::days(7)), ..used };
        assert!(!used.is_valid(start.plus(Span::days(7))));
    }
}
