//! Secrets at rest: sealed with XChaCha20-Poly1305 under a key that is in a file.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use signalbox_domain::ports::{NewSecret, SecretError, WebhookSecrets};
use signalbox_domain::webhook::{EndpointId, Sealed};
use thiserror::Error;

use crate::signing::SigningSecret;

/// Bytes of a new signing secret.
const SECRET_BYTES: usize = 32;
const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 24;

/// Why a key file cannot be used.
#[derive(Debug, Error)]
pub enum KeyFileError {
    /// It cannot be read or written.
    #[error("the webhook key file {path}: {source}")]
    File {
        /// Which file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// A line is no key.
    #[error("the webhook key file {path}, line {line}: must be the base64 of {KEY_BYTES} bytes")]
    NoKey {
        /// Which file.
        path: String,
        /// Which line, from 1.
        line: usize,
    },
    /// It has no key at all.
    #[error("the webhook key file {0} has no key")]
    Empty(String),
    /// The system has no random bytes.
    #[error("could not get random bytes for a key")]
    NoRandomness,
}

struct NamedKey {
    id: String,
    cipher: XChaCha20Poly1305,
}

/// Makes secrets, seals and opens them.
pub struct Vault {
    path: Option<PathBuf>,
    /// Why it has no keys, if it is known to have none.
    lost: Option<String>,
    /// The first one seals.
    keys: OnceLock<Vec<NamedKey>>,
}

fn random<const N: usize>() -> Option<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).ok().map(|()| bytes)
}

impl Vault {
    /// The keys of a file: one a line, base64 of 32 bytes; empty lines and those with `#` in front
    /// count for nothing. The first seals, all of them open. A file that is not there is made with
    /// a new key, for its owner's eyes only.
    pub fn open(path: &Path) -> Result<Self, KeyFileError> {
        let keys = read(path)?;
        Ok(Self { path: None, lost: None, keys: OnceLock::from(keys) })
    }

    /// The keys of a file that is read, or made, when a key is needed.
    pub const fn at(path: PathBuf) -> Self {
        Self { path: Some(path), lost: None, keys: OnceLock::new() }
    }

    /// Without keys, for a server whose key file is lost: every use fails with this reason.
    pub const fn lost(reason: String) -> Self {
        Self { path: None, lost: Some(reason), keys: OnceLock::new() }
    }

    /// The fingerprints of the keys, the one that seals first. They reveal nothing about the keys.
    pub fn fingerprints(&self) -> Result<Vec<String>, SecretError> {
        Ok(self.keys()?.iter().map(|key| key.id.clone()).collect())
    }

    fn keys(&self) -> Result<&[NamedKey], SecretError> {
        if let Some(reason) = &self.lost {
            return Err(SecretError::Unavailable(reason.clone().into()));
        }
        if let (None, Some(path)) = (self.keys.get(), &self.path) {
            let keys = read(path).map_err(|error| SecretError::Unavailable(Box::new(error)))?;
            return Ok(self.keys.get_or_init(|| keys));
        }
        Ok(self.keys.get().map_or(&[], Vec::as_slice))
    }

    /// With one key.
    pub fn with_key(key: [u8; 32]) -> Self {
        Self { path: None, lost: None, keys: OnceLock::from(vec![named(key)]) }
    }

    fn seal(&self, endpoint: EndpointId, text: &str) -> Result<Sealed, SecretError> {
        let key = self.keys()?.first().ok_or_else(|| SecretError::UnknownKey(String::new()))?;
        let nonce = random::<NONCE_BYTES>().ok_or(SecretError::NoRandomness)?;
        let payload = Payload { msg: text.as_bytes(), aad: endpoint.0.as_bytes() };
        let sealed = key.cipher.encrypt(&XNonce::from(nonce), payload);
        let sealed = sealed.map_err(|_| SecretError::Broken)?;
        let text = STANDARD.encode([nonce.as_slice(), &sealed].concat());
        Ok(Sealed { key: key.id.clone(), text })
    }

    /// Opens a secret of an endpoint.
    pub(crate) fn unseal(
        &self,
        endpoint: EndpointId,
        sealed: &Sealed,
    ) -> Result<SigningSecret, SecretError> {
        let key = self.keys()?.iter().find(|key| key.id == sealed.key);
        let key = key.ok_or_else(|| SecretError::UnknownKey(sealed.key.clone()))?;
        let bytes = STANDARD.decode(&sealed.text).map_err(|_| SecretError::Broken)?;
        let (nonce, sealed) = bytes.split_first_chunk().ok_or(SecretError::Broken)?;
        let nonce: [u8; NONCE_BYTES] = *nonce;
        let payload = Payload { msg: sealed, aad: endpoint.0.as_bytes() };
        let text = key.cipher.decrypt(&XNonce::from(nonce), payload);
        let text = String::from_utf8(text.map_err(|_| SecretError::Broken)?);
        let text = text.map_err(|_| SecretError::Broken)?;
        SigningSecret::parse(&text).map_err(|_| SecretError::Broken)
    }
}

impl WebhookSecrets for Vault {
    fn create(&self, endpoint: EndpointId) -> Result<NewSecret, SecretError> {
        let bytes = random::<SECRET_BYTES>().ok_or(SecretError::NoRandomness)?;
        let secret = SigningSecret::from_bytes(bytes.to_vec()).map_err(|_| SecretError::Broken)?;
        let text = secret.reveal();
        Ok(NewSecret { sealed: self.seal(endpoint, &text)?, text })
    }

    fn reseal(&self, endpoint: EndpointId, sealed: &Sealed) -> Result<Option<Sealed>, SecretError> {
        if self.keys()?.first().is_some_and(|key| key.id == sealed.key) {
            return Ok(None);
        }
        let secret = self.unseal(endpoint, sealed)?;
        self.seal(endpoint, &secret.reveal()).map(Some)
    }
}

/// The keys of a file, which is made when it is not there.
fn read(path: &Path) -> Result<Vec<NamedKey>, KeyFileError> {
    let shown = path.display().to_string();
    let failed = |source| KeyFileError::File { path: shown.clone(), source };
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let key = random::<KEY_BYTES>().ok_or(KeyFileError::NoRandomness)?;
            make(path, &STANDARD.encode(key)).map_err(failed)?;
            // Another server may have been first: then its file is used.
            std::fs::read_to_string(path).map_err(failed)?
        }
        Err(error) => return Err(failed(error)),
    };
    let mut keys = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let no_key = || KeyFileError::NoKey { path: shown.clone(), line: at + 1 };
        let bytes = STANDARD.decode(line).map_err(|_| no_key())?;
        let bytes: [u8; KEY_BYTES] = bytes.try_into().map_err(|_| no_key())?;
        keys.push(named(bytes));
    }
    if keys.is_empty() { Err(KeyFileError::Empty(shown)) } else { Ok(keys) }
}

/// A key under a name that is derived from it and reveals nothing about it.
fn named(bytes: [u8; KEY_BYTES]) -> NamedKey {
    let digest: [u8; 32] =
        Sha256::digest([b"signalbox webhook key ", bytes.as_slice()].concat()).into();
    let [a, b, c, d, ..] = digest;
    let id = format!("{:08x}", u32::from_be_bytes([a, b, c, d]));
    NamedKey { id, cipher: XChaCha20Poly1305::new(&Key::from(bytes)) }
}

/// Writes a key file whole or not at all; one that is there stays.
fn make(path: &Path, key: &str) -> std::io::Result<()> {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    if let Some(folder) = folder {
        std::fs::create_dir_all(folder)?;
    }
    let mark = HEXLOWER.encode(&random::<8>().unwrap_or_default());
    let new = path.with_extension(format!("new-{mark}"));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    let written = writeln!(
        file,
        "# Seals webhook secrets. Keep it separate from the database, and keep a copy.\n{key}"
    )
    .and_then(|()| file.sync_all())
    .and_then(|()| std::fs::hard_link(&new, path));
    std::fs::remove_file(&new)?;
    match written {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use tempfile::TempDir;
    use uuid::Uuid;

    use super::*;

    fn id(number: u128) -> EndpointId {
        EndpointId(Uuid::from_u128(number))
    }

    #[test]
    fn a_sealed_secret_opens_for_its_endpoint_only() {
        let vault = Vault::with_key([7; 32]);
        let new = vault.create(id(1)).expect("a secret");
        let opened = vault.unseal(id(1), &new.sealed).expect("opened");
        assert_eq!(opened.reveal(), new.text);
        assert!(!new.sealed.text.contains(&new.text[6..]));
        assert!(matches!(vault.unseal(id(2), &new.sealed), Err(SecretError::Broken)));
        let mut changed = new.sealed.clone();
        changed.text = changed.text.replacen(|_: char| true, "A", 1).replacen("AA", "AB", 1);
        assert!(changed == new.sealed || vault.unseal(id(1), &changed).is_err());
        let other = Vault::with_key([8; 32]);
        assert!(matches!(other.unseal(id(1), &new.sealed), Err(SecretError::UnknownKey(_))));
        assert_ne!(vault.create(id(1)).expect("another").text, new.text);
    }

    #[test]
    fn a_key_file_is_made_once_and_for_its_owner_only() {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("inner/webhooks.key");
        let first = Vault::open(&path).expect("made");
        let mode = std::fs::metadata(&path).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(path.parent().expect("a folder")).expect("read").count(), 1);
        let new = first.create(id(1)).expect("a secret");
        let second = Vault::open(&path).expect("read");
        assert!(second.unseal(id(1), &new.sealed).is_ok());
    }

    #[test]
    fn keys_are_changed_by_a_new_first_line() {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("webhooks.key");
        let old = Vault::open(&path).expect("made").create(id(1)).expect("a secret");
        let text = std::fs::read_to_string(&path).expect("text");
        let key = STANDARD.encode([9; 32]);
        std::fs::write(&path, format!("{key}\n\n{text}")).expect("written");
        let vault = Vault::open(&path).expect("read");
        let fresh = vault.reseal(id(1), &old.sealed).expect("opened").expect("another key");
        assert_eq!(vault.reseal(id(1), &fresh).expect("an answer"), None);
        assert_eq!(vault.unseal(id(1), &fresh).expect("opened").reveal(), old.text);
        std::fs::write(&path, &key).expect("written");
        let only_new = Vault::open(&path).expect("read");
        assert!(only_new.unseal(id(1), &fresh).is_ok());
        assert!(only_new.unseal(id(1), &old.sealed).is_err());
    }

    #[test]
    fn a_file_without_keys_is_refused_by_line() {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("webhooks.key");
        for (text, words) in [("", "has no key"), ("# a\n\nshort\n", "line 3"), ("AAAA", "line 1")]
        {
            std::fs::write(&path, text).expect("written");
            let error = Vault::open(&path).err().expect("refused").to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
