//! What is counted of runs, in the form that monitors are measured on.

use std::collections::{BTreeMap, BTreeSet};

use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use signalbox_domain::flaky::{
    BranchClass, Bucket, CodeSummary, Origin, SameCode, Summary, TestId,
};
use signalbox_domain::ids::{Sha, TreeId};
use signalbox_domain::ports::RepoRef;
use signalbox_domain::time::Timestamp;

use super::super::{Conn, bulk};
use super::intake_rows::code_text;
use super::packed;
use crate::among::among;
use crate::documents::number;
use crate::error::DbError;
use crate::schema::{test_buckets, test_codes};
use crate::sql_types::Sql;

type BucketRow = (TestId, Timestamp, String, String, i64, Timestamp, Option<Timestamp>);
type CodeRow = (TestId, String, String, String, String, Option<Timestamp>, Option<Timestamp>);

/// Tests whose history is read at a time: it may be long.
const AT_ONCE: usize = 20;

/// Failures are in rows, and the passes of all uploads are added to them.
pub(super) async fn summaries(
    conn: &mut Conn,
    repo: RepoRef,
    ids: &[TestId],
    since: Timestamp,
) -> Result<BTreeMap<TestId, Summary>, DbError> {
    let mut summaries: BTreeMap<TestId, Summary> = BTreeMap::new();
    let mut uploads = packed::Uploads::new();
    for piece in ids.chunks(AT_ONCE) {
        let buckets: Vec<BucketRow> = test_buckets::table
            .filter(test_buckets::repo_id.eq(Sql(repo.id)))
            .filter(test_buckets::org_id.eq(Sql(repo.org)))
            .filter(among(test_buckets::test_id, piece))
            .filter(test_buckets::start.ge(Sql(since)))
            .select((
                test_buckets::test_id,
                test_buckets::start,
                test_buckets::branch,
                test_buckets::class,
                test_buckets::failed,
                test_buckets::last_run_at,
                test_buckets::last_failure_at,
            ))
            .load(conn)
            .await?;
        let mut failing: BTreeMap<TestId, Summary> = BTreeMap::new();
        for (test, start, branch, class, failed, last_run, last_failure) in buckets {
            failing.entry(test).or_default().buckets.push(Bucket {
                start,
                branch,
                class: class_of(&class)?,
                passed: 0,
                failed: number("bucket", failed.max(0))?,
                last_run_at: last_run,
                last_failure_at: last_failure.filter(|_| failed > 0),
            });
        }
        let codes: Vec<CodeRow> = test_codes::table
            .filter(test_codes::repo_id.eq(Sql(repo.id)))
            .filter(test_codes::org_id.eq(Sql(repo.org)))
            .filter(among(test_codes::test_id, piece))
            .select(CODE)
            .load(conn)
            .await?;
        for row in codes {
            let (test, code) = code_summary(row)?;
            failing.entry(test).or_default().codes.push(code);
        }
        for (test, runs) in packed::passes(conn, repo, piece, &mut uploads).await? {
            let mut passing = Summary::of(&runs);
            passing.buckets.retain(|bucket| bucket.start >= since);
            // Failures are added to passes, and not the other way: there are few of them.
            passing.add(&failing.remove(&test).unwrap_or_default());
            failing.insert(test, passing);
        }
        summaries.append(&mut failing);
    }
    // Also earlier runs of a code that was run since then.
    for summary in summaries.values_mut() {
        summary.codes.retain(|code| {
            code.first_success_at.max(code.first_failure_at).is_some_and(|last| last >= since)
        });
    }
    summaries.retain(|_, summary| !summary.buckets.is_empty() || !summary.codes.is_empty());
    Ok(summaries)
}

/// The tests with a row on a code: the tests that failed on it.
pub(super) async fn tests_on(
    conn: &mut Conn,
    repo: RepoRef,
    code: &SameCode,
) -> Result<BTreeSet<TestId>, DbError> {
    let tests: Vec<TestId> = test_codes::table
        .filter(test_codes::repo_id.eq(Sql(repo.id)))
        .filter(test_codes::org_id.eq(Sql(repo.org)))
        .filter(test_codes::code.eq(code_text(code)))
        .select(test_codes::test_id)
        .load(conn)
        .await?;
    Ok(tests.into_iter().collect())
}

/// The summaries of tests on codes, from their rows and from the uploads of those codes.
pub(super) async fn codes(
    conn: &mut Conn,
    repo: RepoRef,
    ids: &[TestId],
    codes: &[&SameCode],
) -> Result<BTreeMap<TestId, Vec<CodeSummary>>, DbError> {
    let mut found: BTreeMap<TestId, Summary> = BTreeMap::new();
    let uploads = packed::uploads_of(conn, repo, codes).await?;
    let texts: Vec<String> = codes.iter().map(|code| code_text(code)).collect();
    for piece in bulk::pieces(ids) {
        for texts in bulk::pieces(&texts) {
            let rows: Vec<CodeRow> = test_codes::table
                .filter(test_codes::repo_id.eq(Sql(repo.id)))
                .filter(test_codes::org_id.eq(Sql(repo.org)))
                .filter(among(test_codes::test_id, piece))
                .filter(test_codes::code.eq_any(texts))
                .order((
                    test_codes::test_id,
                    test_codes::code,
                    test_codes::branch,
                    test_codes::origin,
                ))
                .select(CODE)
                .load(conn)
                .await?;
            for row in rows {
                let (test, code) = code_summary(row)?;
                found.entry(test).or_default().codes.push(code);
            }
        }
        for (test, runs) in packed::passes_in(conn, repo, piece, &uploads).await? {
            let passing = Summary { buckets: Vec::new(), ..Summary::of(&runs) };
            found.entry(test).or_default().add(&passing);
        }
    }
    found.retain(|_, summary| !summary.codes.is_empty());
    Ok(found.into_iter().map(|(test, summary)| (test, summary.codes)).collect())
}

/// The summaries of the codes on which tests failed at a time or later.
pub(super) async fn failed_codes(
    conn: &mut Conn,
    repo: RepoRef,
    ids: &[TestId],
    since: Timestamp,
) -> Result<BTreeMap<TestId, Vec<CodeSummary>>, DbError> {
    let mut found = BTreeMap::new();
    for piece in ids.chunks(AT_ONCE) {
        let rows: Vec<(TestId, String)> = test_codes::table
            .filter(test_codes::repo_id.eq(Sql(repo.id)))
            .filter(test_codes::org_id.eq(Sql(repo.org)))
            .filter(among(test_codes::test_id, piece))
            .filter(test_codes::first_failure_at.ge(Sql(since)))
            .select((test_codes::test_id, test_codes::code))
            .distinct()
            .load(conn)
            .await?;
        let mut failed: BTreeMap<SameCode, BTreeSet<TestId>> = BTreeMap::new();
        for (test, code) in rows {
            failed.entry(code_of(&code)?).or_default().insert(test);
        }
        let known: Vec<&SameCode> = failed.keys().collect();
        for (test, mut summaries) in codes(conn, repo, piece, &known).await? {
            summaries.retain(|it| failed.get(&it.code).is_some_and(|of| of.contains(&test)));
            if !summaries.is_empty() {
                found.insert(test, summaries);
            }
        }
    }
    Ok(found)
}

const CODE: (
    test_codes::test_id,
    test_codes::code,
    test_codes::branch,
    test_codes::origin,
    test_codes::class,
    test_codes::first_success_at,
    test_codes::first_failure_at,
) = (
    test_codes::test_id,
    test_codes::code,
    test_codes::branch,
    test_codes::origin,
    test_codes::class,
    test_codes::first_success_at,
    test_codes::first_failure_at,
);

fn code_summary(row: CodeRow) -> Result<(TestId, CodeSummary), DbError> {
    let (test, code, branch, origin, class, first_success_at, first_failure_at) = row;
    let (code, class) = (code_of(&code)?, class_of(&class)?);
    let origin: Origin =
        origin.parse().map_err(|_| DbError::corrupt("origin of runs", origin.clone()))?;
    Ok((test, CodeSummary { code, branch, class, origin, first_success_at, first_failure_at }))
}

fn class_of(word: &str) -> Result<BranchClass, DbError> {
    BranchClass::parse(word).ok_or_else(|| DbError::corrupt("branch class", word.to_owned()))
}

fn code_of(text: &str) -> Result<SameCode, DbError> {
    let corrupt = || DbError::corrupt("code", text.to_owned());
    let (kind, value) = text.split_once(':').ok_or_else(corrupt)?;
    match kind {
        "commit" => Sha::new(value).map(SameCode::Commit).map_err(|_| corrupt()),
        "tree" => TreeId::new(value).map(SameCode::Tree).map_err(|_| corrupt()),
        "upload" => Ok(SameCode::Upload(value.to_owned())),
        _ => Err(corrupt()),
    }
}
