//! The webhook decoder. A `post-receive` hook could send such deliveries: a line of text,
//! `push acme/calc main 4b82…`, signed by HMAC-SHA256 with a shared secret.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use signalbox_domain::ids::{BranchName, Sha};
use signalbox_domain::ports::{DecodeError, Hint, HostEvent, WebhookDecoder};

/// The most bytes of a delivery's id.
const MAX_ID: usize = 100;

/// Decodes the deliveries of the repositories' hooks.
pub(crate) struct FolderWebhooks {
    secret: Vec<u8>,
}

fn mac(secret: &[u8], body: &[u8]) -> Hmac<Sha256> {
    Hmac::<Sha256>::new_from_slice(secret).expect("any length").chain_update(body)
}

/// The header `x-signature` of a body, in hexadecimal digits.
pub(crate) fn signature(secret: &[u8], body: &[u8]) -> String {
    let bytes = mac(secret, body).finalize().into_bytes();
    bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

impl FolderWebhooks {
    /// Creates a decoder with a shared secret.
    pub(crate) fn new(secret: impl Into<Vec<u8>>) -> Self {
        Self { secret: secret.into() }
    }
}

impl WebhookDecoder for FolderWebhooks {
    fn has_signature(&self, header: &dyn Fn(&str) -> Option<String>) -> bool {
        header("x-signature").is_some_and(|text| from_hex(&text).is_some())
    }

    fn decode(
        &self,
        header: &dyn Fn(&str) -> Option<String>,
        body: &[u8],
    ) -> Result<HostEvent, DecodeError> {
        let given = header("x-signature").and_then(|text| from_hex(&text));
        let given = given.ok_or(DecodeError::WrongSignature)?;
        // Compares in constant time.
        let verified = mac(&self.secret, body).verify_slice(&given);
        verified.map_err(|_| DecodeError::WrongSignature)?;
        let id = header("x-delivery").filter(|id| (1..=MAX_ID).contains(&id.len()));
        let id = id.ok_or(DecodeError::Malformed("missing id, or longer than 100 bytes"))?;
        let text =
            std::str::from_utf8(body).map_err(|_| DecodeError::Malformed("body is not UTF-8"))?;
        let mut words = text.split_whitespace();
        let event = words.next().ok_or(DecodeError::Malformed("body is empty"))?;
        let repository = words.next().and_then(|name| name.split_once('/'));
        let repository = repository.map(|(owner, name)| (owner.to_owned(), name.to_owned()));
        let hints = match (event, words.next(), words.next()) {
            ("push", Some(branch), at) => {
                let name = BranchName::new(branch);
                let name = name.map_err(|_| DecodeError::Malformed("invalid branch name"))?;
                vec![Hint::Branch { name, at: at.and_then(|at| Sha::new(at).ok()) }]
            }
            _ => Vec::new(),
        };
        Ok(HostEvent { id, event: event.to_owned(), repository, hints })
    }
}
