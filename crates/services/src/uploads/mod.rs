//! How results of tests come in: announced, received, read, mapped and handed to the sink.

mod checks;
mod error;
mod import;
mod intake;
mod reads;
mod worker;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use uuid::Uuid;

use crate::{QuarantineLookup, ResultsSink, network_of};
use signalbox_domain::flaky::{MAX_HOURS, Settings, Trust};
use signalbox_domain::ids::{OrgId, OrgSlug, RepoId, RepoName};
use signalbox_domain::ports::{BlobStore, RepoRef, ReportReader, Repository};
use signalbox_domain::time::{Span, Timestamp};
use signalbox_domain::token::{Caller, Scope};
use signalbox_domain::upload::{Claims, MappingRules};

use super::flaky::settings_of;
use super::{Error, FlakyContext};

pub use checks::DeferredReports;
pub use error::UploadError;
pub use import::{ImportRefusal, ImportedLines, RefusedLine};
pub use intake::{Announced, Intake, Reception, Taken};
pub use worker::UPLOAD_RENEWAL_SECONDS;

/// The minutes in which calls with a public id are counted.
const WINDOW_MINUTES: u32 = 10;

/// What one upload may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UploadLimits {
    /// Bytes of an upload as it comes.
    pub bytes: u64,
    /// Files of an upload that is no bundle.
    pub files: usize,
    /// Attempts of tests.
    pub runs: usize,
    /// Calls with the public id of one repository in ten minutes.
    pub public_calls: u32,
    /// Of these, calls from one address.
    pub public_calls_of_address: u32,
    /// How long results are kept. What is older is refused.
    pub history: Span,
}

impl Default for UploadLimits {
    fn default() -> Self {
        let bytes = 256 * 1024 * 1024;
        let history = Span::hours(MAX_HOURS);
        Self {
            bytes,
            files: 1_000,
            runs: 250_000,
            public_calls: 600,
            public_calls_of_address: 150,
            history,
        }
    }
}

/// The adapters that only uploads need.
#[derive(Clone)]
pub struct UploadParts {
    /// Where bytes are kept.
    pub blobs: Arc<dyn BlobStore>,
    /// Reads them.
    pub reader: Arc<dyn ReportReader>,
    /// Takes results in.
    pub sink: Arc<dyn ResultsSink>,
    /// Knows which tests are quarantined.
    pub quarantine: Arc<dyn QuarantineLookup>,
}

/// How results of tests come in.
pub struct UploadService {
    context: FlakyContext,
    parts: UploadParts,
    limits: UploadLimits,
    holder: Uuid,
    public_calls: Mutex<PublicCalls>,
}

/// Calls with the public id of a repository, in all and from an address: since when, and how many.
type PublicCalls = BTreeMap<(RepoId, Option<IpAddr>), (Timestamp, u32)>;

/// A repository, found by its public id. Any client that knows the id may send results, which are
/// unauthenticated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicRepository {
    /// Its organization's slug.
    pub org_slug: OrgSlug,
    /// The repository.
    pub repository: Repository,
    /// The client that knows the id.
    pub client: IpAddr,
}

/// Who sends results.
#[derive(Clone, Debug)]
pub enum Sender {
    /// The holder of a token.
    Token(Arc<Caller>),
    /// A client with a repository's public id.
    Public(Box<PublicRepository>),
}

impl Sender {
    fn org(&self) -> OrgId {
        match self {
            Self::Token(caller) => caller.org,
            Self::Public(public) => public.repository.org,
        }
    }

    fn org_slug(&self) -> &OrgSlug {
        match self {
            Self::Token(caller) => &caller.org_slug,
            Self::Public(public) => &public.org_slug,
        }
    }

    fn may_send(&self) -> Result<(), Error> {
        match self {
            Self::Token(caller) => may(caller, Scope::TestsUpload),
            // For this, and for nothing else, the public id is enough.
            Self::Public(_) => Ok(()),
        }
    }

    /// An import emits no events, so it needs more than an upload.
    fn may_import(&self) -> Result<(), Error> {
        match self {
            Self::Token(caller) => may(caller, Scope::TestsAdmin),
            Self::Public(_) => Err(Error::MissingScope(Scope::TestsAdmin)),
        }
    }

    /// What the sender says, with what its CI system has proven in its place.
    fn bound(&self, mut claims: Claims) -> Claims {
        if let Self::Token(caller) = self
            && let Some(source) = &caller.source
        {
            source.bind(&mut claims);
        }
        claims
    }

    const fn trust(&self) -> Trust {
        match self {
            Self::Token(_) => Trust::Token,
            Self::Public(_) => Trust::Public,
        }
    }
}

impl UploadService {
    /// A service with a holder id of its own.
    pub fn new(context: impl Into<FlakyContext>, parts: UploadParts, limits: UploadLimits) -> Self {
        let context = context.into();
        let holder = context.ids.new_id();
        Self { context, parts, limits, holder, public_calls: Mutex::new(BTreeMap::new()) }
    }

    /// The limits that are in force.
    pub const fn limits(&self) -> UploadLimits {
        self.limits
    }

    /// The repository with that public id, for a client at that address.
    pub async fn public_repository(
        &self,
        id: Uuid,
        client: IpAddr,
    ) -> Result<Option<PublicRepository>, Error> {
        let Some((org, repo)) = self.context.stores.uploads.find_public(id).await? else {
            return Ok(None);
        };
        let (org, repository) =
            (self.context.orgs.find(org).await?, self.context.repositories.find(org, repo).await?);
        Ok(org.zip(repository).map(|(org, repository)| PublicRepository {
            org_slug: org.slug,
            repository,
            client,
        }))
    }

    /// The public id of a repository, made when it has none.
    pub async fn public_id(&self, repository: &Repository) -> Result<Uuid, Error> {
        let candidate = self.context.ids.new_id();
        let uploads = &self.context.stores.uploads;
        Ok(uploads.public_id(repository.org, repository.id, candidate).await?)
    }

    /// The repository that results are sent for. One that is not known is registered, also on a
    /// host that is not connected: results need no git.
    async fn repository_for(&self, sender: &Sender, name: &RepoName) -> Result<Repository, Error> {
        match sender {
            Sender::Token(caller) => {
                if !self.context.repositories.may_see(caller, name) {
                    return Err(Error::UnknownRepository(name.clone()));
                }
                if let Some(known) = self.context.repositories.named(caller.org, name).await? {
                    return Ok(known);
                }
                let mut new = Repository {
                    id: RepoId(self.context.ids.new_id()),
                    org: caller.org,
                    name: name.clone(),
                    path: None,
                    created_at: self.context.clock.now(),
                };
                let host = self.context.repositories.host(caller.org, &name.host);
                if let Some(host) = host.filter(|it| it.abilities().registers_on_first_use) {
                    new.path = host.locate(&new).await.unwrap_or_default();
                }
                Ok(self.context.repositories.register(&new).await?)
            }
            Sender::Public(public) => Ok(public.repository.clone()),
        }
    }

    /// The repository of a caller's question about results.
    async fn repository_of(
        &self,
        caller: &Caller,
        scope: Scope,
        name: &RepoName,
    ) -> Result<Repository, Error> {
        may(caller, scope)?;
        if !self.context.repositories.may_see(caller, name) {
            return Err(Error::UnknownRepository(name.clone()));
        }
        let known = self.context.repositories.named(caller.org, name).await?;
        known.ok_or_else(|| Error::UnknownRepository(name.clone()))
    }

    /// Counts a call. `false` when an unauthenticated client calls too often.
    fn admits(&self, sender: &Sender) -> bool {
        let Sender::Public(public) = sender else { return true };
        let now = self.context.clock.now();
        let mut calls = self.public_calls.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = now.minus(Span::minutes(WINDOW_MINUTES));
        calls.retain(|_, (since, _)| *since > fresh);
        let repo = public.repository.id;
        let of_address = Some(network_of(public.client));
        let limits =
            [(of_address, self.limits.public_calls_of_address), (None, self.limits.public_calls)];
        // What is refused for its address takes nothing from the others.
        limits.into_iter().all(|(address, most)| {
            let (_, count) = calls.entry((repo, address)).or_insert((now, 0));
            *count = count.saturating_add(1);
            *count <= most
        })
    }

    /// The rules for an upload of a repository that was received at a time.
    async fn mapping_rules(
        &self,
        org: OrgId,
        repo: RepoId,
        received_at: Timestamp,
    ) -> Result<MappingRules, Error> {
        let repo = RepoRef { org, id: repo };
        let known = self.context.stores.tests.repo(repo).await?;
        let Settings { branches, count_public_uploads, .. } = settings_of(repo, &known);
        let oldest = received_at.minus(self.limits.history);
        Ok(MappingRules { branches, oldest, count_public_uploads })
    }
}

fn may(caller: &Caller, scope: Scope) -> Result<(), Error> {
    if caller.may(scope) { Ok(()) } else { Err(Error::MissingScope(scope)) }
}
