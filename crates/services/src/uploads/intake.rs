//! Announcing an upload and taking its bytes.

use uuid::Uuid;

use signalbox_domain::flaky::{UploadId, UploadSource};
use signalbox_domain::ids::RepoName;
use signalbox_domain::ports::{BlobWriter, Repository};
use signalbox_domain::time::Span;
use signalbox_domain::upload::{
    BlobOwner, Claims, ContentHash, Part, Received, UploadRecord, UploadState,
};

use super::{Error, Sender, UploadError, UploadService};

/// Hours in which the bytes of an announced upload may be sent.
const ADDRESS_HOURS: u32 = 24;

/// An upload whose bytes may be sent now.
#[derive(Clone, PartialEq, Eq)]
pub struct Announced {
    /// Its id.
    pub id: UploadId,
    /// What must be part of the address; to be shown once and never logged.
    pub secret: String,
}

/// An upload whose bytes have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Its id.
    pub id: UploadId,
    /// Whether it came before; then nothing is read again.
    pub is_known: bool,
}

/// Whether bytes are wanted.
pub enum Reception {
    /// They are.
    Open(Box<Intake>),
    /// They came before; what is sent again may be dropped.
    Known,
}

/// An upload whose bytes are coming in. Dropping it keeps nothing.
pub struct Intake {
    record: UploadRecord,
    parts: Vec<Part>,
    open: Option<(String, Box<dyn BlobWriter>)>,
    left: u64,
}

impl Intake {
    /// Adds bytes to the file that was begun last.
    pub async fn write(&mut self, chunk: &[u8]) -> Result<(), Error> {
        let Some((_, writer)) = &mut self.open else { return Err(UploadError::Empty.into()) };
        writer.write(chunk).await.map_err(UploadError::from)?;
        self.left = self.left.saturating_sub(u64::try_from(chunk.len()).unwrap_or(u64::MAX));
        Ok(())
    }

    /// Whose room in the store the bytes take.
    pub const fn owner(&self) -> BlobOwner {
        let UploadRecord { org, repo, trust, .. } = &self.record;
        BlobOwner { org: *org, repo: *repo, trust: *trust }
    }

    /// The files that came so far, but for the one that is still open.
    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// What is kept of the upload.
    pub(super) const fn record_mut(&mut self) -> &mut UploadRecord {
        &mut self.record
    }

    pub(super) async fn close_file(&mut self) -> Result<(), Error> {
        let Some((name, writer)) = self.open.take() else { return Ok(()) };
        let blob = writer.finish().await.map_err(UploadError::from)?;
        self.parts.push(Part { key: blob.key, name, bytes: blob.bytes, hash: blob.hash });
        Ok(())
    }
}

impl UploadService {
    /// Announces a bundle. Its repository is registered when it is not known.
    pub async fn announce(
        &self,
        sender: &Sender,
        repo: &RepoName,
        org_slug: &str,
    ) -> Result<Announced, Error> {
        if !self.admits(sender) {
            return Err(UploadError::TooOften.into());
        }
        sender.may_send()?;
        if sender.org_slug().as_str() != org_slug {
            let given = org_slug.chars().take(100).collect();
            // The public id is no secret, and must not lead to the name.
            return Err(match sender {
                Sender::Public(_) => UploadError::NotOfPublicId { given },
                Sender::Token(_) => {
                    let wanted = sender.org_slug().to_string();
                    UploadError::WrongOrganization { wanted, given }
                }
            }
            .into());
        }
        let repository = self.repository_for(sender, repo).await?;
        let context = &self.context;
        let secret = format!("{}{}", context.ids.new_id().simple(), context.ids.new_id().simple());
        let id = UploadId(context.ids.new_id());
        let record = UploadRecord::awaited(
            id,
            (repository.org, repository.id),
            (UploadSource::Bundle, sender.trust()),
            sender.bound(Claims::default()),
            context.clock.now(),
        );
        let hash = ContentHash::of(secret.as_bytes());
        context.stores.uploads.create(&record, Some(hash)).await?;
        Ok(Announced { id, secret })
    }

    /// Begins to take the bytes of an announced bundle.
    pub async fn receive(&self, id: UploadId, secret: &str) -> Result<Reception, Error> {
        let hash = ContentHash::of(secret.as_bytes());
        let record = self.context.stores.uploads.find_by_secret(id, hash).await?;
        let record = record.ok_or(UploadError::WrongSignature)?;
        if record.state != UploadState::Awaited {
            return Ok(Reception::Known);
        }
        if self.context.clock.now() > record.created_at.plus(Span::hours(ADDRESS_HOURS)) {
            return Err(UploadError::Expired.into());
        }
        let mut intake = self.intake(record);
        self.next_file(&mut intake, "bundle.tar.zst").await?;
        Ok(Reception::Open(Box::new(intake)))
    }

    /// Begins to take reports that come without announcement.
    pub async fn accept(
        &self,
        sender: &Sender,
        repo: &RepoName,
        claims: Claims,
    ) -> Result<Intake, Error> {
        if !self.admits(sender) {
            return Err(UploadError::TooOften.into());
        }
        sender.may_send()?;
        let repository = self.repository_for(sender, repo).await?;
        Ok(self.begin(&repository, UploadSource::JUnit, sender, claims))
    }

    pub(super) fn begin(
        &self,
        repository: &Repository,
        source: UploadSource,
        sender: &Sender,
        claims: Claims,
    ) -> Intake {
        let record = UploadRecord::awaited(
            UploadId(self.context.ids.new_id()),
            (repository.org, repository.id),
            (source, sender.trust()),
            sender.bound(claims),
            self.context.clock.now(),
        );
        self.intake(record)
    }

    pub(super) const fn intake(&self, record: UploadRecord) -> Intake {
        Intake { record, parts: Vec::new(), open: None, left: self.limits.bytes }
    }

    /// Begins a file of an upload, ending the one before.
    pub async fn next_file(&self, intake: &mut Intake, name: &str) -> Result<(), Error> {
        intake.close_file().await?;
        if intake.parts.len() >= self.limits.files {
            return Err(UploadError::TooManyFiles { most: self.limits.files }.into());
        }
        let owner = intake.owner().prefix();
        let prefix = format!("{owner}-{}-{}", intake.record.id, intake.parts.len());
        let writer = self.parts.blobs.begin(&prefix, intake.left).await;
        let name: String = name.chars().filter(|it| *it != '\0').take(255).collect();
        intake.open = Some((name, writer.map_err(UploadError::from)?));
        Ok(())
    }

    /// Ends an upload: its bytes are kept and will be read. The same reports with the same claims
    /// are the same upload; its id is answered again, and nothing is read twice.
    pub async fn complete(&self, intake: Intake) -> Result<UploadId, Error> {
        Ok(self.complete_and_tell(intake).await?.id)
    }

    /// As [`Self::complete`]; also says whether the upload came before.
    pub async fn complete_and_tell(&self, mut intake: Intake) -> Result<Taken, Error> {
        intake.close_file().await?;
        let Intake { mut record, parts, .. } = intake;
        if parts.is_empty() {
            return Err(UploadError::Empty.into());
        }
        let uploads = &self.context.stores.uploads;
        let received = Received { at: self.context.clock.now(), parts };
        let mut is_new = true;
        if record.source != UploadSource::Bundle {
            record.id = content_id(&record, &received);
            is_new = uploads.create(&record, None).await?;
        }
        let taken = uploads.receive(record.org, record.id, &received).await?;
        if !is_new && !taken {
            // It already exists, so these bytes are not needed.
            for part in &received.parts {
                self.parts.blobs.delete(&part.key).await.map_err(UploadError::from)?;
            }
        }
        if taken {
            self.context.notifier.received();
        }
        Ok(Taken { id: record.id, is_known: !taken })
    }
}

/// The id of an upload without announcement: derived from its parameters and contents, so that
/// sending it again after a lost reply changes nothing.
fn content_id(record: &UploadRecord, received: &Received) -> UploadId {
    let claims = &record.claims;
    let text = |it: &Option<String>| it.clone().unwrap_or_default();
    let mut parts = vec![
        record.source.as_str().to_owned(),
        text(&claims.sha),
        text(&claims.branch),
        claims.pr.map(|pr| pr.to_string()).unwrap_or_default(),
        text(&claims.job_url),
        text(&claims.job_name),
        text(&claims.base),
        claims.variant.clone(),
    ];
    parts.extend(claims.at.map(|at| at.to_string()));
    // What a job of a pull request, or a sender without proof, sends first is not what a job of the
    // branch sends later.
    if claims.proven {
        parts.push(format!("proven {}", claims.class.map_or("", |class| class.as_str())));
    }
    parts.extend(claims.check.iter().map(|check| format!("check {check}")));
    parts.extend(received.parts.iter().map(|part| part.hash.to_string()));
    let hash = ContentHash::of_parts(parts.iter().map(String::as_str));
    UploadId(Uuid::new_v5(&record.repo.0, &hash.0))
}
