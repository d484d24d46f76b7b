//! Measures how fast reports are read, against a parser that only counts events, and the memory.
//!
//! `cargo run --release -p signalbox-reports --example speed`: makes reports of 50 MB and more as
//! it goes, with one failure in twenty cases, and prints megabytes per second (best of five), the
//! ratio to plain counting in the same run, and the peak memory (Linux) while reading without
//! holding the report, also of single texts of a gibibyte.

#![expect(clippy::print_stdout, reason = "prints its findings")]

use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use quick_xml::Reader;
use quick_xml::events::Event;
use signalbox_reports::junit::{self, Limits, Summary};

const ROUNDS: u32 = 5;
const CASES: u64 = 200_000;

/// A report that is written while it is read.
struct Generated {
    next: u64,
    cases: u64,
    piece: Vec<u8>,
    given: usize,
}

impl Generated {
    fn new(cases: u64) -> Self {
        Self { next: 0, cases, piece: b"<testsuites>\n".to_vec(), given: 0 }
    }

    fn case(&self) -> String {
        let number = self.next;
        let mut xml = String::new();
        if number.is_multiple_of(100) {
            let suite = number / 100;
            let close = if number == 0 { "" } else { "  </testsuite>\n" };
            writeln!(xml, "{close}  <testsuite name=\"com.acme.Suite{suite}\" tests=\"100\">")
                .unwrap_or_default();
        }
        let suite = number / 100;
        write!(
            xml,
            "    <testcase name=\"test_number_{number}[param-{number}]\" \
             classname=\"com.acme.module.Suite{suite}\" file=\"tests/module/suite_{suite}.py\" \
             line=\"{}\" time=\"0.{:03}\"",
            number % 100,
            number % 1000
        )
        .unwrap_or_default();
        if number.is_multiple_of(20) {
            let trace = "    at com.acme.module.Class.method(Class.java:42)\n".repeat(40);
            let attributes = "message=\"expected &lt;1&gt; was &lt;2&gt;\" type=\"E\"";
            writeln!(xml, ">\n      <failure {attributes}>{trace}</failure>\n    </testcase>")
                .unwrap_or_default();
        } else {
            xml.push_str("/>\n");
        }
        xml
    }
}

impl Read for Generated {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        if self.given == self.piece.len() {
            self.given = 0;
            self.piece.clear();
            while self.next < self.cases && self.piece.len() < 32 * 1024 {
                self.piece.extend_from_slice(self.case().as_bytes());
                self.next += 1;
            }
            if self.next == self.cases {
                self.next += 1;
                self.piece.extend_from_slice(b"  </testsuite>\n</testsuites>\n");
            }
        }
        let read = self.piece.get(self.given..).unwrap_or_default().read(room)?;
        self.given += read;
        Ok(read)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    for opening in ["<system-out>", "<failure>", "<![CDATA[", "<!--", ""] {
        let start = format!("<testsuite name=\"a\"><testcase name=\"b\">{opening}");
        let cut = read(start.as_bytes().chain(io::repeat(b'x').take(1 << 30)));
        if cut.is_ok() {
            return Err("a truncated report was accepted as complete".into());
        }
    }
    let peak = peak_memory().unwrap_or_else(|| "unknown".to_owned());
    println!("texts, sections and comments of 1 GiB: peak memory {peak}");
    for times in [1, 4] {
        let summary = read(Generated::new(times * CASES))?;
        let peak = peak_memory().unwrap_or_else(|| "unknown".to_owned());
        println!("{} cases without holding the report: peak memory {peak}", summary.cases);
    }

    let mut report = Vec::new();
    Generated::new(CASES).read_to_end(&mut report)?;
    let (mut ours, mut plain) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let summary = read(&report[..])?;
        ours = ours.min(start.elapsed());
        let start = Instant::now();
        let events = events(&report)?;
        plain = plain.min(start.elapsed());
        if (summary.cases, events == 0) != (CASES, false) {
            return Err("the report was not read whole".into());
        }
    }
    let megabytes = f64::from(u32::try_from(report.len())?) / 1e6;
    println!("{megabytes:.1} MB, {CASES} cases, best of {ROUNDS}");
    println!("read:           {:7.1} MB/s", megabytes / ours.as_secs_f64());
    println!("events counted: {:7.1} MB/s", megabytes / plain.as_secs_f64());
    println!("ratio of times: {:7.2}", ours.as_secs_f64() / plain.as_secs_f64());
    Ok(())
}

fn read(input: impl Read) -> Result<Summary, junit::JunitError> {
    let mut failures = 0_u64;
    let summary = junit::read(input, &Limits::default(), |run| {
        failures += u64::from(run.status.is_failure());
        ControlFlow::Continue(())
    })?;
    std::hint::black_box(failures);
    Ok(summary)
}

fn events(report: &[u8]) -> Result<u64, quick_xml::Error> {
    let mut reader = Reader::from_reader(report);
    let mut buffer = Vec::new();
    let mut events = 0;
    while !matches!(reader.read_event_into(&mut buffer)?, Event::Eof) {
        events += 1;
        buffer.clear();
    }
    Ok(events)
}

fn peak_memory() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(peak.trim().to_owned())
}
