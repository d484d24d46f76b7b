//! Calls to the host's REST API.

mod address;
mod answer;
mod auth;
mod cache;
#[cfg(test)]
mod fuzz;
mod pace;
mod reply;
mod source;
mod tail;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::Method;
use reqwest::header::{ETAG, IF_NONE_MATCH, LINK};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use signalbox_domain::ids::RepoName;
use signalbox_domain::ports::{Clock, HostError};
use signalbox_domain::time::{Span, Timestamp};
use url::Url;

pub(crate) use address::{part, path};
pub(crate) use answer::{misses_of_pull_request, needs_bypass};
pub use auth::{Credentials, CredentialsError};
pub(crate) use pace::Operation;
pub(crate) use reply::{Answer, Refused};

use answer::Quota;
use auth::{InstallationToken, Installations, app_token};
use cache::{Cached, EtagCache};
use pace::Pace;
use reply::{silent, unreadable};
use source::Source;

/// The version of the API that this is written for.
const API_VERSION: &str = "2022-11-28";
/// The longest that a call may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The most bytes of an answer.
const MAX_ANSWER: usize = 16 * 1024 * 1024;
/// The most pages of a list that are read, of 100 items each.
const MAX_PAGES: usize = 50;

/// On whose behalf a call is made.
#[derive(Clone, Copy)]
enum As<'a> {
    /// The app itself.
    App,
    /// The installation that a repository belongs to, or the holder of the token.
    Repository(&'a RepoName),
}

/// Calls the API of one host with one set of credentials.
pub(crate) struct Client {
    http: reqwest::Client,
    api: Url,
    credentials: Mutex<Arc<Credentials>>,
    source: Option<Source>,
    installations: Installations,
    cache: EtagCache,
    blocked_until: Mutex<Option<Timestamp>>,
    pace: Option<Pace>,
    quota: Mutex<Quota>,
    calls: AtomicU64,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Client {
    /// A client for the API at that address. `paces` says whether writes are kept below the host's
    /// published limits.
    pub(crate) fn new(
        api: &Url,
        credentials: Credentials,
        file: Option<PathBuf>,
        paces: bool,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, reqwest::Error> {
        let http = reqwest::Client::builder()
            .timeout(TIMEOUT)
            .user_agent(concat!("signalbox/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self {
            http,
            api: api.clone(),
            credentials: Mutex::new(Arc::new(credentials)),
            source: file.map(Source::new),
            installations: Installations::default(),
            cache: EtagCache::default(),
            blocked_until: Mutex::new(None),
            pace: paces.then(Pace::default),
            quota: Mutex::new(Quota::default()),
            calls: AtomicU64::new(0),
            clock,
        })
    }

    /// How many calls were made.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// The remaining calls that the host reports.
    pub(crate) fn remaining(&self) -> Option<u64> {
        self.quota.lock().unwrap_or_else(PoisonError::into_inner).remaining
    }

    /// Whether we are an app, and which one.
    pub(crate) fn app_id(&self) -> Option<u64> {
        match self.credentials().as_ref() {
            Credentials::App { id, .. } => Some(*id),
            Credentials::Token(_) => None,
        }
    }

    fn credentials(&self) -> Arc<Credentials> {
        self.credentials.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes new credentials from their file, if there are any.
    fn refresh(&self, insist: bool) -> bool {
        let Some(source) = &self.source else { return false };
        let known = self.credentials();
        let Some(fresh) = source.changed(&known, self.clock.now(), insist) else { return false };
        *self.credentials.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(fresh);
        true
    }

    /// Whether we may look at a repository. What cannot be found in one that we may not look at is
    /// not gone for that.
    pub(crate) async fn visible(&self, repo: &RepoName) -> Result<(), HostError> {
        let address = self.address(repo, "")?;
        let token = self.token(As::Repository(repo)).await?;
        let Err(refused) = self.send_with(&token, &Method::GET, &address, None).await else {
            return Ok(());
        };
        Err(match refused.error {
            HostError::NotFound { .. }
            | HostError::Rejected { .. }
            | HostError::Conflict { .. } => {
                let (owner, name, words) = (&repo.owner, &repo.name, refused.words);
                HostError::AccessDenied { words: format!("{owner}/{name} is not visible: {words}") }
            }
            passing @ (HostError::RateLimited { .. }
            | HostError::Unavailable { .. }
            | HostError::AccessDenied { .. }
            | HostError::CredentialRejected { .. }) => passing,
        })
    }

    /// The token with which git reads a repository.
    pub(crate) async fn git_token(&self, repo: &RepoName) -> Result<String, HostError> {
        self.refresh(false);
        Ok(self.token(As::Repository(repo)).await?)
    }

    /// Whether there may be another token after the host has rejected one.
    pub(crate) fn renew(&self, repo: &RepoName) -> bool {
        match self.app_id() {
            Some(_) => self.installations.forget(&key(repo)),
            None => self.refresh(true),
        }
    }

    /// The address at which git reaches repositories, without a slash at its end. It is on the host
    /// of the API: `https://api.github.com` belongs to `https://github.com`, and
    /// `https://HOST/api/v3` to `https://HOST`.
    pub(crate) fn git_url(&self) -> String {
        address::git_url(&self.api)
    }

    /// Reads an address outside of repositories with the rights that we have in one.
    pub(crate) async fn get_public<T: DeserializeOwned>(
        &self,
        repo: &RepoName,
        path: &str,
    ) -> Result<T, Refused> {
        let address = self.at(path)?;
        let answer = self.send(As::Repository(repo), Method::GET, &address, None).await?;
        Ok(answer.decoded(&format!("GET {path}"))?)
    }

    /// Reads `/repos/OWNER/NAME` followed by `rest`; conditional.
    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        repo: &RepoName,
        rest: &str,
    ) -> Result<T, Refused> {
        let answer = self.call(repo, Method::GET, rest, None).await?;
        Ok(answer.decoded(&format!("GET {rest}"))?)
    }

    /// The same; `None` when there is no such thing.
    pub(crate) async fn find<T: DeserializeOwned>(
        &self,
        repo: &RepoName,
        rest: &str,
    ) -> Result<Option<T>, HostError> {
        match self.get(repo, rest).await {
            Ok(found) => Ok(Some(found)),
            Err(Refused { error: HostError::NotFound { .. }, .. }) => Ok(None),
            Err(refused) => Err(refused.error),
        }
    }

    /// Every item of a list, from all its pages. `key` names the list within an object.
    pub(crate) async fn list<T: DeserializeOwned>(
        &self,
        repo: &RepoName,
        rest: &str,
        key: Option<&str>,
    ) -> Result<Vec<T>, Refused> {
        let glue = if rest.contains('?') { '&' } else { '?' };
        self.pages(repo, &format!("{rest}{glue}per_page=100"), key).await
    }

    /// The same for a list whose pages have a size of their own.
    pub(crate) async fn pages<T: DeserializeOwned>(
        &self,
        repo: &RepoName,
        rest: &str,
        key: Option<&str>,
    ) -> Result<Vec<T>, Refused> {
        let what = format!("GET {rest}");
        let mut items = Vec::new();
        let mut next = Some(self.address(repo, rest)?);
        for _ in 0..MAX_PAGES {
            let Some(address) = next.take() else { break };
            let acting = As::Repository(repo);
            let answer = self.send(acting, Method::GET, &address, None).await?;
            let mut page: Value = answer.decoded(&what)?;
            let page = match key {
                Some(key) => page[key].take(),
                None => page,
            };
            let page: Vec<T> =
                serde_json::from_value(page).map_err(|error| unreadable(&what, &error))?;
            items.extend(page);
            next = answer.next.as_deref().map(|next| self.own(next)).transpose()?;
        }
        Ok(items)
    }

    /// Changes something under `/repos/OWNER/NAME`.
    pub(crate) async fn call(
        &self,
        repo: &RepoName,
        method: Method,
        rest: &str,
        body: Option<&Value>,
    ) -> Result<Answer, Refused> {
        let address = self.address(repo, rest)?;
        self.send(As::Repository(repo), method, &address, body).await
    }

    /// Sends a change and decodes its reply.
    pub(crate) async fn make<T: DeserializeOwned>(
        &self,
        repo: &RepoName,
        method: Method,
        rest: &str,
        body: &Value,
    ) -> Result<T, Refused> {
        let what = format!("{method} {rest}");
        let answer = self.call(repo, method, rest, Some(body)).await?;
        Ok(answer.decoded(&what)?)
    }

    /// Reads an address outside of repositories, as the app itself where we are one.
    pub(crate) async fn get_own(&self, path: &str) -> Result<(Value, Answer), Refused> {
        let address = self.at(path)?;
        let answer = self.send(As::App, Method::GET, &address, None).await?;
        let value = answer.decoded(&format!("GET {path}"))?;
        Ok((value, answer))
    }

    fn address(&self, repo: &RepoName, rest: &str) -> Result<Url, HostError> {
        self.at(&format!("repos/{}/{}{rest}", part(&repo.owner), part(&repo.name)))
    }

    fn at(&self, path: &str) -> Result<Url, HostError> {
        let base = self.api.as_str().trim_end_matches('/');
        let url = format!("{base}/{path}");
        Url::parse(&url).map_err(|error| HostError::Rejected { words: format!("{path}: {error}") })
    }

    /// An address that the host has named; our credentials go to no other host.
    fn own(&self, address: &str) -> Result<Url, HostError> {
        Url::parse(address)
            .ok()
            .filter(|url| url.origin() == self.api.origin())
            .ok_or_else(|| HostError::Rejected { words: "the next page is on another host".into() })
    }

    async fn send(
        &self,
        acting: As<'_>,
        method: Method,
        address: &Url,
        body: Option<&Value>,
    ) -> Result<Answer, Refused> {
        self.refresh(false);
        let first = self.send_as(acting, &method, address, body).await;
        let Err(refused) = first else { return first };
        let As::Repository(repo) = acting else { return Err(refused) };
        match refused.status {
            // The token was revoked early or replaced: retry with the new
            // one.
            401 => {
                if !self.renew(repo) {
                    return Err(refused);
                }
                self.send_as(acting, &method, address, body).await
            }
            404 if method == Method::GET && *address != self.address(repo, "")? => {
                self.visible(repo).await?;
                Err(refused)
            }
            _ => Err(refused),
        }
    }

    async fn send_as(
        &self,
        acting: As<'_>,
        method: &Method,
        address: &Url,
        body: Option<&Value>,
    ) -> Result<Answer, Refused> {
        let token = match self.token(acting).await {
            Err(Refused { status: 401, .. }) if self.refresh(true) => self.token(acting).await?,
            token => token?,
        };
        self.send_with(&token, method, address, body).await
    }

    async fn token(&self, acting: As<'_>) -> Result<String, Refused> {
        let credentials = self.credentials();
        let (id, key_pair) = match credentials.as_ref() {
            Credentials::Token(token) => return Ok(token.clone()),
            Credentials::App { id, key } => (*id, key),
        };
        let now = self.clock.now();
        let own = app_token(id, key_pair, now).ok_or_else(|| HostError::CredentialRejected {
            words: "could not sign with the app's private key".into(),
        })?;
        let As::Repository(repo) = acting else { return Ok(own) };
        let key = key(repo);
        let installation = if let Some(known) = self.installations.of(&key) {
            known
        } else {
            let address = self.address(repo, "/installation")?;
            let answer = self.send_with(&own, &Method::GET, &address, None).await;
            let answer = answer.map_err(|refused| not_installed(repo, refused))?;
            let found: Numbered = answer.decoded("GET /installation")?;
            self.installations.learn(&key, found.id);
            found.id
        };
        if let Some(token) = self.installations.token(installation, now) {
            return Ok(token);
        }
        let address = self.at(&format!("app/installations/{installation}/access_tokens"))?;
        let answer = match self.send_with(&own, &Method::POST, &address, None).await {
            Ok(answer) => answer,
            Err(refused) => {
                self.installations.forget(&key);
                return Err(not_installed(repo, refused));
            }
        };
        let made: MadeToken = answer.decoded("POST /access_tokens")?;
        let expires_at = made.expires_at.as_deref().and_then(Timestamp::parse);
        let expires_at = expires_at.unwrap_or_else(|| now.plus(Span::minutes(50)));
        let text = made.token.clone();
        self.installations.keep(installation, InstallationToken { text: made.token, expires_at });
        Ok(text)
    }

    async fn send_with(
        &self,
        token: &str,
        method: &Method,
        address: &Url,
        body: Option<&Value>,
    ) -> Result<Answer, Refused> {
        let what = format!("{method} {}", address.path());
        self.admit(method, address)?;
        let cached = (method == Method::GET).then(|| self.cache.get(address.as_str())).flatten();
        let mut request = self.request(token, method, address);
        if let Some(cached) = &cached {
            request = request.header(IF_NONE_MATCH, &cached.etag);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        let mut reply = request.send().await.map_err(|error| silent(&what, error))?;
        let (status, headers) = (reply.status().as_u16(), reply.headers().clone());
        let now = self.clock.now();
        let quota = Quota::read(&headers);
        self.note_quota(quota, now);
        if status == 304
            && let Some(Cached { body, next, .. }) = cached
        {
            return Ok(Answer { status: 200, body, next, scopes: None });
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = reply.chunk().await.map_err(|error| silent(&what, error))? {
            if bytes.len() + chunk.len() > MAX_ANSWER {
                let words = format!("{what}: the response is larger than {MAX_ANSWER} bytes");
                return Err(HostError::Rejected { words }.into());
            }
            bytes.extend_from_slice(&chunk);
        }
        if !(200..300).contains(&status) {
            let words = answer::words(&bytes);
            if let Some(retry_at) = answer::limited(status, &headers, &words, now) {
                self.block(retry_at);
                tracing::warn!(%what, %retry_at, "the git host limits the rate of calls");
                let error = HostError::RateLimited { retry_at };
                return Err(Refused { status, words, error });
            }
            let is_read = method == Method::GET;
            let error = answer::error(&what, is_read, status, &headers, &words);
            return Err(Refused { status, words, error });
        }
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let next = text(LINK.as_str()).and_then(address::next_page).map(ToOwned::to_owned);
        let body: Arc<[u8]> = bytes.into();
        if let Some(etag) = text(ETAG.as_str()).filter(|_| method == Method::GET) {
            let cached = Cached { etag: etag.to_owned(), body: body.clone(), next: next.clone() };
            self.cache.put(address.as_str(), cached);
        }
        let scopes = text("x-oauth-scopes").map(ToOwned::to_owned);
        Ok(Answer { status, body, next, scopes })
    }

    fn request(&self, token: &str, method: &Method, address: &Url) -> reqwest::RequestBuilder {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.http
            .request(method.clone(), address.as_str())
            .header("accept", "application/vnd.github+json")
            .header("x-github-api-version", API_VERSION)
            .bearer_auth(token)
    }

    fn blocked(&self) -> Option<Timestamp> {
        let now = self.clock.now();
        let blocked = self.blocked_until.lock().unwrap_or_else(PoisonError::into_inner);
        blocked.filter(|until| now < *until)
    }

    fn block(&self, until: Timestamp) {
        *self.blocked_until.lock().unwrap_or_else(PoisonError::into_inner) = Some(until);
    }

    fn note_quota(&self, quota: Quota, now: Timestamp) {
        if quota.remaining.is_some() {
            *self.quota.lock().unwrap_or_else(PoisonError::into_inner) = quota;
        }
        if let Some(until) = quota.used_up(now) {
            self.block(until);
        }
    }
}

#[derive(Deserialize)]
struct Numbered {
    id: u64,
}

#[derive(Deserialize)]
struct MadeToken {
    token: String,
    expires_at: Option<String>,
}

fn key(repo: &RepoName) -> String {
    format!("{}/{}", repo.owner, repo.name).to_lowercase()
}

/// The app cannot see the repository: it was removed from the installation, or never was in it.
fn not_installed(repo: &RepoName, refused: Refused) -> Refused {
    if refused.status != 404 {
        return refused;
    }
    let words = format!("the app is not installed in {}/{}", repo.owner, repo.name);
    Refused { error: HostError::AccessDenied { words }, ..refused }
}
