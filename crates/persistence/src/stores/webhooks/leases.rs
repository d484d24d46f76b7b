//! Leases of endpoints, and recording of attempts.

use diesel::dsl::exists;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use signalbox_domain::ports::{EndpointLease, LeasedEndpoint};
use signalbox_domain::time::Timestamp;
use signalbox_domain::webhook::{Attempt, EndpointId, Health, Jitter, Message, Verdict};
use uuid::Uuid;

use super::super::super::locked;
use super::super::Conn;
use super::rows::{EndpointRow, MessageRow, Progress, health};
use crate::documents::encode;
use crate::error::DbError;
use crate::schema::{webhook_attempts, webhook_endpoints, webhook_messages};
use crate::sql_types::Sql;

/// Selects endpoints that may be leased.
macro_rules! free {
    ($failing:expr, $at:expr) => {{
        let due = webhook_messages::table
            .filter(webhook_messages::endpoint_id.eq(webhook_endpoints::id))
            .filter(webhook_messages::next_at.le(Sql($at)));
        webhook_endpoints::table
            .filter(webhook_endpoints::off_reason.is_null())
            .filter(webhook_endpoints::failing_since.is_not_null().eq($failing))
            .filter(
                webhook_endpoints::leased_until
                    .is_null()
                    .or(webhook_endpoints::leased_until.le(Sql($at))),
            )
            .filter(exists(due))
    }};
}

pub(super) async fn any_due(
    conn: &mut Conn,
    failing: bool,
    now: Timestamp,
) -> Result<bool, DbError> {
    let found: Option<EndpointId> =
        free!(failing, now).select(webhook_endpoints::id).first(conn).await.optional()?;
    Ok(found.is_some())
}

pub(super) async fn lease(
    conn: &mut Conn,
    (limit, failing): (u32, bool),
    holder: Uuid,
    (now, until): (Timestamp, Timestamp),
) -> Result<Vec<LeasedEndpoint>, DbError> {
    let rows: Vec<EndpointRow> = locked!(
        free!(failing, now)
            .order((webhook_endpoints::served_at, webhook_endpoints::id))
            .limit(i64::from(limit))
            .select(EndpointRow::as_select())
    )
    .load(&mut *conn)
    .await?;
    let mut leased = Vec::with_capacity(rows.len());
    for row in rows {
        let turn = row.turn + 1;
        let lease = Uuid::new_v5(&holder, format!("{}:{turn}", row.id).as_bytes());
        diesel::update(webhook_endpoints::table.find(Sql(row.id)))
            .set((
                webhook_endpoints::lease.eq(Sql(lease)),
                webhook_endpoints::holder.eq(Sql(holder)),
                webhook_endpoints::leased_until.eq(Sql(until)),
                webhook_endpoints::turn.eq(turn),
            ))
            .execute(&mut *conn)
            .await?;
        let endpoint = row.into_endpoint()?;
        let token = EndpointLease { org: endpoint.org, endpoint: endpoint.id, lease };
        leased.push(LeasedEndpoint { token, endpoint });
    }
    Ok(leased)
}

/// The health of an endpoint, if the lease is valid.
async fn held(conn: &mut Conn, token: EndpointLease) -> Result<Option<Health>, DbError> {
    let row: Option<(Option<Timestamp>, Option<String>, Option<Timestamp>)> =
        webhook_endpoints::table
            .find(Sql(token.endpoint))
            .filter(webhook_endpoints::org_id.eq(Sql(token.org)))
            .filter(webhook_endpoints::lease.eq(Sql(token.lease)))
            .select((
                webhook_endpoints::failing_since,
                webhook_endpoints::off_reason,
                webhook_endpoints::off_at,
            ))
            .first(conn)
            .await
            .optional()?;
    row.map(|(since, reason, at)| health(since, reason.as_deref(), at)).transpose()
}

pub(super) async fn due(
    conn: &mut Conn,
    token: EndpointLease,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<Message>, DbError> {
    if !held(conn, token).await?.is_some_and(|health| health.is_on()) {
        return Ok(Vec::new());
    }
    let rows: Vec<MessageRow> = webhook_messages::table
        .filter(webhook_messages::endpoint_id.eq(Sql(token.endpoint)))
        .filter(webhook_messages::org_id.eq(Sql(token.org)))
        .filter(webhook_messages::next_at.le(Sql(now)))
        .order((webhook_messages::next_at, webhook_messages::position, webhook_messages::id))
        .limit(i64::from(limit))
        .select(MessageRow::as_select())
        .load(conn)
        .await?;
    rows.into_iter().map(MessageRow::into_message).collect()
}

pub(super) async fn record(
    conn: &mut Conn,
    token: EndpointLease,
    attempt: Attempt,
    (verdict, jitter): (Verdict, Jitter),
) -> Result<bool, DbError> {
    let Some(health) = held(conn, token).await? else { return Ok(false) };
    let (endpoint, message) = (token.endpoint, attempt.message);
    let row: Option<MessageRow> = webhook_messages::table
        .find((Sql(endpoint), Sql(message)))
        .filter(webhook_messages::org_id.eq(Sql(token.org)))
        .select(MessageRow::as_select())
        .first(&mut *conn)
        .await
        .optional()?;
    let Some(row) = row else { return Ok(false) };
    let at = attempt.at.plus(attempt.took);
    let after = row.into_message()?.after(verdict, at, jitter, attempt.not_before);
    diesel::update(webhook_messages::table.find((Sql(endpoint), Sql(message))))
        .set(Progress::of(&after))
        .execute(&mut *conn)
        .await?;
    let kept = Attempt { number: after.tries, ..attempt };
    diesel::insert_into(webhook_attempts::table)
        .values((
            webhook_attempts::endpoint_id.eq(Sql(endpoint)),
            webhook_attempts::message_id.eq(Sql(message)),
            webhook_attempts::number.eq(i64::from(kept.number)),
            webhook_attempts::org_id.eq(Sql(token.org)),
            webhook_attempts::document.eq(encode(&kept)?),
        ))
        .execute(&mut *conn)
        .await?;
    let new = health.after(verdict, at);
    if new != health {
        // A client may have enabled or disabled it meanwhile, which takes precedence.
        let same = webhook_endpoints::table
            .find(Sql(endpoint))
            .filter(webhook_endpoints::lease.eq(Sql(token.lease)))
            .filter(webhook_endpoints::off_reason.is_null());
        diesel::update(same)
            .set((
                webhook_endpoints::failing_since.eq(new.failing_since),
                webhook_endpoints::off_reason.eq(new.off.map(|off| off.reason.as_str())),
                webhook_endpoints::off_at.eq(new.off.map(|off| off.at)),
                webhook_endpoints::version.eq(webhook_endpoints::version + 1),
            ))
            .execute(conn)
            .await?;
    }
    Ok(true)
}

pub(super) async fn release(
    conn: &mut Conn,
    token: EndpointLease,
    now: Timestamp,
) -> Result<(), DbError> {
    let held = webhook_endpoints::table
        .find(Sql(token.endpoint))
        .filter(webhook_endpoints::lease.eq(Sql(token.lease)));
    diesel::update(held)
        .set((
            webhook_endpoints::lease.eq(None::<Uuid>),
            webhook_endpoints::holder.eq(None::<Uuid>),
            webhook_endpoints::leased_until.eq(None::<Timestamp>),
            webhook_endpoints::served_at.eq(Sql(now)),
        ))
        .execute(conn)
        .await?;
    Ok(())
}

pub(super) async fn hand_back(conn: &mut Conn, holder: Option<Uuid>) -> Result<u64, DbError> {
    let leased = diesel::update(webhook_endpoints::table);
    let mut leased = leased.filter(webhook_endpoints::holder.is_not_null()).into_boxed();
    if let Some(holder) = holder {
        leased = leased.filter(webhook_endpoints::holder.eq(Sql(holder)));
    }
    let ended = leased
        .set((
            webhook_endpoints::lease.eq(None::<Uuid>),
            webhook_endpoints::holder.eq(None::<Uuid>),
            webhook_endpoints::leased_until.eq(None::<Timestamp>),
        ))
        .execute(conn)
        .await?;
    Ok(u64::try_from(ended).unwrap_or(0))
}
