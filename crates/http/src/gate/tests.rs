//! Tests of the fair line.

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

/// A refused party has nearly as many requests in the line as each other party of its kind.
fn assert_is_fair_to(line: &Line, party: Party) {
    for other in line.waiting.keys() {
        for (own, others) in party.levels().into_iter().zip(other.levels()) {
            let most = line.queued.of(own) + 1;
            assert!(line.queued.of(others) <= most, "{party:?} is refused for {other:?}: {line:?}");
            if own != others {
                break;
            }
        }
    }
}

/// Organizations with two tokens each, and two addresses.
fn drawn(org: u128, token: u128) -> Party {
    match u8::try_from(token) {
        Ok(last) if org == 0 => Party::at([203, 0, 113, last].into()),
        _ => party(org, 10 * org + token),
    }
}

/// Two greedy organizations fill the line. Another token of either gets into it.
#[tokio::test]
async fn a_token_is_not_refused_for_another_of_its_organization() {
    for org in [1, 2] {
        let gate = Gate::new(4, HOUR);
        let mut places = Vec::new();
        for _ in 0..4 {
            places.push(taken(&gate, party(1, 1)).await);
        }
        let mut queued: Vec<_> =
            [1, 1, 2, 2].into_iter().map(|it| enters(&gate, party(it, it))).collect();
        for entering in &mut queued {
            assert!(polled(entering).await.is_none());
        }
        let mut other = enters(&gate, party(org, 3));
        assert!(polled(&mut other).await.is_none(), "organization {org}: it waits");
    }
}

/// However many addresses strangers have, together they are one side.
#[tokio::test]
async fn many_addresses_do_not_keep_a_token_from_the_line() {
    let gate = Gate::new(4, HOUR);
    let stranger = |last: u8| Party::at([203, 0, 113, last].into());
    let mut places = Vec::new();
    for number in 0..4 {
        places.push(taken(&gate, stranger(number)).await);
    }
    let mut queued: Vec<_> = (4..8).map(|number| enters(&gate, stranger(number))).collect();
    for entering in &mut queued {
        assert!(polled(entering).await.is_none());
    }
    assert!(polled(&mut enters(&gate, stranger(9))).await.expect("an answer").is_none());
    let mut first = enters(&gate, party(1, 1));
    let mut second = enters(&gate, party(1, 2));
    assert!(polled(&mut first).await.is_none() && polled(&mut second).await.is_none());
    places.pop();
    let _first = polled(&mut first).await.flatten().expect("the next place");
    places.pop();
    let _second = polled(&mut second).await.flatten().expect("the next place, too");
    assert_eq!(gate.waiting(), 2);
}

/// An organization with several tokens and one with a single token have equal turns.
#[tokio::test]
async fn organizations_take_turns_however_many_tokens_they_have() {
    let gate = Gate::new(2, HOUR);
    let mut places = vec![taken(&gate, party(1, 1)).await, taken(&gate, party(2, 9)).await];
    let mut single = enters(&gate, party(2, 9));
    assert!(polled(&mut single).await.is_none());
    let mut fresh = enters(&gate, party(1, 2));
    assert!(polled(&mut fresh).await.is_none());
    places.pop();
    assert!(polled(&mut fresh).await.is_none(), "both have one place, and it came later");
    assert!(polled(&mut single).await.flatten().is_some());
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
    /// No place is lost or given twice, none is free while a request waits, and a party is refused only
    /// if the line has no more requests of others.
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
                        let party = drawn(org, token);
                        let mut entering = enters(&gate, party);
                        match polled(&mut entering).await {
                            Some(Some(place)) => places.push(place),
                            Some(None) => assert_is_fair_to(&locked(&gate.line), party),
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
                let held = line.held.of_all();
                assert_eq!(held + line.free, most);
                assert!(held >= places.len(), "a place is in use that is not counted");
                assert!(line.free == 0 || line.waiting.is_empty(), "a place is free");
                let waits: usize = line.waiting.values().map(VecDeque::len).sum();
                assert!(waits <= most, "the line is too long");
                assert_eq!(waits, line.queued.of_all());
                assert!(line.waiting.values().all(|requests| !requests.is_empty()));
            }
            drop(waiting);
            drop(places);
            assert_eq!((gate.free(), gate.waiting()), (most, 0));
            let line = locked(&gate.line);
            assert!(line.held.0.is_empty() && line.queued.0.is_empty());
        });
    }
}
