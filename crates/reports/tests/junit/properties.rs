//! What holds for all reports and for all bytes.

use std::fmt::Write;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use signalbox_reports::junit::{Limits, Status};

use super::{lines, read};

/// A case as written, and its expected reading.
#[derive(Clone, Debug)]
struct Written {
    name: String,
    classname: Option<String>,
    file: Option<String>,
    millis: Option<u32>,
    flaky: Vec<String>,
    outcome: Option<(Status, String, String)>,
    output: String,
}

/// Text without white space at its ends, which is not kept. Not empty.
fn text() -> impl Strategy<Value = String> {
    "[a-z<>&\"'é\u{1F600}]([a-z <>&;\"'\\]\né]{0,20}[a-z\\]>])?"
}

fn written() -> impl Strategy<Value = Written> {
    let status = prop_oneof![Just(Status::Failed), Just(Status::Errored), Just(Status::Skipped)];
    let outcome = option::of((status, text(), text()));
    let output = "[a-z <>&\\]\n]{0,30}";
    (
        text(),
        option::of(text()),
        option::of(text()),
        option::of(any::<u32>()),
        vec(text(), 0..3),
        outcome,
        output,
    )
        .prop_map(|(name, classname, file, millis, flaky, outcome, output)| Written {
            name,
            classname,
            file,
            millis,
            flaky,
            outcome,
            output,
        })
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;").replace('é', "&#xe9;")
}

/// A section that ends where it should whatever it holds.
fn section(text: &str) -> String {
    format!("<![CDATA[{}]]>", text.replace("]]>", "]]]]><![CDATA[>"))
}

fn report(suites: &[(String, Vec<Written>)]) -> String {
    let mut xml = "<?xml version=\"1.0\"?>\n<testsuites>".to_owned();
    for (name, cases) in suites {
        write!(xml, "<testsuite name=\"{}\">", escaped(name)).expect("a string");
        for case in cases {
            write!(xml, "\n<testcase name=\"{}\"", escaped(&case.name)).expect("a string");
            for (key, value) in [("classname", &case.classname), ("file", &case.file)] {
                if let Some(value) = value {
                    write!(xml, " {key}=\"{}\"", escaped(value)).expect("a string");
                }
            }
            if let Some(millis) = case.millis {
                write!(xml, " time=\"{}.{:03}\"", millis / 1000, millis % 1000).expect("a string");
            }
            xml.push('>');
            for flaky in &case.flaky {
                write!(xml, "<flakyFailure message=\"{}\"/>", escaped(flaky)).expect("a string");
            }
            if let Some((status, message, text)) = &case.outcome {
                let element = match status {
                    Status::Failed => "failure",
                    Status::Errored => "error",
                    Status::Skipped => "skipped",
                    Status::Passed => unreachable!("a passed case has no element"),
                };
                let (message, text) = (escaped(message), section(text));
                write!(xml, "<{element} message=\"{message}\">{text}</{element}>")
                    .expect("a string");
            }
            write!(xml, "<system-out>{}</system-out>", section(&case.output)).expect("a string");
            xml.push_str("</testcase>");
        }
        xml.push_str("</testsuite>");
    }
    xml + "</testsuites>\n"
}

/// A run, in the terms of the written report.
type PartialCase =
    (String, String, Option<String>, Option<String>, Option<u128>, Status, String, String);

fn expected(suites: &[(String, Vec<Written>)]) -> Vec<PartialCase> {
    let mut told = Vec::new();
    for (suite, case) in
        suites.iter().flat_map(|(suite, cases)| cases.iter().map(move |it| (suite, it)))
    {
        let mut tell = |millis, status, message: &str, text: &str| {
            told.push((
                suite.clone(),
                case.name.clone(),
                case.classname.clone(),
                case.file.clone(),
                millis,
                status,
                message.to_owned(),
                text.to_owned(),
            ));
        };
        for flaky in &case.flaky {
            tell(None, Status::Failed, flaky, "");
        }
        let millis = case.millis.map(u128::from);
        match &case.outcome {
            Some((status, message, text)) => tell(millis, *status, message, text),
            None => tell(millis, Status::Passed, "", ""),
        }
    }
    told
}

/// Pieces of reports, to get further into the reader than bytes of chance do.
/// Every fixture.
fn fixtures() -> Vec<Vec<u8>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/junit/fixtures");
    let files = std::fs::read_dir(folder).expect("the fixtures");
    let files = files.map(|file| std::fs::read(file.expect("a file").path()).expect("a fixture"));
    files.collect()
}

fn scraps() -> impl Strategy<Value = String> {
    const SCRAPS: [&str; 28] = [
        "<testsuites>",
        "<testsuite name='a'>",
        "<testcase name='b' time='1'>",
        "<testcase/>",
        "</testcase>",
        "</testsuite>",
        "</testsuites>",
        "<failure message='",
        "<failure>",
        "'>",
        "</failure>",
        "<flakyFailure>",
        "</flakyFailure>",
        "<stackTrace>",
        "</stackTrace>",
        "<![CDATA[",
        "]]>",
        "<!--",
        "-->",
        "<?",
        "?>",
        "&amp;",
        "&#x0;",
        "&",
        "]",
        "<",
        ">",
        "é",
    ];
    vec(0..SCRAPS.len(), 0..40).prop_map(|picks| picks.into_iter().map(|it| SCRAPS[it]).collect())
}

proptest! {
    #[test]
    fn reports_are_read_as_they_were_written(suites in vec((text(), vec(written(), 0..5)), 0..4)) {
        let xml = report(&suites);
        let each = |run: &signalbox_reports::junit::CaseRun<'_>| {
            let detail = run.detail;
            let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
            (
                run.parent().to_owned(),
                run.name.to_owned(),
                run.classname.map(str::to_owned),
                run.file.map(str::to_owned),
                run.duration.map(|it| it.as_millis()),
                run.status,
                text(detail.and_then(|it| it.message)),
                text(detail.and_then(|it| it.text)),
            )
        };
        let (found, summary) = read(xml.as_bytes(), &Limits::default(), each).expect("a report");
        prop_assert_eq!(found, expected(&suites));
        let cases: usize = suites.iter().map(|(_, cases)| cases.len()).sum();
        prop_assert_eq!(summary.cases, u64::try_from(cases).expect("it fits"));
    }

    #[test]
    fn a_truncated_report_is_never_accepted_as_complete(
        suites in vec((text(), vec(written(), 1..4)), 1..3),
        part in 0.0_f64..1.0,
    ) {
        let xml = report(&suites);
        let whole = xml.trim_end();
        let ends: Vec<usize> = whole.char_indices().map(|(at, _)| at).collect();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a part of a length")]
        let end = ends[(ends.len() as f64 * part) as usize];
        prop_assert!(read(&whole.as_bytes()[..end], &Limits::default(), |_| ()).is_err());
    }

    #[test]
    fn no_damage_to_what_frameworks_write_panics(
        which in any::<prop::sample::Index>(),
        damages in vec((any::<prop::sample::Index>(), 0_u8..5, any::<u8>(), 0_usize..40), 1..12),
    ) {
        let mut bytes = which.get(&fixtures()).clone();
        for (at, kind, byte, length) in damages {
            if bytes.is_empty() {
                break;
            }
            let at = at.index(bytes.len());
            let end = (at + length).min(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                2 => drop(bytes.drain(at..end)),
                3 => {
                    let again = bytes[at..end].to_vec();
                    drop(bytes.splice(at..at, again));
                }
                _ => bytes.truncate(at),
            }
        }
        drop(lines(&bytes[..]));
    }

    #[test]
    fn no_bytes_panic(bytes in vec(any::<u8>(), 0..400)) {
        drop(read(&bytes[..], &Limits::default(), |_| ()));
    }

    #[test]
    fn no_scraps_panic_and_limits_hold(scraps in scraps(), most in 0_u64..6, length in 0_usize..9) {
        let limits = Limits {
            depth: most,
            attributes: most,
            attribute_bytes: most,
            cases: most,
            repeats: most,
            detail_bytes: length,
            ..Limits::default()
        };
        let mut delivered = 0;
        let each = |run: &signalbox_reports::junit::CaseRun<'_>| {
            delivered += u64::from(run.concludes);
            let texts = run.detail.map(|it| [it.message, it.kind, it.text]);
            texts.into_iter().flatten().flatten().map(str::len).max().unwrap_or(0)
        };
        if let Ok((lengths, _)) = read(scraps.as_bytes(), &limits, each) {
            prop_assert!(lengths.iter().all(|it| *it <= length));
        }
        prop_assert!(delivered <= most);
        drop(read(scraps.as_bytes(), &Limits::default(), |_| ()));
    }
}
