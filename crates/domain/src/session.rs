//! Sessions of the pages: a token is exchanged for one, and it ends with the token.

use std::fmt;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::ids::OrgId;
use crate::time::{Span, Timestamp};
use crate::token::TokenHash;

/// Hours without a request after which a session ends.
pub const IDLE_HOURS: u32 = 12;
/// Days after which a session ends in any case.
pub const ABSOLUTE_DAYS: u32 = 7;
/// Minutes between two notes that a session is in use.
pub const NOTE_MINUTES: u32 = 1;

/// The text of a session: 64 hexadecimal digits of two random ids. It is in the cookie and nowhere
/// else. Never logged: its `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionText(String);

impl fmt::Debug for SessionText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionText(hidden)")
    }
}

impl SessionText {
    /// The text of two random ids.
    pub fn from_random(one: Uuid, other: Uuid) -> Self {
        Self(format!("{}{}", one.simple(), other.simple()))
    }

    /// Reads a text. `None` when its form is wrong, decided without any look-up.
    pub fn parse(text: &str) -> Option<Self> {
        let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (text.len() == 64 && text.bytes().all(hex)).then(|| Self(text.to_owned()))
    }

    /// The text, for the cookie.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What is stored.
    pub fn hash(&self) -> SessionHash {
        SessionHash(Sha256::digest(self.0.as_bytes()).into())
    }

    /// The hash of the token that stands behind this session alone, when somebody signed in without
    /// one. No text of a token has it.
    pub fn own_token(&self) -> TokenHash {
        TokenHash(Sha256::digest(format!("signalbox session token {}", self.0)).into())
    }

    /// What the forms of a page of this session carry: 96 hexadecimal digits, an id of the page that
    /// nobody can guess and a digest of it and the text, which it does not reveal. Each page has
    /// another one, so that nothing is learned of it from how well many pages pack.
    pub fn form_token(&self, page: Uuid) -> String {
        let page = page.simple();
        let digest: [u8; 32] = Sha256::digest(format!("signalbox form {page} {}", self.0)).into();
        format!("{page}{}", HEXLOWER.encode(&digest))
    }

    /// Whether a form carries what a page of this session gave it.
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
    /// Whose it is.
    pub org: OrgId,
    /// The token that it was given for. It allows what the token allows, as long as that is good.
    pub token: TokenHash,
    /// When somebody signed in.
    pub created_at: Timestamp,
    /// When it was last noted to be in use.
    pub seen_at: Timestamp,
}

impl Session {
    /// Whether it has not ended at that time.
    pub fn is_good(&self, at: Timestamp) -> bool {
        at < self.seen_at.plus(Span::hours(IDLE_HOURS))
            && at < self.created_at.plus(Span::days(ABSOLUTE_DAYS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_back_and_hides_itself() {
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
    fn a_session_ends_when_it_is_idle_and_in_any_case() {
        let start = Timestamp::from_unix_seconds(1_000_000);
        let session = Session {
            hash: SessionHash([1; 32]),
            org: OrgId(Uuid::from_u128(1)),
            token: TokenHash([2; 32]),
            created_at: start,
            seen_at: start,
        };
        assert!(session.is_good(start.plus(Span::hours(11))));
        assert!(!session.is_good(start.plus(Span::hours(12))));
        let used = Session { seen_at: start.plus(Span::days(6)), ..session };
        assert!(used.is_good(start.plus(Span::days(6))));
        let used = Session { seen_at: start.plus(Span::days(7)), ..used };
        assert!(!used.is_good(start.plus(Span::days(7))));
    }
}
