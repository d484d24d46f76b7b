//! The contract of the session store.

use signalbox_domain::ports::Stores;
use signalbox_domain::session::{Session, SessionHash};
use signalbox_domain::token::TokenHash;

use super::{Sample, at};

async fn begun(stores: &Stores, byte: u8, created: u32, seen: u32) -> Session {
    let session = Session {
        hash: SessionHash([byte; 32]),
        org: Sample::org(stores, "acme").await.id,
        token: TokenHash([9; 32]),
        created_at: at(created),
        seen_at: at(seen),
    };
    stores.account.sessions.begin(&session).await.expect("begun");
    session
}

/// A session is read back unchanged, with its latest recorded use, until it is ended.
pub async fn a_session_is_found_used_and_ended(stores: &Stores) {
    let session = begun(stores, 1, 0, 0).await;
    let found = async || stores.account.sessions.session(session.hash).await.expect("a read");
    assert_eq!(found().await, Some(session.clone()));
    for (seconds, seen) in [(50, 50), (40, 50)] {
        stores.account.sessions.note_use(session.hash, at(seconds)).await.expect("noted");
        assert_eq!(found().await.map(|it| it.seen_at), Some(at(seen)));
    }
    let stranger = SessionHash([2; 32]);
    stores.account.sessions.note_use(stranger, at(60)).await.expect("nothing to record");
    assert_eq!(stores.account.sessions.session(stranger).await.expect("a read"), None);
    assert!(!stores.account.sessions.end(stranger).await.expect("an answer"));
    assert!(stores.account.sessions.end(session.hash).await.expect("ended"));
    assert_eq!(found().await, None);
}

/// Idle and old sessions are deleted, others stay.
pub async fn old_sessions_are_deleted(stores: &Stores) {
    let idle = begun(stores, 1, 100, 100).await;
    let old = begun(stores, 2, 10, 300).await;
    let good = begun(stores, 3, 100, 300).await;
    assert_eq!(stores.account.sessions.prune(at(200), at(50)).await.expect("pruned"), 2);
    for (session, stays) in [(idle, false), (old, false), (good, true)] {
        let found = stores.account.sessions.session(session.hash).await.expect("a read");
        assert_eq!(found.is_some(), stays);
    }
}
