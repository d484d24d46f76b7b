//! An upload of 10,000 tests, the lookup of quarantined tests, and the reading of reports.

use std::fmt::Write as _;
use std::io::Cursor;
use std::time::Instant;

use actix_web::HttpResponse;
use actix_web::web::{self, Bytes, PayloadConfig};
use async_trait::async_trait;
use serde_json::json;
use signalbox_domain::flaky::{RunOutcome, UploadSource};
use signalbox_domain::ports::{ReportFile, ReportReader, ResultsSink};
use signalbox_reports::Reports;

use super::Operation;
use crate::database::{Fresh, On};
use crate::failure::{During, Failure};
use crate::flaky_data::{self, Mix};
use crate::load::{self, Client, Request};
use crate::measure::{in_turn, micros_each};
use crate::product::Product;
use crate::report::{Report, Row, count};
use crate::servers;
use crate::setup::Setup;

/// Tests of an upload.
const TESTS: usize = 10_000;
/// Tests that are asked for at once, and how often.
const ASKED: (usize, usize) = (2_600, 200);
/// The least share of the floor's throughput of an ingest.
const INGEST_GOAL: f64 = 0.5;
/// Reports in MiB.
const REPORTS: [usize; 3] = [1, 10, 100];
const MIB: usize = 1024 * 1024;
/// MB a second.
const PARSE_GOAL: f64 = 100.0;

/// Ingest and quarantine.
pub(crate) struct FlakyIngest;

#[async_trait(?Send)]
impl Operation for FlakyIngest {
    fn name(&self) -> &'static str {
        "flaky-ingest"
    }

    async fn run(&self, setup: &Setup, report: &mut Report) -> Result<(), Failure> {
        for on in On::ALL {
            for (tests, _) in setup.tests() {
                let fresh = Fresh::new(setup, on).await?;
                let product = Product::on(&fresh.database).await?;
                flaky_data::seed(&fresh, &product, tests, 0, Mix::Usual).await?;
                let data = format!("{}, {} tests known", on.name(), count(tests));
                ingest(setup, report, (&fresh, &product), tests, &data).await?;
                lookup(setup, report, &product, tests, &data).await?;
            }
        }
        Ok(())
    }
}

/// The rows of an upload that the product cannot do without: runs, hours, buckets and codes.
const TABLES: [&str; 4] = ["test_runs", "test_hours", "test_buckets", "test_codes"];

async fn ingest(
    setup: &Setup,
    report: &mut Report,
    (fresh, product): (&Fresh, &Product),
    tests: usize,
    data: &str,
) -> Result<(), Failure> {
    let many = TESTS.min(tests);
    let stride = tests / many;
    let names: Vec<String> = (0..many).map(|at| flaky_data::name(at * stride)).collect();
    let service = &product.api.flaky.service;
    for table in TABLES {
        let empty = format!("CREATE TABLE bench_{table} AS SELECT * FROM {table} WHERE 1 = 0");
        fresh.floor.run_sql(&empty).await?;
    }
    let mut rows = String::from("BEGIN;");
    for (table, values) in [
        ("test_runs", format!("'o', 1, 1, 0, false, 1, '{}'", "x".repeat(330))),
        ("test_hours", "1, 'o', 1, 0, NULL, NULL".to_owned()),
        ("test_buckets", "1, 'main', 'o', 'stable', 1, 0, 1, NULL".to_owned()),
        ("test_codes", format!("'{}', 'main', 'o', 'stable', 1, NULL, 1", "c".repeat(47))),
    ] {
        let repo = product.repository.id;
        let _ = write!(rows, "INSERT INTO bench_{table} VALUES ");
        for (at, name) in names.iter().enumerate() {
            let separator = if at == 0 { "" } else { ", " };
            let id = flaky_data::key(product, name).id();
            let _ = write!(rows, "{separator}('{repo}', '{id}', {values})");
        }
        rows.push(';');
    }
    rows.push_str("COMMIT;");
    let mut commit = 100;
    let turns = in_turn(
        setup.rounds,
        async || {
            let begun = Instant::now();
            fresh.floor.run_sql(&rows).await?;
            Ok(micros_each(begun.elapsed(), many))
        },
        async || {
            commit += 1;
            let upload = flaky_data::upload(product, commit)?;
            let runs = names.iter().map(|it| flaky_data::run(product, it, RunOutcome::Passed));
            let runs = runs.collect();
            let begun = Instant::now();
            service.take_in(&upload, runs).await.during("an upload")?;
            Ok(micros_each(begun.elapsed(), many))
        },
    )
    .await?;
    let data = format!("{data}, {} in the upload; each", count(many));
    report.add(Row::against("ingest", data, &turns).at_least(INGEST_GOAL));
    Ok(())
}

async fn lookup(
    setup: &Setup,
    report: &mut Report,
    product: &Product,
    tests: usize,
    data: &str,
) -> Result<(), Failure> {
    let (asked, times) = (ASKED.0.min(tests), setup.many(ASKED.1));
    let stride = tests / asked;
    let identifiers: Vec<_> = (0..asked)
        .map(|at| {
            let name = flaky_data::name(at * stride);
            let key = flaky_data::key(product, &name);
            json!({
                "name": name, "parentName": key.parent, "className": key.classname,
                "file": key.file, "id": key.id().to_string()
            })
        })
        .collect();
    let name = &product.repository.name;
    let body = json!({
        "repo": {"host": name.host.as_str(), "owner": name.owner.as_str(),
            "name": name.name.as_str()},
        "orgUrlSlug": product.org.slug.as_str(), "remoteUrls": [],
        "testIdentifiers": identifiers
    });
    let server = servers::product(product.api.clone())?;
    let echo = servers::floor(|config| {
        config
            .app_data(PayloadConfig::new(64 * MIB))
            .route("/", web::post().to(async |body: Bytes| HttpResponse::Ok().body(body)));
    })?;
    let mut client = Client::to(server.address).await?;
    let mut bare = Client::to(echo.address).await?;
    let path = "/v1/metrics/getQuarantineConfig";
    let (product_p99, quarantined) = {
        let request = load::post(path, &product.token, &body);
        let answer = client.one(&request).await?;
        let answer: serde_json::Value = serde_json::from_slice(&answer).during("an answer")?;
        let quarantined = answer["testIds"].as_array().map_or(0, Vec::len);
        (p99(&mut client, &request, times).await?, quarantined)
    };
    let floor_p99 = p99(&mut bare, &load::post("/", "", &body), times).await?;
    let turns = crate::measure::Turns { floor: vec![floor_p99], product: vec![product_p99] };
    let data = format!("{data}, {} asked, {quarantined} quarantined; p99", count(asked));
    report.add(Row::against("quarantine lookup", data, &turns).at_least(0.5));
    server.stop().await;
    echo.stop().await;
    Ok(())
}

/// The cost that 99 of 100 requests do not exceed, in microseconds.
async fn p99(client: &mut Client, request: &Request, times: usize) -> Result<f64, Failure> {
    let mut costs = Vec::with_capacity(times);
    for _ in 0..times {
        costs.push(client.repeat(request, 1).await?.as_secs_f64() * 1e6);
    }
    costs.sort_by(f64::total_cmp);
    Ok(costs.get(times * 99 / 100).copied().unwrap_or_default())
}

/// Reading JUnit XML.
pub(crate) struct ParseReports;

#[async_trait(?Send)]
impl Operation for ParseReports {
    fn name(&self) -> &'static str {
        "parse-reports"
    }

    async fn run(&self, setup: &Setup, report: &mut Report) -> Result<(), Failure> {
        for mib in setup.sizes(&REPORTS) {
            let text = junit(mib * MIB);
            let before = peak();
            let mut best = f64::MAX;
            for _ in 0..setup.rounds {
                let content = Box::new(Cursor::new(text.clone()));
                let file = ReportFile { name: "junit.xml".into(), content };
                let begun = Instant::now();
                let read = Reports::default().read(UploadSource::JUnit, vec![file], usize::MAX);
                let read = read.await.during("a report")?;
                best = best.min(begun.elapsed().as_secs_f64());
                if read.runs.is_empty() || read.files.iter().any(|it| it.problem.is_some()) {
                    return Err(Failure::new("a report", "was not read"));
                }
            }
            let bytes = f64::from(u32::try_from(text.len()).unwrap_or(u32::MAX));
            let speed = bytes / 1e6 / best;
            let data = format!("{mib} MiB");
            let row = Row::of("parse reports", data.clone(), speed, "MB/s");
            report.add(row.with_goal("≥ 100", speed >= PARSE_GOAL));
            let more = peak().saturating_sub(before) / 1024;
            report.note(format!(
                "parse reports, {data}: {more} MiB more at the peak, a copy of the report among them."
            ));
        }
        Ok(())
    }
}

/// A report of about that many bytes: few cases with much output, as large reports are.
fn junit(bytes: usize) -> Vec<u8> {
    let mut text = String::from("<?xml version=\"1.0\"?><testsuites><testsuite name=\"bench\">");
    let output = "a line of output that a test has printed &amp; that nobody reads\n".repeat(30);
    let mut number = 0;
    while text.len() < bytes {
        number += 1;
        let _ = write!(
            text,
            "<testcase name=\"test {number}\" classname=\"Calc\" file=\"tests/calc.rs\" \
             time=\"0.01\"><system-out>{output}</system-out></testcase>"
        );
    }
    text.push_str("</testsuite></testsuites>");
    text.into_bytes()
}

/// The most memory that this process has had, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}
