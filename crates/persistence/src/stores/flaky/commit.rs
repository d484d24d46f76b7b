//! Writing a step of a repository.

use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use signalbox_domain::flaky::{Progress, TestId};
use signalbox_domain::ids::{OrgId, RepoId};

use super::super::bulk::Script;
use super::super::{Conn, bulk, event_log};
use super::intake_rows::{WINDOWS, WINDOWS_SET};
use super::rows::{CommitRows, JOURNAL, PRESENCES, STATE_SET, STATES, SettingsRow};
use crate::documents::column;
use crate::error::DbError;
use crate::schema::{flaky_repos, flaky_settings_log, test_presences};
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
    let told = match rows.intake {
        Some(intake) => intake.write(conn, repo, org).await?,
        None => Script::default(),
    };
    WINDOWS.update(conn, 2, WINDOWS_SET, &rows.windows).await?;
    STATES.update(conn, 3, STATE_SET, &rows.tests.states).await?;
    JOURNAL.insert(conn, &rows.tests.journal).await?;
    PRESENCES.insert(conn, &rows.tests.presences).await?;
    forget_presences(conn, repo, &rows.tests.forgotten_presences).await?;
    if let Some(row) = &rows.audit {
        row.insert(conn).await?;
    }
    // Last: on PostgreSQL others of the organization wait from here to the commit.
    event_log::write(conn, org, &rows.events).await?;
    event_log::write_later(conn, org, told).await?;
    event_log::write(conn, org, &rows.tests.events).await?;
    Ok(next)
}

/// Forgets what stable branches show of tests.
pub(super) async fn forget_presences(
    conn: &mut Conn,
    repo: RepoId,
    tests: &[TestId],
) -> Result<(), DbError> {
    for piece in bulk::pieces(tests) {
        let forgotten = test_presences::table
            .filter(test_presences::repo_id.eq(Sql(repo)))
            .filter(test_presences::test_id.eq_any(each(piece)));
        diesel::delete(forgotten).execute(conn).await?;
    }
    Ok(())
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
