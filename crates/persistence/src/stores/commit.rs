//! Writing a commit's rows.

use diesel::prelude::*;
use diesel_async::RunQueryDsl;

use super::Conn;
use super::rows::CommitRows;
use super::{announcement_store, event_log};
use crate::error::DbError;
use crate::schema::{entries, entry_moves, impacted_targets, journal, outbox, queues, runs};
use crate::sql_types::Sql;

/// Writes a commit inside a transaction; [`DbError::Conflict`] when the version is another one.
pub(super) async fn write(conn: &mut Conn, rows: CommitRows) -> Result<i64, DbError> {
    let next = rows.expected + 1;
    let of_queue = queues::table
        .filter(queues::id.eq(Sql(rows.queue.id)))
        .filter(queues::org_id.eq(Sql(rows.queue.org)))
        .filter(queues::version.eq(rows.expected))
        .filter(queues::deleted.eq(false));
    let updated = diesel::update(of_queue)
        .set((
            queues::version.eq(next),
            queues::next_deadline.eq(rows.next_deadline),
            rows.watched_until.map(|until| queues::watched_until.eq(Sql(until))),
            queues::deleted.eq(rows.deleted),
            queues::document.eq(rows.header),
        ))
        .execute(conn)
        .await?;
    if updated != 1 {
        return Err(DbError::Conflict);
    }
    for row in rows.entries {
        diesel::insert_into(entries::table)
            .values(&row)
            .on_conflict((entries::queue_id, entries::id))
            .do_update()
            .set(&row)
            .execute(conn)
            .await?;
    }
    for row in rows.runs {
        diesel::insert_into(runs::table)
            .values(&row)
            .on_conflict((runs::queue_id, runs::id))
            .do_update()
            .set(&row)
            .execute(conn)
            .await?;
    }
    for row in rows.targets {
        diesel::insert_into(impacted_targets::table)
            .values(&row)
            .on_conflict((impacted_targets::queue_id, impacted_targets::pr_number))
            .do_update()
            .set(&row)
            .execute(conn)
            .await?;
    }
    diesel::insert_into(journal::table).values(&rows.journal).execute(conn).await?;
    for row in rows.moves {
        diesel::insert_into(entry_moves::table).values(&row).execute(conn).await?;
    }
    for row in rows.outbox {
        diesel::insert_into(outbox::table).values(&row).execute(conn).await?;
    }
    announcement_store::make_due(conn, rows.queue, &rows.shown, rows.at).await?;
    if let Some(row) = &rows.audit {
        row.insert(conn).await?;
    }
    // Last, because on PostgreSQL other writers of the organization wait from here to the commit.
    event_log::write(conn, rows.queue.org, &rows.events).await?;
    Ok(next)
}
