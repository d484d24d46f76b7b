//! Members and the description, read.

use std::io::Read;
use std::ops::ControlFlow;

use signalbox_reports::bundle::internal::TestCaseRun;
use signalbox_reports::bundle::{self, BundleError, BundleLimits, Generation, Member, Meta};
use signalbox_reports::junit::{self, Limits};

use super::builder::{ArchiveBuilder, message};
use super::{META, XML, plain, read};

fn meta(json: &str) -> Result<Meta, BundleError> {
    let bundle = ArchiveBuilder::default().file("meta.json", json).packed();
    let mut found = None;
    bundle::read(&bundle[..], &BundleLimits::default(), |member| {
        if let Member::Meta(meta) = member {
            found = Some(*meta);
        }
        ControlFlow::Continue(())
    })?;
    Ok(found.expect("a meta.json"))
}

#[test]
fn every_member_is_delivered_in_order() {
    let run = TestCaseRun { name: "a".into(), parent_name: "s".into(), ..Default::default() };
    let bundle = plain()
        .file(
            "internal.bin",
            message(&[(1, &message(&[(1, &prost::Message::encode_to_vec(&run))]))]),
        )
        .file("junit/0", XML)
        .file("internal/1", "")
        .file("CODEOWNERS", "* @acme/a\n")
        .file("bazel_bep.json", "{}{}")
        .packed();
    let mut seen = Vec::new();
    let text = |content: &mut dyn Read| {
        let mut text = String::new();
        content.read_to_string(&mut text).expect("a text");
        text
    };
    let summary = bundle::read(&bundle[..], &BundleLimits::default(), |member| {
        seen.push(match member {
            Member::Meta(meta) => format!("meta {}", meta.repo.repo),
            Member::Internal { index, report } => {
                format!("internal {index:?} {}", report.expect("a report").runs())
            }
            Member::Junit { index, content } => {
                let limits = Limits::default();
                let read = junit::read(content, &limits, |_| ControlFlow::Continue(()));
                format!("junit {index} {}", read.expect("a report").cases)
            }
            Member::Codeowners(content) => format!("owners {}", text(content)),
            Member::BazelEvents(content) => format!("bazel {}", text(content)),
        });
        ControlFlow::Continue(())
    });
    assert_eq!(
        seen,
        [
            "meta example.com/acme/widgets",
            "internal None 1",
            "junit 0 2",
            "internal Some(1) 0",
            "owners * @acme/a\n",
            "bazel {}{}",
        ]
    );
    let summary = summary.expect("a bundle");
    assert_eq!((summary.members, summary.stopped), (6, false));
    assert_eq!(summary.compressed, u64::try_from(bundle.len()).unwrap());
}

#[test]
fn unread_content_is_skipped() {
    let bundle = plain().file("junit/0", "x".repeat(100_000)).file("junit/1", XML).packed();
    assert_eq!(read(&bundle).expect("a bundle").members, 3);
    let stopped = bundle::read(&bundle[..], &BundleLimits::default(), |_| ControlFlow::Break(()));
    let stopped = stopped.expect("a bundle");
    assert_eq!((stopped.members, stopped.stopped), (1, true));
}

#[test]
fn generations_of_the_description() {
    let oldest = meta(META).expect("a description");
    assert_eq!(oldest.generation(), Generation::First);
    assert_eq!(
        oldest.file_sets[0].files[0].last_modified_epoch_ns,
        Some(1_700_000_000_123_456_789)
    );
    assert_eq!(oldest.quarantined_tests[0].parent_name, "s");
    let mut fields = String::new();
    for (more, expected) in [
        (r#""num_files": 1, "num_tests": 2"#, Generation::V0_5_34),
        (r#""command_line": "x", "trunk_envs": {"A": "b"}"#, Generation::V0_6_2),
        (r#""variant": "unix""#, Generation::V0_7_6),
        (r#""internal_bundled_file": {"path": "internal.bin"}"#, Generation::V0_7_7),
        (r#""failed_tests": []"#, Generation::V0_7_8),
    ] {
        fields = format!("{fields}{more}, ");
        let json = META.replacen('{', &format!("{{{fields}"), 1);
        assert_eq!(meta(&json).expect("a description").generation(), expected);
    }
}

#[test]
fn a_password_in_the_remote_is_not_kept() {
    let meta = meta(META).expect("a description");
    assert_eq!(meta.repo.repo_url, "https://example.com/acme/widgets.git");
    assert!(!format!("{meta:?}").contains("secret"));
}

#[test]
fn an_invalid_description_names_the_field() {
    let invalid = |json: &str| match meta(json) {
        Err(BundleError::Meta(invalid)) => (invalid.path, invalid.rule),
        other => panic!("was to be refused: {other:?}"),
    };
    let (path, rule) = invalid(&META.replace(r#""host""#, r#""ghost""#));
    assert_eq!(path, "repo.repo");
    assert!(rule.contains("missing field `host`"), "{rule}");
    assert_eq!(invalid(&META.replace(r#""junit/0""#, "7")).0, "file_sets[0].files[0].path");
    assert_eq!(invalid("").0, ".");
    let variables: Vec<String> = (0..10_001).map(|at| format!("\"v{at}\": \"\"")).collect();
    let long = format!("{{\"trunk_envs\": {{{}}},", variables.join(","));
    let (path, rule) = invalid(&META.replacen('{', &long, 1));
    assert!(path.starts_with("trunk_envs") && rule.contains("at most 10000"), "{path}: {rule}");
    let tests = vec![r#"{"name": "", "id": ""}"#; 250_001].join(",");
    let (path, rule) = invalid(&META.replacen('{', &format!("{{\"failed_tests\": [{tests}],"), 1));
    assert!(path.starts_with("failed_tests") && rule.contains("at most 250000"), "{path}: {rule}");
    assert_eq!(invalid(&format!("{META} 1")).0, ".");
}

#[test]
fn a_message_that_cannot_be_read_leaves_the_bundle_readable() {
    let bundle = plain().file("internal.bin", [0x0b; 200]).file("junit/0", XML).packed();
    let limits = BundleLimits { internal: 100, ..BundleLimits::default() };
    for limits in [limits, BundleLimits::default()] {
        let mut refused = false;
        let summary = bundle::read(&bundle[..], &limits, |member| {
            if let Member::Internal { report, .. } = member {
                refused = report.is_err();
            }
            ControlFlow::Continue(())
        });
        assert_eq!((summary.expect("a bundle").members, refused), (3, true));
    }
}
