//! Reports of refused tokens: to the log and the metrics each, to the audit log those of tokens that
//! were valid once.

use std::net::IpAddr;
use std::sync::Arc;

use quick_cache::sync::Cache;
use signalbox_domain::audit::{AuditAction, AuditActor, AuditFields};
use signalbox_domain::ids::TokenId;
use signalbox_domain::ports::{AuditLog, IdSource, Observed, Observer};
use signalbox_domain::time::{Span, Timestamp};
use signalbox_domain::token::Token;

use super::AuditEntryBuilder;

/// The most tokens whose last record is known.
const TOKENS: usize = 1_000;
/// The least hours between two records about one token, so that its holder cannot fill the log.
const APART_HOURS: u32 = 1;

/// Why a token was refused.
pub(super) enum Refused {
    Malformed,
    Unknown,
    /// It has expired or was revoked.
    Ended(Box<Token>),
    /// It is an identity token of CI that is not accepted, for this reason.
    Identity(String),
}

/// Where refused tokens are reported.
pub struct RefusalReports {
    pub(super) observer: Arc<dyn Observer>,
    audit: Arc<dyn AuditLog>,
    ids: Arc<dyn IdSource>,
    /// When the last record about a token was written.
    recorded: Cache<TokenId, Timestamp>,
}

impl RefusalReports {
    /// Reports to these.
    pub fn new(
        observer: Arc<dyn Observer>,
        audit: Arc<dyn AuditLog>,
        ids: Arc<dyn IdSource>,
    ) -> Self {
        Self { observer, audit, ids, recorded: Cache::new(TOKENS) }
    }

    /// Reports a refused token. The reply does not depend on it: a database that cannot be written,
    /// and can be read, still refuses the token.
    pub(super) async fn refused(&self, refused: Refused, from: IpAddr, count: u32, now: Timestamp) {
        let reason = match &refused {
            Refused::Malformed => "malformed",
            Refused::Unknown => "unknown",
            Refused::Ended(token) if token.revoked_at.is_some_and(|at| at <= now) => "revoked",
            Refused::Ended(_) => "expired",
            Refused::Identity(_) => "identity",
        };
        let detail = if let Refused::Identity(why) = &refused { Some(why.as_str()) } else { None };
        self.observer.observe(&Observed::TokenRefused { reason, detail, from, count });
        let Refused::Ended(token) = refused else { return };
        let last = self.recorded.get(&token.id);
        if last.is_some_and(|at| now < at.plus(Span::hours(APART_HOURS))) {
            return;
        }
        // Before the record is written: of several requests at the same time one writes it.
        self.recorded.insert(token.id, now);
        let entry = AuditEntryBuilder {
            org: token.org,
            actor: AuditActor::Token { id: token.id, name: token.name.clone() },
            action: AuditAction::TokenRefused,
            object: format!("token {}", token.id),
            repo: None,
            reason: Some(format!("{reason} token, used from {from}")),
        };
        let none = AuditFields::new();
        let appended = self.audit.append(&entry.record(&*self.ids, now, &none, &none)).await;
        if appended.is_err() {
            // The log has the refusal; the next one tries again.
            self.recorded.remove(&token.id);
        }
    }
}
