//! Organizations and API tokens.

use async_trait::async_trait;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use futures_util::FutureExt;
use signalbox_domain::ids::{OrgId, OrgSlug, RepoName, TokenId};
use signalbox_domain::ports::{Org, OrgStore, StoreError, TokenStore};
use signalbox_domain::time::Timestamp;
use signalbox_domain::token::{Compatibility, Scope, Token, TokenHash};

use super::Store;
use crate::documents::{FORMAT, decode, encode, uuid};
use crate::error::DbError;
use crate::schema::{orgs, tokens};

#[derive(Insertable, Queryable, Selectable)]
#[diesel(table_name = orgs)]
struct OrgRow {
    id: String,
    slug: String,
    created_at: i64,
}

impl OrgRow {
    fn into_org(self) -> Result<Org, DbError> {
        Ok(Org {
            id: OrgId(uuid("organization", &self.id)?),
            slug: OrgSlug::new(self.slug).map_err(|it| DbError::corrupt("organization", it))?,
            created_at: Timestamp::from_unix_micros(self.created_at),
        })
    }
}

#[async_trait]
impl OrgStore for Store {
    async fn create(&self, org: &Org) -> Result<Org, StoreError> {
        let row = OrgRow {
            id: org.id.to_string(),
            slug: org.slug.to_string(),
            created_at: org.created_at.unix_micros(),
        };
        let job = self.write(Box::new(move |conn| {
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
        }));
        Ok(job.await?)
    }

    async fn find_by_slug(&self, slug: &OrgSlug) -> Result<Option<Org>, StoreError> {
        let mut conn = self.connection().await?;
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
        let mut conn = self.connection().await?;
        let row: Option<OrgRow> = orgs::table
            .find(id.to_string())
            .select(OrgRow::as_select())
            .first(&mut conn)
            .await
            .optional()
            .map_err(DbError::from)?;
        Ok(row.map(OrgRow::into_org).transpose()?)
    }

    async fn list(&self) -> Result<Vec<Org>, StoreError> {
        let mut conn = self.connection().await?;
        let rows: Vec<OrgRow> = orgs::table
            .order(orgs::slug)
            .select(OrgRow::as_select())
            .load(&mut conn)
            .await
            .map_err(DbError::from)?;
        Ok(rows.into_iter().map(OrgRow::into_org).collect::<Result<_, _>>()?)
    }
}

#[derive(Insertable, Queryable, Selectable)]
#[diesel(table_name = tokens)]
struct TokenRow {
    id: String,
    org_id: String,
    name: String,
    hash: String,
    scopes: String,
    repos: String,
    compatibility: String,
    created_at: i64,
    expires_at: Option<i64>,
    revoked_at: Option<i64>,
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

impl TokenRow {
    fn of(token: &Token) -> Result<Self, DbError> {
        let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.word()).collect();
        Ok(Self {
            id: token.id.to_string(),
            org_id: token.org.to_string(),
            name: token.name.clone(),
            hash: hex(token.hash),
            scopes: scopes.join(" "),
            repos: encode("token", &token.repos)?,
            compatibility: encode("token", &token.compatibility)?,
            created_at: token.created_at.unix_micros(),
            expires_at: token.expires_at.map(Timestamp::unix_micros),
            revoked_at: token.revoked_at.map(Timestamp::unix_micros),
        })
    }

    fn into_token(self) -> Result<Token, DbError> {
        let scope = |word: &str| {
            Scope::parse(word).ok_or_else(|| DbError::corrupt("token", format!("scope {word}")))
        };
        let repos: Vec<RepoName> = decode("token", FORMAT, &self.repos)?;
        let compatibility: Compatibility = decode("token", FORMAT, &self.compatibility)?;
        Ok(Token {
            id: TokenId(uuid("token", &self.id)?),
            org: OrgId(uuid("token", &self.org_id)?),
            name: self.name,
            hash: unhex(&self.hash)?,
            scopes: self.scopes.split_whitespace().map(scope).collect::<Result<_, _>>()?,
            repos,
            compatibility,
            created_at: Timestamp::from_unix_micros(self.created_at),
            expires_at: self.expires_at.map(Timestamp::from_unix_micros),
            revoked_at: self.revoked_at.map(Timestamp::from_unix_micros),
        })
    }
}

#[async_trait]
impl TokenStore for Store {
    async fn insert(&self, token: &Token) -> Result<(), StoreError> {
        let row = TokenRow::of(token)?;
        let job = self.write(Box::new(move |conn| {
            async move {
                diesel::insert_into(tokens::table).values(&row).execute(conn).await?;
                Ok(())
            }
            .boxed()
        }));
        Ok(job.await?)
    }

    async fn find_by_hash(&self, hash: TokenHash) -> Result<Option<Token>, StoreError> {
        let mut conn = self.connection().await?;
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
        let mut conn = self.connection().await?;
        let mut query = tokens::table
            .order((tokens::created_at.desc(), tokens::id))
            .select(TokenRow::as_select())
            .into_boxed();
        if let Some(org) = org {
            query = query.filter(tokens::org_id.eq(org.to_string()));
        }
        let rows: Vec<TokenRow> = query.load(&mut conn).await.map_err(DbError::from)?;
        Ok(rows.into_iter().map(TokenRow::into_token).collect::<Result<_, _>>()?)
    }

    async fn revoke(&self, id: TokenId, at: Timestamp) -> Result<bool, StoreError> {
        let job = self.write(Box::new(move |conn| {
            async move {
                let kept: Option<Option<i64>> = tokens::table
                    .find(id.to_string())
                    .select(tokens::revoked_at)
                    .first(conn)
                    .await
                    .optional()?;
                let Some(kept) = kept else { return Ok(false) };
                let earlier = kept.map_or(at.unix_micros(), |kept| kept.min(at.unix_micros()));
                diesel::update(tokens::table.find(id.to_string()))
                    .set(tokens::revoked_at.eq(earlier))
                    .execute(conn)
                    .await?;
                Ok(true)
            }
            .boxed()
        }));
        Ok(job.await?)
    }
}
