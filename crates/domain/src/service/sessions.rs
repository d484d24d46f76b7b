//! Signing in to the pages, and who it is that comes back.

use std::sync::Arc;

use crate::ports::StoreError;
use crate::session::{ABSOLUTE_DAYS, IDLE_HOURS, NOTE_MINUTES, Session, SessionText};
use crate::time::Span;
use crate::token::{Caller, TokenText};

use super::{Authenticator, Context};

/// Signing in to the pages.
pub struct Sessions {
    context: Context,
    authenticator: Arc<Authenticator>,
}

impl Sessions {
    /// Sessions on these adapters.
    pub const fn new(context: Context, authenticator: Arc<Authenticator>) -> Self {
        Self { context, authenticator }
    }

    /// Exchanges the text of a token for a new session. `None`: the token is no good.
    pub async fn sign_in(
        &self,
        text: &str,
    ) -> Result<Option<(SessionText, Arc<Caller>)>, StoreError> {
        let text = text.trim();
        let Some(token) = TokenText::parse(text) else { return Ok(None) };
        let Some(caller) = self.authenticator.authenticate(text).await? else { return Ok(None) };
        let (ids, now) = (&self.context.ids, self.context.clock.now());
        let session = SessionText::from_random(ids.new_id(), ids.new_id());
        let store = &self.context.stores.sessions;
        let begun = Session {
            hash: session.hash(),
            org: caller.org,
            token: token.hash(),
            created_at: now,
            seen_at: now,
        };
        store.begin(&begun).await?;
        store
            .prune(now.minus(Span::hours(IDLE_HOURS)), now.minus(Span::days(ABSOLUTE_DAYS)))
            .await?;
        Ok(Some((session, caller)))
    }

    /// Who comes back with a session. `None`: it has ended, or its token is no longer good.
    pub async fn resume(&self, text: &SessionText) -> Result<Option<Arc<Caller>>, StoreError> {
        let (store, now) = (&self.context.stores.sessions, self.context.clock.now());
        let Some(session) = store.session(text.hash()).await? else { return Ok(None) };
        if !session.is_good(now) {
            return Ok(None);
        }
        let caller = self.authenticator.holder(session.token).await?;
        let caller = caller.filter(|caller| caller.org == session.org);
        if caller.is_some() && now >= session.seen_at.plus(Span::minutes(NOTE_MINUTES)) {
            store.note_use(session.hash, now).await?;
        }
        Ok(caller)
    }

    /// Ends a session.
    pub async fn sign_out(&self, text: &SessionText) -> Result<(), StoreError> {
        self.context.stores.sessions.end(text.hash()).await.map(drop)
    }
}
