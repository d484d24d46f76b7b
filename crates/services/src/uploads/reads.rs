//! Questions about uploads, and which failures are excused.

use crate::QuarantineAnswer;
use signalbox_domain::flaky::{AskedTest, TestKey, UploadId};
use signalbox_domain::ids::RepoName;
use signalbox_domain::ports::Repository;
use signalbox_domain::time::Timestamp;
use signalbox_domain::token::{Caller, Scope};
use signalbox_domain::upload::{UploadRecord, kept_variant};

use super::{Error, Sender, UploadError, UploadService, may};

impl UploadService {
    /// Which of these tests are quarantined. Whenever something is not known for sure, none is and
    /// quarantine is not off: failures stay failures. The organization and the repository of the
    /// keys are filled in here.
    pub async fn quarantined(
        &self,
        sender: &Sender,
        repo: &RepoName,
        org_slug: &str,
        asked: Vec<AskedTest>,
    ) -> Result<QuarantineAnswer, Error> {
        let repository = match sender {
            Sender::Token(caller) => {
                if !caller.may(Scope::TestsUpload) && !caller.may(Scope::TestsRead) {
                    return Err(Error::MissingScope(Scope::TestsRead));
                }
                if !self.context.repositories.may_see(caller, repo) {
                    return Ok(QuarantineAnswer::default());
                }
                self.context.repositories.named(caller.org, repo).await?
            }
            Sender::Public(public) => Some(public.repository.clone()),
        };
        let Some(repository) = repository else { return Ok(QuarantineAnswer::default()) };
        if sender.org_slug().as_str() != org_slug || !self.admits(sender) {
            return Ok(QuarantineAnswer::default());
        }
        let (org, name) = (org_slug.to_owned(), repository.name.to_string());
        let asked: Vec<AskedTest> = asked
            .into_iter()
            .map(|test| {
                let variant = kept_variant(&test.key.variant).to_owned();
                let (org, repo) = (org.clone(), name.clone());
                AskedTest { key: TestKey { org, repo, variant, ..test.key }.cleaned(), ..test }
            })
            .collect();
        self.parts.quarantine.quarantined(sender.org(), repository.id, &asked).await
    }

    /// Uploads of a repository, newest first: up to `limit` that come after `after`.
    pub async fn uploads(
        &self,
        caller: &Caller,
        repo: &RepoName,
        after: Option<(Timestamp, UploadId)>,
        limit: u32,
    ) -> Result<Vec<UploadRecord>, Error> {
        let repository = self.repository_of(caller, Scope::TestsRead, repo).await?;
        let uploads = &self.context.stores.uploads;
        Ok(uploads.list(caller.org, repository.id, after, limit).await?)
    }

    /// An upload and its repository.
    pub async fn upload(
        &self,
        caller: &Caller,
        id: UploadId,
    ) -> Result<(UploadRecord, Repository), Error> {
        may(caller, Scope::TestsRead)?;
        let stores = &self.context.stores;
        let unknown = || Error::from(UploadError::Unknown(id));
        let record = stores.uploads.find(caller.org, id).await?.ok_or_else(unknown)?;
        let repository = self.context.repositories.find(caller.org, record.repo).await?;
        let repository =
            repository.filter(|it| self.context.repositories.may_see(caller, &it.name));
        let repository = repository.ok_or_else(unknown)?;
        Ok((record, repository))
    }
}
