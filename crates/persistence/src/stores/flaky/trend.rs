//! How many tests there were on each day.

use async_trait::async_trait;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use futures_util::FutureExt;
use signalbox_domain::ids::{OrgId, RepoId};
use signalbox_domain::ports::{DayCounts, RepoRef, StoreError, TestTrend, Version};
use signalbox_domain::time::Timestamp;

use super::super::Store;
use crate::documents::number;
use crate::error::DbError;
use crate::reach::Reach;
use crate::schema::{flaky_repos, test_days};
use crate::sql_types::Sql;

type DayRow = (Timestamp, i64, i64, i64);

#[async_trait]
impl TestTrend for Store {
    async fn uncounted(
        &self,
        day: Timestamp,
        limit: u32,
    ) -> Result<Vec<(RepoRef, Version)>, StoreError> {
        let mut conn = self.connection(Reach::ALL).await?;
        let counted = test_days::table
            .filter(test_days::repo_id.eq(flaky_repos::repo_id))
            .filter(test_days::day.eq(Sql(day)))
            .filter(test_days::version.ge(flaky_repos::version));
        let rows: Vec<(RepoId, OrgId, i64)> = flaky_repos::table
            .filter(diesel::dsl::not(diesel::dsl::exists(counted)))
            .order(flaky_repos::repo_id)
            .limit(i64::from(limit))
            .select((flaky_repos::repo_id, flaky_repos::org_id, flaky_repos::version))
            .load(&mut conn)
            .await
            .map_err(DbError::from)?;
        let found = |(id, org, version)| (RepoRef { org, id }, Version(version));
        Ok(rows.into_iter().map(found).collect())
    }

    async fn keep_counts(
        &self,
        repo: RepoRef,
        version: Version,
        counts: &DayCounts,
    ) -> Result<(), StoreError> {
        let counts = *counts;
        let job = self.write(
            repo,
            Box::new(move |conn| {
                async move {
                    let whole = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
                    let values = (
                        test_days::version.eq(version.0),
                        test_days::flaky.eq(whole(counts.flaky)),
                        test_days::broken.eq(whole(counts.broken)),
                        test_days::quarantined.eq(whole(counts.quarantined)),
                    );
                    let key = (
                        test_days::repo_id.eq(Sql(repo.id)),
                        test_days::org_id.eq(Sql(repo.org)),
                        test_days::day.eq(Sql(counts.day)),
                    );
                    diesel::insert_into(test_days::table)
                        .values((key, values))
                        .on_conflict((test_days::repo_id, test_days::day))
                        .do_update()
                        .set(values)
                        .execute(conn)
                        .await?;
                    Ok(())
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }

    async fn days(&self, repo: RepoRef, since: Timestamp) -> Result<Vec<DayCounts>, StoreError> {
        let mut conn = self.connection(repo).await?;
        let rows: Vec<DayRow> = test_days::table
            .filter(test_days::repo_id.eq(Sql(repo.id)))
            .filter(test_days::org_id.eq(Sql(repo.org)))
            .filter(test_days::day.ge(Sql(since)))
            .order(test_days::day)
            .select((test_days::day, test_days::flaky, test_days::broken, test_days::quarantined))
            .load(&mut conn)
            .await
            .map_err(DbError::from)?;
        let counts = |(day, flaky, broken, quarantined): DayRow| {
            let count = |value| number("counts of a day", value);
            Ok(DayCounts {
                day,
                flaky: count(flaky)?,
                broken: count(broken)?,
                quarantined: count(quarantined)?,
            })
        };
        let days: Result<Vec<DayCounts>, DbError> = rows.into_iter().map(counts).collect();
        Ok(days?)
    }
}
