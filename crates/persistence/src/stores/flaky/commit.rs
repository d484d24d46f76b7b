//! Writing a step of a repository.

use std::collections::{BTreeMap, BTreeSet};

use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use signalbox_domain::flaky::{
    Addition, Intake, Progress, ReportedTest, RunOutcome, RunRecord, Summary, TestId, Windows,
};
use signalbox_domain::ids::{OrgId, RepoId};
use signalbox_domain::ports::RepoRef;

use super::super::super::prepare_day;
use super::super::{Conn, bulk, event_log};
use super::intake_rows::{
    ALIASES, BUCKETS, CODES, CodeRow, FAILURES, HOURS, IntakeRows, PACKED, PULL_REQUESTS, RUNS,
    SEEN, SEEN_SET, SeenRow, TESTS, TestRow, WINDOWS, WINDOWS_SET, WindowsRow, code_text,
};
use super::rows::{CommitRows, JOURNAL, PRESENCES, STATE_SET, STATES, SettingsRow};
use super::{packed, summaries};
use crate::documents::{column, encode};
use crate::error::DbError;
use crate::schema::{flaky_repos, flaky_settings_log, result_uploads, test_cases, test_presences};
use crate::sql_types::{Sql, each};

/// Writes a commit inside a transaction; [`DbError::Conflict`] when the version is another one.
pub(super) async fn write(conn: &mut Conn, rows: CommitRows) -> Result<i64, DbError> {
    let (repo, org) = (rows.repo.id, rows.repo.org);
    let next = rows.expected + 1;
    if rows.expected == 0 {
        let new = (
            flaky_repos::repo_id.eq(Sql(repo)),
            flaky_repos::org_id.eq(Sql(org)),
            flaky_repos::version.eq(0_i64),
            flaky_repos::marks.eq(0_i64),
        );
        diesel::insert_into(flaky_repos::table)
            .values(new)
            .on_conflict_do_nothing()
            .execute(conn)
            .await?;
    }
    let expected = flaky_repos::table
        .filter(flaky_repos::repo_id.eq(Sql(repo)))
        .filter(flaky_repos::org_id.eq(Sql(org)))
        .filter(flaky_repos::version.eq(rows.expected));
    let grown =
        (flaky_repos::version.eq(next), flaky_repos::marks.eq(flaky_repos::marks + rows.marks));
    if diesel::update(expected).set(grown).execute(conn).await? != 1 {
        return Err(DbError::Conflict);
    }
    if let Some(settings) = rows.settings {
        set(conn, repo, org, next, settings).await?;
    }
    rows.incidents.write(conn, repo).await?;
    if let Some(progress) = &rows.progress {
        advance(conn, repo, progress).await?;
    }
    if let Some((intake, intake_rows)) = &rows.intake {
        take_in(conn, repo, org, (intake, intake_rows), &rows.windows).await?;
    }
    let seen = rows.intake.as_ref().map(|(intake, _)| &intake.reported_tests);
    let unseen = rows.windows.iter();
    let unseen = unseen.filter(|(id, _)| seen.is_none_or(|seen| !seen.contains_key(id)));
    let unseen = unseen
        .map(|(id, windows)| Ok(WindowsRow { repo_id: repo, id: *id, windows: encode(windows)? }));
    let unseen: Vec<WindowsRow> = unseen.collect::<Result<_, DbError>>()?;
    WINDOWS.update(conn, 2, WINDOWS_SET, &unseen).await?;
    STATES.update(conn, 3, STATE_SET, &rows.states).await?;
    JOURNAL.insert(conn, &rows.journal).await?;
    PRESENCES.insert(conn, &rows.presences).await?;
    for piece in bulk::pieces(&rows.forgotten_presences) {
        let forgotten = test_presences::table
            .filter(test_presences::repo_id.eq(Sql(repo)))
            .filter(test_presences::test_id.eq_any(each(piece)));
        diesel::delete(forgotten).execute(conn).await?;
    }
    if let Some(row) = &rows.audit {
        row.insert(conn).await?;
    }
    // Last: on PostgreSQL others of the organization wait from here to the commit.
    event_log::write(conn, rows.repo.org, &rows.events).await?;
    Ok(next)
}

/// Writes how far a repository was judged.
async fn advance(conn: &mut Conn, repo: RepoId, progress: &Progress) -> Result<(), DbError> {
    let imported = progress.imported;
    diesel::update(flaky_repos::table.find(Sql(repo)))
        .set((
            flaky_repos::judged_at.eq(progress.judged_at.map(Sql)),
            flaky_repos::imported_uploads.eq(imported.map(|it| i64::from(it.uploads))),
            flaky_repos::imported_runs.eq(imported.map(|it| column(it.runs))),
            flaky_repos::imported_from.eq(imported.map(|it| Sql(it.from))),
            flaky_repos::imported_until.eq(imported.map(|it| Sql(it.until))),
        ))
        .execute(conn)
        .await?;
    Ok(())
}

async fn set(
    conn: &mut Conn,
    repo: RepoId,
    org: OrgId,
    version: i64,
    settings: SettingsRow,
) -> Result<(), DbError> {
    diesel::update(flaky_repos::table.find(Sql(repo)))
        .set(flaky_repos::document.eq(Some(&settings.document)))
        .execute(conn)
        .await?;
    let logged = (
        flaky_settings_log::repo_id.eq(Sql(repo)),
        flaky_settings_log::version.eq(version),
        flaky_settings_log::org_id.eq(Sql(org)),
        flaky_settings_log::at.eq(Sql(settings.at)),
        flaky_settings_log::document.eq(&settings.change),
    );
    diesel::insert_into(flaky_settings_log::table).values(logged).execute(conn).await?;
    Ok(())
}

async fn take_in(
    conn: &mut Conn,
    repo: RepoId,
    org: OrgId,
    (intake, rows): (&Intake, &IntakeRows),
    windows: &BTreeMap<TestId, Windows>,
) -> Result<(), DbError> {
    let upload = (
        result_uploads::repo_id.eq(Sql(repo)),
        result_uploads::id.eq(Sql(intake.upload.id)),
        result_uploads::org_id.eq(Sql(org)),
        result_uploads::number.eq(rows.number),
        result_uploads::received_at.eq(Sql(rows.received_at)),
        result_uploads::code.eq(code_text(&rows.code)),
        result_uploads::upload.eq(encode(&intake.upload)?),
        result_uploads::taken_in.eq(encode(&intake.taken_in)?),
    );
    diesel::insert_into(result_uploads::table).values(upload).execute(conn).await?;
    let reported_tests: Vec<&ReportedTest> = intake.reported_tests.values().collect();
    for piece in bulk::pieces(&reported_tests) {
        see(conn, repo, rows.tests(piece, windows)?).await?;
        ALIASES.insert(conn, &rows.aliases(piece)).await?;
    }
    prepare_day(conn, rows.day).await?;
    // The runs of a test must be in one piece: rows of one statement must differ.
    let mut runs: Vec<&RunRecord> = intake.runs.iter().collect();
    runs.sort_by_key(|run| run.test);
    let tests: Vec<&[&RunRecord]> = runs.chunk_by(|one, other| one.test == other.test).collect();
    for piece in bulk::pieces(&tests) {
        PACKED.insert(conn, &rows.packed(&piece.concat())).await?;
    }
    let failed: Vec<&RunRecord> =
        runs.into_iter().filter(|run| run.outcome == RunOutcome::Failed).collect();
    for piece in bulk::pieces(&failed) {
        RUNS.insert(conn, &rows.failed(piece)?).await?;
    }
    let repo = RepoRef { org, id: repo };
    let known = summaries::tests_on(conn, repo, &rows.code).await?;
    let additions: Vec<(&TestId, &Addition)> = intake.additions.iter().collect();
    for piece in bulk::pieces(&additions) {
        let counted = rows.counted(piece, &known);
        HOURS.insert(conn, &counted.hours).await?;
        BUCKETS.insert(conn, &counted.buckets).await?;
        CODES.insert(conn, &counted.codes).await?;
        FAILURES.insert(conn, &counted.failures).await?;
        PULL_REQUESTS.insert(conn, &counted.pull_requests).await?;
    }
    // A test that fails on a code for the first time gets its passes there, too: packed runs go
    // earlier than a code on which something was run later.
    let mut earlier = packed::uploads_of(conn, repo, &rows.code).await?;
    earlier.remove(&rows.number);
    let failed = additions.iter().filter(|(id, it)| !known.contains(id) && it.has_failed());
    let failed: Vec<TestId> = failed.map(|(id, _)| **id).collect();
    for piece in bulk::pieces(&failed) {
        let passes = packed::passes_in(conn, repo, piece, &earlier).await?;
        let codes = passes.into_iter().flat_map(|(test, runs)| {
            let codes = Summary::of(&runs).codes;
            codes.into_iter().map(move |code| (test, code))
        });
        let codes: Vec<CodeRow> = codes.map(|(test, code)| rows.code_row(test, &code)).collect();
        CODES.insert(conn, &codes).await?;
    }
    Ok(())
}

/// Writes some tests of an upload: new ones whole, of known ones when they were seen.
async fn see(conn: &mut Conn, repo: RepoId, tests: Vec<TestRow>) -> Result<(), DbError> {
    let ids: Vec<TestId> = tests.iter().map(|row| row.id).collect();
    let known: Vec<TestId> = test_cases::table
        .filter(test_cases::repo_id.eq(Sql(repo)))
        .filter(test_cases::id.eq_any(each(&ids)))
        .select(test_cases::id)
        .load(conn)
        .await?;
    let known: BTreeSet<TestId> = known.into_iter().collect();
    let (seen, new): (Vec<TestRow>, Vec<TestRow>) =
        tests.into_iter().partition(|row| known.contains(&row.id));
    TESTS.insert(conn, &new).await?;
    let again = |row: TestRow| SeenRow {
        repo_id: row.repo_id,
        id: row.id,
        owners: row.owners,
        stable_since: row.stable_since,
        last_seen_at: row.last_seen_at,
        last_failure_at: row.last_failure_at,
        windows: row.windows,
    };
    let seen: Vec<SeenRow> = seen.into_iter().map(again).collect();
    SEEN.update(conn, 2, SEEN_SET, &seen).await
}
