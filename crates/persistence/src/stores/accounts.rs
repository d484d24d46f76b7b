//! Organizations and API tokens.

use async_trait::async_trait;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use futures_util::FutureExt;
use signalbox_domain::ids::{OrgId, OrgSlug, TokenId};
use signalbox_domain::ports::{Org, OrgStore, StoreError, TokenStore};
use signalbox_domain::time::Timestamp;
use signalbox_domain::token::{Compatibility, Scope, Token, TokenHash};
use uuid::Uuid;

use super::Store;
use crate::documents::{Json, Kept, TokenRepos, encode};
use crate::error::DbError;
use crate::reach::Reach;
use crate::schema::{last_revocation, orgs, tokens};
use crate::sql_types::Sql;

#[derive(Insertable, Queryable, Selectable)]
#[diesel(table_name = orgs)]
struct OrgRow {
    id: Sql<OrgId>,
    slug: String,
    created_at: Sql<Timestamp>,
}

impl OrgRow {
    fn into_org(self) -> Result<Org, DbError> {
        Ok(Org {
            id: self.id.0,
            slug: OrgSlug::new(self.slug).map_err(|it| DbError::corrupt("organization", it))?,
            created_at: self.created_at.0,
        })
    }
}

#[async_trait]
impl OrgStore for Store {
    async fn create(&self, org: &Org) -> Result<Org, StoreError> {
        let row =
            OrgRow { id: Sql(org.id), slug: org.slug.to_string(), created_at: Sql(org.created_at) };
        let job = self.write(
            Reach::ALL,
            Box::new(move |conn| {
                async move {
                    diesel::insert_into(orgs::table)
                        .values(&row)
                        .on_conflict(orgs::slug)
                        .do_nothing()
                        .execute(conn)
                        .await?;
                    let kept: OrgRow = orgs::table
                        .filter(orgs::slug.eq(row.slug))
                        .select(OrgRow::as_select())
                        .first(conn)
                        .await?;
                    kept.into_org()
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }

    async fn find_by_slug(&self, slug: &OrgSlug) -> Result<Option<Org>, StoreError> {
        let mut conn = self.connection(Reach::ALL).await?;
        let row: Option<OrgRow> = orgs::table
            .filter(orgs::slug.eq(slug.as_str()))
            .select(OrgRow::as_select())
            .first(&mut conn)
            .await
            .optional()
            .map_err(DbError::from)?;
        Ok(row.map(OrgRow::into_org).transpose()?)
    }

    async fn find(&self, id: OrgId) -> Result<Option<Org>, StoreError> {
        let mut conn = self.connection(id).await?;
        let row: Option<OrgRow> = orgs::table
            .find(Sql(id))
            .select(OrgRow::as_select())
            .first(&mut conn)
            .await
            .optional()
            .map_err(DbError::from)?;
        Ok(row.map(OrgRow::into_org).transpose()?)
    }

    async fn list(&self) -> Result<Vec<Org>, StoreError> {
        let mut conn = self.connection(Reach::ALL).await?;
        let rows: Vec<OrgRow> = orgs::table
            .order(orgs::slug)
            .select(OrgRow::as_select())
            .load(&mut conn)
            .await
            .map_err(DbError::from)?;
        Ok(rows.into_iter().map(OrgRow::into_org).collect::<Result<_, _>>()?)
    }
}

#[derive(Insertable)]
#[diesel(table_name = tokens)]
struct NewToken {
    id: Sql<TokenId>,
    org_id: Sql<OrgId>,
    name: String,
    hash: String,
    scopes: String,
    repos: Json,
    compatibility: &'static str,
    created_at: Sql<Timestamp>,
    expires_at: Option<Sql<Timestamp>>,
    revoked_at: Option<Sql<Timestamp>>,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = tokens)]
struct TokenRow {
    id: TokenId,
    org_id: OrgId,
    name: String,
    hash: String,
    scopes: String,
    repos: Kept<TokenRepos>,
    compatibility: String,
    created_at: Timestamp,
    expires_at: Option<Timestamp>,
    revoked_at: Option<Timestamp>,
}

pub(super) fn hex(hash: TokenHash) -> String {
    use std::fmt::Write;
    hash.0.iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a String does not fail.
        let _written = write!(text, "{byte:02x}");
        text
    })
}

pub(super) fn unhex(text: &str) -> Result<TokenHash, DbError> {
    let wrong = || DbError::corrupt("token", "its hash is not 64 hexadecimal digits");
    if text.len() != 64 || !text.is_ascii() {
        return Err(wrong());
    }
    let mut hash = [0; 32];
    for (at, byte) in hash.iter_mut().enumerate() {
        let digits = text.get(at * 2..at * 2 + 2).ok_or_else(wrong)?;
        *byte = u8::from_str_radix(digits, 16).map_err(|_| wrong())?;
    }
    Ok(TokenHash(hash))
}

impl NewToken {
    fn of(token: &Token) -> Result<Self, DbError> {
        let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.as_str()).collect();
        Ok(Self {
            id: Sql(token.id),
            org_id: Sql(token.org),
            name: token.name.clone(),
            hash: hex(token.hash),
            scopes: scopes.join(" "),
            repos: encode(&TokenRepos { repos: token.repos.clone() })?,
            compatibility: token.compatibility.as_str(),
            created_at: Sql(token.created_at),
            expires_at: token.expires_at.map(Sql),
            revoked_at: token.revoked_at.map(Sql),
        })
    }
}

impl TokenRow {
    fn into_token(self) -> Result<Token, DbError> {
        let scope = |word: &str| {
            Scope::parse(word).ok_or_else(|| DbError::corrupt("token", format!("scope {word}")))
        };
        let unknown = || DbError::corrupt("token", format!("compatibility {}", self.compatibility));
        let Kept(TokenRepos { repos }) = self.repos;
        Ok(Token {
            id: self.id,
            org: self.org_id,
            name: self.name,
            hash: unhex(&self.hash)?,
            scopes: self.scopes.split_whitespace().map(scope).collect::<Result<_, _>>()?,
            repos,
            compatibility: Compatibility::parse(&self.compatibility).ok_or_else(unknown)?,
            created_at: self.created_at,
            expires_at: self.expires_at,
            revoked_at: self.revoked_at,
        })
    }
}

#[async_trait]
impl TokenStore for Store {
    async fn insert(&self, token: &Token) -> Result<(), StoreError> {
        let row = NewToken::of(token)?;
        let job = self.write(
            token.org,
            Box::new(move |conn| {
                async move {
                    diesel::insert_into(tokens::table).values(&row).execute(conn).await?;
                    Ok(())
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }

    async fn find_by_hash(&self, hash: TokenHash) -> Result<Option<Token>, StoreError> {
        let mut conn = self.connection(Reach::ALL).await?;
        let row: Option<TokenRow> = tokens::table
            .filter(tokens::hash.eq(hex(hash)))
            .select(TokenRow::as_select())
            .first(&mut conn)
            .await
            .optional()
            .map_err(DbError::from)?;
        Ok(row.map(TokenRow::into_token).transpose()?)
    }

    async fn list(&self, org: Option<OrgId>) -> Result<Vec<Token>, StoreError> {
        let mut conn = self.connection(org).await?;
        let mut query = tokens::table
            .order((tokens::created_at.desc(), tokens::id))
            .select(TokenRow::as_select())
            .into_boxed();
        if let Some(org) = org {
            query = query.filter(tokens::org_id.eq(Sql(org)));
        }
        let rows: Vec<TokenRow> = query.load(&mut conn).await.map_err(DbError::from)?;
        Ok(rows.into_iter().map(TokenRow::into_token).collect::<Result<_, _>>()?)
    }

    async fn revoke(
        &self,
        id: TokenId,
        at: Timestamp,
        revocation: Uuid,
    ) -> Result<bool, StoreError> {
        let job = self.write(
            Reach::ALL,
            Box::new(move |conn| {
                async move {
                    let kept: Option<Option<Timestamp>> = tokens::table
                        .find(Sql(id))
                        .select(tokens::revoked_at)
                        .first(conn)
                        .await
                        .optional()?;
                    let Some(kept) = kept else { return Ok(false) };
                    let earlier = kept.map_or(at, |kept| kept.min(at));
                    diesel::update(tokens::table.find(Sql(id)))
                        .set(tokens::revoked_at.eq(Sql(earlier)))
                        .execute(conn)
                        .await?;
                    diesel::update(last_revocation::table)
                        .set(last_revocation::revocation.eq(Sql(revocation)))
                        .execute(conn)
                        .await?;
                    Ok(true)
                }
                .boxed()
            }),
        );
        Ok(job.await?)
    }

    async fn last_revocation(&self) -> Result<Uuid, StoreError> {
        let mut conn = self.connection(Reach::ALL).await?;
        let last: Sql<Uuid> = last_revocation::table
            .select(last_revocation::revocation)
            .first(&mut conn)
            .await
            .map_err(DbError::from)?;
        Ok(last.0)
    }
}
