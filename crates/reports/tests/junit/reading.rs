//! How elements and attributes are understood.

use std::io::Read;
use std::ops::ControlFlow;
use std::time::Duration;

use signalbox_reports::junit::{self, Limits, Status, limits};
use time::macros::datetime;

use super::{lines, read};

/// One suite with this inside.
fn suite(inside: &str) -> String {
    format!(r#"<testsuite name="s">{inside}</testsuite>"#)
}

fn statuses(inside: &str) -> Vec<Status> {
    let (found, _) =
        read(suite(inside).as_bytes(), &Limits::default(), |run| run.status).expect("a report");
    found
}

#[test]
fn suites_are_a_path_and_the_outermost_is_the_parent() {
    let xml = r#"<testsuites name="no suite"><testsuite name=" a "><testcase name="1"/>
        <testsuite><testsuite name="c"><testcase name="2"/></testsuite></testsuite>
        <testcase name="3"/></testsuite><testcase name="4"/></testsuites>"#;
    let all = |run: &junit::CaseRun<'_>| (run.suites.join("/"), run.parent().to_owned());
    let (found, summary) = read(xml.as_bytes(), &Limits::default(), all).expect("a report");
    let expected = [("a", "a"), ("a//c", "a"), ("a", "a"), ("", "")];
    assert_eq!(found, expected.map(|(path, parent)| (path.to_owned(), parent.to_owned())));
    assert_eq!((summary.suites, summary.cases), (3, 4));
}

#[test]
fn of_skipped_and_failed_the_first_counts_and_is_noted() {
    let told = |inside: &str| {
        let xml = suite(&format!("<testcase name='a'>{inside}</testcase>"));
        let all = |run: &junit::CaseRun<'_>| (run.status, run.contradicted);
        read(xml.as_bytes(), &Limits::default(), all).expect("a report").0
    };
    assert_eq!(told("<skipped/><failure/>"), [(Status::Skipped, true)]);
    assert_eq!(told("<failure/><skipped/>"), [(Status::Failed, true)]);
    assert_eq!(told("<failure/><error/>"), [(Status::Failed, false)]);
    assert_eq!(told("<skipped/>"), [(Status::Skipped, false)]);
}

#[test]
fn a_case_can_be_the_root() {
    let found = lines(&b"<testcase name='a'><failure/></testcase>"[..]).expect("a report");
    assert_eq!(found, ["failed #1  | - | a"]);
}

#[test]
fn the_first_outcome_counts() {
    for (inside, expected) in [
        ("", Status::Passed),
        ("<failure/><error/>", Status::Failed),
        ("<error/><failure/>", Status::Errored),
        ("<system-out>x</system-out><skipped/>", Status::Skipped),
        ("<other><failure/></other>", Status::Passed),
        ("<testcase name='b'><failure/></testcase>", Status::Passed),
    ] {
        let case = format!("<testcase name='a'>{inside}</testcase>");
        assert_eq!(statuses(&case), [expected], "{inside}");
    }
}

#[test]
fn a_status_attribute_counts_when_no_child_speaks() {
    for (attribute, expected) in [
        ("status='disabled'", Status::Skipped),
        ("status='notrun' result='suppressed'", Status::Skipped),
        ("status='run' result='Skipped'", Status::Skipped),
        ("status='fail'", Status::Failed),
        ("result=' ERROR '", Status::Errored),
        ("status='run' result='completed'", Status::Passed),
        ("status='0'", Status::Passed),
    ] {
        assert_eq!(statuses(&format!("<testcase {attribute}/>")), [expected], "{attribute}");
    }
    let child = "<testcase status='disabled'><failure/></testcase>";
    assert_eq!(statuses(child), [Status::Failed]);
}

#[test]
fn attempts_come_in_the_order_in_which_they_happened() {
    let attempts = |inside: &str| {
        let xml = suite(&format!("<testcase name='a'>{inside}</testcase><testcase name='a'/>"));
        let each = |run: &junit::CaseRun<'_>| {
            let message = run.detail.and_then(|it| it.message).unwrap_or("-").to_owned();
            (message, run.attempt, run.element, run.concludes)
        };
        let (found, _) = read(xml.as_bytes(), &Limits::default(), each).expect("a report");
        let texts = found.into_iter().map(|(message, attempt, element, concludes)| {
            format!("{message} {attempt} {element}{}", if concludes { " end" } else { "" })
        });
        texts.collect::<Vec<_>>()
    };
    assert_eq!(
        attempts("<flakyFailure message='x'/><flakyError message='y'/>"),
        ["x 1 1", "y 2 1", "- 3 1 end", "- 4 2 end"]
    );
    assert_eq!(
        attempts("<rerunFailure message='y'/><failure message='x'/><rerunError message='z'/>"),
        ["x 1 1", "y 2 1", "z 3 1 end", "- 4 2 end"]
    );
    // Reruns of what passed in the end were before it.
    assert_eq!(attempts("<rerunFailure message='x'/>"), ["x 1 1", "- 2 1 end", "- 3 2 end"]);
    assert_eq!(
        attempts("<failure message='y'/><flakyFailure message='x'/>"),
        ["x 1 1", "y 2 1 end", "- 3 2 end"]
    );
}

#[test]
fn cases_that_differ_in_what_identifies_them_are_no_attempts() {
    let xml = r#"<testsuites><testsuite name="s"><testcase name="a"/>
        <testcase name="a" classname="c"/><testcase name="a" file="f"/><testcase name="a" id="i"/>
        <testcase name="a" class="c"/></testsuite><testsuite name="t"><testcase name="a"/>
        </testsuite></testsuites>"#;
    let (found, _) = read(xml.as_bytes(), &Limits::default(), |run| run.attempt).expect("a report");
    assert_eq!(found, [1, 1, 1, 1, 2, 1]);
}

#[test]
fn files_and_lines() {
    let place = |outer: &str, inner: &str, case: &str| {
        let xml = format!(
            "<testsuite {outer}><testsuite {inner}><testcase {case}/></testsuite></testsuite>"
        );
        let each = |run: &junit::CaseRun<'_>| (run.file.map(str::to_owned), run.line);
        read(xml.as_bytes(), &Limits::default(), each).expect("a report").0.remove(0)
    };
    let all = "file='a' filepath='b'";
    let found = |text: &str| Some(text.to_owned());
    assert_eq!(place("file='c' filepath='d'", "", all), (found("a"), None));
    assert_eq!(place("file='c'", "", "filepath='b' line='7'"), (found("b"), Some(7)));
    assert_eq!(place("file='c' filepath='d'", "file='e'", "line='-7'"), (found("c"), None));
    assert_eq!(place("filepath='d'", "file='e'", "file=' '"), (found("d"), None));
    assert_eq!(place("", "file='e'", ""), (None, None));
}

#[test]
fn the_uploader_asks_by_the_file_of_the_suite() {
    let ids = |suite: &str, case: &str| {
        let xml = format!("<testsuite name='s' {suite}><testcase name='a' {case}/></testsuite>");
        let each = |run: &junit::CaseRun<'_>| {
            let (key, asked) = (run.key("o", "h/o/r", "v"), run.asked_key("o", "h/o/r", "v"));
            (key.file.to_owned(), asked.file.to_owned(), key.id() == asked.asked_id())
        };
        read(xml.as_bytes(), &Limits::default(), each).expect("a report").0.remove(0)
    };
    let found = |file: &str, asked: &str, same| (file.to_owned(), asked.to_owned(), same);
    assert_eq!(ids("file='s.py'", "file='c.py'"), found("c.py", "s.py", false));
    assert_eq!(ids("file='s.py'", "filepath='c.py'"), found("c.py", "s.py", false));
    assert_eq!(ids("file='s.py'", ""), found("s.py", "s.py", true));
    assert_eq!(ids("filepath='s.py'", "file='c.py'"), found("c.py", "c.py", true));
    assert_eq!(ids("", "id='7'"), found("", "", false));
}

#[test]
fn times_of_cases_and_of_attempts() {
    let xml = r#"<testsuite timestamp="2026-03-01T10:00:00"><testsuite>
        <testcase name="a" time="2"><flakyFailure time="1,000.5" timestamp="2026-03-01T11:00:00Z"/>
        <flakyFailure/></testcase>
        <testcase name="b" time="NaN" timestamp="2026-03-01T12:00:00"/></testsuite></testsuite>"#;
    let each = |run: &junit::CaseRun<'_>| (run.duration, run.timestamp);
    let (found, _) = read(xml.as_bytes(), &Limits::default(), each).expect("a report");
    let suite = Some(datetime!(2026-03-01 10:00 UTC));
    let expected = [
        (Some(Duration::from_millis(1_000_500)), Some(datetime!(2026-03-01 11:00 UTC))),
        (None, suite),
        (Some(Duration::from_secs(2)), suite),
        (None, Some(datetime!(2026-03-01 12:00 UTC))),
    ];
    assert_eq!(found, expected);
}

#[test]
fn properties_of_cases_only() {
    let many = "<property name='x' value='y'/>".repeat(limits::PROPERTIES);
    let xml = format!(
        "<testsuite><properties><property name='env.TOKEN' value='secret'/></properties>
        <testcase name='a'><properties><property name='k' value='1 &lt; 2'/>
        <property name='t'><![CDATA[text]]></property>{many}</properties></testcase>
        <testcase name='b'/></testsuite>"
    );
    let each = |run: &junit::CaseRun<'_>| run.properties.to_vec();
    let (found, _) = read(xml.as_bytes(), &Limits::default(), each).expect("a report");
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    assert_eq!(found[0][..3], [pair("k", "1 < 2"), pair("t", "text"), pair("x", "y")]);
    assert_eq!((found[0].len(), found[1].len()), (limits::PROPERTIES, 0));
}

#[test]
fn encodings() {
    let declared =
        |label: &str| format!("<?xml version='1.0' encoding='{label}'?><testcase name='é ü'/>");
    let name = |bytes: &[u8]| {
        let (found, summary) =
            read(bytes, &Limits::default(), |run| run.name.to_owned()).expect("a report");
        (found.concat(), summary.encoding, summary.replaced)
    };
    let latin: Vec<u8> =
        declared("ISO-8859-1").chars().map(|it| u8::try_from(it).expect("it fits")).collect();
    assert_eq!(name(&latin), ("é ü".into(), "windows-1252", false));
    let utf_8 = declared("utf-8");
    assert_eq!(name(utf_8.as_bytes()), ("é ü".into(), "UTF-8", false));
    assert_eq!(name(format!("\u{feff}{utf_8}").as_bytes()), ("é ü".into(), "UTF-8", false));
    for (bytes, label) in
        [(u16::to_le_bytes as fn(u16) -> [u8; 2], "UTF-16LE"), (u16::to_be_bytes, "UTF-16BE")]
    {
        let text = format!("\u{feff}{}", declared("UTF-16"));
        let utf_16: Vec<u8> = text.encode_utf16().flat_map(bytes).collect();
        assert_eq!(name(&utf_16), ("é ü".into(), label, false));
    }
    let broken = [b"<testcase name='\xe9 ", "ü'/>".as_bytes()].concat();
    assert_eq!(name(&broken), ("\u{fffd} ü".into(), "UTF-8", true));
}

#[test]
fn long_texts_are_cut_between_characters() {
    let long = "é".repeat(200_000);
    let xml = suite(&format!(
        "<testcase name='{}'><failure message='{}'>{long}<![CDATA[{long}]]></failure></testcase>
        <testcase name='b'><failure><![CDATA[  {long}]]></failure></testcase>",
        "n".repeat(9_000),
        "m".repeat(9_000),
    ));
    let each = |run: &junit::CaseRun<'_>| {
        let detail = run.detail.expect("a detail");
        (run.name.len(), detail.message.map(str::len), detail.text.map(str::len))
    };
    let (found, _) = read(xml.as_bytes(), &Limits::default(), each).expect("a report");
    assert_eq!(found, [(8_000, Some(8_000), Some(8_000)), (1, None, Some(8_000))]);
    let limits = Limits { detail_bytes: 5, ..Limits::default() };
    let (found, _) = read(xml.as_bytes(), &limits, each).expect("a report");
    assert_eq!(found, [(8_000, Some(5), Some(4)), (1, None, Some(4))]);
}

#[test]
fn what_lies_between_tags_does_not_matter() {
    let noise = "<!-- <testcase name='no'/> -- -> --><?php echo '<x>' ?>";
    let cdata = "<![CDATA[ <testcase name='no'/> ]] > ]]]>";
    let long = "x".repeat(1_000_000);
    let xml = format!(
        "{noise}<testsuite name='s'>{noise}{cdata}text &amp; more<testcase name='a > b'>
        <system-out>{cdata}{long}<b/></system-out><system-err><![CDATA[{long}]]></system-err>
        {noise}</testcase><!--{long}--></testsuite>{noise}"
    );
    assert_eq!(lines(xml.as_bytes()).expect("a report"), ["passed #1 s | - | a > b"]);
}

#[test]
fn references_in_texts_that_are_cut() {
    let text = "&amp;".repeat(50_000);
    let xml = suite(&format!("<testcase name='a'><failure>{text}&nbsp;</failure></testcase>"));
    let each = |run: &junit::CaseRun<'_>| run.detail.and_then(|it| it.text).map(str::to_owned);
    let (found, _) = read(xml.as_bytes(), &Limits::default(), each).expect("a report");
    assert_eq!(found, [Some("&".repeat(8_000))]);
}

#[test]
fn pieces_of_any_size_give_the_same() {
    struct Dripping<'a>(&'a [u8]);
    impl Read for Dripping<'_> {
        fn read(&mut self, room: &mut [u8]) -> std::io::Result<usize> {
            let one = room.len().min(1);
            self.0.read(&mut room[..one])
        }
    }
    let report = include_bytes!("fixtures/playwright.xml");
    assert_eq!(lines(Dripping(report)).expect("a report"), lines(&report[..]).expect("a report"));
}

#[test]
fn the_sink_can_stop() {
    let xml = suite(&"<testcase name='a'><flakyFailure/></testcase>".repeat(10));
    let mut left = 3;
    let summary = junit::read(xml.as_bytes(), &Limits::default(), |_| {
        left -= 1;
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let summary = summary.expect("a report");
    assert_eq!((summary.attempts, summary.cases, summary.stopped), (3, 2, true));
}
