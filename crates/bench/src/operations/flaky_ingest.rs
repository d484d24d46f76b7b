//! An upload of 10,000 tests, the memory that a server needs for it, and the lookup of quarantined
//! tests.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use actix_web::HttpResponse;
use actix_web::web::{self, Bytes, PayloadConfig};
use async_trait::async_trait;
use serde_json::json;
use signalbox_domain::flaky::RunOutcome;
use signalbox_services::ResultsSink;

use super::Operation;
use crate::database::{Fresh, On};
use crate::failure::{During, Failure};
use crate::flaky_data;
use crate::flaky_seed::{self, Mix};
use crate::load::{self, Client, Request};
use crate::measure::{in_turn, micros_each, percentile};
use crate::process::{Running, program};
use crate::product::Product;
use crate::report::{Report, Row, count};
use crate::servers;
use crate::setup::Setup;

/// Tests of an upload.
const TESTS: usize = 10_000;
/// Tests per request for quarantine states, and the number of requests.
const ASKED: (usize, usize) = (2_600, 200);
/// The least share of the floor's throughput of an ingest.
const INGEST_GOAL: f64 = 0.5;
/// The most memory of an upload, in MiB, beyond that of an idle server.
const MEMORY_GOAL: f64 = 64.0;
/// The interval and the number of polls for the state of an upload.
const ASK: (Duration, u32) = (Duration::from_millis(100), 3_000);
const MIB: usize = 1024 * 1024;

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
                flaky_seed::seed(&fresh, &product, tests, 0, Mix::Usual).await?;
                let data = format!("{}, {} tests known", on.name(), count(tests));
                ingest(setup, report, (&fresh, &product), tests, &data).await?;
                lookup(setup, report, &product, tests, &data).await?;
                memory(setup, report, (&fresh, &product), tests, &data).await?;
            }
        }
        Ok(())
    }
}

/// The rows of an upload that the product cannot do without: the runs of each test, and what
/// monitors know of it.
const TABLES: [(&str, &str); 2] = [
    ("bench_runs", "SELECT * FROM packed_runs"),
    ("bench_windows", "SELECT repo_id, id, windows FROM test_cases"),
];

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
    for (table, columns) in TABLES {
        let empty = format!("CREATE TABLE {table} AS {columns} WHERE 1 = 0");
        fresh.floor.run_sql(&empty).await?;
    }
    let mut rows = String::from("BEGIN;");
    let org = fresh.on.id(product.repository.org.0);
    let at = match fresh.on {
        On::Sqlite => "1",
        On::Postgres => "'1970-01-01T00:00:00.000001Z'",
    };
    let windows = format!("'{{\"x\":\"{}\"}}'", "x".repeat(130));
    for (table, values) in [
        ("bench_runs", format!("{at}, {org}, '2328.3a1d51c00.61a8.2;'")),
        ("bench_windows", windows),
    ] {
        let repo = fresh.on.id(product.repository.id.0);
        let _ = write!(rows, "INSERT INTO {table} VALUES ");
        for (at, name) in names.iter().enumerate() {
            let separator = if at == 0 { "" } else { ", " };
            let id = fresh.on.id(flaky_data::key(product, name).id().0);
            let _ = write!(rows, "{separator}({repo}, {id}, {values})");
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
    let path = "/v1/metrics/getQuarantineConfig";
    let (product_p99, quarantined) = {
        let request = load::post(path, &product.token, &body);
        let answer = client.one(&request).await?;
        let answer: serde_json::Value = serde_json::from_slice(&answer).during("an answer")?;
        let quarantined = answer["testIds"].as_array().map_or(0, Vec::len);
        (p99(&mut client, &request, times).await?, quarantined)
    };
    // A server does not wait long for the first request of a connection.
    let mut bare = Client::to(echo.address).await?;
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
    Ok(percentile(&mut costs, 99))
}

/// The peak growth of a server's memory while it reads a report of 10,000 tests.
async fn memory(
    setup: &Setup,
    report: &mut Report,
    (fresh, product): (&Fresh, &Product),
    tests: usize,
    data: &str,
) -> Result<(), Failure> {
    let Some(program) = program()? else {
        report.note("ingest: memory was not measured, there is no release program.".to_owned());
        return Ok(());
    };
    let many = TESTS.min(tests);
    let stride = tests / many;
    let mut xml = String::from("<testsuite name=\"bench\">");
    for at in 0..many {
        let name = flaky_data::name(at * stride);
        // Writing to a string does not fail.
        let _ = write!(
            xml,
            "<testcase name=\"{name}\" classname=\"Calc\" file=\"tests/calc.rs\" time=\"1\"/>"
        );
    }
    xml.push_str("</testsuite>");
    let more = above_idle(setup, (fresh, product, &program), setup.rounds, &xml).await?;
    let data = format!("{data}, {} in the upload: memory above idle", count(many));
    let row = Row::of("ingest", data, more, "MiB");
    report.add(row.with_goal(&format!("≤ {MEMORY_GOAL} MiB"), more <= MEMORY_GOAL));
    Ok(())
}

/// The peak of a server's memory, in MiB above that of an idle server, while it reads a report `1 +
/// rounds` times.
pub(super) async fn above_idle(
    setup: &Setup,
    (fresh, product, program): (&Fresh, &Product, &Path),
    rounds: u32,
    xml: &str,
) -> Result<f64, Failure> {
    let folder = setup.folder()?;
    let server = Running::start(program, folder.path(), &fresh.url).await?;
    let mut client = Client::to(server.address).await?;
    let repo = &product.repository.name;
    let (mut idle, mut peak) = (0.0, 0.0_f64);
    for commit in 0..=rounds {
        if commit == 0 {
            tokio::time::sleep(Duration::from_secs(2)).await;
            idle = server.memory()?.resident;
        }
        let path = format!(
            "/v1/flaky-tests/upload?repo={repo}&branch=main&sha={:040x}",
            0xbe_0000 + commit
        );
        let request = load::post_as("application/xml", &path, &product.token, xml);
        let answer = client.one(&request).await?;
        let answer: serde_json::Value = serde_json::from_slice(&answer).during("an answer")?;
        let status = answer["status_url"].as_str().unwrap_or_default().to_owned();
        let mut asked = 0;
        loop {
            let state = client.one(&load::get(&status, &product.token)).await?;
            let state: serde_json::Value = serde_json::from_slice(&state).during("an answer")?;
            match state["state"].as_str().unwrap_or_default() {
                "read" => break,
                "failed" => return Err(Failure::new("an upload", state.to_string())),
                _ if asked == ASK.1 => return Err(Failure::new("an upload", "is never read")),
                _ => asked += 1,
            }
            tokio::time::sleep(ASK.0).await;
        }
        peak = server.memory()?.peak;
    }
    Ok(peak - idle)
}
