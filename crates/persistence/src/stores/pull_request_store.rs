//! The store of pull requests of plain git hosts.

use async_trait::async_trait;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use futures_util::FutureExt;
use signalbox_domain::ids::{BranchName, OrgId, PrNumber, RepoId, Sha};
use signalbox_domain::ports::{
    NewPullRequest, OpenPullRequest, PullRequestStore, StoreError, StoredPullRequest,
};
use signalbox_domain::queue::PullRequestState;
use signalbox_domain::time::Timestamp;

use super::{Conn, Store};
use crate::documents::number;
use crate::error::DbError;
use crate::schema::{pull_requests, repos};
use crate::sql_types::Sql;

const STATES: [(PullRequestState, &str); 3] = [
    (PullRequestState::Open, "open"),
    (PullRequestState::Closed, "closed"),
    (PullRequestState::Merged, "merged"),
];

#[derive(Clone, Insertable, Queryable, Selectable, AsChangeset)]
#[diesel(table_name = pull_requests, treat_none_as_null = true)]
struct Row {
    repo_id: Sql<RepoId>,
    number: i64,
    org_id: Sql<OrgId>,
    title: String,
    body: String,
    author: String,
    head_branch: Option<String>,
    topic: Option<String>,
    head: String,
    base: String,
    state: String,
    draft: bool,
    created_at: Sql<Timestamp>,
    updated_at: Sql<Timestamp>,
}

impl Row {
    fn of(it: &StoredPullRequest) -> Self {
        let word = STATES.iter().find(|(state, _)| *state == it.state).map_or("open", |it| it.1);
        Self {
            repo_id: Sql(it.repo),
            number: i64::from(it.number.0),
            org_id: Sql(it.org),
            title: it.title.clone(),
            body: it.body.clone(),
            author: it.author.clone(),
            head_branch: it.head_branch.as_ref().map(ToString::to_string),
            topic: it.topic.clone(),
            head: it.head.to_string(),
            base: it.base.to_string(),
            state: word.to_owned(),
            draft: it.draft,
            created_at: Sql(it.created_at),
            updated_at: Sql(it.updated_at),
        }
    }

    fn into_stored(self) -> Result<StoredPullRequest, DbError> {
        let what = "pull request";
        let state = STATES.iter().find(|(_, word)| *word == self.state).map(|(state, _)| *state);
        let branch = |name: String| BranchName::new(name).map_err(|it| DbError::corrupt(what, it));
        Ok(StoredPullRequest {
            org: self.org_id.0,
            repo: self.repo_id.0,
            number: PrNumber(number(what, self.number)?),
            title: self.title,
            body: self.body,
            author: self.author,
            head_branch: self.head_branch.map(branch).transpose()?,
            topic: self.topic,
            head: Sha::new(self.head).map_err(|it| DbError::corrupt(what, it))?,
            base: branch(self.base)?,
            state: state.ok_or_else(|| DbError::corrupt(what, format!("state {}", self.state)))?,
            draft: self.draft,
            created_at: self.created_at.0,
            updated_at: self.updated_at.0,
        })
    }
}

/// Opens a pull request under the next number. The repository's row is updated first, which
/// serializes concurrent calls.
async fn open(conn: &mut Conn, new: NewPullRequest) -> Result<StoredPullRequest, DbError> {
    let repo =
        repos::table.filter(repos::id.eq(Sql(new.repo))).filter(repos::org_id.eq(Sql(new.org)));
    diesel::update(repo).set(repos::created_at.eq(repos::created_at)).execute(conn).await?;
    let last: Option<i64> = pull_requests::table
        .filter(pull_requests::repo_id.eq(Sql(new.repo)))
        .select(diesel::dsl::max(pull_requests::number))
        .first(conn)
        .await?;
    let stored = StoredPullRequest {
        org: new.org,
        repo: new.repo,
        number: PrNumber(number("pull request", last.unwrap_or(0) + 1)?),
        title: new.title,
        body: new.body,
        author: new.author,
        head_branch: new.head_branch,
        topic: new.topic,
        head: new.head,
        base: new.base,
        state: PullRequestState::Open,
        draft: false,
        created_at: new.at,
        updated_at: new.at,
    };
    diesel::insert_into(pull_requests::table).values(Row::of(&stored)).execute(conn).await?;
    Ok(stored)
}

#[async_trait]
impl PullRequestStore for Store {
    async fn open(&self, new: &NewPullRequest) -> Result<StoredPullRequest, StoreError> {
        let new = new.clone();
        Ok(self.write(new.org, Box::new(move |conn| open(conn, new).boxed())).await?)
    }

    async fn find(
        &self,
        org: OrgId,
        repo: RepoId,
        number: PrNumber,
    ) -> Result<Option<StoredPullRequest>, StoreError> {
        let mut conn = self.connection(org).await?;
        let row: Option<Row> = pull_requests::table
            .filter(pull_requests::org_id.eq(Sql(org)))
            .filter(pull_requests::repo_id.eq(Sql(repo)))
            .filter(pull_requests::number.eq(i64::from(number.0)))
            .select(Row::as_select())
            .first(&mut conn)
            .await
            .optional()
            .map_err(DbError::from)?;
        Ok(row.map(Row::into_stored).transpose()?)
    }

    async fn find_open_by_topic(
        &self,
        org: OrgId,
        repo: RepoId,
        topic: &str,
        base: &BranchName,
    ) -> Result<Option<StoredPullRequest>, StoreError> {
        let mut conn = self.connection(org).await?;
        let row: Option<Row> = pull_requests::table
            .filter(pull_requests::org_id.eq(Sql(org)))
            .filter(pull_requests::repo_id.eq(Sql(repo)))
            .filter(pull_requests::topic.eq(topic))
            .filter(pull_requests::base.eq(base.as_str()))
            .filter(pull_requests::state.eq("open"))
            .order(pull_requests::number.desc())
            .select(Row::as_select())
            .first(&mut conn)
            .await
            .optional()
            .map_err(DbError::from)?;
        Ok(row.map(Row::into_stored).transpose()?)
    }

    async fn find_by_branch(
        &self,
        org: OrgId,
        repo: RepoId,
        branch: &BranchName,
    ) -> Result<Option<StoredPullRequest>, StoreError> {
        let mut conn = self.connection(org).await?;
        let rows: Vec<Row> = pull_requests::table
            .filter(pull_requests::org_id.eq(Sql(org)))
            .filter(pull_requests::repo_id.eq(Sql(repo)))
            .filter(pull_requests::head_branch.eq(branch.as_str()))
            .order(pull_requests::number.desc())
            .select(Row::as_select())
            .load(&mut conn)
            .await
            .map_err(DbError::from)?;
        let first = <[Row]>::first(&rows);
        let newest = rows.iter().find(|row| row.state == "open").or(first).cloned();
        Ok(newest.map(Row::into_stored).transpose()?)
    }

    async fn update(&self, pull_request: &StoredPullRequest) -> Result<bool, StoreError> {
        let row = Row::of(pull_request);
        let job = self.write(
            pull_request.org,
            Box::new(move |conn| {
                async move {
                    let kept = pull_requests::table
                        .filter(pull_requests::org_id.eq(row.org_id))
                        .filter(pull_requests::repo_id.eq(row.repo_id))
                        .filter(pull_requests::number.eq(row.number));
                    Ok(diesel::update(kept).set(&row).execute(conn).await? == 1)
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }

    async fn open_ones(
        &self,
        org: OrgId,
        repo: RepoId,
    ) -> Result<Vec<OpenPullRequest>, StoreError> {
        let what = "pull request";
        let mut conn = self.connection(org).await?;
        let rows: Vec<(i64, Option<String>, String, Timestamp)> = pull_requests::table
            .filter(pull_requests::org_id.eq(Sql(org)))
            .filter(pull_requests::repo_id.eq(Sql(repo)))
            .filter(pull_requests::state.eq("open"))
            .order(pull_requests::number)
            .select((
                pull_requests::number,
                pull_requests::head_branch,
                pull_requests::base,
                pull_requests::updated_at,
            ))
            .load(&mut conn)
            .await
            .map_err(DbError::from)?;
        let branch = |name: String| BranchName::new(name).map_err(|it| DbError::corrupt(what, it));
        let open = rows.into_iter().map(|(sequence, head_branch, base, updated_at)| {
            Ok(OpenPullRequest {
                number: PrNumber(number(what, sequence)?),
                head_branch: head_branch.map(branch).transpose()?,
                base: branch(base)?,
                updated_at,
            })
        });
        Ok(open.collect::<Result<_, DbError>>()?)
    }

    async fn list(
        &self,
        org: OrgId,
        repo: RepoId,
        only_open: bool,
    ) -> Result<Vec<StoredPullRequest>, StoreError> {
        let mut conn = self.connection(org).await?;
        let mut query = pull_requests::table
            .filter(pull_requests::org_id.eq(Sql(org)))
            .filter(pull_requests::repo_id.eq(Sql(repo)))
            .order(pull_requests::number.desc())
            .select(Row::as_select())
            .into_boxed();
        if only_open {
            query = query.filter(pull_requests::state.eq("open"));
        }
        let rows: Vec<Row> = query.load(&mut conn).await.map_err(DbError::from)?;
        Ok(rows.into_iter().map(Row::into_stored).collect::<Result<_, _>>()?)
    }
}
