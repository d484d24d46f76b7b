//! Tokens of an organization: created, rotated and revoked by its administrators and by operators
//! of the server.

use sha2::{Digest, Sha256};
use thiserror::Error as Derive;

use signalbox_domain::audit::{AuditAction, AuditActor, AuditFields, of_token};
use signalbox_domain::ids::{OrgId, RepoName, TokenId};
use signalbox_domain::time::Span;
use signalbox_domain::token::{Caller, Compatibility, Scope, Token, TokenText};

use super::{AccountContext, AuditEntryBuilder, Error};

/// The maximum length of a token's name, in characters.
pub const MAX_TOKEN_NAME: usize = 100;
/// The longest validity of a token, in days: a hundred years.
pub const MAX_TOKEN_DAYS: u32 = 36_500;

/// Why a token was not created, rotated or revoked.
#[derive(Debug, Derive)]
pub enum TokenError {
    /// Its name is empty, too long, or has control characters.
    #[error("invalid token name: must have 1 to {MAX_TOKEN_NAME} characters on one line")]
    Name,
    /// It has no scopes.
    #[error("invalid scopes: a token must have at least one")]
    NoScope,
    /// The caller lacks a requested scope.
    #[error("cannot grant the scope {}: your token does not have it", .0.as_str())]
    NotYours(Scope),
    /// The validity is out of bounds.
    #[error("invalid validity: must be 1 to {MAX_TOKEN_DAYS} days")]
    Days,
    /// The token has expired or was revoked.
    #[error("token {0} has expired or was revoked: create a new one")]
    Ended(TokenId),
    /// The organization has no such token.
    #[error("token {0} not found")]
    Unknown(TokenId),
    /// Any other error.
    #[error(transparent)]
    Other(#[from] Error),
}

impl From<signalbox_domain::ports::StoreError> for TokenError {
    fn from(error: signalbox_domain::ports::StoreError) -> Self {
        Self::Other(error.into())
    }
}

/// A request for a token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewToken {
    /// Its name, 1 to [`MAX_TOKEN_NAME`] characters on one line.
    pub name: String,
    /// Its scopes; at least one, all held by the creator.
    pub scopes: Vec<Scope>,
    /// The repositories that it is limited to; empty for all of the organization.
    pub repos: Vec<RepoName>,
    /// Its validity, at most [`MAX_TOKEN_DAYS`] days; `None` for no expiry.
    pub valid_for: Option<Span>,
    /// The clients that replies are compatible with.
    pub compatibility: Compatibility,
}

/// Use cases of tokens.
pub struct TokenService {
    context: AccountContext,
}

impl TokenService {
    /// Creates the service.
    pub fn new(context: impl Into<AccountContext>) -> Self {
        Self { context: context.into() }
    }

    /// The tokens of the caller's organization, newest first.
    pub async fn tokens(&self, caller: &Caller) -> Result<Vec<Token>, Error> {
        administers(caller)?;
        Ok(self.context.stores.tokens.list(Some(caller.org)).await?)
    }

    /// Creates a token. Its text is only in the result. The caller must hold every granted scope.
    pub async fn create(
        &self,
        caller: &Caller,
        new: NewToken,
    ) -> Result<(Token, TokenText), TokenError> {
        administers(caller)?;
        within(caller, &new.scopes)?;
        self.make(AuditActor::caller(caller), caller.org, new).await
    }

    /// Creates a token for an organization, by a command on the server.
    pub async fn create_as_operator(
        &self,
        org: OrgId,
        new: NewToken,
    ) -> Result<(Token, TokenText), TokenError> {
        self.make(AuditActor::Operator, org, new).await
    }

    /// Replaces a token by a new one with the same scopes; the old one stays valid for `overlap`.
    pub async fn rotate(
        &self,
        caller: &Caller,
        id: TokenId,
        overlap: Span,
    ) -> Result<(Token, TokenText), TokenError> {
        let old = self.find(caller, id).await?.ok_or(TokenError::Unknown(id))?;
        within(caller, &old.scopes)?;
        self.replace(AuditActor::caller(caller), old, overlap).await
    }

    /// Replaces a token of any organization, by a command on the server.
    pub async fn rotate_as_operator(
        &self,
        id: TokenId,
        overlap: Span,
    ) -> Result<(Token, TokenText), TokenError> {
        let old = self.any(id).await?.ok_or(TokenError::Unknown(id))?;
        self.replace(AuditActor::Operator, old, overlap).await
    }

    /// Revokes a token immediately; `false` if the organization has none with this id.
    pub async fn revoke(&self, caller: &Caller, id: TokenId) -> Result<bool, Error> {
        let Some(token) = self.find(caller, id).await? else { return Ok(false) };
        self.end(AuditActor::caller(caller), &token).await
    }

    /// Revokes a token of any organization, by a command on the server; `false` if there is none
    /// with this id.
    pub async fn revoke_as_operator(&self, id: TokenId) -> Result<bool, Error> {
        let Some(token) = self.any(id).await? else { return Ok(false) };
        self.end(AuditActor::Operator, &token).await
    }

    async fn make(
        &self,
        actor: AuditActor,
        org: OrgId,
        new: NewToken,
    ) -> Result<(Token, TokenText), TokenError> {
        let NewToken { name, scopes, repos, valid_for, compatibility } = new;
        if name.is_empty()
            || name.chars().count() > MAX_TOKEN_NAME
            || name.chars().any(char::is_control)
        {
            return Err(TokenError::Name);
        }
        if scopes.is_empty() {
            return Err(TokenError::NoScope);
        }
        if valid_for.is_some_and(|it| it == Span::ZERO || it > Span::days(MAX_TOKEN_DAYS)) {
            return Err(TokenError::Days);
        }
        let now = self.context.clock.now();
        let text = self.text();
        let token = Token {
            id: TokenId(self.context.ids.new_id()),
            org,
            name,
            hash: text.hash(),
            scopes,
            repos,
            compatibility,
            created_at: now,
            expires_at: valid_for.map(|span| now.plus(span)),
            revoked_at: None,
        };
        self.write(actor, &token).await?;
        Ok((token, text))
    }

    async fn replace(
        &self,
        actor: AuditActor,
        old: Token,
        overlap: Span,
    ) -> Result<(Token, TokenText), TokenError> {
        let now = self.context.clock.now();
        if !old.is_valid(now) {
            return Err(TokenError::Ended(old.id));
        }
        let text = self.text();
        let new = Token {
            id: TokenId(self.context.ids.new_id()),
            hash: text.hash(),
            created_at: now,
            revoked_at: None,
            ..old.clone()
        };
        self.write(actor.clone(), &new).await?;
        let end = now.plus(overlap);
        let mut to = of_token(&Token { revoked_at: Some(end), ..old.clone() });
        to.insert("replacedBy".into(), new.id.to_string());
        self.note(actor, AuditAction::TokenRotated, &old, (&of_token(&old), &to)).await?;
        self.context.stores.tokens.revoke(old.id, end, self.context.ids.new_id()).await?;
        Ok((new, text))
    }

    /// Writes the audit record of a token's end, then ends it.
    async fn end(&self, actor: AuditActor, token: &Token) -> Result<bool, Error> {
        let now = self.context.clock.now();
        let end = Token { revoked_at: Some(now), ..token.clone() };
        let facts = (&of_token(token), &of_token(&end));
        self.note(actor, AuditAction::TokenRevoked, token, facts).await?;
        Ok(self.context.stores.tokens.revoke(token.id, now, self.context.ids.new_id()).await?)
    }

    /// A token of any organization.
    async fn any(&self, id: TokenId) -> Result<Option<Token>, Error> {
        let all = self.context.stores.tokens.list(None).await?;
        Ok(all.into_iter().find(|token| token.id == id))
    }

    async fn find(&self, caller: &Caller, id: TokenId) -> Result<Option<Token>, Error> {
        Ok(self.tokens(caller).await?.into_iter().find(|token| token.id == id))
    }

    /// Writes the audit record of a new token, then the token, so that the log contains every
    /// token.
    async fn write(&self, actor: AuditActor, token: &Token) -> Result<(), Error> {
        let facts = (&AuditFields::new(), &of_token(token));
        self.note(actor, AuditAction::TokenCreated, token, facts).await?;
        Ok(self.context.stores.tokens.insert(token).await?)
    }

    async fn note(
        &self,
        actor: AuditActor,
        action: AuditAction,
        token: &Token,
        (before, after): (&AuditFields, &AuditFields),
    ) -> Result<(), Error> {
        let object = format!("token {}", token.id);
        let audit_entry =
            AuditEntryBuilder { org: token.org, actor, action, object, repo: None, reason: None };
        let record =
            audit_entry.record(&*self.context.ids, self.context.clock.now(), before, after);
        Ok(self.context.stores.audit.append(&record).await?)
    }

    /// A new text, with 160 random bits taken from three random ids.
    fn text(&self) -> TokenText {
        let mut hash = Sha256::new();
        for _ in 0..3 {
            hash.update(self.context.ids.new_id().as_bytes());
        }
        let digest: [u8; 32] = hash.finalize().into();
        let mut random = [0; 20];
        for (byte, from) in random.iter_mut().zip(digest) {
            *byte = from;
        }
        TokenText::from_random(random)
    }
}

/// Whether the caller may administer the whole organization.
fn administers(caller: &Caller) -> Result<(), Error> {
    if caller.may(Scope::QueueAdmin) && caller.repos.is_empty() {
        Ok(())
    } else {
        Err(Error::MissingScope(Scope::QueueAdmin))
    }
}

/// Whether the caller holds all of these scopes.
fn within(caller: &Caller, scopes: &[Scope]) -> Result<(), TokenError> {
    match scopes.iter().find(|scope| !caller.may(**scope)) {
        Some(scope) => Err(TokenError::NotYours(*scope)),
        None => Ok(()),
    }
}
