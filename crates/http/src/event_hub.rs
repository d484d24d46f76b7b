//! Who reads along: streams of events are woken here, counted, and ended when the server stops.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use signalbox_domain::ids::{OrgId, TokenId};
use tokio::sync::watch;

/// The most streams that one token may have open at a server.
pub(crate) const STREAMS_OF_TOKEN: usize = 10;
/// The most streams that the tokens of one organization may have open at a server.
const STREAMS_OF_ORGANIZATION: usize = 750;
/// The most streams that a server has open.
pub(crate) const STREAMS: usize = 1_000;

/// An organization whose events are streamed.
struct Listened {
    /// How often something may be new.
    rings: watch::Sender<u64>,
    streams: usize,
    newest: i64,
}

#[derive(Default)]
struct State {
    orgs: BTreeMap<OrgId, Listened>,
    tokens: BTreeMap<TokenId, usize>,
    streams: usize,
    stopped: bool,
}

/// The streams of a server.
#[derive(Clone, Default)]
pub struct EventHub(Arc<Mutex<State>>);

impl EventHub {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the streams of an organization after a commit with events.
    pub fn ring(&self, org: OrgId) {
        if let Some(listened) = self.state().orgs.get(&org) {
            listened.rings.send_modify(|count| *count = count.wrapping_add(1));
        }
    }

    /// Wakes the streams of organizations whose newest position is another one than the last time:
    /// another server may have committed events.
    pub fn seen(&self, newest: &BTreeMap<OrgId, i64>) {
        for (org, listened) in &mut self.state().orgs {
            let newest = newest.get(org).copied().unwrap_or(0);
            if listened.newest != newest {
                listened.newest = newest;
                listened.rings.send_modify(|count| *count = count.wrapping_add(1));
            }
        }
    }

    /// Ends every stream, and lets no other begin.
    pub fn stop(&self) {
        let mut state = self.state();
        state.stopped = true;
        // Without their senders the streams end.
        state.orgs.clear();
    }

    /// A new stream; `None` when there are too many, or the server is stopping.
    pub(crate) fn open(&self, org: OrgId, token: TokenId) -> Option<Listening> {
        let mut state = self.state();
        let of_token = state.tokens.get(&token).copied().unwrap_or(0);
        let of_org = state.orgs.get(&org).map_or(0, |listened| listened.streams);
        let exhausted = of_token >= STREAMS_OF_TOKEN
            || of_org >= STREAMS_OF_ORGANIZATION
            || state.streams >= STREAMS;
        if state.stopped || exhausted {
            return None;
        }
        state.streams += 1;
        state.tokens.insert(token, of_token + 1);
        let listened = state.orgs.entry(org).or_insert_with(|| Listened {
            rings: watch::channel(0).0,
            streams: 0,
            newest: -1,
        });
        listened.streams += 1;
        let rings = listened.rings.subscribe();
        drop(state);
        Some(Listening { hub: self.clone(), org, token, rings })
    }
}

/// An open stream; it is counted until it is dropped.
pub(crate) struct Listening {
    hub: EventHub,
    org: OrgId,
    token: TokenId,
    rings: watch::Receiver<u64>,
}

impl Listening {
    /// Waits until something may be new. `false`: the server is stopping.
    pub(crate) async fn rung(&mut self) -> bool {
        self.rings.changed().await.is_ok()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let mut state = self.hub.state();
        state.streams = state.streams.saturating_sub(1);
        if let Some(count) = state.tokens.get_mut(&self.token) {
            *count -= 1;
            if *count == 0 {
                state.tokens.remove(&self.token);
            }
        }
        if let Some(listened) = state.orgs.get_mut(&self.org) {
            listened.streams -= 1;
            if listened.streams == 0 {
                state.orgs.remove(&self.org);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    const ORG: OrgId = OrgId(Uuid::from_u128(1));
    const TOKEN: TokenId = TokenId(Uuid::from_u128(2));

    #[test]
    fn a_token_has_so_many_streams_and_gets_them_back() {
        let hub = EventHub::default();
        let open: Vec<Listening> =
            (0..STREAMS_OF_TOKEN).filter_map(|_| hub.open(ORG, TOKEN)).collect();
        assert_eq!(open.len(), STREAMS_OF_TOKEN);
        assert!(hub.open(ORG, TOKEN).is_none());
        assert!(hub.open(ORG, TokenId(Uuid::from_u128(3))).is_some());
        drop(open);
        assert!(hub.open(ORG, TOKEN).is_some());
        assert!(hub.state().orgs.is_empty() && hub.state().tokens.is_empty());
    }

    #[test]
    fn an_organization_leaves_streams_to_others() {
        let hub = EventHub::default();
        let open = |org: u128| {
            let tokens = (0..=u128::try_from(STREAMS).expect("a number")).map(Uuid::from_u128);
            let org = OrgId(Uuid::from_u128(org));
            tokens.filter_map(|token| hub.open(org, TokenId(token))).collect::<Vec<_>>()
        };
        let (first, second) = (open(1), open(2));
        assert_eq!((first.len(), second.len()), (STREAMS_OF_ORGANIZATION, 250));
    }

    #[tokio::test]
    async fn streams_are_woken_and_ended() {
        let hub = EventHub::default();
        let mut listening = hub.open(ORG, TOKEN).expect("a stream");
        hub.ring(OrgId(Uuid::from_u128(9)));
        hub.ring(ORG);
        assert!(listening.rung().await);
        hub.stop();
        assert!(!listening.rung().await);
        assert!(hub.open(ORG, TOKEN).is_none());
    }
}
