//! An OpenID Connect provider that users sign in with.

use async_trait::async_trait;
use thiserror::Error;

use crate::identity::Identity;

/// The secrets that a browser keeps during a sign-in at the provider.
#[derive(Clone, PartialEq, Eq)]
pub struct Leaving {
    /// The OAuth `state`; returned in the redirect.
    pub state: String,
    /// The `nonce`; returned in the ID token.
    pub nonce: String,
    /// The PKCE code verifier.
    pub verifier: String,
}

/// Why a sign-in failed.
#[derive(Debug, Error)]
pub enum IdentityError {
    /// The provider does not answer, or answers with an error.
    #[error("could not reach the identity provider: {0}")]
    Unavailable(String),
    /// The provider's ID token is invalid.
    #[error("invalid ID token from the identity provider: {0}")]
    Refused(String),
}

/// An OpenID Connect provider that users sign in with.
#[async_trait]
pub trait IdentityProvider: Send + Sync {
    /// Starts a sign-in: returns the URL to redirect the browser to, and the secrets that it keeps
    /// until the provider redirects it to `back`.
    async fn leave(&self, back: &str) -> Result<(String, Leaving), IdentityError>;

    /// Completes a sign-in: exchanges the code that the browser brought to `back` for an identity.
    async fn returned(
        &self,
        back: &str,
        leaving: &Leaving,
        code: &str,
    ) -> Result<Identity, IdentityError>;
}
