//! Refused tokens by address: a client that enters many of them to sign in is throttled, and no other
//! client.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use quick_cache::sync::Cache;
use signalbox_domain::time::{Span, Timestamp};
use signalbox_domain::token::TokenHash;

/// Refused tokens that an address may enter in a minute to sign in.
pub const MAX_REFUSALS: u32 = 60;
/// The most addresses that are counted.
const ADDRESSES: usize = 10_000;
/// The most accepted tokens that are known.
const ACCEPTED: usize = 10_000;
/// For how many hours an accepted token is exempt from throttling.
const EXEMPT_HOURS: u32 = 1;

/// The addresses that one client can choose from: clients of IPv6 have a network of 64 bits.
pub fn network_of(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
    }
}

/// Why a request was refused, for its line in the log: goes with the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefusalReason(pub &'static str);

/// What came of a credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attempt<T> {
    /// It is valid.
    Accepted(T),
    /// It is malformed, unknown, expired or revoked.
    Refused,
    /// It was not looked up: too many invalid ones were entered from its address.
    Throttled,
}

/// Counts for each client by the minute.
#[derive(Debug, Default)]
pub struct MinuteCounts(Mutex<BTreeMap<IpAddr, (Timestamp, u32)>>);

impl MinuteCounts {
    fn counts(&self) -> MutexGuard<'_, BTreeMap<IpAddr, (Timestamp, u32)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The count of a client in its current minute.
    pub fn of(&self, client: IpAddr, now: Timestamp) -> u32 {
        let counts = self.counts();
        let found = counts.get(&network_of(client));
        found.filter(|(since, _)| is_current(*since, now)).map_or(0, |(_, count)| *count)
    }

    /// Adds one; returns the count of the client in its current minute.
    pub fn add(&self, client: IpAddr, now: Timestamp) -> u32 {
        let mut counts = self.counts();
        if counts.len() >= ADDRESSES {
            counts.retain(|_, (since, _)| is_current(*since, now));
        }
        if counts.len() >= ADDRESSES {
            // An attack from everywhere must not fill the memory.
            counts.clear();
        }
        let (since, count) = counts.entry(network_of(client)).or_insert((now, 0));
        if !is_current(*since, now) {
            (*since, *count) = (now, 0);
        }
        *count = count.saturating_add(1);
        *count
    }
}

/// The refused tokens of each address, and recently accepted tokens.
#[derive(Debug)]
pub(super) struct Refusals {
    /// Of all requests.
    pub(super) counts: MinuteCounts,
    /// Of those to sign in.
    pub(super) sign_ins: MinuteCounts,
    accepted: Cache<TokenHash, Timestamp>,
}

impl Default for Refusals {
    fn default() -> Self {
        let (counts, sign_ins) = (MinuteCounts::default(), MinuteCounts::default());
        Self { counts, sign_ins, accepted: Cache::new(ACCEPTED) }
    }
}

impl Refusals {
    /// Whether a token that is entered to sign in is looked up. One that was accepted lately always
    /// is: the mistakes of others at the same address do not concern it.
    pub(super) fn allows(&self, from: IpAddr, token: Option<TokenHash>, now: Timestamp) -> bool {
        let exempt = |token: &TokenHash| {
            let accepted = self.accepted.get(token);
            accepted.is_some_and(|at| now < at.plus(Span::hours(EXEMPT_HOURS)))
        };
        self.sign_ins.of(from, now) < MAX_REFUSALS || token.as_ref().is_some_and(exempt)
    }

    pub(super) fn accepted(&self, token: TokenHash, now: Timestamp) {
        self.accepted.insert(token, now);
    }
}

fn is_current(since: Timestamp, now: Timestamp) -> bool {
    now < since.plus(Span::minutes(1))
}

#[cfg(test)]
mod tests {
    use signalbox_domain::token::TokenText;

    use super::*;

    #[test]
    fn an_address_is_throttled_for_a_minute_except_for_accepted_tokens() {
        let refusals = Refusals::default();
        let at = Timestamp::from_unix_seconds;
        let (one, other) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        let token = TokenText::from_random([7; 20]).hash();
        refusals.accepted(token, at(0));
        for _ in 0..MAX_REFUSALS {
            assert!(refusals.allows(one, None, at(1)));
            refusals.sign_ins.add(one, at(1));
        }
        assert!(!refusals.allows(one, None, at(60)));
        assert!(refusals.allows(one, Some(token), at(60)), "an accepted token");
        assert!(refusals.allows(other, None, at(60)), "another address");
        assert!(refusals.allows(one, None, at(61)), "a minute later");
        for _ in 0..MAX_REFUSALS {
            refusals.sign_ins.add(one, at(4_000));
        }
        assert!(!refusals.allows(one, Some(token), at(4_000)), "accepted too long ago");
    }

    #[test]
    fn memory_is_bounded_and_a_network_of_ipv6_is_one_client() {
        let counts = MinuteCounts::default();
        let now = Timestamp::from_unix_seconds(1);
        for number in 0..=u32::try_from(ADDRESSES).expect("a number") {
            counts.add(IpAddr::from(number.to_be_bytes()), now);
        }
        let counted = counts.counts().len();
        assert!(counted <= ADDRESSES, "{counted}");
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        counts.add(address("2001:db8:1:2::1"), now);
        assert_eq!(counts.of(address("2001:db8:1:2:ffff::9"), now), 1);
        assert_eq!(counts.of(address("2001:db8:1:3::1"), now), 0);
    }
}
