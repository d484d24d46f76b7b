//! What holds for all bytes.

use std::ops::ControlFlow;

use proptest::prelude::*;
use signalbox_reports::bundle::internal::Report;
use signalbox_reports::bundle::{self, BundleLimits, Member};

use super::builder::packed;
use super::{XML, plain, read};

proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        drop(read(&bytes));
        drop(read(&packed(&bytes[..])));
        drop(Report::parse(bytes));
    }

    #[test]
    fn no_damage_panics(at in 0_usize..6_000, byte in any::<u8>()) {
        let mut archive = plain().file("internal.bin", [0x0a, 0]).file("junit/0", XML).archive();
        let at = at % archive.len();
        archive[at] = byte;
        drop(read(&packed(&archive[..])));
    }

    #[test]
    fn members_come_out_as_they_went_in(
        contents in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..3_000), 0..6),
    ) {
        let mut bundle = plain();
        for (index, content) in contents.iter().enumerate() {
            bundle = bundle.file(&format!("junit/{index}"), content);
        }
        let mut found = Vec::new();
        let read = bundle::read(&bundle.packed()[..], &BundleLimits::default(), |member| {
            if let Member::Junit { content, .. } = member {
                let mut bytes = Vec::new();
                content.read_to_end(&mut bytes).expect("a member");
                found.push(bytes);
            }
            ControlFlow::Continue(())
        });
        prop_assert!(read.is_ok());
        prop_assert_eq!(found, contents);
    }
}
