//! The keys that a provider publishes.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use serde::Deserialize;

/// The most keys of a provider that are read.
const MAX_KEYS: usize = 50;

/// How a token is signed. Those with a shared secret are not taken, and `none` is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Rs256,
    Es256,
    EdDsa,
}

impl Algorithm {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "RS256" => Some(Self::Rs256),
            "ES256" => Some(Self::Es256),
            "EdDSA" => Some(Self::EdDsa),
            _ => None,
        }
    }
}

/// A key as it is published.
#[derive(Deserialize)]
struct Published {
    kty: String,
    kid: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

/// The key set of a provider.
#[derive(Deserialize)]
pub(crate) struct KeySet {
    keys: Vec<serde_json::Value>,
}

impl KeySet {
    /// The keys for signatures; keys for other uses are omitted.
    pub(crate) fn usable(self) -> Vec<Key> {
        let published = self.keys.into_iter().take(MAX_KEYS);
        published
            .filter_map(|it| serde_json::from_value::<Published>(it).ok())
            .filter_map(|it| Key::of(&it))
            .collect()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Material {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    Point(Vec<u8>),
}

/// A key that signatures are checked with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) id: Option<String>,
    pub(crate) algorithm: Algorithm,
    material: Material,
}

impl Key {
    fn of(published: &Published) -> Option<Self> {
        if published.purpose.as_deref().is_some_and(|it| it != "sig") {
            return None;
        }
        let bytes = |text: &Option<String>| URL_SAFE_NO_PAD.decode(text.as_deref()?).ok();
        let (algorithm, material) = match (published.kty.as_str(), published.crv.as_deref()) {
            ("RSA", _) => {
                let (n, e) = (bytes(&published.n)?, bytes(&published.e)?);
                (Algorithm::Rs256, Material::Rsa { n, e })
            }
            ("EC", Some("P-256")) => {
                let (x, y) = (bytes(&published.x)?, bytes(&published.y)?);
                let point = [&[4], x.as_slice(), y.as_slice()].concat();
                (Algorithm::Es256, Material::Point(point))
            }
            ("OKP", Some("Ed25519")) => (Algorithm::EdDsa, Material::Point(bytes(&published.x)?)),
            _ => return None,
        };
        Some(Self { id: published.kid.clone(), algorithm, material })
    }

    /// Whether this key has signed that.
    pub(crate) fn has_signed(&self, signed: &[u8], signature: &[u8]) -> bool {
        match (&self.material, self.algorithm) {
            (Material::Rsa { n, e }, Algorithm::Rs256) => {
                let key = RsaPublicKeyComponents { n, e };
                key.verify(&RSA_PKCS1_2048_8192_SHA256, signed, signature).is_ok()
            }
            (Material::Point(point), Algorithm::Es256) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
                    .verify(signed, signature)
                    .is_ok()
            }
            (Material::Point(point), Algorithm::EdDsa) => {
                UnparsedPublicKey::new(&ED25519, point).verify(signed, signature).is_ok()
            }
            (Material::Rsa { .. }, Algorithm::Es256 | Algorithm::EdDsa)
            | (Material::Point(_), Algorithm::Rs256) => false,
        }
    }
}
