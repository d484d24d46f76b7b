//! Places for requests that are handled at the same time, and the line in front of them. The line
//! is fair: a free place goes to the party with the fewest places, and a full line drops the last
//! request of the party with the most. So a party that sends more than the server can do delays
//! mostly itself, and has all places while it is the only one.

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
    held: BTreeMap<Party, usize>,
    waiting: BTreeMap<Party, VecDeque<Waiting>>,
    next_ticket: u64,
}

/// The sum of each holder's numbers.
fn by_holder(numbers: impl Iterator<Item = (Party, usize)>) -> BTreeMap<Holder, usize> {
    let mut sums = BTreeMap::new();
    for (party, number) in numbers {
        *sums.entry(party.holder).or_default() += number;
    }
    sums
}

impl Line {
    fn new(places: usize) -> Self {
        Self { free: places, held: BTreeMap::new(), waiting: BTreeMap::new(), next_ticket: 0 }
    }

    fn lengths(&self) -> impl Iterator<Item = (Party, usize)> {
        self.waiting.iter().map(|(party, requests)| (*party, requests.len()))
    }

    /// Drops the last request of the party with the most, if that makes the line fairer to this one.
    fn makes_room_for(&mut self, party: Party) -> bool {
        let of_holders = by_holder(self.lengths());
        let number = |party: Party, own: usize| (of_holders.get(&party.holder).copied(), own);
        let longest = self.lengths().max_by_key(|(party, own)| number(*party, *own));
        let Some((longest, most)) = longest else { return false };
        let own = self.waiting.get(&party).map_or(0, VecDeque::len);
        let fewer = if longest.holder == party.holder {
            own + 1 < most
        } else {
            let of = |party: Party| of_holders.get(&party.holder).copied().unwrap_or(0);
            of(party) + 1 < of(longest)
        };
        if fewer && let Some(requests) = self.waiting.get_mut(&longest) {
            // Its request is refused, because the other half of the channel is gone.
            requests.pop_back();
            self.waiting.retain(|_, requests| !requests.is_empty());
        }
        fewer
    }

    /// Ends a place; it belongs to the returned party now, if any.
    fn release(&mut self, party: Party) -> Option<(Party, oneshot::Sender<Admitted>)> {
        let of_holders = by_holder(self.held.iter().map(|(party, held)| (*party, *held)));
        let turn = |party: Party, requests: &VecDeque<Waiting>| {
            let of_holder = of_holders.get(&party.holder).copied();
            let held = self.held.get(&party).copied();
            (of_holder, held, requests.front().map(|it| it.ticket))
        };
        // The place that ends still counts, so parties with one place take turns.
        let next = self.waiting.iter().min_by_key(|(party, requests)| turn(**party, requests));
        let next = next.map(|(party, _)| *party);
        if let Some(held) = self.held.get_mut(&party) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(&party);
            }
        }
        let Some(party) = next else {
            self.free += 1;
            return None;
        };
        let waiting = self.remove(party, VecDeque::pop_front)?;
        *self.held.entry(party).or_default() += 1;
        Some((party, waiting.place))
    }

    /// Removes one of a party's requests.
    fn remove(
        &mut self,
        party: Party,
        which: impl FnOnce(&mut VecDeque<Waiting>) -> Option<Waiting>,
    ) -> Option<Waiting> {
        let requests = self.waiting.get_mut(&party)?;
        let removed = which(requests);
        if requests.is_empty() {
            self.waiting.remove(&party);
        }
        removed
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
        let mut line = locked(self.line);
        let _left = line.remove(self.party, |requests| {
            let at = requests.iter().position(|it| it.ticket == self.ticket)?;
            requests.remove(at)
        });
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
        let (ticket, place) = {
            let mut line = locked(&self.line);
            if line.free > 0 {
                line.free -= 1;
                *line.held.entry(party).or_default() += 1;
                return Some(Admitted { line: self.line.clone(), party });
            }
            let in_line: usize = line.lengths().map(|(_, requests)| requests).sum();
            if in_line >= self.longest && !line.makes_room_for(party) {
                return None;
            }
            let ticket = line.next_ticket;
            line.next_ticket += 1;
            let (sender, receiver) = oneshot::channel();
            line.waiting.entry(party).or_default().push_back(Waiting { ticket, place: sender });
            (ticket, receiver)
        };
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
        locked(&self.line).lengths().map(|(_, requests)| requests).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;

    use proptest::prelude::*;
    use signalbox_domain::ids::OrgId;
    use uuid::Uuid;

    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    fn party(org: u128, token: u128) -> Party {
        let holder = Holder::Organization(OrgId(Uuid::from_u128(org)));
        Party { holder, token: Some(TokenId(Uuid::from_u128(token))) }
    }

    type Entering<'a> = Pin<Box<dyn Future<Output = Option<Admitted>> + 'a>>;

    fn enters(gate: &Gate, party: Party) -> Entering<'_> {
        Box::pin(gate.enter(party))
    }

    /// `None`: it waits.
    async fn polled(entering: &mut Entering<'_>) -> Option<Option<Admitted>> {
        match futures_util::poll!(entering) {
            std::task::Poll::Ready(result) => Some(result),
            std::task::Poll::Pending => None,
        }
    }

    async fn taken(gate: &Gate, party: Party) -> Admitted {
        polled(&mut enters(gate, party)).await.flatten().expect("a free place")
    }

    #[tokio::test]
    async fn a_greedy_organization_delays_only_itself() {
        let gate = Gate::new(4, HOUR);
        let (greedy, honest) = (party(1, 1), party(2, 2));
        let mut places = Vec::new();
        for _ in 0..4 {
            places.push(taken(&gate, greedy).await);
        }
        let mut queued: Vec<_> = (0..4).map(|_| enters(&gate, greedy)).collect();
        for entering in &mut queued {
            assert!(polled(entering).await.is_none());
        }
        assert!(polled(&mut enters(&gate, greedy)).await.expect("an answer").is_none());

        let mut first = enters(&gate, honest);
        assert!(polled(&mut first).await.is_none(), "it waits");
        let last = queued.last_mut().expect("four");
        assert!(polled(last).await.expect("an answer").is_none(), "its last request is refused");
        places.pop();
        let first = polled(&mut first).await.flatten().expect("the next place");
        assert!(polled(&mut queued[0]).await.is_none());
        drop(first);
        assert!(polled(&mut queued[0]).await.flatten().is_some(), "now it is its turn");
    }

    #[tokio::test]
    async fn a_greedy_token_delays_others_of_its_organization_least() {
        let gate = Gate::new(2, HOUR);
        let (greedy, honest) = (party(1, 1), party(1, 2));
        let place = taken(&gate, greedy).await;
        let _other = taken(&gate, greedy).await;
        let mut queued = [enters(&gate, greedy), enters(&gate, greedy)];
        for entering in &mut queued {
            assert!(polled(entering).await.is_none());
        }
        let mut waiting = enters(&gate, honest);
        assert!(polled(&mut waiting).await.is_none());
        assert!(polled(&mut queued[1]).await.expect("an answer").is_none());
        drop(place);
        assert!(polled(&mut waiting).await.flatten().is_some());
    }

    /// An organization with many tokens is one party: its tokens do not take a share each.
    #[tokio::test]
    async fn many_tokens_have_the_share_of_one_organization() {
        let gate = Gate::new(4, HOUR);
        let mut places = Vec::new();
        for token in 0..4 {
            places.push(taken(&gate, party(1, token)).await);
        }
        let mut queued: Vec<_> = (4..8).map(|token| enters(&gate, party(1, token))).collect();
        for entering in &mut queued {
            assert!(polled(entering).await.is_none());
        }
        let mut honest = enters(&gate, party(2, 9));
        assert!(polled(&mut honest).await.is_none());
        places.pop();
        let _place = polled(&mut honest).await.flatten().expect("the next place");
        assert_eq!(gate.waiting(), 3);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Enter(u128, u128),
        Leave(usize),
        GiveUp(usize),
        Look(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (0..3_u128, 0..2_u128).prop_map(|(org, token)| Step::Enter(org, token)),
            2 => any::<usize>().prop_map(Step::Leave),
            1 => any::<usize>().prop_map(Step::GiveUp),
            1 => any::<usize>().prop_map(Step::Look),
        ];
        prop::collection::vec(step, 0..60)
    }

    proptest! {
        /// No place is lost or given twice, and none is free while a request waits.
        #[test]
        fn every_place_is_used_once(most in 1..5_usize, steps in steps()) {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                let gate = Gate::new(most, HOUR);
                let (mut places, mut waiting) = (Vec::new(), Vec::<Entering<'_>>::new());
                for step in steps {
                    match step {
                        Step::Enter(org, token) => {
                            let mut entering = enters(&gate, party(org, 10 * org + token));
                            match polled(&mut entering).await {
                                Some(place) => places.extend(place),
                                None => waiting.push(entering),
                            }
                        }
                        Step::Leave(at) if !places.is_empty() => {
                            places.swap_remove(at % places.len());
                        }
                        Step::GiveUp(at) if !waiting.is_empty() => {
                            drop(waiting.swap_remove(at % waiting.len()));
                        }
                        Step::Look(at) if !waiting.is_empty() => {
                            let at = at % waiting.len();
                            if let Some(place) = polled(&mut waiting[at]).await {
                                drop(waiting.swap_remove(at));
                                places.extend(place);
                            }
                        }
                        Step::Leave(_) | Step::GiveUp(_) | Step::Look(_) => {}
                    }
                    let line = locked(&gate.line);
                    let held: usize = line.held.values().sum();
                    assert_eq!(held + line.free, most);
                    assert!(held >= places.len(), "a place is in use that is not counted");
                    assert!(line.free == 0 || line.waiting.is_empty(), "a place is free");
                    assert!(line.lengths().map(|it| it.1).sum::<usize>() <= most, "the line is too long");
                    assert!(line.lengths().all(|it| it.1 > 0) && line.held.values().all(|it| *it > 0));
                }
                drop(waiting);
                drop(places);
                assert_eq!((gate.free(), gate.waiting()), (most, 0));
                assert!(locked(&gate.line).held.is_empty());
            });
        }
    }
}
