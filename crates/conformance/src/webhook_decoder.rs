//! The contract of a webhook decoder. Each property is a function over a [`DecoderWorld`];
//! [`crate::webhook_decoder_conformance`] makes a test of each.

use signalbox_domain::ids::{BranchName, PrNumber, Sha};
use signalbox_domain::ports::{DecodeError, Hint, HostEvent, WebhookDecoder};

/// The most bytes of a delivery's id.
const MAX_ID: usize = 100;

/// Makes one test of each property. The expression creates a world.
#[macro_export]
macro_rules! webhook_decoder_conformance {
    ($fresh:expr) => {
        $crate::webhook_decoder_conformance!(@tests $fresh;
            a_delivery_is_decoded,
            a_redelivery_has_the_same_id,
            a_changed_body_is_rejected,
            a_delivery_with_another_secret_is_rejected,
            the_signature_is_checked_before_anything_else,
            a_signature_is_recognized_without_the_body,
            a_signed_but_invalid_delivery_is_malformed,
            an_id_has_at_most_100_bytes,
            an_irrelevant_event_gives_no_hint,
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

/// A delivery as received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Headers by lower-case name.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// A decoder, and the host that sends to it. Every delivery concerns the repository `acme/calc`.
pub trait DecoderWorld {
    /// The decoder, which shares a secret with the host.
    fn decoder(&self) -> &dyn WebhookDecoder;

    /// A signed delivery with this id for this hint; `None` if the host has no such event.
    fn delivery(&self, id: &str, hint: &Hint) -> Option<Delivery>;

    /// A signed delivery of an event that is irrelevant to queues.
    fn irrelevant(&self, id: &str) -> Delivery;

    /// Signs a delivery again, after it was changed.
    fn sign(&self, delivery: &mut Delivery);

    /// Signs a delivery with a secret that the decoder does not share.
    fn sign_as_stranger(&self, delivery: &mut Delivery);
}

impl Delivery {
    fn header(&self, name: &str) -> Option<String> {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.clone())
    }
}

fn decode(world: &dyn DecoderWorld, delivery: &Delivery) -> Result<HostEvent, DecodeError> {
    world.decoder().decode(&|name| delivery.header(name), &delivery.body)
}

/// One hint of each kind.
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

/// One delivery of every kind that the host has; at least one.
fn deliveries(world: &dyn DecoderWorld) -> Vec<(Hint, Delivery)> {
    let sent = |hint: Hint| world.delivery("d-1", &hint).map(|it| (hint, it));
    let found: Vec<_> = hints().into_iter().filter_map(sent).collect();
    assert!(!found.is_empty(), "a decoder needs at least one kind of delivery");
    found
}

/// The id, the repository and the hint are decoded.
pub fn a_delivery_is_decoded(world: &dyn DecoderWorld) {
    for (hint, delivery) in deliveries(world) {
        let event = decode(world, &delivery).unwrap_or_else(|error| panic!("{hint:?}: {error}"));
        assert_eq!(event.id, "d-1", "{hint:?}");
        assert_eq!(event.repository, Some(("acme".to_owned(), "calc".to_owned())), "{hint:?}");
        assert!(!event.event.is_empty(), "{hint:?}");
        assert_eq!(event.hints, [hint]);
    }
}

/// A redelivery has the same id.
pub fn a_redelivery_has_the_same_id(world: &dyn DecoderWorld) {
    for (hint, delivery) in deliveries(world) {
        assert_eq!(decode(world, &delivery), decode(world, &delivery), "{hint:?}");
        let other = world.delivery("d-2", &hint).expect("the same event");
        assert_eq!(decode(world, &other).map(|it| it.id), Ok("d-2".to_owned()), "{hint:?}");
    }
}

/// The signature covers the raw bytes: no byte of the body can be changed.
pub fn a_changed_body_is_rejected(world: &dyn DecoderWorld) {
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

/// A delivery without headers or with the signature of another secret is rejected.
pub fn a_delivery_with_another_secret_is_rejected(world: &dyn DecoderWorld) {
    for (hint, delivery) in deliveries(world) {
        let unsigned = Delivery { headers: Vec::new(), ..delivery.clone() };
        assert_eq!(decode(world, &unsigned), Err(DecodeError::WrongSignature), "{hint:?}");
        let mut forged = delivery;
        world.sign_as_stranger(&mut forged);
        assert_eq!(decode(world, &forged), Err(DecodeError::WrongSignature), "{hint:?}");
    }
}

/// A delivery with a wrong signature is not parsed, so that its content cannot matter.
pub fn the_signature_is_checked_before_anything_else(world: &dyn DecoderWorld) {
    for (hint, mut delivery) in deliveries(world) {
        delivery.body = b"\xff\x00 no delivery".to_vec();
        world.sign_as_stranger(&mut delivery);
        assert_eq!(decode(world, &delivery), Err(DecodeError::WrongSignature), "{hint:?}");
    }
}

/// Whether a delivery is signed at all shows in its headers, whatever the secret is.
pub fn a_signature_is_recognized_without_the_body(world: &dyn DecoderWorld) {
    let has = |delivery: &Delivery| world.decoder().has_signature(&|name| delivery.header(name));
    for (hint, mut delivery) in deliveries(world) {
        assert!(has(&delivery), "{hint:?}");
        world.sign_as_stranger(&mut delivery);
        assert!(has(&delivery), "{hint:?}, signed with another secret");
        delivery.headers.clear();
        assert!(!has(&delivery), "{hint:?}, without headers");
    }
}

/// A malformed delivery is an error and no panic.
pub fn a_signed_but_invalid_delivery_is_malformed(world: &dyn DecoderWorld) {
    for (hint, mut delivery) in deliveries(world) {
        delivery.body = b"\xff\x00 no delivery".to_vec();
        world.sign(&mut delivery);
        let answer = decode(world, &delivery);
        assert!(matches!(answer, Err(DecodeError::Malformed(_))), "{hint:?}: {answer:?}");
        for length in 0..40 {
            let mut cut = world.delivery("d-1", &hint).expect("the same event");
            cut.body.truncate(length);
            world.sign(&mut cut);
            // Any result is fine, but no panic.
            let _answer = decode(world, &cut);
        }
    }
}

/// Ids are stored, so a longer one is rejected.
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

/// An irrelevant event is decoded without hints, and causes no call to the host.
pub fn an_irrelevant_event_gives_no_hint(world: &dyn DecoderWorld) {
    let event = decode(world, &world.irrelevant("d-3")).expect("it is decoded");
    assert_eq!((event.id.as_str(), event.hints), ("d-3", Vec::new()));
}
