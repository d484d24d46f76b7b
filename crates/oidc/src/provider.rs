//! The provider that users sign in with.

use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use reqwest::Client;
use ring::rand::{SecureRandom, SystemRandom};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use signalbox_domain::identity::Identity;
use signalbox_domain::ports::{Clock, IdentityError, IdentityProvider, Leaving};
use signalbox_domain::time::{Span, Timestamp};
use thiserror::Error;
use tokio::sync::Mutex;
use url::Url;

use crate::claims::{Expected, identity};
use crate::discovery::{Discovered, TIMEOUT, body, cause, get};
use crate::keys::{Key, KeySet};
use crate::token::Unchecked;

/// Minutes for which the discovery document is cached.
const KEPT_MINUTES: u32 = 60;
/// The shortest time between two looks for new keys.
const LOOK_SECONDS: u32 = 10;

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

struct Known {
    discovered: Discovered,
    keys: Vec<Key>,
    read_at: Timestamp,
    looked_at: Timestamp,
}

/// The provider that users sign in with.
pub struct Provider {
    settings: Settings,
    issuer: Url,
    http: Client,
    clock: Arc<dyn Clock>,
    known: Mutex<Option<Known>>,
    random: SystemRandom,
}

#[derive(Deserialize)]
struct Answer {
    id_token: Option<String>,
}

impl Provider {
    /// A provider. Its discovery document is read at the first sign-in. The process must have a TLS
    /// crypto provider installed.
    pub fn new(settings: Settings, clock: Arc<dyn Clock>) -> Result<Self, ProviderError> {
        let issuer = Url::parse(&settings.issuer).map_err(|_| ProviderError::Issuer)?;
        let own = matches!(issuer.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
        if issuer.scheme() != "https" && !(issuer.scheme() == "http" && own) {
            return Err(ProviderError::Issuer);
        }
        let http = Client::builder()
            .timeout(TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("signalbox/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(ProviderError::Client)?;
        let random = SystemRandom::new();
        Ok(Self { settings, issuer, http, clock, known: Mutex::new(None), random })
    }

    fn text(&self) -> Result<String, IdentityError> {
        let mut bytes = [0; 32];
        let none = |_| IdentityError::Unavailable("could not get random bytes".into());
        self.random.fill(&mut bytes).map_err(none)?;
        Ok(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// The discovery document, at most an hour old.
    async fn discovered(&self) -> Result<Discovered, IdentityError> {
        let mut known = self.known.lock().await;
        let now = self.clock.now();
        if let Some(known) = &*known
            && now.since(known.read_at) < Span::minutes(KEPT_MINUTES)
        {
            return Ok(known.discovered.clone());
        }
        let discovered = Discovered::ask(&self.http, &self.issuer).await?;
        let keys: KeySet = get(&self.http, discovered.jwks_uri.as_str()).await?;
        let keys = keys.usable();
        let found = discovered.clone();
        *known = Some(Known { discovered, keys, read_at: now, looked_at: now });
        Ok(found)
    }

    /// The provider's keys; read again when a token is signed with none of them.
    async fn keys(&self, token: &Unchecked<'_>) -> Result<Vec<Key>, IdentityError> {
        self.discovered().await?;
        let mut known = self.known.lock().await;
        let now = self.clock.now();
        let Some(known) = known.as_mut() else { return Ok(Vec::new()) };
        let old = now.since(known.looked_at) >= Span::seconds(LOOK_SECONDS);
        if !token.is_of(&known.keys) && old {
            let keys: KeySet = get(&self.http, known.discovered.jwks_uri.as_str()).await?;
            (known.keys, known.looked_at) = (keys.usable(), now);
        }
        Ok(known.keys.clone())
    }

    /// Exchanges a code for a token.
    async fn token(
        &self,
        back: &str,
        leaving: &Leaving,
        code: &str,
    ) -> Result<String, IdentityError> {
        let discovered = self.discovered().await?;
        let (id, secret) = (&self.settings.client_id, &self.settings.client_secret);
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", back),
            ("code_verifier", &leaving.verifier),
        ];
        let methods = &discovered.token_endpoint_auth_methods_supported;
        let basic = methods.is_empty() || methods.iter().any(|it| it == "client_secret_basic");
        let mut request = self.http.post(discovered.token_endpoint.clone());
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
        let discovered = self.discovered().await?;
        let leaving = Leaving { state: self.text()?, nonce: self.text()?, verifier: self.text()? };
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(leaving.verifier.as_bytes()));
        let mut scopes = vec!["openid"];
        scopes.extend(self.settings.scopes.iter().map(String::as_str));
        let mut address = discovered.authorization_endpoint;
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
        let token = Unchecked::parse(&text).map_err(|error| refused(error.to_string()))?;
        let keys = self.keys(&token).await?;
        let claims = token.checked(&keys).map_err(|error| refused(error.to_string()))?;
        let issuer = self.discovered().await?.issuer;
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
