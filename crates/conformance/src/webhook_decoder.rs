//! The promises of a webhook decoder. Each property is a function over a world;
//! [`crate::webhook_decoder_conformance`] makes a test of each.

use signalbox_domain::ids::{BranchName, PrNumber, Sha};
use signalbox_domain::ports::{DecodeError, Hint, HostEvent, WebhookDecoder};

/// The most bytes of a delivery's id.
const MAX_ID: usize = 100;

/// Makes one test of each property. The expression gives a world.
#[macro_export]
macro_rules! webhook_decoder_conformance {
    ($fresh:expr) => {
        $crate::webhook_decoder_conformance!(@tests $fresh;
            what_a_delivery_says_is_read,
            a_delivery_has_the_same_id_when_it_comes_again,
            a_body_that_was_changed_is_not_taken,
            a_delivery_of_a_stranger_is_not_taken,
            the_signature_is_checked_before_anything_else,
            a_signed_delivery_that_cannot_be_read_is_malformed,
            an_id_has_at_most_100_bytes,
            what_does_not_matter_gives_no_hint,
        );
    };
    (@tests $fresh:expr; $($name:ident,)+) => {
        $(
            #[test]
            fn $name() {
                $crate::webhook_decoder::$name(&$fresh);
            }
        )+
    };
}

/// A delivery as it comes over the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Headers by lower-case name.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// A decoder, and the host that sends to it. Every delivery is about the repository `acme/calc`.
pub trait DecoderWorld {
    /// The decoder, which shares a secret with the host.
    fn decoder(&self) -> &dyn WebhookDecoder;

    /// A signed delivery with this id that says this. `None` when the host has no such event.
    fn delivery(&self, id: &str, hint: &Hint) -> Option<Delivery>;

    /// A signed delivery about something that no queue needs to know.
    fn irrelevant(&self, id: &str) -> Delivery;

    /// Signs a delivery again, after it was changed.
    fn sign(&self, delivery: &mut Delivery);

    /// Signs a delivery with a secret that the decoder does not share.
    fn sign_as_stranger(&self, delivery: &mut Delivery);
}

fn decode(world: &dyn DecoderWorld, delivery: &Delivery) -> Result<HostEvent, DecodeError> {
    let header = |name: &str| {
        let found = delivery.headers.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.clone())
    };
    world.decoder().decode(&header, &delivery.body)
}

/// One of each.
fn hints() -> [Hint; 6] {
    let sha = Sha::new("a".repeat(40)).expect("a commit");
    let (pr, label, by) = (PrNumber(7), "ready".to_owned(), "ada".to_owned());
    let name = BranchName::new("main").expect("a branch");
    [
        Hint::PullRequest(pr),
        Hint::Branch { name, at: Some(sha.clone()) },
        Hint::Checks(sha),
        Hint::Comment { pr, id: 5 },
        Hint::Labelled { pr, label: label.clone(), by: by.clone() },
        Hint::Unlabelled { pr, label, by },
    ]
}

/// Deliveries of every kind that the host has; at least one.
fn deliveries(world: &dyn DecoderWorld) -> Vec<(Hint, Delivery)> {
    let sent = |hint: Hint| world.delivery("d-1", &hint).map(|it| (hint, it));
    let found: Vec<_> = hints().into_iter().filter_map(sent).collect();
    assert!(!found.is_empty(), "a host that says nothing needs no decoder");
    found
}

/// The id, the repository and what may have happened.
pub fn what_a_delivery_says_is_read(world: &dyn DecoderWorld) {
    for (hint, delivery) in deliveries(world) {
        let event = decode(world, &delivery).unwrap_or_else(|error| panic!("{hint:?}: {error}"));
        assert_eq!(event.id, "d-1", "{hint:?}");
        assert_eq!(event.repository, Some(("acme".to_owned(), "calc".to_owned())), "{hint:?}");
        assert!(!event.event.is_empty(), "{hint:?}");
        assert_eq!(event.hints, [hint]);
    }
}

/// A delivery that is sent again is known by its id.
pub fn a_delivery_has_the_same_id_when_it_comes_again(world: &dyn DecoderWorld) {
    for (hint, delivery) in deliveries(world) {
        assert_eq!(decode(world, &delivery), decode(world, &delivery), "{hint:?}");
        let other = world.delivery("d-2", &hint).expect("the same event");
        assert_eq!(decode(world, &other).map(|it| it.id), Ok("d-2".to_owned()), "{hint:?}");
    }
}

/// The signature is over the bytes as they came: no byte of the body can be changed.
pub fn a_body_that_was_changed_is_not_taken(world: &dyn DecoderWorld) {
    for (hint, delivery) in deliveries(world) {
        for at in 0..delivery.body.len() {
            let mut changed = delivery.clone();
            if let Some(byte) = changed.body.get_mut(at) {
                *byte ^= 1;
            }
            let answer = decode(world, &changed);
            assert_eq!(answer, Err(DecodeError::WrongSignature), "{hint:?}, byte {at}");
        }
        let mut longer = delivery;
        longer.body.push(b' ');
        assert_eq!(decode(world, &longer), Err(DecodeError::WrongSignature), "{hint:?}, longer");
    }
}

/// Neither a delivery without headers nor one that is signed with another secret is taken.
pub fn a_delivery_of_a_stranger_is_not_taken(world: &dyn DecoderWorld) {
    for (hint, delivery) in deliveries(world) {
        let unsigned = Delivery { headers: Vec::new(), ..delivery.clone() };
        assert_eq!(decode(world, &unsigned), Err(DecodeError::WrongSignature), "{hint:?}");
        let mut forged = delivery;
        world.sign_as_stranger(&mut forged);
        assert_eq!(decode(world, &forged), Err(DecodeError::WrongSignature), "{hint:?}");
    }
}

/// Of a delivery that a stranger signed nothing is read, so that its content cannot matter.
pub fn the_signature_is_checked_before_anything_else(world: &dyn DecoderWorld) {
    for (hint, mut delivery) in deliveries(world) {
        delivery.body = b"\xff\x00 no delivery".to_vec();
        world.sign_as_stranger(&mut delivery);
        assert_eq!(decode(world, &delivery), Err(DecodeError::WrongSignature), "{hint:?}");
    }
}

/// A host's bad day is an error with words, and no panic.
pub fn a_signed_delivery_that_cannot_be_read_is_malformed(world: &dyn DecoderWorld) {
    for (hint, mut delivery) in deliveries(world) {
        delivery.body = b"\xff\x00 no delivery".to_vec();
        world.sign(&mut delivery);
        let answer = decode(world, &delivery);
        assert!(matches!(answer, Err(DecodeError::Malformed(_))), "{hint:?}: {answer:?}");
        for length in 0..40 {
            let mut cut = world.delivery("d-1", &hint).expect("the same event");
            cut.body.truncate(length);
            world.sign(&mut cut);
            // Whatever is made of it, it is an answer.
            let _answer = decode(world, &cut);
        }
    }
}

/// An id is stored: a longer one is not taken.
pub fn an_id_has_at_most_100_bytes(world: &dyn DecoderWorld) {
    for hint in hints() {
        let longest = "i".repeat(MAX_ID);
        let Some(delivery) = world.delivery(&longest, &hint) else { continue };
        assert_eq!(decode(world, &delivery).map(|it| it.id), Ok(longest), "{hint:?}");
        let longer = world.delivery(&"i".repeat(MAX_ID + 1), &hint).expect("the same event");
        let answer = decode(world, &longer);
        assert!(matches!(answer, Err(DecodeError::Malformed(_))), "{hint:?}: {answer:?}");
    }
}

/// What no queue needs to know is read, and costs no call of the host.
pub fn what_does_not_matter_gives_no_hint(world: &dyn DecoderWorld) {
    let event = decode(world, &world.irrelevant("d-3")).expect("it is read");
    assert_eq!((event.id.as_str(), event.hints), ("d-3", Vec::new()));
}
