//! Runs that did not fail, with the uploads that they came in.

use std::collections::{BTreeMap, BTreeSet};

use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::Bool;
use diesel_async::RunQueryDsl;
use signalbox_domain::flaky::{Run, RunOutcome, RunRecord, SameCode, TestId, Upload};
use signalbox_domain::ports::RepoRef;
use signalbox_domain::time::Timestamp;

use super::super::super::RUNS_CAME_SINCE;
use super::super::{Conn, bulk};
use super::intake_rows::code_text;
use crate::among::among;
use crate::documents::Kept;
use crate::error::DbError;
use crate::packed_runs::{PackedRun, period, unpack};
use crate::schema::{packed_runs, result_uploads};
use crate::sql_types::{FIRST, Moment, Sql, each};

/// Runs by their tests.
pub(super) type Packed = BTreeMap<TestId, Vec<PackedRun>>;
/// Uploads by their numbers.
pub(super) type Uploads = BTreeMap<i64, Upload>;

/// The runs of tests in uploads that came at a time or later, and some from up to a period before.
pub(super) async fn since(
    conn: &mut Conn,
    repo: RepoRef,
    ids: &[TestId],
    from: Timestamp,
) -> Result<Packed, DbError> {
    let (before, after) = RUNS_CAME_SINCE;
    let rows: Vec<(TestId, Timestamp, String)> = packed_runs::table
        .filter(packed_runs::repo_id.eq(Sql(repo.id)))
        .filter(packed_runs::org_id.eq(Sql(repo.org)))
        .filter(among(packed_runs::test_id, ids))
        .filter(sql::<Bool>(before).bind::<Moment, _>(Sql(period(from))).sql(after))
        .order(packed_runs::start)
        .select((packed_runs::test_id, packed_runs::start, packed_runs::runs))
        .load(conn)
        .await?;
    unpacked(rows)
}

/// All runs of tests that count and passed, as they are summed up. Uploads that were read for other
/// tests are in `known`.
pub(super) async fn passes(
    conn: &mut Conn,
    repo: RepoRef,
    ids: &[TestId],
    known: &mut Uploads,
) -> Result<BTreeMap<TestId, Vec<Run>>, DbError> {
    let packed = since(conn, repo, ids, FIRST).await?;
    read_uploads(conn, repo, &packed, known).await?;
    Ok(summable(packed, known))
}

/// The uploads of codes.
pub(super) async fn uploads_of(
    conn: &mut Conn,
    repo: RepoRef,
    codes: &[&SameCode],
) -> Result<Uploads, DbError> {
    let codes: Vec<String> = codes.iter().map(|code| code_text(code)).collect();
    let mut found = Uploads::new();
    for piece in bulk::pieces(&codes) {
        let uploads: Vec<(i64, Kept<Upload>)> = result_uploads::table
            .filter(result_uploads::repo_id.eq(Sql(repo.id)))
            .filter(result_uploads::org_id.eq(Sql(repo.org)))
            .filter(result_uploads::code.eq_any(piece))
            .select((result_uploads::number, result_uploads::upload))
            .load(conn)
            .await?;
        found.extend(uploads.into_iter().map(|(number, Kept(upload))| (number, upload)));
    }
    Ok(found)
}

/// The passing runs of tests in some uploads. The cost grows with the periods of these uploads.
pub(super) async fn passes_in(
    conn: &mut Conn,
    repo: RepoRef,
    ids: &[TestId],
    uploads: &Uploads,
) -> Result<BTreeMap<TestId, Vec<Run>>, DbError> {
    if uploads.is_empty() || ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let starts: BTreeSet<Timestamp> =
        uploads.values().map(|upload| period(upload.received_at)).collect();
    let starts: Vec<Timestamp> = starts.into_iter().collect();
    let rows: Vec<(TestId, Timestamp, String)> = packed_runs::table
        .filter(packed_runs::repo_id.eq(Sql(repo.id)))
        .filter(packed_runs::org_id.eq(Sql(repo.org)))
        .filter(among(packed_runs::test_id, ids))
        .filter(packed_runs::start.eq_any(each(&starts)))
        .order(packed_runs::start)
        .select((packed_runs::test_id, packed_runs::start, packed_runs::runs))
        .load(conn)
        .await?;
    Ok(summable(unpacked(rows)?, uploads))
}

/// The last runs of a test that did not fail, at most `limit`, in any order.
pub(super) async fn recent(
    conn: &mut Conn,
    repo: RepoRef,
    test: TestId,
    limit: usize,
) -> Result<Vec<RunRecord>, DbError> {
    let mut packed = since(conn, repo, &[test], FIRST).await?;
    if let Some(runs) = packed.get_mut(&test) {
        runs.sort_by_key(|run| std::cmp::Reverse((run.at, run.attempt)));
        runs.truncate(limit);
    }
    let mut uploads = Uploads::new();
    read_uploads(conn, repo, &packed, &mut uploads).await?;
    let runs = packed.remove(&test).unwrap_or_default().into_iter();
    let record = |run: PackedRun| {
        let upload = uploads.get(&run.upload)?;
        Some(RunRecord {
            attempt: run.attempt,
            counts: run.counts,
            took: run.took,
            quarantined: run.quarantined,
            ..RunRecord::new(upload, test, run.at, run.outcome)
        })
    };
    Ok(runs.filter_map(record).collect())
}

/// Reads the uploads of runs that are not known yet. One that was deleted in the meantime stays
/// unknown, and its runs are omitted.
async fn read_uploads(
    conn: &mut Conn,
    repo: RepoRef,
    packed: &Packed,
    known: &mut Uploads,
) -> Result<(), DbError> {
    let numbers = packed.values().flatten().map(|run| run.upload);
    let numbers: BTreeSet<i64> = numbers.filter(|number| !known.contains_key(number)).collect();
    let numbers: Vec<i64> = numbers.into_iter().collect();
    for piece in bulk::pieces(&numbers) {
        let rows: Vec<(i64, Kept<Upload>)> = result_uploads::table
            .filter(result_uploads::repo_id.eq(Sql(repo.id)))
            .filter(result_uploads::org_id.eq(Sql(repo.org)))
            .filter(result_uploads::number.eq_any(piece))
            .select((result_uploads::number, result_uploads::upload))
            .load(conn)
            .await?;
        known.extend(rows.into_iter().map(|(number, Kept(upload))| (number, upload)));
    }
    Ok(())
}

fn unpacked(rows: Vec<(TestId, Timestamp, String)>) -> Result<Packed, DbError> {
    let mut packed = Packed::new();
    for (test, start, text) in rows {
        let runs = unpack(start, &text).ok_or_else(|| DbError::corrupt("packed runs", text))?;
        packed.entry(test).or_default().extend(runs);
    }
    Ok(packed)
}

fn summable(packed: Packed, uploads: &Uploads) -> BTreeMap<TestId, Vec<Run>> {
    let of_test = |(test, runs): (TestId, Vec<PackedRun>)| {
        let counted = runs.into_iter().filter(PackedRun::is_counted_pass);
        let runs = counted.filter_map(|run| {
            let upload = uploads.get(&run.upload)?;
            let record = RunRecord::new(upload, test, run.at, RunOutcome::Passed);
            Some(Run {
                at: record.at,
                branch: record.branch,
                class: record.class,
                codes: vec![upload.code()],
                origin: upload.origin,
                passed: true,
            })
        });
        (test, runs.collect())
    };
    packed.into_iter().map(of_test).collect()
}
