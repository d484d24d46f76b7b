//! Repositories with many tests: the product takes one upload in, and the database copies its rows
//! under the names and ids of as many tests as are wanted.
//!
//! Rows are written in the order of the tests' ids, so every index grows at its end, and without
//! waiting for the disk.

use std::fmt::Write as _;

use signalbox_domain::flaky::{AutoQuarantine, ReportedRun, RunOutcome, SettingsPatch};
use signalbox_domain::ports::Clock;
use signalbox_services::ResultsSink;

use crate::database::{Fresh, On};
use crate::failure::{During, Failure};
use crate::flaky_data::{key, name, run, upload};
use crate::parts::SystemClock;
use crate::product::Product;

/// Names and ids that one statement writes.
const NAMES_AT_ONCE: usize = 5_000;
/// Rows that one transaction writes.
const ROWS_AT_ONCE: usize = 250_000;
/// Of so many tests one is flaky, and so is quarantined.
const FLAKY_EACH: usize = 100;
/// Of so many tests one has failed.
const FAILING_EACH: usize = 20;

/// The copied rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mix {
    /// One in 100 is flaky, one in 20 has failed, and everything counted of a test is there.
    Usual,
    /// All are flaky, and nothing is counted.
    AllFlaky,
}

/// The tests whose rows are copied, by their kind.
const TEMPLATES: [&str; 3] = ["template healthy", "template flaky", "template failing"];
/// The tables with rows of a test, and their columns but for the test's id.
const COUNTED: [(&str, &str); 4] = [
    ("test_hours", "repo_id, hour, org_id, failed, first_failure_at, last_failure_at"),
    ("test_buckets", "repo_id, start, branch, org_id, class, failed, last_run_at, last_failure_at"),
    (
        "test_codes",
        "repo_id, code, branch, origin, org_id, class, first_success_at, first_failure_at, last_at",
    ),
    ("test_failures", "repo_id, day, fingerprint, org_id, summary, occurrences, last_at"),
];

/// Writes that many tests, and about that many results of them. Quarantine of flaky tests is on.
/// A repository is seeded once.
pub(crate) async fn seed(
    fresh: &Fresh,
    product: &Product,
    tests: usize,
    results: usize,
    mix: Mix,
) -> Result<(), Failure> {
    let (caller, repo) = (&product.caller, &product.repository.name);
    let service = &product.api.flaky.service;
    product.stores.flaky.tests.prepare_days(SystemClock.now()).await.during("partitions")?;
    let on = SettingsPatch {
        quarantine_enabled: Some(true),
        auto_quarantine: Some(AutoQuarantine::Flaky),
        ..Default::default()
    };
    service.update_settings(caller, repo, |_| on.clone()).await.during("settings")?;
    let [healthy, flaky, failing] = TEMPLATES;
    let runs = vec![
        run(product, healthy, RunOutcome::Passed),
        run(product, flaky, RunOutcome::Failed),
        ReportedRun { attempt: 1, ..run(product, flaky, RunOutcome::Passed) },
        run(product, failing, RunOutcome::Failed),
    ];
    service.take_in(&upload(product, 1)?, runs).await.during("an upload")?;
    if fresh.on == On::Sqlite {
        fresh.floor.run_sql("PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF").await?;
    }
    templates(fresh, product).await?;
    names(fresh, product, tests, mix).await?;
    let each = if mix == Mix::Usual { results / tests.max(1) } else { 0 };
    for from in (0..tests).step_by(ROWS_AT_ONCE) {
        copy(fresh, from..from + ROWS_AT_ONCE, mix, each).await?;
    }
    finish(fresh).await
}

/// The type of ids.
const fn id_type(on: On) -> &'static str {
    match on {
        On::Sqlite => "BLOB",
        On::Postgres => "UUID",
    }
}

/// A document in which a text is replaced, as an expression.
fn replaced(on: On, document: &str, (from, to): (&str, &str)) -> String {
    let (text, back) = match on {
        On::Sqlite => ("", ""),
        On::Postgres => ("::text", "::jsonb"),
    };
    format!("replace({document}{text}, {from}{text}, {to}{text}){back}")
}

/// Copies of the templates' rows, with the kind and the name of each.
async fn templates(fresh: &Fresh, product: &Product) -> Result<(), Failure> {
    let mut kinds = String::new();
    for (kind, name) in TEMPLATES.iter().enumerate() {
        let separator = if kind == 0 { "" } else { ", " };
        let id = key(product, name).id().0;
        // Writing to a string does not fail.
        let _ = write!(kinds, "{separator}({kind}, {}, '{name}')", fresh.on.id(id));
    }
    let id = id_type(fresh.on);
    let mut sql = format!(
        "CREATE TABLE seed_kinds (kind INTEGER NOT NULL, template {id} NOT NULL, \
         name TEXT NOT NULL); INSERT INTO seed_kinds VALUES {kinds}; \
         CREATE TABLE seed_test_cases AS SELECT k.*, t.* FROM seed_kinds k \
         JOIN test_cases t ON t.id = k.template; \
         CREATE TABLE seed_packed_runs AS SELECT t.* FROM seed_kinds k \
         JOIN packed_runs t ON t.test_id = k.template WHERE k.kind = 0;"
    );
    for (table, _) in COUNTED {
        let _ = write!(
            sql,
            "CREATE TABLE seed_{table} AS SELECT k.kind, t.* FROM seed_kinds k \
             JOIN {table} t ON t.test_id = k.template;"
        );
    }
    fresh.floor.run_sql(&sql).await
}

/// The tests to be made: their place in the order of ids, their kind, id and name.
async fn names(fresh: &Fresh, product: &Product, tests: usize, mix: Mix) -> Result<(), Failure> {
    let mut all: Vec<(uuid::Uuid, usize)> =
        (0..tests).map(|number| (key(product, &name(number)).id().0, number)).collect();
    all.sort_unstable();
    let table = format!(
        "CREATE TABLE seed_tests (place INTEGER NOT NULL PRIMARY KEY, \
         kind INTEGER NOT NULL, id {} NOT NULL, name TEXT NOT NULL)",
        id_type(fresh.on)
    );
    fresh.floor.run_sql(&table).await?;
    for (chunk, tests) in all.chunks(NAMES_AT_ONCE).enumerate() {
        let mut sql = String::from("INSERT INTO seed_tests VALUES ");
        for (at, (id, number)) in tests.iter().enumerate() {
            let kind = match mix {
                Mix::AllFlaky => 1,
                Mix::Usual if number % FLAKY_EACH == 0 => 1,
                Mix::Usual if number % FAILING_EACH == 1 => 2,
                Mix::Usual => 0,
            };
            let separator = if at == 0 { "" } else { ", " };
            let place = chunk * NAMES_AT_ONCE + at;
            let _ = write!(
                sql,
                "{separator}({place}, {kind}, {}, '{}')",
                fresh.on.id(*id),
                name(*number)
            );
        }
        fresh.floor.run_sql(&sql).await?;
    }
    Ok(())
}

/// Copies the templates' rows for the tests of these places, with so many results of each.
async fn copy(
    fresh: &Fresh,
    places: std::ops::Range<usize>,
    mix: Mix,
    each: usize,
) -> Result<(), Failure> {
    let among = format!("v.place >= {} AND v.place < {}", places.start, places.end);
    let from = |table: &str| {
        format!("FROM seed_tests v CROSS JOIN seed_{table} t WHERE t.kind = v.kind AND {among}")
    };
    // Only this transaction of PostgreSQL skips the checks of foreign keys.
    let begin = match fresh.on {
        On::Sqlite => "BEGIN;",
        On::Postgres => "BEGIN; SET LOCAL session_replication_role = replica;",
    };
    let mut sql = format!(
        "{begin} INSERT INTO test_cases (repo_id, id, org_id, status, quarantine, \
         quarantine_until, noted, watched, owners, ticket, first_seen_at, stable_since, \
         last_seen_at, last_failure_at, due_at, windows, document, retired) \
         SELECT t.repo_id, v.id, t.org_id, t.status, t.quarantine, t.quarantine_until, t.noted, \
         t.watched, t.owners, t.ticket, t.first_seen_at, t.stable_since, t.last_seen_at, \
         t.last_failure_at, t.due_at, t.windows, {}, t.retired {} ORDER BY v.place;",
        replaced(fresh.on, "t.document", ("t.name", "v.name")),
        from("test_cases")
    );
    if mix == Mix::Usual {
        for (table, columns) in COUNTED {
            let _ = write!(
                sql,
                "INSERT INTO {table} (test_id, {columns}) SELECT v.id, {columns} {} \
                 ORDER BY v.place;",
                from(table)
            );
        }
        let runs = match fresh.on {
            On::Sqlite => format!("replace(hex(zeroblob({each})), '00', t.runs)"),
            On::Postgres => format!("repeat(t.runs, {each})"),
        };
        let _ = write!(
            sql,
            "INSERT INTO packed_runs (repo_id, test_id, start, org_id, runs) \
             SELECT t.repo_id, v.id, t.start, t.org_id, {runs} \
             FROM seed_tests v CROSS JOIN seed_packed_runs t WHERE {among} ORDER BY v.place;"
        );
    }
    sql.push_str("COMMIT;");
    fresh.floor.run_sql(&sql).await
}

/// Takes away what only the copying needed, and leaves the database as the product keeps it: its
/// statistics are PostgreSQL's own work, and SQLite has none.
async fn finish(fresh: &Fresh) -> Result<(), Failure> {
    let others = ["test_cases", "packed_runs", "tests", "kinds"];
    let counted = COUNTED.iter().map(|(table, _)| *table);
    for table in others.into_iter().chain(counted) {
        fresh.floor.run_sql(&format!("DROP TABLE seed_{table}")).await?;
    }
    match fresh.on {
        On::Sqlite => {
            let sql = "PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL; \
                       PRAGMA wal_checkpoint(TRUNCATE)";
            fresh.floor.run_sql(sql).await
        }
        On::Postgres => fresh.floor.run_sql("VACUUM ANALYZE").await,
    }
}
