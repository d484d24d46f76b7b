//! Places for requests that are handled at the same time, and the line in front of them. The line
//! is fair: a free place goes to the side with the fewest places (callers with a known token, or the
//! others), of that to the organization or address with the fewest, and of that to the token with the
//! fewest. A full line drops a request of the side, organization or address, and token that has the
//! most in it. So a party that sends more than the server can do delays mostly itself, and has all
//! places while it is the only one.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use signalbox_domain::ids::TokenId;
use signalbox_domain::token::Caller;
use signalbox_services::network_of;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::holding::Holder;

/// How many reads or writes may wait for each place.
const BURST: usize = 8;

/// Who has sent a request. The tokens of an organization are first one party among others, and then
/// parties among each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Party {
    holder: Holder,
    token: Option<TokenId>,
}

impl Party {
    /// The clients at an address.
    pub fn at(client: IpAddr) -> Self {
        Self { holder: Holder::Stranger(network_of(client)), token: None }
    }

    /// A caller whose token is known.
    pub const fn of(caller: &Caller) -> Self {
        Self { holder: Holder::Organization(caller.org), token: Some(caller.token) }
    }
}

impl From<Holder> for Party {
    fn from(holder: Holder) -> Self {
        Self { holder, token: None }
    }
}

/// What shares places with others of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    /// All callers with a known credential, or all others.
    Side {
        known: bool,
    },
    Holder(Holder),
    Party(Party),
}

impl Party {
    const fn side(self) -> Level {
        Level::Side { known: !matches!(self.holder, Holder::Stranger(_) | Holder::Unproven) }
    }

    const fn levels(self) -> [Level; 3] {
        [self.side(), Level::Holder(self.holder), Level::Party(self)]
    }
}

/// Numbers of requests at each level.
#[derive(Clone, Debug, Default)]
struct Counts(BTreeMap<Level, usize>);

impl Counts {
    fn of(&self, level: Level) -> usize {
        self.0.get(&level).copied().unwrap_or_default()
    }

    fn add(&mut self, party: Party) {
        for level in party.levels() {
            *self.0.entry(level).or_default() += 1;
        }
    }

    fn remove(&mut self, party: Party) {
        for level in party.levels() {
            let left = self.of(level).saturating_sub(1);
            if left == 0 {
                self.0.remove(&level);
            } else {
                self.0.insert(level, left);
            }
        }
    }
}

/// A request in the line.
#[derive(Debug)]
struct Waiting {
    ticket: u64,
    place: oneshot::Sender<Admitted>,
}

/// Who has places, and who waits for one. While a place is free no request waits.
#[derive(Debug)]
struct Line {
    free: usize,
    held: Counts,
    /// The requests of each party that has any. Those of one holder are neighbors.
    waiting: BTreeMap<Party, VecDeque<Waiting>>,
    queued: Counts,
    length: usize,
    next_ticket: u64,
}

impl Line {
    fn new(places: usize) -> Self {
        Self {
            free: places,
            held: Counts::default(),
            waiting: BTreeMap::new(),
            queued: Counts::default(),
            length: 0,
            next_ticket: 0,
        }
    }

    /// Adds a request at the end.
    fn join(&mut self, party: Party) -> (u64, oneshot::Receiver<Admitted>) {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let (place, receiver) = oneshot::channel();
        self.waiting.entry(party).or_default().push_back(Waiting { ticket, place });
        self.queued.add(party);
        self.length += 1;
        (ticket, receiver)
    }

    /// Removes one of a party's requests.
    fn remove(
        &mut self,
        party: Party,
        which: impl FnOnce(&mut VecDeque<Waiting>) -> Option<Waiting>,
    ) -> Option<Waiting> {
        let requests = self.waiting.get_mut(&party)?;
        let removed = which(requests)?;
        if requests.is_empty() {
            self.waiting.remove(&party);
        }
        self.queued.remove(party);
        self.length -= 1;
        Some(removed)
    }

    /// Removes a request, if that makes the line fairer to this party: at the first level at which
    /// another has two more than the party's own.
    fn make_room_for(&mut self, party: Party) -> Option<Waiting> {
        let mut parties: Vec<Party> = self.waiting.keys().copied().collect();
        let mut is_own = true;
        for level in 0..3 {
            let at = |it: &Party| it.levels().get(level).copied();
            let number = |it: &Party| at(it).map_or(0, |level| self.queued.of(level));
            let longest = parties.iter().copied().max_by_key(number)?;
            if is_own && number(&longest) < number(&party) + 2 {
                parties.retain(|it| at(it) == at(&party));
            } else {
                is_own = is_own && at(&longest) == at(&party);
                parties.retain(|it| at(it) == at(&longest));
            }
        }
        // The last level is the party itself, so one is left.
        let longest = parties.first().copied().filter(|it| *it != party)?;
        self.remove(longest, VecDeque::pop_back)
    }

    /// The party that has the next turn.
    fn next(&self) -> Option<Party> {
        let fronts = self.waiting.iter();
        let fronts = fronts.filter_map(|(party, all)| Some((*party, all.front()?.ticket)));
        let mut candidates: Vec<(Party, u64)> = fronts.collect();
        for level in 0..3 {
            let at = |(party, _): &(Party, u64)| party.levels().get(level).copied();
            let turn = |part: &&[(Party, u64)]| {
                let held = part.first().and_then(at).map(|level| self.held.of(level));
                (held, part.iter().map(|(_, ticket)| *ticket).min())
            };
            let first = candidates.chunk_by(|one, next| at(one) == at(next)).min_by_key(turn)?;
            candidates = first.to_vec();
        }
        candidates.first().map(|(party, _)| *party)
    }

    /// Ends a place; it belongs to the returned party now, if any.
    fn release(&mut self, party: Party) -> Option<(Party, oneshot::Sender<Admitted>)> {
        // The place that ends still counts, so parties with one place take turns.
        let next = self.next();
        self.held.remove(party);
        let given = next.and_then(|it| Some((it, self.remove(it, VecDeque::pop_front)?)));
        let Some((next, waiting)) = given else {
            self.free += 1;
            return None;
        };
        self.held.add(next);
        Some((next, waiting.place))
    }
}

type SharedLine = Arc<Mutex<Line>>;

fn locked(line: &SharedLine) -> MutexGuard<'_, Line> {
    line.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A request that leaves the line when this is dropped.
struct InLine<'a> {
    line: &'a SharedLine,
    party: Party,
    ticket: u64,
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        let left = locked(self.line).remove(self.party, |requests| {
            let at = requests.iter().position(|it| it.ticket == self.ticket)?;
            requests.remove(at)
        });
        drop(left);
    }
}

/// A place that a request has until this is dropped.
#[derive(Debug)]
pub struct Admitted {
    line: SharedLine,
    party: Party,
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let next = locked(&self.line).release(self.party);
        if let Some((party, place)) = next {
            // A request that has left since then drops its place, which is then the next one's.
            drop(place.send(Self { line: self.line.clone(), party }));
        }
    }
}

/// Places, and the line in front of them.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) most: usize,
    /// The most requests in the line.
    longest: usize,
    wait: Duration,
    line: SharedLine,
}

impl Gate {
    pub(crate) fn new(most: usize, wait: Duration) -> Self {
        Self { most, longest: most, wait, line: Arc::new(Mutex::new(Line::new(most))) }
    }

    /// With a line for a burst of short requests: most of them get a place before their wait ends.
    pub(crate) fn for_bursts(self) -> Self {
        Self { longest: BURST * self.most, ..self }
    }

    /// A place, immediately or after a short wait in the line.
    pub(crate) async fn enter(&self, party: Party) -> Option<Admitted> {
        let mut displaced = None;
        let (ticket, place) = {
            let mut line = locked(&self.line);
            if line.free > 0 {
                line.free -= 1;
                line.held.add(party);
                return Some(Admitted { line: self.line.clone(), party });
            }
            if line.length >= self.longest {
                displaced = Some(line.make_room_for(party)?);
            }
            line.join(party)
        };
        // Its request is refused, because the other half of the channel is gone.
        drop(displaced);
        let _in_line = InLine { line: &self.line, party, ticket };
        timeout(self.wait, place).await.ok()?.ok()
    }

    pub(crate) fn in_flight(&self) -> u64 {
        u64::try_from(self.most.saturating_sub(self.free())).unwrap_or(u64::MAX)
    }

    pub(crate) fn free(&self) -> usize {
        locked(&self.line).free
    }

    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        locked(&self.line).length
    }
}

#[cfg(test)]
mod tests;
