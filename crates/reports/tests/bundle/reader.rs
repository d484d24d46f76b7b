//! The port of the domain: what an upload's files report together.

use futures_util::FutureExt;
use prost::Message;
use signalbox_domain::flaky::{RunOutcome, UploadSource};
use signalbox_domain::ports::{ReadError, ReportFile, ReportReader};
use signalbox_domain::upload::FoundReport;
use signalbox_reports::Reports;
use signalbox_reports::bundle::BundleLimits;
use signalbox_reports::bundle::internal::{CodeOwner, RunStatus, TestCaseRun};

use super::builder::{ArchiveBuilder, message};
use super::{META, plain};

const FLAKY: &str = r#"<testsuite name="s"><testcase name="a" file="a.py">
    <flakyFailure message="once"/></testcase><testcase name="b"><failure message="m">t</failure>
    </testcase></testsuite>"#;

fn read_with(source: UploadSource, files: Vec<(&str, Vec<u8>)>) -> Result<FoundReport, ReadError> {
    let files = files.into_iter().map(|(name, content)| ReportFile {
        name: name.to_owned(),
        content: Box::new(std::io::Cursor::new(content)),
    });
    let reports = Reports::new(BundleLimits::default());
    // It never waits, so one look is enough.
    reports.read(source, files.collect(), 1_000).now_or_never().expect("an immediate answer")
}

fn bundle(archive: &ArchiveBuilder) -> Result<FoundReport, ReadError> {
    read_with(UploadSource::Bundle, vec![("bundle.tar.zst", archive.packed())])
}

fn internal(runs: &[TestCaseRun]) -> Vec<u8> {
    let runs: Vec<Vec<u8>> = runs.iter().map(Message::encode_to_vec).collect();
    let fields: Vec<(u8, &[u8])> = runs.iter().map(|run| (1, run.as_slice())).collect();
    message(&[(1, &message(&fields))])
}

fn failed(name: &str) -> TestCaseRun {
    TestCaseRun {
        name: name.into(),
        parent_name: "s".into(),
        status: RunStatus::Failure.into(),
        is_quarantined: true,
        codeowners: vec![CodeOwner { name: "@acme/b".into() }],
        ..Default::default()
    }
}

#[test]
fn xml_gives_the_attempts_and_the_message_the_rest() {
    let archive = plain()
        .file("internal.bin", internal(&[failed("b"), failed("only here")]))
        .file("junit/0", FLAKY);
    let found = bundle(&archive).expect("read");
    let runs: Vec<(&str, RunOutcome, bool)> =
        found.runs.iter().map(|it| (it.name.as_str(), it.outcome, it.quarantined)).collect();
    assert_eq!(
        runs,
        [
            ("a", RunOutcome::Failed, false),
            ("a", RunOutcome::Passed, false),
            ("b", RunOutcome::Failed, true),
            ("only here", RunOutcome::Failed, true),
        ]
    );
    assert_eq!(found.runs[0].owners, ["@acme/a"], "of the file");
    assert_eq!(found.runs[2].owners, ["@acme/b"], "of the case");
    let failure = found.runs[2].failure.as_ref().expect("a failure");
    assert_eq!((failure.message.as_str(), failure.text.as_str()), ("m", "t"));
    let meta = found.meta.expect("a description");
    assert_eq!((meta.sha.as_str(), meta.branch.as_str()), ("0123456789abcdef", "refs/heads/main"));
    assert!(meta.excused.contains("i"));
}

#[test]
fn without_xml_the_message_is_all_and_without_a_message_the_xml() {
    let found = bundle(&plain().file("internal.bin", internal(&[failed("b")]))).expect("read");
    assert_eq!(found.runs.len(), 1);
    let broken = plain().file("internal.bin", "\u{7}nonsense").file("junit/0", FLAKY);
    let found = bundle(&broken).expect("read");
    assert_eq!(found.runs.len(), 3);
    assert!(found.files[0].problem.is_some() && found.files[1].problem.is_none());
}

/// A message that every failure has, or the kind of an exception, must not make all of them one
/// cluster.
#[test]
fn a_failure_has_its_most_specific_text() {
    let xml = r#"<testsuite name="s"><testcase name="a"><failure message="Failed" type="">got 3</failure>
        </testcase><testcase name="b"><failure type="AssertionError">expected 2</failure></testcase>
        <testcase name="c"><error type="IOException"/></testcase>
        <testcase name="d"><failure message="Failed"/></testcase>
        <testcase name="e"><failure message="boom" type="T">trace</failure></testcase></testsuite>"#;
    let found = read_with(UploadSource::JUnit, vec![("a.xml", xml.into())]).expect("read");
    let told: Vec<(&str, &str)> = found
        .runs
        .iter()
        .map(|it| it.failure.as_ref().expect("a failure"))
        .map(|it| (it.message.as_str(), it.text.as_str()))
        .collect();
    let expected =
        [("", "got 3"), ("", "expected 2"), ("IOException", ""), ("Failed", ""), ("boom", "trace")];
    assert_eq!(told, expected);
}

#[test]
fn both_readings_of_a_case_are_one_test() {
    let blanks = TestCaseRun { parent_name: " s ".into(), ..failed("  b\t") };
    let archive = plain().file("internal.bin", internal(&[blanks])).file("junit/0", FLAKY);
    let runs = bundle(&archive).expect("read").runs;
    let names: Vec<(&str, bool)> =
        runs.iter().map(|it| (it.name.as_str(), it.quarantined)).collect();
    assert_eq!(names, [("a", false), ("a", false), ("b", true)]);
    let long = TestCaseRun { name: format!("  {}", "ü".repeat(5_000)), ..failed("") };
    let runs = bundle(&plain().file("internal.bin", internal(&[long]))).expect("read").runs;
    assert_eq!(runs[0].name, "ü".repeat(4_000));
}

#[test]
fn a_kind_of_files_that_only_later_uploaders_know_is_no_mistake() {
    let later = META.replace("\"Junit\"", "\"Later\"");
    let archive = ArchiveBuilder::default().file("meta.json", later).file("junit/0", FLAKY);
    assert_eq!(bundle(&archive).expect("read").runs.len(), 3);
}

#[test]
fn an_error_has_its_position_and_earlier_cases_are_kept() {
    let text = "<testsuite name=\"s\">\n<testcase name=\"a\"/>\n<testcase name=\"b\"></wrong>";
    let files = vec![("bad.xml", text.as_bytes().to_vec()), ("good.xml", FLAKY.into())];
    let found = read_with(UploadSource::JUnit, files).expect("read");
    let [bad, good] = &found.files[..] else { panic!("two files: {:?}", found.files) };
    assert_eq!((bad.name.as_str(), bad.line, bad.runs), ("bad.xml", Some(3), 1));
    assert!(bad.column.is_some_and(|column| column > 1));
    assert_eq!((good.problem.as_ref(), good.runs), (None, 3));
    assert_eq!(found.runs.len(), 4);
}

#[test]
fn the_same_files_packed_again_have_the_same_digest() {
    let digest = |archive: &ArchiveBuilder| bundle(archive).expect("read").digest;
    let first = digest(&plain().file("junit/0", FLAKY));
    let later = META.replace("1700000100", "1700000999").replace("\"u1\"", "\"u9\"");
    let again = ArchiveBuilder::default()
        .file("meta.json", later)
        .file("internal.bin", internal(&[failed("b")]))
        .file("junit/0", FLAKY);
    assert_eq!(digest(&again), first);
    assert_ne!(digest(&plain().file("junit/0", FLAKY.replace("once", "twice"))), first);
}

#[test]
fn bombs_and_nonsense_are_refused_with_a_reason() {
    for (bytes, words) in [
        (
            plain().file("junit/0", vec![b' '; 64 << 20]).packed(),
            "unpacked bytes per compressed byte",
        ),
        (b"nonsense".to_vec(), "not a zstd-compressed tar archive"),
        (plain().file("../x", "x").packed(), "unexpected member"),
        (ArchiveBuilder::default().file("junit/0", FLAKY).packed(), "not meta.json"),
        (plain().file("junit/0", FLAKY).packed()[..200].to_vec(), "truncated"),
    ] {
        let refused = read_with(UploadSource::Bundle, vec![("bundle.tar.zst", bytes)]);
        let Err(ReadError::Refused(found)) = refused else { panic!("{words}: {refused:?}") };
        assert!(found.contains(words), "{words}: {found}");
    }
}

#[test]
fn more_runs_than_allowed_refuse_the_upload() {
    let many = "<testcase name=\"a\"/>".repeat(1_001);
    let xml = format!("<testsuite name=\"s\">{many}</testsuite>").into_bytes();
    for refused in [
        read_with(UploadSource::JUnit, vec![("a.xml", xml.clone())]),
        bundle(&plain().file("junit/0", xml)),
        bundle(&plain().file("internal.bin", internal(&vec![failed("a"); 1_001]))),
    ] {
        let Err(ReadError::Refused(words)) = refused else { panic!("{refused:?}") };
        assert_eq!(words, "more than 1000 test runs");
    }
}

/// As pytest-rerunfailures writes it: what failed and was run again has no mark.
#[test]
fn unmarked_reruns_are_detected_by_the_count() {
    use RunOutcome::{Failed, Passed, Skipped};
    let report = |suite: &str, tests: usize| {
        let cases = "<testcase name=\"gives up\"/><testcase name=\"gives up\"/>\
                     <testcase name=\"gives up\"><failure message=\"m\"/></testcase>\
                     <testcase name=\"recovers\"/><testcase name=\"recovers\"/>\
                     <testcase name=\"skips\"><skipped/></testcase>";
        let xml = format!(
            "<testsuites><testsuite name=\"{suite}\" tests=\"{tests}\">{cases}</testsuite></testsuites>"
        );
        let found =
            read_with(UploadSource::JUnit, vec![("a.xml", xml.into_bytes())]).expect("read");
        found.runs.iter().map(|it| it.outcome).collect::<Vec<_>>()
    };
    assert_eq!(report("pytest", 3), [Failed, Failed, Failed, Failed, Passed, Skipped]);
    // No count, and one of every case: nothing was run again. Another framework's count may omit
    // cases of other kinds, such as pending ones.
    for (suite, tests) in [("pytest", 0), ("pytest", 6), ("cart", 3), ("cart", 5)] {
        let plain = [Passed, Passed, Failed, Passed, Passed, Skipped];
        assert_eq!(report(suite, tests), plain, "{suite} {tests}");
    }
}

/// pytest counts an attempt whose teardown fails twice, and one that ran again not at all, so the
/// count fits nothing.
#[test]
fn unmarked_reruns_are_detected_alongside_teardown_errors() {
    use RunOutcome::{Failed, Passed, Skipped};
    let xml = include_bytes!("../junit/fixtures/pytest-rerunfailures.xml").to_vec();
    let found = read_with(UploadSource::JUnit, vec![("a.xml", xml)]).expect("read");
    let outcomes = |name: &str| {
        let runs = found.runs.iter().filter(|it| it.name == name);
        runs.map(|it| it.outcome).collect::<Vec<_>>()
    };
    let failing = ["test_takes[\\xfc]", "test_rounds", "test_known_no_more", "test_setup"];
    for name in failing.into_iter().chain(["test_teardown"]) {
        assert_eq!(outcomes(name), [Failed; 3], "{name}");
    }
    assert_eq!(outcomes("test_both"), [Failed; 4], "its call and its teardown");
    assert_eq!(outcomes("test_wobbles"), [Failed, Passed]);
    assert_eq!(outcomes("test_takes[1]"), [Passed]);
    assert_eq!((outcomes("test_ships"), outcomes("test_broken")), (vec![Skipped], vec![Failed]));
}
