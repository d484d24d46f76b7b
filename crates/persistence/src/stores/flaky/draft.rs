//! The results of an upload until they are committed.

use std::collections::BTreeSet;

use async_trait::async_trait;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use futures_util::FutureExt;
use signalbox_domain::flaky::{
    Addition, ReportedTest, RunOutcome, RunRecord, Summary, TestId, UploadId,
};
use signalbox_domain::ids::{OrgId, RepoId};
use signalbox_domain::ports::{
    CommitError, FlakyCommit, FlakyDraft, IntakePart, NewIntake, RepoRef, StoreError, Version,
};
use signalbox_domain::time::Timestamp;

use super::super::super::prepare_day;
use super::super::bulk::Script;
use super::super::{Conn, Store, bulk, event_log};
use super::intake_rows::{
    ALIASES, BUCKETS, CODES, CodeRow, FAILURES, HOURS, IntakeRows, PACKED, PULL_REQUESTS, RUNS,
    SEEN, SEEN_SET, TESTS, code_text,
};
use super::rows::{CommitRows, JOURNAL, PRESENCES, STATE_SET, STATES, TestRows};
use super::{commit, packed, summaries};
use crate::documents::{Json, encode};
use crate::error::DbError;
use crate::schema::result_uploads;
use crate::sql_types::Sql;

/// An upload whose results are collected. What it reads does not change before the commit, which
/// would conflict.
pub(super) struct Draft {
    store: Store,
    repo: RepoRef,
    rows: IntakeRows,
    /// The tests with a row on the upload's code.
    known: BTreeSet<TestId>,
    /// Earlier uploads of its code.
    earlier: packed::Uploads,
    done: DraftRows,
}

/// Everything that is written of an upload.
pub(super) struct DraftRows {
    upload: UploadRow,
    day: Timestamp,
    script: Script,
    events: Script,
    forgotten_presences: Vec<TestId>,
    pub(super) has_steps: bool,
}

struct UploadRow {
    id: UploadId,
    number: i64,
    received_at: Timestamp,
    code: String,
    upload: Json,
    taken_in: Json,
}

impl Draft {
    pub(super) async fn new(store: &Store, new: &NewIntake<'_>) -> Result<Self, DbError> {
        let number = new.expected.0.saturating_add(1);
        let rows = IntakeRows::of(new.repo, new.upload, number, new.at);
        let upload = UploadRow {
            id: new.upload.id,
            number,
            received_at: new.upload.received_at,
            code: code_text(&rows.code),
            upload: encode(new.upload)?,
            taken_in: encode(&new.taken_in)?,
        };
        let mut conn = store.connection(new.repo).await?;
        let known = summaries::tests_on(&mut conn, new.repo, &rows.code).await?;
        let earlier = packed::uploads_of(&mut conn, new.repo, &[&rows.code]).await?;
        let done = DraftRows {
            upload,
            day: rows.day,
            script: Script::default(),
            events: Script::default(),
            forgotten_presences: Vec::new(),
            has_steps: false,
        };
        Ok(Self { store: store.clone(), repo: new.repo, rows, known, earlier, done })
    }

    async fn add_part(&mut self, part: &IntakePart<'_>) -> Result<(), DbError> {
        let mut conn = self.store.connection(self.repo).await?;
        let (rows, script) = (&self.rows, &mut self.done.script);
        let intake = part.intake;
        let reported_tests: Vec<&ReportedTest> = intake.reported_tests.values().collect();
        for piece in bulk::pieces(&reported_tests) {
            let (known, new): (Vec<&ReportedTest>, Vec<&ReportedTest>) =
                piece.iter().copied().partition(|it| it.is_known);
            script.insert(&TESTS, &rows.new_tests(&new, part.windows)?)?;
            script.update(&SEEN, 2, SEEN_SET, &rows.seen_tests(&known, part.windows)?)?;
            script.insert(&ALIASES, &rows.aliases(piece))?;
        }
        // The runs of a test must be in one piece: rows of one statement must differ.
        let runs: Vec<&RunRecord> = intake.runs.iter().collect();
        let tests: Vec<&[&RunRecord]> =
            runs.chunk_by(|one, other| one.test == other.test).collect();
        for piece in bulk::pieces(&tests) {
            script.insert(&PACKED, &rows.packed(&piece.concat()))?;
        }
        let failed: Vec<&RunRecord> =
            runs.into_iter().filter(|run| run.outcome == RunOutcome::Failed).collect();
        for piece in bulk::pieces(&failed) {
            script.insert(&RUNS, &rows.failed(piece)?)?;
        }
        let additions: Vec<(&TestId, &Addition)> = intake.additions.iter().collect();
        for piece in bulk::pieces(&additions) {
            let counted = rows.counted(piece, &self.known);
            script.insert(&HOURS, &counted.hours)?;
            script.insert(&BUCKETS, &counted.buckets)?;
            script.insert(&CODES, &counted.codes)?;
            script.insert(&FAILURES, &counted.failures)?;
            script.insert(&PULL_REQUESTS, &counted.pull_requests)?;
        }
        // A test that fails on a code for the first time gets its passes there, too: packed runs go
        // earlier than a code on which something was run later.
        let known = &self.known;
        let failed = additions.iter().filter(|(id, it)| !known.contains(id) && it.has_failed());
        let failed: Vec<TestId> = failed.map(|(id, _)| **id).collect();
        for piece in bulk::pieces(&failed) {
            let passes = packed::passes_in(&mut conn, self.repo, piece, &self.earlier).await?;
            let codes = passes.into_iter().flat_map(|(test, runs)| {
                let codes = Summary::of(&runs).codes;
                codes.into_iter().map(move |code| (test, code))
            });
            let codes: Vec<CodeRow> =
                codes.map(|(test, code)| rows.code_row(test, &code)).collect();
            script.insert(&CODES, &codes)?;
        }
        let tests = TestRows::of(self.repo, part.steps, part.presences)?;
        script.update(&STATES, 3, STATE_SET, &tests.states)?;
        script.insert(&JOURNAL, &tests.journal)?;
        script.insert(&PRESENCES, &tests.presences)?;
        event_log::add_to(&mut self.done.events, &tests.events)?;
        self.done.forgotten_presences.extend(tests.forgotten_presences);
        self.done.has_steps |= !part.steps.is_empty();
        Ok(())
    }
}

#[async_trait]
impl FlakyDraft for Draft {
    async fn add(&mut self, part: &IntakePart<'_>) -> Result<(), StoreError> {
        Ok(self.add_part(part).await?)
    }

    async fn commit(self: Box<Self>, commit: &FlakyCommit<'_>) -> Result<Version, CommitError> {
        let rows = CommitRows::of(commit, Some(self.done))?;
        let job =
            self.store.write(commit.repo, Box::new(move |conn| commit::write(conn, rows).boxed()));
        Ok(Version(job.await?))
    }
}

impl DraftRows {
    /// Writes everything except the events, which are returned.
    pub(super) async fn write(
        self,
        conn: &mut Conn,
        repo: RepoId,
        org: OrgId,
    ) -> Result<Script, DbError> {
        let UploadRow { id, number, received_at, code, upload, taken_in } = self.upload;
        let upload = (
            result_uploads::repo_id.eq(Sql(repo)),
            result_uploads::id.eq(Sql(id)),
            result_uploads::org_id.eq(Sql(org)),
            result_uploads::number.eq(number),
            result_uploads::received_at.eq(Sql(received_at)),
            result_uploads::code.eq(code),
            result_uploads::upload.eq(upload),
            result_uploads::taken_in.eq(taken_in),
        );
        diesel::insert_into(result_uploads::table).values(upload).execute(conn).await?;
        prepare_day(conn, self.day).await?;
        self.script.execute(conn).await?;
        commit::forget_presences(conn, repo, &self.forgotten_presences).await?;
        Ok(self.events)
    }
}
