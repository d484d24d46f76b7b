//! Places for requests that are handled at the same time, and the line in front of them. The line
//! is fair: a free place goes to the side with the fewest places (addresses without a known credential
//! are one, all others the other), there to the organization or address with the fewest, and there to
//! the token with the fewest. In a full line a new request replaces one of a party that has more in
//! it, or is refused. So a party that sends more than the server can do delays mostly itself, and has
//! all places while it is the only one.

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

    /// Whether it is more than an address.
    pub(crate) const fn is_known(self) -> bool {
        !matches!(self.holder, Holder::Stranger(_))
    }

    const fn levels(self) -> [Level; LEVELS] {
        let known = self.is_known();
        [Level::Side { known }, Level::Holder(self.holder), Level::Party(self)]
    }
}

impl From<Holder> for Party {
    fn from(holder: Holder) -> Self {
        Self { holder, token: None }
    }
}

const LEVELS: usize = 3;

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

/// Numbers of requests at each level.
#[derive(Clone, Debug, Default)]
struct Counts(BTreeMap<Level, usize>);

impl Counts {
    fn of(&self, level: Level) -> usize {
        self.0.get(&level).copied().unwrap_or_default()
    }

    fn of_all(&self) -> usize {
        self.of(Level::Side { known: true }) + self.of(Level::Side { known: false })
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
    /// The requests of each party that has any.
    waiting: BTreeMap<Party, VecDeque<Waiting>>,
    queued: Counts,
    next_ticket: u64,
}

impl Line {
    fn new(places: usize) -> Self {
        Self {
            free: places,
            held: Counts::default(),
            waiting: BTreeMap::new(),
            queued: Counts::default(),
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
        Some(removed)
    }

    /// Removes a request for one of this party: of another side that has at least two more in the line,
    /// else of another holder of its side, else of another token of its holder. Of several with equally
    /// many, the newest request is removed.
    fn make_room_for(&mut self, party: Party) -> Option<Waiting> {
        let ends = self.waiting.iter();
        let ends = ends.filter_map(|(party, all)| Some((*party, all.back()?.ticket)));
        let mut parties: Vec<(Party, u64)> = ends.collect();
        let mut is_own = true;
        for level in 0..LEVELS {
            let at = |it: Party| it.levels().get(level).copied();
            let number = |it: Party| at(it).map_or(0, |level| self.queued.of(level));
            let (longest, _) = *parties.iter().max_by_key(|(it, last)| (number(*it), *last))?;
            is_own = is_own && number(longest) < number(party) + 2;
            let kept = at(if is_own { party } else { longest });
            parties.retain(|(it, _)| at(*it) == kept);
        }
        let (longest, _) = *parties.first().filter(|_| !is_own)?;
        self.remove(longest, VecDeque::pop_back)
    }

    /// The party that has the next turn: on the side with the fewest places, of the holder with the
    /// fewest. Of several with equally many, the one whose request has waited longest.
    fn next(&self) -> Option<Party> {
        let fronts = self.waiting.iter();
        let fronts = fronts.filter_map(|(party, all)| Some((*party, all.front()?.ticket)));
        let mut parties: Vec<(Party, u64)> = fronts.collect();
        for level in 0..LEVELS {
            let at = |it: Party| it.levels().get(level).copied();
            let held = |it: Party| at(it).map(|level| self.held.of(level));
            let (first, _) = *parties.iter().min_by_key(|(it, front)| (held(*it), *front))?;
            parties.retain(|(it, _)| at(*it) == at(first));
        }
        parties.first().map(|(party, _)| *party)
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
            if line.queued.of_all() >= self.longest {
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
        locked(&self.line).queued.of_all()
    }
}

#[cfg(test)]
mod tests;
