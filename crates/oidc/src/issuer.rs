//! An issuer of tokens: its discovery document and its keys, cached.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reqwest::Client;
use serde_json::Value;
use signalbox_domain::ports::{Clock, IdentityError};
use signalbox_domain::time::{Span, Timestamp};
use tokio::sync::{Mutex as Turn, Semaphore};
use url::Url;

use crate::ProviderError;
use crate::discovery::{Discovered, TIMEOUT, get};
use crate::keys::{Key, KeySet};
use crate::token::{TokenError, Unchecked};

/// Minutes after which the discovery document and the keys are read again.
const FRESH_MINUTES: u32 = 60;
/// Hours for which they count if the issuer cannot be reached.
const STALE_HOURS: u32 = 24;
/// The shortest time between two reads, whatever becomes of them; longer than a read may take.
const APART_SECONDS: u32 = 30;
/// How many callers wait for a read. More of them would be garbage that keeps others from working.
const WAITING: usize = 8;

/// What an issuer publishes.
pub(crate) struct Known {
    pub(crate) discovered: Discovered,
    keys: Vec<Key>,
    read_at: Timestamp,
}

#[derive(Default)]
struct State {
    known: Option<Arc<Known>>,
    /// When the last read ended, and why it failed.
    tried: Option<(Timestamp, String)>,
}

pub(crate) struct Issuer {
    url: Url,
    pub(crate) http: Client,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    /// Held by the one that reads.
    turn: Turn<()>,
    waiting: Semaphore,
}

impl Issuer {
    pub(crate) fn new(url: &str, clock: Arc<dyn Clock>) -> Result<Self, ProviderError> {
        let url = Url::parse(url).map_err(|_| ProviderError::Issuer)?;
        let own = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
        if url.scheme() != "https" && !(url.scheme() == "http" && own) {
            return Err(ProviderError::Issuer);
        }
        let http = Client::builder()
            .timeout(TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("signalbox/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(ProviderError::Client)?;
        let (state, turn) = (Mutex::default(), Turn::default());
        Ok(Self { url, http, clock, state, turn, waiting: Semaphore::new(WAITING) })
    }

    /// What the issuer publishes, at most an hour old while it can be reached.
    pub(crate) async fn known(&self) -> Result<Arc<Known>, IdentityError> {
        match self.usable(Span::minutes(FRESH_MINUTES)) {
            Some(known) => Ok(known),
            None => self.read_again().await,
        }
    }

    /// The claims of a token that the issuer has signed.
    pub(crate) async fn claims(&self, text: &str) -> Result<Value, IdentityError> {
        let refused = |error: TokenError| IdentityError::Refused(error.to_string());
        let token = Unchecked::parse(text).map_err(refused)?;
        let mut known = self.known().await?;
        if !token.is_of(&known.keys) {
            known = self.read_again().await?;
        }
        token.checked(&known.keys).map_err(refused)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was read within this time.
    fn usable(&self, within: Span) -> Option<Arc<Known>> {
        let now = self.clock.now();
        self.state().known.clone().filter(|known| now.since(known.read_at) < within)
    }

    /// What was read before, without another call.
    fn before(&self, why: &str) -> Result<Arc<Known>, IdentityError> {
        let known = self.usable(Span::hours(STALE_HOURS));
        known.ok_or_else(|| IdentityError::Unavailable(why.to_owned()))
    }

    /// Why nothing may be read now: the last read is not long ago.
    fn is_too_soon(&self) -> Option<String> {
        let now = self.clock.now();
        let state = self.state();
        let (at, why) = state.tried.as_ref()?;
        (now.since(*at) < Span::seconds(APART_SECONDS)).then(|| why.clone())
    }

    /// Reads again, unless that was done a moment ago. One caller reads. The others continue with what is
    /// known; a few wait if nothing is.
    async fn read_again(&self) -> Result<Arc<Known>, IdentityError> {
        if let Some(why) = self.is_too_soon() {
            return self.before(&why);
        }
        let _turn = match self.turn.try_lock() {
            Ok(turn) => turn,
            Err(_) if self.usable(Span::hours(STALE_HOURS)).is_some() => {
                return self.before("it is being read");
            }
            Err(_) => {
                let Ok(_place) = self.waiting.try_acquire() else {
                    return self.before("too many wait for it");
                };
                self.turn.lock().await
            }
        };
        // Another caller may have read while this one waited.
        if let Some(why) = self.is_too_soon() {
            return self.before(&why);
        }
        let read = self.read().await;
        let now = self.clock.now();
        let mut state = self.state();
        match read {
            Ok((discovered, keys)) => {
                let known = Arc::new(Known { discovered, keys, read_at: now });
                state.known = Some(known.clone());
                state.tried = Some((now, String::new()));
                Ok(known)
            }
            Err(error) => {
                let why = match error {
                    IdentityError::Unavailable(why) | IdentityError::Refused(why) => why,
                };
                state.tried = Some((now, why.clone()));
                drop(state);
                self.before(&why)
            }
        }
    }

    async fn read(&self) -> Result<(Discovered, Vec<Key>), IdentityError> {
        let discovered = Discovered::ask(&self.http, &self.url).await?;
        let keys: KeySet = get(&self.http, discovered.jwks_uri.as_str()).await?;
        Ok((discovered, keys.usable()))
    }
}
