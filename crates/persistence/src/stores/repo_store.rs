//! The store of repositories.

use async_trait::async_trait;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use futures_util::FutureExt;
use signalbox_domain::ids::{OrgId, RepoId, RepoName};
use signalbox_domain::ports::{RepoStore, Repository, StoreError};
use signalbox_domain::time::Timestamp;

use super::{Conn, Store};
use crate::error::DbError;
use crate::schema::repos;
use crate::sql_types::Sql;

#[derive(Insertable, Queryable, Selectable)]
#[diesel(table_name = repos)]
pub(super) struct RepoRow {
    id: Sql<RepoId>,
    org_id: Sql<OrgId>,
    /// The lookup key: in lower case if the host's names were case-insensitive at registration.
    lookup: String,
    host: String,
    owner: String,
    name: String,
    path: Option<String>,
    created_at: Sql<Timestamp>,
}

impl RepoRow {
    pub(super) fn into_repository(self) -> Result<Repository, DbError> {
        Ok(Repository {
            id: self.id.0,
            org: self.org_id.0,
            name: RepoName::new(&self.host, self.owner, self.name)
                .map_err(|it| DbError::corrupt("repository", it))?,
            path: self.path,
            created_at: self.created_at.0,
        })
    }
}

/// Repositories of an organization that may have this name.
///
/// The host's rule for names may have changed since the registration, because it was connected or
/// disconnected, so the keys of both rules are looked up.
macro_rules! candidates {
    ($query:expr, $org:expr, $name:expr) => {
        $query
            .filter(repos::org_id.eq(Sql($org)))
            .filter(
                repos::lookup
                    .eq($name.key(false).to_string())
                    .or(repos::lookup.eq($name.key(true).to_string())),
            )
            .order(repos::created_at)
    };
}
pub(super) use candidates;

/// The row of the repository of this name: an exact match, or else one in another case.
pub(super) fn chosen<T>(
    rows: Vec<T>,
    name: &RepoName,
    any_case: bool,
    row: impl Fn(&T) -> &RepoRow,
) -> Option<T> {
    let spelled = |it: &T| {
        let row = row(it);
        (&*row.host, &row.owner, &row.name) == (name.host.as_str(), &name.owner, &name.name)
    };
    let (exact, others): (Vec<_>, Vec<_>) = rows.into_iter().partition(spelled);
    exact.into_iter().chain(others.into_iter().filter(|_| any_case)).next()
}

/// The organization's repository of this name.
async fn named(
    conn: &mut Conn,
    org: OrgId,
    name: &RepoName,
    any_case: bool,
) -> Result<Option<RepoRow>, DbError> {
    let rows: Vec<RepoRow> =
        candidates!(repos::table, org, name).select(RepoRow::as_select()).load(conn).await?;
    Ok(chosen(rows, name, any_case, |row| row))
}

/// Writes a new repository. A different repository with the same key, from the time when the host's
/// names counted as case-insensitive, gets the key of its own spelling.
async fn insert(
    conn: &mut Conn,
    row: &RepoRow,
    name: &RepoName,
    any_case: bool,
) -> Result<(), DbError> {
    let insert = || diesel::insert_into(repos::table).values(row);
    let key = (repos::org_id, repos::lookup);
    let written = insert().on_conflict(key).do_nothing().execute(conn).await?;
    // The key may also be that of the same repository, which was registered a moment ago.
    if written == 0 && named(conn, row.org_id.0, name, any_case).await?.is_none() {
        let of_key =
            repos::table.filter(repos::org_id.eq(row.org_id)).filter(repos::lookup.eq(&row.lookup));
        let other: RepoRow = of_key.select(RepoRow::as_select()).first(conn).await?;
        let spelling = other.into_repository()?.name.key(false).to_string();
        if spelling != row.lookup {
            diesel::update(of_key).set(repos::lookup.eq(spelling)).execute(conn).await?;
            insert().on_conflict(key).do_nothing().execute(conn).await?;
        }
    }
    Ok(())
}

#[async_trait]
impl RepoStore for Store {
    async fn register(
        &self,
        repository: &Repository,
        any_case: bool,
    ) -> Result<Repository, StoreError> {
        let name = repository.name.clone();
        let row = RepoRow {
            id: Sql(repository.id),
            org_id: Sql(repository.org),
            lookup: name.key(any_case).to_string(),
            host: name.host.to_string(),
            owner: name.owner.clone(),
            name: name.name.clone(),
            path: repository.path.clone(),
            created_at: Sql(repository.created_at),
        };
        let job = self.write(
            repository.org,
            Box::new(move |conn| {
                async move {
                    let mut kept = named(conn, row.org_id.0, &name, any_case).await?;
                    if kept.is_none() {
                        insert(conn, &row, &name, any_case).await?;
                        kept = named(conn, row.org_id.0, &name, any_case).await?;
                    }
                    let mut kept = kept.ok_or(DbError::Conflict)?;
                    if row.path.is_some() && kept.path != row.path {
                        diesel::update(repos::table.filter(repos::id.eq(kept.id)))
                            .set(repos::path.eq(&row.path))
                            .execute(conn)
                            .await?;
                        kept.path.clone_from(&row.path);
                    }
                    kept.into_repository()
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }

    async fn find_by_name(
        &self,
        org: OrgId,
        name: &RepoName,
        any_case: bool,
    ) -> Result<Option<Repository>, StoreError> {
        let mut conn = self.connection(org).await?;
        let row = named(&mut conn, org, name, any_case).await?;
        Ok(row.map(RepoRow::into_repository).transpose()?)
    }

    async fn find(&self, org: OrgId, id: RepoId) -> Result<Option<Repository>, StoreError> {
        let mut conn = self.connection(org).await?;
        let row: Option<RepoRow> = repos::table
            .filter(repos::org_id.eq(Sql(org)))
            .filter(repos::id.eq(Sql(id)))
            .select(RepoRow::as_select())
            .first(&mut conn)
            .await
            .optional()
            .map_err(DbError::from)?;
        Ok(row.map(RepoRow::into_repository).transpose()?)
    }

    async fn list(&self, org: Option<OrgId>) -> Result<Vec<Repository>, StoreError> {
        let mut conn = self.connection(org).await?;
        let mut query = repos::table
            .order((repos::host, repos::owner, repos::name, repos::org_id))
            .select(RepoRow::as_select())
            .into_boxed();
        if let Some(org) = org {
            query = query.filter(repos::org_id.eq(Sql(org)));
        }
        let rows: Vec<RepoRow> = query.load(&mut conn).await.map_err(DbError::from)?;
        Ok(rows.into_iter().map(RepoRow::into_repository).collect::<Result<_, _>>()?)
    }
}
