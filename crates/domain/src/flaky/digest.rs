//! Digests of several texts.

use sha2::{Digest, Sha256};

/// SHA-256 of texts, each with its length before it, so that no other texts have the same bytes.
pub(super) fn digest_of<'a>(texts: impl IntoIterator<Item = &'a str>) -> [u8; 32] {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update(u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(text.as_bytes());
    }
    hash.finalize().into()
}
