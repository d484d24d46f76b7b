//! Sessions of the pages.

use std::net::IpAddr;
use std::sync::Arc;

use signalbox_domain::audit::{AuditAction, AuditActor, AuditFields, of_token};
use signalbox_domain::identity::{Identity, Role};
use signalbox_domain::ids::{OrgId, OrgSlug, TokenId};
use signalbox_domain::ports::StoreError;
use signalbox_domain::session::{ABSOLUTE_DAYS, IDLE_HOURS, NOTE_MINUTES, Session, SessionText};
use signalbox_domain::time::Span;
use signalbox_domain::token::{Caller, Compatibility, Token, TokenHash, TokenText};

use super::{AccountContext, Attempt, AuditEntryBuilder, Authenticator};

/// Use cases of sessions: sign-in, authentication and sign-out.
pub struct Sessions {
    context: AccountContext,
    authenticator: Arc<Authenticator>,
}

impl Sessions {
    /// Creates the service.
    pub fn new(context: impl Into<AccountContext>, authenticator: Arc<Authenticator>) -> Self {
        Self { context: context.into(), authenticator }
    }

    /// Creates a session for the text of a token from a client at that address.
    pub async fn sign_in(
        &self,
        text: &str,
        from: IpAddr,
    ) -> Result<Attempt<(SessionText, Arc<Caller>)>, StoreError> {
        let text = text.trim();
        let caller = match self.authenticator.sign_in(text, from).await? {
            Attempt::Accepted(caller) => caller,
            Attempt::Refused => return Ok(Attempt::Refused),
            Attempt::Throttled => return Ok(Attempt::Throttled),
        };
        let Some(token) = TokenText::parse(text) else { return Ok(Attempt::Refused) };
        let session = self.new_text();
        self.begin(caller.org, token.hash(), &session).await?;
        Ok(Attempt::Accepted((session, caller)))
    }

    /// Creates a session for an identity. It has a token of its own, whose text is discarded, so
    /// that it is listed and revoked like any other token. `None` if the organization does not
    /// exist.
    pub async fn sign_in_as(
        &self,
        slug: &OrgSlug,
        who: &Identity,
        role: Role,
    ) -> Result<Option<SessionText>, StoreError> {
        let stores = &self.context.stores;
        let Some(org) = stores.orgs.find_by_slug(slug).await? else { return Ok(None) };
        let (session, now) = (self.new_text(), self.context.clock.now());
        let name = who.email.as_deref().unwrap_or(&who.name);
        let name: String = name.chars().filter(|it| !it.is_control()).take(80).collect();
        let token = Token {
            id: TokenId(self.context.ids.new_id()),
            org: org.id,
            name: format!("{name} (signed in)"),
            hash: session.own_token(),
            scopes: role.scopes(),
            repos: Vec::new(),
            compatibility: Compatibility::Specification,
            created_at: now,
            expires_at: Some(now.plus(Span::days(ABSOLUTE_DAYS))),
            revoked_at: None,
        };
        let audit_entry = AuditEntryBuilder {
            org: org.id,
            actor: AuditActor::Token { id: token.id, name: token.name.clone() },
            action: AuditAction::TokenCreated,
            object: format!("token {}", token.id),
            repo: None,
            reason: Some(format!("signed in as {} ({})", role.as_str(), who.subject)),
        };
        let record =
            audit_entry.record(&*self.context.ids, now, &AuditFields::new(), &of_token(&token));
        stores.audit.append(&record).await?;
        stores.tokens.insert(&token).await?;
        self.begin(org.id, token.hash, &session).await?;
        Ok(Some(session))
    }

    fn new_text(&self) -> SessionText {
        SessionText::from_random(self.context.ids.new_id(), self.context.ids.new_id())
    }

    async fn begin(
        &self,
        org: OrgId,
        token: TokenHash,
        session: &SessionText,
    ) -> Result<(), StoreError> {
        let now = self.context.clock.now();
        let store = &self.context.stores.sessions;
        let begun = Session { hash: session.hash(), org, token, created_at: now, seen_at: now };
        store.begin(&begun).await?;
        store
            .prune(now.minus(Span::hours(IDLE_HOURS)), now.minus(Span::days(ABSOLUTE_DAYS)))
            .await?;
        Ok(())
    }

    /// The caller of a session; `None` if it has ended or its token is no longer valid.
    pub async fn resume(&self, text: &SessionText) -> Result<Option<Arc<Caller>>, StoreError> {
        let (store, now) = (&self.context.stores.sessions, self.context.clock.now());
        let Some(session) = store.session(text.hash()).await? else { return Ok(None) };
        if !session.is_valid(now) {
            return Ok(None);
        }
        let caller = self.authenticator.holder(session.token).await?;
        let caller = caller.filter(|caller| caller.org == session.org);
        if caller.is_some() && now >= session.seen_at.plus(Span::minutes(NOTE_MINUTES)) {
            store.note_use(session.hash, now).await?;
        }
        Ok(caller)
    }

    /// The CSRF token of the forms of a new page.
    pub fn form_token(&self, text: &SessionText) -> String {
        text.form_token(self.context.ids.new_id())
    }

    /// Ends a session, and its token if it was created for this session.
    pub async fn sign_out(&self, text: &SessionText) -> Result<(), StoreError> {
        let stores = &self.context.stores;
        if let Some(session) = stores.sessions.session(text.hash()).await? {
            let token = stores.tokens.find_by_hash(session.token).await?;
            if let Some(token) = token.filter(|it| it.hash == text.own_token()) {
                stores
                    .tokens
                    .revoke(token.id, self.context.clock.now(), self.context.ids.new_id())
                    .await?;
            }
        }
        stores.sessions.end(text.hash()).await.map(drop)
    }
}
