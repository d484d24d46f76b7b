//! The agenda store.

use async_trait::async_trait;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Nullable, Text};
use diesel_async::RunQueryDsl;
use signalbox_domain::ids::OrgId;
use signalbox_domain::ports::{Agenda, AgendaStore, JOB_GRACE, StoreError, Work};
use signalbox_domain::time::Timestamp;
use uuid::Uuid;

use super::Store;
use crate::error::DbError;
use crate::reach::Reach;
use crate::sql_types::{Id, Moment};

/// One row for each kind of work and each organization, each from an index. `$1` is the server.
const AGENDA: &str = "\
    SELECT 'DEADLINES' AS what, MIN(next_deadline) AS at, CAST(NULL AS BIGINT) AS newest, \
        CAST(NULL AS UUID) AS org \
        FROM queues WHERE next_deadline IS NOT NULL AND NOT deleted \
    UNION ALL SELECT 'HOST_EFFECTS', \
        MIN(CASE WHEN leased_until > due_at THEN leased_until ELSE due_at END), NULL, NULL \
        FROM outbox WHERE lane = 'HOST' \
    UNION ALL SELECT 'CHECKS', \
        MIN(CASE WHEN leased_until > due_at THEN leased_until ELSE due_at END), NULL, NULL \
        FROM outbox WHERE lane = 'CHECKS' \
    UNION ALL SELECT 'ANNOUNCEMENTS', \
        MIN(CASE WHEN held_until > due_at THEN held_until ELSE due_at END), NULL, NULL \
        FROM announcements WHERE due_at IS NOT NULL \
    UNION ALL SELECT 'UPLOADS', \
        MIN(CASE WHEN leased_until > due_at THEN leased_until ELSE due_at END), NULL, NULL \
        FROM upload_jobs \
    UNION ALL SELECT 'FAN_OUT', MIN(created_at), NULL, NULL FROM webhook_endpoints AS endpoint \
        WHERE off_reason IS NULL AND EXISTS (SELECT 1 FROM event_log \
            WHERE event_log.org_id = endpoint.org_id \
            AND event_log.position > endpoint.position) \
    UNION ALL SELECT 'DELIVERIES', \
        MIN(CASE WHEN leased_until > next_at THEN leased_until ELSE next_at END), NULL, NULL \
        FROM (SELECT leased_until, (SELECT MIN(next_at) FROM webhook_messages \
            WHERE webhook_messages.endpoint_id = webhook_endpoints.id \
            AND next_at IS NOT NULL) AS next_at \
            FROM webhook_endpoints WHERE off_reason IS NULL) AS endpoint \
    UNION ALL SELECT 'JOBS', MIN(CASE \
        WHEN leased_until IS NOT NULL THEN leased_until \
        WHEN server IS NULL OR server = $1 THEN due_at END), NULL, NULL FROM jobs \
    UNION ALL SELECT 'JOBS_OF_OTHERS', MIN(due_at), NULL, NULL FROM jobs \
        WHERE leased_until IS NULL AND server <> $1 \
    UNION ALL SELECT 'EVENTS', NULL, \
        (SELECT MAX(position) FROM event_log WHERE org_id = orgs.id), id FROM orgs";

/// Jobs that another server ran last: due [`JOB_GRACE`](signalbox_domain::ports::JOB_GRACE) later.
const JOBS_OF_OTHERS: &str = "JOBS_OF_OTHERS";

#[derive(QueryableByName)]
struct Row {
    #[diesel(sql_type = Text)]
    what: String,
    #[diesel(sql_type = Nullable<Moment>)]
    at: Option<Timestamp>,
    #[diesel(sql_type = Nullable<BigInt>)]
    newest: Option<i64>,
    #[diesel(sql_type = Nullable<Id>)]
    org: Option<OrgId>,
}

#[async_trait]
impl AgendaStore for Store {
    async fn agenda(&self, server: Uuid) -> Result<Agenda, StoreError> {
        let mut conn = self.connection(Reach::ALL).await?;
        let rows: Vec<Row> = diesel::sql_query(AGENDA)
            .bind::<Id, _>(server)
            .load(&mut conn)
            .await
            .map_err(DbError::from)?;
        let mut agenda = Agenda::default();
        for Row { what, at, newest, org } in rows {
            let (work, at) = if what == JOBS_OF_OTHERS {
                (Some(Work::Jobs), at.map(|at| at.plus(JOB_GRACE)))
            } else {
                (Work::parse(&what), at)
            };
            if let Some(work) = work {
                if let Some(at) = at {
                    let due = agenda.due.entry(work).or_insert(at);
                    *due = at.min(*due);
                }
            } else if let Some((org, newest)) = org.zip(newest) {
                let _ = agenda.newest_events.insert(org, newest);
            }
        }
        Ok(agenda)
    }
}
