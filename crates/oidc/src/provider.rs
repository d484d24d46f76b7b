//! The provider that users sign in with.

use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::{SecureRandom, SystemRandom};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use signalbox_domain::identity::Identity;
use signalbox_domain::ports::{Clock, IdentityError, IdentityProvider, Leaving};
use thiserror::Error;

use crate::claims::{Expected, identity};
use crate::discovery::{body, cause};
use crate::issuer::Issuer;

/// The configuration of a provider.
#[derive(Clone)]
pub struct Settings {
    /// Its address, exactly as it calls itself.
    pub issuer: String,
    /// What we are called there.
    pub client_id: String,
    /// What shows that it is us. Never logged.
    pub client_secret: String,
    /// The scopes to request besides `openid`.
    pub scopes: Vec<String>,
    /// The claim with groups; with dots for one inside others.
    pub groups_claim: String,
}

/// Why a provider could not be set up.
#[derive(Debug, Error)]
pub enum ProviderError {
    /// The issuer is not an allowed URL.
    #[error("the issuer must be an https URL; http is allowed for this machine only")]
    Issuer,
    /// The HTTP client could not be created.
    #[error("could not create the HTTP client for the identity provider")]
    Client(#[source] reqwest::Error),
}

/// The provider that users sign in with.
pub struct Provider {
    settings: Settings,
    issuer: Issuer,
    clock: Arc<dyn Clock>,
    random: SystemRandom,
}

#[derive(Deserialize)]
struct Answer {
    id_token: Option<String>,
}

fn no_endpoint(name: &str) -> IdentityError {
    IdentityError::Unavailable(format!("its discovery document has no {name} endpoint"))
}

impl Provider {
    /// A provider. Its discovery document is read at the first sign-in. The process must have a TLS
    /// crypto provider installed.
    pub fn new(settings: Settings, clock: Arc<dyn Clock>) -> Result<Self, ProviderError> {
        let issuer = Issuer::new(&settings.issuer, clock.clone())?;
        Ok(Self { settings, issuer, clock, random: SystemRandom::new() })
    }

    fn text(&self) -> Result<String, IdentityError> {
        let mut bytes = [0; 32];
        let none = |_| IdentityError::Unavailable("could not get random bytes".into());
        self.random.fill(&mut bytes).map_err(none)?;
        Ok(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Exchanges a code for a token.
    async fn token(
        &self,
        back: &str,
        leaving: &Leaving,
        code: &str,
    ) -> Result<String, IdentityError> {
        let discovered = self.issuer.known().await?.discovered.clone();
        let endpoint = discovered.token_endpoint.ok_or_else(|| no_endpoint("token"))?;
        let (id, secret) = (&self.settings.client_id, &self.settings.client_secret);
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", back),
            ("code_verifier", &leaving.verifier),
        ];
        let methods = &discovered.token_endpoint_auth_methods_supported;
        let basic = methods.is_empty() || methods.iter().any(|it| it == "client_secret_basic");
        let mut request = self.issuer.http.post(endpoint);
        if basic {
            let quoted = |text: &str| {
                url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>()
            };
            let pair = STANDARD.encode(format!("{}:{}", quoted(id), quoted(secret)));
            request = request.header("authorization", format!("Basic {pair}"));
        } else {
            form.extend([("client_id", id.as_str()), ("client_secret", secret)]);
        }
        let text = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let request = request
            .header("content-type", "application/x-www-form-urlencoded")
            .header("accept", "application/json")
            .body(text);
        let reply = request.send().await;
        let reply = reply.map_err(|error| IdentityError::Unavailable(cause(&error)))?;
        let status = reply.status();
        if status.is_client_error() {
            let why = format!("the code was refused ({status})");
            return Err(IdentityError::Refused(why));
        }
        if !status.is_success() {
            return Err(IdentityError::Unavailable(format!("it responded with status {status}")));
        }
        let body = body(reply).await?;
        let answer: Option<Answer> = serde_json::from_slice(&body).ok();
        let none = || IdentityError::Refused("the response has no identity token".into());
        answer.and_then(|it| it.id_token).ok_or_else(none)
    }
}

#[async_trait]
impl IdentityProvider for Provider {
    async fn leave(&self, back: &str) -> Result<(String, Leaving), IdentityError> {
        let discovered = self.issuer.known().await?.discovered.clone();
        let leaving = Leaving { state: self.text()?, nonce: self.text()?, verifier: self.text()? };
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(leaving.verifier.as_bytes()));
        let mut scopes = vec!["openid"];
        scopes.extend(self.settings.scopes.iter().map(String::as_str));
        let mut address =
            discovered.authorization_endpoint.ok_or_else(|| no_endpoint("authorization"))?;
        address.query_pairs_mut().extend_pairs([
            ("response_type", "code"),
            ("client_id", &self.settings.client_id),
            ("redirect_uri", back),
            ("scope", &scopes.join(" ")),
            ("state", &leaving.state),
            ("nonce", &leaving.nonce),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ]);
        Ok((address.into(), leaving))
    }

    async fn returned(
        &self,
        back: &str,
        leaving: &Leaving,
        code: &str,
    ) -> Result<Identity, IdentityError> {
        let text = self.token(back, leaving, code).await?;
        let refused = |rule: String| IdentityError::Refused(rule);
        let claims = self.issuer.claims(&text).await?;
        let issuer = self.issuer.known().await?.discovered.issuer.clone();
        let expected = Expected {
            issuer: &issuer,
            client: &self.settings.client_id,
            nonce: &leaving.nonce,
            now: self.clock.now(),
        };
        let who = identity(&claims, &expected, &self.settings.groups_claim);
        who.map_err(|rule| refused(rule.to_owned()))
    }
}
