//! Reading JUnit XML: how fast, and with how much memory.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::time::Instant;

use async_trait::async_trait;
use signalbox_domain::flaky::UploadSource;
use signalbox_domain::ports::{ReportFile, ReportReader};
use signalbox_reports::Reports;

use super::Operation;
use crate::failure::{During, Failure};
use crate::measure::median;
use crate::process::Memory;
use crate::report::{Report, Row, count};
use crate::setup::Setup;

const MIB: usize = 1024 * 1024;
/// Reports of so many cases, in MiB: the rest of a report is output.
const OUTPUT: (usize, [usize; 3]) = (1_000, [1, 10, 100]);
/// Reports with as many cases as fit, in MiB.
const CASES: [usize; 3] = [1, 5, 25];
/// MB a second.
const SPEED_GOAL: f64 = 250.0;
/// MiB for a report of few cases, whatever its size.
const MEMORY_GOAL: f64 = 16.0;

/// Reading JUnit XML.
pub(crate) struct ParseReports;

#[async_trait(?Send)]
impl Operation for ParseReports {
    fn name(&self) -> &'static str {
        "parse-reports"
    }

    async fn run(&self, setup: &Setup, report: &mut Report) -> Result<(), Failure> {
        let folder = setup.folder()?;
        let path = folder.path().join("junit.xml");
        let (cases, sizes) = OUTPUT;
        for mib in setup.sizes(&sizes) {
            let line = "a line of output that a test has printed &amp; that no user reads\n";
            let output = line.repeat(mib * MIB / cases / line.len());
            let bytes = write(&path, cases, &format!("<system-out>{output}</system-out>"))?;
            let data = format!("{mib} MiB, {} cases with output", count(cases));
            measure(setup, report, &path, (bytes, cases), &data, Some(MEMORY_GOAL)).await?;
        }
        for mib in setup.sizes(&CASES) {
            let cases = mib * MIB / 100;
            let bytes = write(&path, cases, "")?;
            let data = format!("{mib} MiB, {} cases without output", count(cases));
            measure(setup, report, &path, (bytes, cases), &data, None).await?;
        }
        Ok(())
    }
}

/// Reads a file as often as there are rounds.
async fn measure(
    setup: &Setup,
    report: &mut Report,
    path: &Path,
    (bytes, cases): (usize, usize),
    data: &str,
    memory_goal: Option<f64>,
) -> Result<(), Failure> {
    let (mut speeds, mut more) = (Vec::new(), 0.0_f64);
    let bytes = f64::from(u32::try_from(bytes).unwrap_or(u32::MAX));
    for _ in 0..=setup.rounds {
        Memory::forget_peak()?;
        let before = Memory::own()?.resident;
        let content = Box::new(File::open(path).during("a report")?);
        let file = ReportFile { name: "junit.xml".into(), content };
        let begun = Instant::now();
        let read = Reports::default().read(UploadSource::JUnit, vec![file], usize::MAX).await;
        let took = begun.elapsed().as_secs_f64();
        let read = read.during("a report")?;
        speeds.push(bytes / 1e6 / took);
        more = more.max(Memory::own()?.peak - before);
        if read.runs.len() != cases || read.files.iter().any(|it| it.problem.is_some()) {
            return Err(Failure::new("a report", "was not read"));
        }
    }
    let speed = median(&speeds);
    let row = Row::of("parse reports", data.to_owned(), speed, "MB/s");
    report.add(row.with_goal(&format!("≥ {SPEED_GOAL}"), speed >= SPEED_GOAL));
    let row = Row::of("parse reports", format!("{data}: memory"), more, "MiB");
    report.add(match memory_goal {
        Some(goal) => row.with_goal(&format!("≤ {goal} MiB"), more <= goal),
        None => row,
    });
    Ok(())
}

/// Writes a report of that many cases, each with the same children; returns its bytes.
fn write(path: &Path, cases: usize, children: &str) -> Result<usize, Failure> {
    let mut file = BufWriter::new(File::create(path).during("a report")?);
    let mut bytes = 0;
    let mut put = |text: &str| {
        bytes += text.len();
        file.write_all(text.as_bytes()).during("a report")
    };
    put("<?xml version=\"1.0\"?><testsuites><testsuite name=\"bench\">")?;
    let mut case = String::new();
    for number in 0..cases {
        case.clear();
        // Writing to a string does not fail.
        let _ = write!(
            case,
            "<testcase name=\"test number {number:07}\" classname=\"Calc\" \
             file=\"tests/calc.rs\" time=\"0.01\">{children}</testcase>"
        );
        put(&case)?;
    }
    put("</testsuite></testsuites>")?;
    file.flush().during("a report")?;
    Ok(bytes)
}
