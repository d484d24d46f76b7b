//! An identity provider that people sign in with.

use async_trait::async_trait;
use thiserror::Error;

use crate::identity::Identity;

/// What a browser keeps while somebody is at the provider.
#[derive(Clone, PartialEq, Eq)]
pub struct Leaving {
    /// Comes back with the browser.
    pub state: String,
    /// Comes back in the provider's token.
    pub nonce: String,
    /// Shows that the one who comes back is the one who left.
    pub verifier: String,
}

/// Why nobody was vouched for.
#[derive(Debug, Error)]
pub enum IdentityError {
    /// The provider does not answer, or not as it should.
    #[error("the identity provider does not answer: {0}")]
    Unavailable(String),
    /// What it vouches with is not good.
    #[error("the identity provider's token cannot be taken: {0}")]
    Refused(String),
}

/// An identity provider that people sign in with.
#[async_trait]
pub trait IdentityProvider: Send + Sync {
    /// Where a browser is sent, and what it keeps meanwhile. It comes back to `back`.
    async fn leave(&self, back: &str) -> Result<(String, Leaving), IdentityError>;

    /// Who came back to `back` with that code.
    async fn returned(
        &self,
        back: &str,
        leaving: &Leaving,
        code: &str,
    ) -> Result<Identity, IdentityError>;
}
