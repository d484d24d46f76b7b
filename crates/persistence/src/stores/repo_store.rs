//! Repositories.

use async_trait::async_trait;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use futures_util::FutureExt;
use signalbox_domain::ids::{OrgId, RepoId, RepoName};
use signalbox_domain::ports::{RepoStore, Repository, StoreError};
use signalbox_domain::time::Timestamp;

use super::Store;
use crate::documents::uuid;
use crate::error::DbError;
use crate::schema::repos;

#[derive(Insertable, Queryable, Selectable)]
#[diesel(table_name = repos)]
struct RepoRow {
    id: String,
    org_id: String,
    /// The name by which it is looked up: in lower case where the host does not tell cases apart.
    lookup: String,
    host: String,
    owner: String,
    name: String,
    path: Option<String>,
    created_at: i64,
}

impl RepoRow {
    fn into_repository(self) -> Result<Repository, DbError> {
        Ok(Repository {
            id: RepoId(uuid("repository", &self.id)?),
            org: OrgId(uuid("repository", &self.org_id)?),
            name: RepoName::new(&self.host, self.owner, self.name)
                .map_err(|it| DbError::corrupt("repository", it))?,
            path: self.path,
            created_at: Timestamp::from_unix_micros(self.created_at),
        })
    }
}

#[async_trait]
impl RepoStore for Store {
    async fn register(
        &self,
        repository: &Repository,
        case_insensitive: bool,
    ) -> Result<Repository, StoreError> {
        let row = RepoRow {
            id: repository.id.to_string(),
            org_id: repository.org.to_string(),
            lookup: repository.name.key(case_insensitive).to_string(),
            host: repository.name.host.to_string(),
            owner: repository.name.owner.clone(),
            name: repository.name.name.clone(),
            path: repository.path.clone(),
            created_at: repository.created_at.unix_micros(),
        };
        let job = self.write(Box::new(move |conn| {
            async move {
                let insert = diesel::insert_into(repos::table).values(&row);
                let conflict = insert.on_conflict((repos::org_id, repos::lookup));
                if row.path.is_some() {
                    conflict.do_update().set(repos::path.eq(&row.path)).execute(conn).await?;
                } else {
                    conflict.do_nothing().execute(conn).await?;
                }
                let kept: RepoRow = repos::table
                    .filter(repos::org_id.eq(row.org_id))
                    .filter(repos::lookup.eq(row.lookup))
                    .select(RepoRow::as_select())
                    .first(conn)
                    .await?;
                kept.into_repository()
            }
            .boxed()
        }));
        Ok(job.await?)
    }

    async fn find_by_name(
        &self,
        org: OrgId,
        name: &RepoName,
        case_insensitive: bool,
    ) -> Result<Option<Repository>, StoreError> {
        let mut conn = self.connection().await?;
        let row: Option<RepoRow> = repos::table
            .filter(repos::org_id.eq(org.to_string()))
            .filter(repos::lookup.eq(name.key(case_insensitive).to_string()))
            .select(RepoRow::as_select())
            .first(&mut conn)
            .await
            .optional()
            .map_err(DbError::from)?;
        Ok(row.map(RepoRow::into_repository).transpose()?)
    }

    async fn find(&self, org: OrgId, id: RepoId) -> Result<Option<Repository>, StoreError> {
        let mut conn = self.connection().await?;
        let row: Option<RepoRow> = repos::table
            .filter(repos::org_id.eq(org.to_string()))
            .filter(repos::id.eq(id.to_string()))
            .select(RepoRow::as_select())
            .first(&mut conn)
            .await
            .optional()
            .map_err(DbError::from)?;
        Ok(row.map(RepoRow::into_repository).transpose()?)
    }

    async fn list(&self, org: Option<OrgId>) -> Result<Vec<Repository>, StoreError> {
        let mut conn = self.connection().await?;
        let mut query = repos::table
            .order((repos::host, repos::owner, repos::name, repos::org_id))
            .select(RepoRow::as_select())
            .into_boxed();
        if let Some(org) = org {
            query = query.filter(repos::org_id.eq(org.to_string()));
        }
        let rows: Vec<RepoRow> = query.load(&mut conn).await.map_err(DbError::from)?;
        Ok(rows.into_iter().map(RepoRow::into_repository).collect::<Result<_, _>>()?)
    }
}
