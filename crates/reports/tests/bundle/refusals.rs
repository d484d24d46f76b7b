//! Bundles that break a rule or a limit.

use std::io::Read;
use std::ops::ControlFlow;

use signalbox_reports::bundle::{
    self, BundleError, BundleLimit, BundleLimits, BundleSummary, Member,
};

use super::builder::{ArchiveBuilder, packed};
use super::{META, XML, nothing, plain, read, read_within};

/// Asserts that a limit refuses, with its name.
#[track_caller]
fn assert_over(read: Result<BundleSummary, BundleError>, expected: BundleLimit) {
    match read {
        Err(BundleError::Limit { limit, .. }) => assert_eq!(limit, expected),
        other => panic!("{expected:?} was to be passed, but: {other:?}"),
    }
}

#[test]
fn the_description_comes_first() {
    let found = |bundle: &[u8]| match read(bundle) {
        Err(BundleError::MetaNotFirst { found }) => found,
        other => panic!("was to be refused: {other:?}"),
    };
    assert_eq!(found(&ArchiveBuilder::default().file("junit/0", XML).packed()), "junit/0");
    assert_eq!(found(&ArchiveBuilder::default().packed()), "nothing");
}

#[test]
fn names_that_bundles_do_not_have() {
    for name in [
        "/etc/passwd",
        "../meta.json",
        "junit/../meta.json",
        "./junit/0",
        "junit/",
        "junit/x",
        "junit/+1",
        "junit/00",
        "junit/4294967296",
        "junit/0/1",
        "internal.bin/0",
        "other",
        "META.JSON",
    ] {
        let bundle = plain().file(name, "x").packed();
        match read(&bundle) {
            Err(BundleError::Name { name: found }) => assert_eq!(found, name),
            other => panic!("{name} was to be refused: {other:?}"),
        }
    }
}

#[test]
fn members_that_are_no_files() {
    use tar::EntryType::{
        Char, Directory, Fifo, GNULongName, GNUSparse, Link, Symlink, XGlobalHeader, XHeader,
    };
    for kind in
        [Link, Symlink, Directory, Char, Fifo, GNULongName, GNUSparse, XHeader, XGlobalHeader]
    {
        let bundle = plain().entry("junit/0", b"meta.json", kind, None).packed();
        let read = read(&bundle);
        assert!(matches!(read, Err(BundleError::NotAFile { .. })), "{kind:?}: {read:?}");
    }
}

#[test]
fn the_same_name_twice() {
    let bundle = plain().file("junit/0", XML).file("junit/0", XML).packed();
    assert!(matches!(read(&bundle), Err(BundleError::Duplicate { name }) if name == "junit/0"));
    let bundle = plain().file("meta.json", META).packed();
    assert!(matches!(read(&bundle), Err(BundleError::Duplicate { .. })));
}

#[test]
fn limits_of_size() {
    let bundle = plain().file("junit/0", "x".repeat(1_000_000)).packed();
    let limits = BundleLimits::default();
    let compressed = BundleLimits { compressed: 100, ..limits };
    assert_over(read_within(&bundle, compressed), BundleLimit::Compressed);
    let unpacked = BundleLimits { unpacked: 900_000, ..limits };
    assert_over(read_within(&bundle, unpacked), BundleLimit::Unpacked);
    let ratio = BundleLimits { ratio_free: 100_000, ..limits };
    assert_over(read_within(&bundle, ratio), BundleLimit::Ratio);
    let member = BundleLimits { member: 999_999, ..limits };
    assert_over(read_within(&bundle, member), BundleLimit::Member);
    let meta = BundleLimits { meta: 100, ..limits };
    assert_over(read_within(&bundle, meta), BundleLimit::Member);
    let members = BundleLimits { members: 1, ..limits };
    assert_over(read_within(&bundle, members), BundleLimit::Members);
    assert!(read_within(&bundle, limits).is_ok());
}

#[test]
fn a_limit_exceeded_inside_a_member_is_reported() {
    let bundle = plain().file("junit/0", "x".repeat(1_000_000)).packed();
    let limits = BundleLimits { unpacked: 900_000, ..BundleLimits::default() };
    let mut failed = false;
    let read = bundle::read(&bundle[..], &limits, |member| {
        if let Member::Junit { content, .. } = member {
            failed = std::io::copy(content, &mut std::io::sink()).is_err();
        }
        ControlFlow::Continue(())
    });
    assert_over(read, BundleLimit::Unpacked);
    assert!(failed);
}

#[test]
fn bombs_end_early() {
    // 64 GiB of zeros behind the archive, and a member that claims to be that large.
    let zeros = packed(std::io::repeat(0).take(64 << 20));
    let mut bundle = plain().packed();
    for _ in 0..1_000 {
        bundle.extend_from_slice(&zeros);
    }
    assert_over(read(&bundle), BundleLimit::Ratio);
    let claim = plain().entry("junit/0", b"", tar::EntryType::Regular, Some(64 << 30)).packed();
    assert_over(read(&claim), BundleLimit::Member);
    let claim = ArchiveBuilder::default()
        .entry("meta.json", b"{", tar::EntryType::Regular, Some(1 << 20))
        .packed();
    assert!(matches!(read(&claim), Err(BundleError::Truncated | BundleError::Meta(_))));
}

#[test]
fn a_window_that_is_too_large_is_refused() {
    let archive = plain().archive();
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(27).unwrap();
    std::io::Write::write_all(&mut encoder, &archive).unwrap();
    let bundle = encoder.finish().unwrap();
    assert!(matches!(read(&bundle), Err(BundleError::Corrupt { .. })));
    let limits = BundleLimits { window_log: 27, ..BundleLimits::default() };
    assert!(read_within(&bundle, limits).is_ok());
}

#[test]
fn a_bundle_that_was_cut_short_is_noticed_wherever() {
    let bundle = plain().file("junit/0", XML).packed();
    for length in 0..bundle.len() {
        let read = read(&bundle[..length]);
        assert!(read.is_err(), "{length} of {} bytes: {read:?}", bundle.len());
    }
    let half = read(&bundle[..bundle.len() / 2]);
    assert!(matches!(half, Err(BundleError::Truncated)), "{half:?}");
    let archive = plain().archive();
    assert!(matches!(read(&archive), Err(BundleError::Corrupt { .. })));
}

#[test]
fn a_failing_input_is_no_damage() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("gone"))
        }
    }
    let bundle = plain().packed();
    let read = bundle::read((&bundle[..20]).chain(Failing), &BundleLimits::default(), nothing);
    assert!(matches!(read, Err(BundleError::Io(_))), "{read:?}");
}
