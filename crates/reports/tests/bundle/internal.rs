//! Protobuf messages in bundles.

use std::ops::ControlFlow;

use signalbox_reports::bundle::internal::{
    BazelBuild, InternalError, Report, RunStatus, TestCaseRun, Timestamp, WireError,
};
use signalbox_reports::junit;
use time::macros::datetime;

use super::builder::message;

fn run(name: &str) -> TestCaseRun {
    let status = RunStatus::Failure.into();
    TestCaseRun { name: name.into(), status, ..TestCaseRun::default() }
}

fn encoded(run: &TestCaseRun) -> Vec<u8> {
    prost::Message::encode_to_vec(run)
}

fn names(report: &Report) -> Vec<(String, Option<String>)> {
    let mut names = Vec::new();
    let answer = report.each(|result, run| {
        names.push((run.name, result.bazel.as_ref().map(|it| it.label.clone())));
        ControlFlow::Continue(())
    });
    assert_eq!(answer.expect("a report"), ControlFlow::Continue(()));
    names
}

#[test]
fn messages_of_both_shapes() {
    let bazel = BazelBuild { label: "//a:b".into(), result: 4, ..Default::default() };
    let bazel = prost::Message::encode_to_vec(&bazel);
    let one = message(&[(1, &encoded(&run("a"))), (1, &encoded(&run("b"))), (3, &bazel)]);
    let two = message(&[(1, &encoded(&run("c")))]);
    let uploader = message(&[(1, b"1.2"), (2, b"rspec")]);
    let report = Report::parse(message(&[(1, &one), (1, &two), (2, &uploader)])).expect("valid");
    let label = || Some("//a:b".to_owned());
    let expected = [("a".into(), label()), ("b".into(), label()), ("c".into(), None)];
    assert_eq!(names(&report), expected);
    assert_eq!(report.uploader().map(|it| it.origin.as_str()), Some("rspec"));

    for name in ["a", "test_x", "A12345678", "\u{1}\u{0}", "Zebra"] {
        let bare = Report::parse(message(&[(1, &encoded(&run(name))), (2, &uploader)]));
        let bare = bare.expect("valid");
        assert_eq!(names(&bare), [(name.to_owned(), None)]);
        assert_eq!(bare.uploader().map(|it| it.version.as_str()), Some("1.2"));
    }
    assert_eq!(Report::parse(Vec::new()).expect("valid").runs(), 0);
}

#[test]
fn times_of_runs() {
    let at = |seconds, nanos| Some(Timestamp { seconds, nanos });
    let timed = |started_at, finished_at| TestCaseRun { started_at, finished_at, ..run("a") };
    let carry = timed(at(1_700_000_000, 900_000_000), at(1_700_000_000, 1_400_000_000));
    assert_eq!(carry.started(), Some(datetime!(2023-11-14 22:13:20.9 UTC)));
    assert_eq!(carry.duration(), Some(std::time::Duration::from_millis(500)));
    let unknown = timed(at(0, 0), at(2, 500_000_000));
    assert_eq!(
        (unknown.started(), unknown.duration().map(|it| it.as_millis())),
        (None, Some(2500))
    );
    assert_eq!((run("a").started(), run("a").duration()), (None, None));
    assert_eq!(timed(at(5, 0), at(4, 0)).duration(), None);
    assert_eq!(timed(at(i64::MAX, 0), at(i64::MIN, 0)).started(), None);
}

#[test]
fn messages_that_are_refused() {
    let wire = |bytes: &[u8]| match Report::parse(bytes.to_vec()) {
        Err(InternalError::Wire(error)) => error,
        other => panic!("was to be refused: {other:?}"),
    };
    assert_eq!(wire(&[0x0a, 5, 1]), WireError::Truncated);
    assert_eq!(wire(&[0x0b]), WireError::Key);
    assert_eq!(wire(&[0]), WireError::Key);
    assert_eq!(wire(&[0xff; 11]), WireError::Number);
    let long = run(&"x".repeat(1024 * 1024));
    let long = Report::parse(message(&[(1, &message(&[(1, &encoded(&long))]))]));
    assert!(matches!(long, Err(InternalError::Limit { .. })));
    // Millions of empty runs in few bytes.
    let many = Report::parse(message(&[(1, &[0x0a, 0].repeat(1_000_001))]));
    assert!(matches!(many, Err(InternalError::Limit { .. })));
}

#[test]
fn messages_and_files_give_one_id() {
    let xml = r#"<testsuite name="s"><testsuite name="t"><testcase name="a" classname="c"
        file="f.py" id="trunk:x"/></testsuite></testsuite>"#;
    let run = TestCaseRun {
        id: "trunk:x".into(),
        classname: "c".into(),
        file: "f.py".into(),
        parent_name: "s".into(),
        ..run("a")
    };
    let mut keys = 0;
    let read = junit::read(xml.as_bytes(), &junit::Limits::default(), |case| {
        for variant in ["", "unix"] {
            let key = case.key("acme", "example.com/acme/widgets", variant);
            assert_eq!(key, run.key("acme", "example.com/acme/widgets", variant));
            keys += 1;
        }
        ControlFlow::Continue(())
    });
    assert_eq!((read.expect("a report").cases, keys), (1, 2));
}
