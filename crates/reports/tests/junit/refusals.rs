//! Refused reports, and their errors.

use std::io::{self, Read};

use signalbox_reports::junit::{JunitError, Limit, Limits, Position};

use super::{lines, read};

fn refusal(xml: &str, limits: &Limits) -> JunitError {
    match read(xml.as_bytes(), limits, |_| ()) {
        Err(error) => error,
        Ok(_) => panic!("was to be refused: {}", xml.chars().take(200).collect::<String>()),
    }
}

#[track_caller]
fn says(xml: &str, expected: &str) {
    assert_eq!(refusal(xml, &Limits::default()).to_string(), expected);
}

#[track_caller]
fn passes(xml: &str, limits: Limits, expected: Limit, place: (u64, u64)) {
    let (line, column) = place;
    match refusal(xml, &limits) {
        JunitError::Limit { at, limit, .. } => {
            assert_eq!((limit, at), (expected, Position { line, column }));
        }
        other => panic!("{expected:?} was to be passed, but: {other}"),
    }
}

#[test]
fn declarations() {
    let words = "declarations such as DOCTYPE and ENTITY are refused";
    for declaration in [
        r#"<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>"#,
        "<!doctype html>",
        r#"<!ENTITY % p "<!ENTITY q SYSTEM 'http://x'>">"#,
        "<!ELEMENT a ANY>",
    ] {
        says(&format!("{declaration}<testsuite/>"), &format!("line 1, column 1: {words}"));
        let inside = format!("<testsuite>\n  {declaration}</testsuite>");
        says(&inside, &format!("line 2, column 3: {words}"));
    }
}

#[test]
fn limits_have_a_position() {
    let limits = Limits::default();
    let xml = "<testsuites>\n <testsuite>\n  <testcase><failure/></testcase>";
    passes(xml, Limits { depth: 3, ..limits }, Limit::Depth, (3, 13));
    let xml = "<testsuite>\n<testcase a='1' b='2' c='3'/></testsuite>";
    passes(xml, Limits { attributes: 2, ..limits }, Limit::Attributes, (2, 1));
    let xml = "<testsuite><!-- é -->\n<testcase name='abcdef'/></testsuite>";
    passes(xml, Limits { attribute_bytes: 5, ..limits }, Limit::AttributeBytes, (2, 1));
    passes(xml, Limits { tag_bytes: 20, ..limits }, Limit::TagBytes, (2, 1));
    let xml = "<testsuite><testcase/><testcase/></testsuite>";
    passes(xml, Limits { cases: 1, ..limits }, Limit::Cases, (1, 23));
    let xml = "<testcase><flakyFailure/><flakyFailure/></testcase>";
    passes(xml, Limits { repeats: 2, ..limits }, Limit::Repeats, (1, 26));
    let xml = "<testcase><failure/><rerunFailure/><rerunFailure/></testcase>";
    passes(xml, Limits { repeats: 2, ..limits }, Limit::Repeats, (1, 36));
    let xml = format!("<testsuite><{}/></testsuite>", "x".repeat(300));
    passes(&xml, limits, Limit::NameBytes, (1, 12));
    let error = refusal(&xml, &limits).to_string();
    assert_eq!(error, "line 1, column 12: more bytes of an element's name than 256");
}

#[test]
fn limits_hold_by_themselves() {
    let limits = Limits::default();
    let deep = "<testsuite>".repeat(1_000);
    passes(&deep, limits, Limit::Depth, (1, 64 * 11 + 1));
    let attributes = |count: u32| {
        let attributes: Vec<String> = (0..count).map(|it| format!("a{it}=''")).collect();
        format!(" {}", attributes.join(" "))
    };
    passes(&format!("<testsuite{}>", attributes(10_000)), limits, Limit::Attributes, (1, 1));
    passes(&format!("<testsuite{}>", attributes(800_000)), limits, Limit::TagBytes, (1, 1));
    let open = format!("<testsuite name='{}", "x".repeat(3_000_000));
    passes(&open, limits, Limit::TagBytes, (1, 1));
    let instruction = format!("<?{}", "x".repeat(3_000_000));
    passes(&instruction, limits, Limit::TagBytes, (1, 1));
}

#[test]
fn positions_far_into_a_file() {
    let lines = format!("<testsuite>{}", "<!-- é -->\n".repeat(100_000));
    says(&lines, "line 100001, column 1: the file ends inside <testsuite>");
    let long = "x\n".repeat(1_000_000);
    let open = format!("{lines} <testcase name='{long}");
    passes(&open, Limits::default(), Limit::TagBytes, (100_001, 2));
    let text = format!("{lines}{long}&{long}é<a><a>");
    says(&text, "line 2100001, column 9: the file ends inside an element that is not read");
}

#[test]
fn files_that_end_early() {
    let report = include_str!("fixtures/surefire.xml");
    let end = report.trim_end().len();
    for length in 0..end {
        if report.is_char_boundary(length) {
            let error = refusal(&report[..length], &Limits::default());
            let is_told = matches!(error, JunitError::Truncated { .. } | JunitError::Empty);
            assert!(is_told, "{length} of {end} bytes: {error}");
        }
    }
    says("<testsuite>\n<testcase>", "line 2, column 11: the file ends inside <testcase>");
    says("<testsuite><testcase><failure>a", "line 1, column 32: the file ends inside a failure");
    says("<testsuite na", "line 1, column 14: the file ends inside a tag");
    says("", "the file has no XML element");
    says(" <!-- a --> ", "the file has no XML element");
}

#[test]
fn cases_before_the_end_are_delivered() {
    let mut names = Vec::new();
    let xml = "<testsuite><testcase name='a'/><testcase name='b'";
    let read = signalbox_reports::junit::read(xml.as_bytes(), &Limits::default(), |run| {
        names.push(run.name.to_owned());
        std::ops::ControlFlow::Continue(())
    });
    assert!(matches!(read, Err(JunitError::Truncated { .. })));
    assert_eq!(names, ["a"]);
}

#[test]
fn files_that_are_something_else() {
    says(
        "<?xml version='1.0'?>\n<html></html>",
        "line 2, column 1: root element <html> is not testsuites, testsuite or testcase",
    );
    says("hello", "line 1, column 6: malformed XML: text outside the root element");
    says("{\"a\": 1}", "line 1, column 9: malformed XML: text outside the root element");
    assert!(lines(&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..]).is_err());
}

#[test]
fn malformed_files() {
    let malformed = |xml: &str| {
        let error = refusal(xml, &Limits::default());
        assert!(matches!(error, JunitError::Malformed { .. }), "{xml}: {error}");
    };
    malformed("<testsuite/><testsuite/>");
    malformed("<testsuite/> tail");
    malformed("<testsuite></testcase>");
    malformed("</testsuite>");
    malformed("<testsuite name=a/>");
    malformed("<testsuite><![IGNORE[x]]></testsuite>");
    let error = refusal(&format!("<testsuite></{}>", "x".repeat(5_000)), &Limits::default());
    assert!(error.to_string().len() < 300, "{error}");
}

#[test]
fn unknown_markup_is_refused_immediately() {
    let rule = "malformed XML: `<!` that starts no comment, CDATA section or declaration";
    for unknown in ["<![x>", "<![CDATA>", "<!-x>", "<!- -", "<!1", "<!>", "<! "] {
        let start = format!("<testsuite>\n {unknown}");
        says(&start, &format!("line 2, column 2: {rule}"));
        // Its end may be far away, or nowhere.
        let mut rest = io::repeat(b'x').take(100_000_000);
        let error = read(start.as_bytes().chain(&mut rest), &Limits::default(), |_| ());
        assert!(matches!(error, Err(JunitError::Malformed { .. })), "{unknown}: {error:?}");
        let taken = 100_000_000 - rest.limit();
        assert!(taken < 300_000, "{unknown}: {taken} bytes were read");
    }
    for cut in ["<!", "<!-", "<![", "<![CDATA"] {
        let error = refusal(&format!("<testsuite>{cut}"), &Limits::default());
        assert!(matches!(error, JunitError::Truncated { .. }), "{cut}: {error}");
    }
}
