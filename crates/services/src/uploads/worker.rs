//! Reading what was received: lease, read, map, take in, finish.

use signalbox_domain::flaky::{BranchClass, ReportedRun, Upload, UploadSource};
use signalbox_domain::ports::{LeasedUpload, Observed, ReadError, ReportFile};
use signalbox_domain::time::{Span, Timestamp};
use signalbox_domain::upload::{
    ContentHash, FoundFile, FoundReport, Mapped, MappingRules, Received, RefusedTime, UploadRecord,
    UploadState, UploadWarning, WarningKind, map, time_of_import, upload_of,
};

use super::{Error, UploadError, UploadService};

/// How long a lease lasts, in seconds; renewed during the reading.
const LEASE_SECONDS: u32 = 30;
/// How often a lease should be renewed, at least, in seconds.
pub const UPLOAD_RENEWAL_SECONDS: u32 = LEASE_SECONDS / 3;
/// How often an upload is tried before it counts as failed.
const MAX_ATTEMPTS: u32 = 10;
/// The longest pause between two tries, in seconds.
const LONGEST_PAUSE_SECONDS: u32 = 300;
/// The most files that are kept in a record.
const KEPT_FILES: usize = 100;

/// What stops a reading.
enum Stop {
    /// It will never succeed.
    Failed(String),
    /// It may succeed later.
    Later(String),
    /// Another server has the upload now.
    Lost,
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Later(error.to_string())
    }
}

impl UploadService {
    /// Leases up to `limit` uploads to be read.
    pub async fn lease(&self, limit: u32) -> Result<Vec<LeasedUpload>, Error> {
        let now = self.context.clock.now();
        let until = now.plus(Span::seconds(LEASE_SECONDS));
        Ok(self.context.stores.uploads.lease(limit, self.holder, now, until).await?)
    }

    /// Extends a lease. `false` when it was lost.
    pub async fn renew(&self, leased: &LeasedUpload) -> Result<bool, Error> {
        let until = self.context.clock.now().plus(Span::seconds(LEASE_SECONDS));
        Ok(self.context.stores.uploads.renew(leased.token, until).await?)
    }

    /// Releases the leases of this server, or all leases when it is the only server on the database
    /// and starts.
    pub async fn hand_back(&self, all: bool) -> Result<u64, Error> {
        let holder = (!all).then_some(self.holder);
        Ok(self.context.stores.uploads.hand_back(holder).await?)
    }

    /// Removes bytes and records that are older than their retention.
    pub async fn sweep(
        &self,
        blobs_before: Timestamp,
        records_before: Timestamp,
    ) -> Result<(), Error> {
        self.parts.blobs.sweep(blobs_before, 10_000).await.map_err(UploadError::from)?;
        self.context.stores.uploads.prune(records_before, 1_000).await?;
        Ok(())
    }

    /// Reads one leased upload completely. An unreadable upload is recorded with the reason; one
    /// that may be readable later is retried after a pause. An error is the database's; the lease
    /// then expires and the upload comes back.
    pub async fn read(&self, leased: LeasedUpload) -> Result<(), Error> {
        let started = self.context.clock.now();
        let outcome = self.try_and_note(leased, started).await?;
        let took = self.context.clock.now().since(started);
        self.context.observer.observe(&Observed::Upload { outcome, took });
        Ok(())
    }

    async fn try_and_note(
        &self,
        leased: LeasedUpload,
        started: Timestamp,
    ) -> Result<&'static str, Error> {
        let LeasedUpload { token, record, attempts, failing_since } = leased;
        let mut done = record;
        let stop = match self.try_read(token, &mut done).await {
            Ok(()) => None,
            Err(Stop::Lost) => return Ok("lost"),
            Err(Stop::Later(words)) if attempts + 1 < MAX_ATTEMPTS => {
                let doubled = 1_u32 << attempts.min(10);
                let pause = Span::seconds(doubled.min(LONGEST_PAUSE_SECONDS));
                let (at, since) =
                    (self.context.clock.now().plus(pause), failing_since.unwrap_or(started));
                self.context.stores.uploads.retry(token, at, since, &words).await?;
                return Ok("retried");
            }
            Err(Stop::Later(words)) => {
                Some(format!("failed after {MAX_ATTEMPTS} attempts: {words}"))
            }
            Err(Stop::Failed(words)) => Some(words),
        };
        done.state = if stop.is_some() { UploadState::Failed } else { UploadState::Read };
        let outcome = if stop.is_some() { "failed" } else { "read" };
        done.problem = stop;
        let kept = self.context.stores.uploads.finish(token, &done).await?;
        Ok(if kept { outcome } else { "lost" })
    }

    async fn try_read(
        &self,
        token: signalbox_domain::ports::LeaseToken,
        done: &mut UploadRecord,
    ) -> Result<(), Stop> {
        let received = done.received.clone();
        let received = received.ok_or_else(|| Stop::Failed("it has no data".into()))?;
        let mut files = Vec::with_capacity(received.parts.len());
        for part in &received.parts {
            let content = self.parts.blobs.open(&part.key).await.map_err(UploadError::from);
            let content = content.map_err(Error::from)?;
            let content = content.ok_or_else(|| {
                // Another server that shares the database may have it in a folder of its own.
                Stop::Later(format!("{} is not in this server's store for uploads", part.name))
            })?;
            files.push(ReportFile { name: part.name.clone(), content });
        }
        let found = self.parts.reader.read(done.source, files, self.limits.runs).await;
        let found = found.map_err(|error| match error {
            ReadError::Refused(words) => Stop::Failed(words),
            ReadError::Unavailable(words) => Stop::Later(words),
        })?;
        note_files(done, &found.files);
        let rules = self.mapping_rules(done.org, done.repo, received.at).await?;
        let received = self.at_its_time(done, received, &found)?;
        let upload = upload_of(done, &received, found.meta.as_ref(), &rules.branches);
        done.upload = Some(upload.clone());
        let nothing_read =
            !found.files.is_empty() && found.files.iter().all(|file| file.problem.is_some());
        if nothing_read && found.runs.is_empty() {
            let words = found
                .files
                .iter()
                .find_map(|file| Some(format!("{}: {}", file.name, file.problem.as_ref()?)));
            return Err(Stop::Failed(words.unwrap_or_default()));
        }
        let digest = digest(&upload, found.digest);
        let Some(owner) =
            self.context.stores.uploads.claim(token, digest).await.map_err(Error::from)?
        else {
            return Err(Stop::Lost);
        };
        let Mapped { upload, runs, too_old, warnings } =
            self.mapped(done, &received, found, &rules).await?;
        done.warnings = warnings;
        if runs.is_empty() && too_old > 0 {
            let refused = RefusedTime::all(rules.oldest, self.limits.history);
            return Err(Stop::Failed(refused.to_string()));
        }
        if owner != done.id {
            let first = self.context.stores.uploads.find(done.org, owner).await;
            let first = first.map_err(Error::from)?;
            if first.is_some_and(|first| first.state != UploadState::Read) {
                // Should that fail, this one is what counts.
                return Err(Stop::Later(format!(
                    "waiting for upload {owner}, which has the same results"
                )));
            }
            done.repeats = Some(owner);
            return Ok(());
        }
        self.take_in(done, upload, runs).await
    }

    /// An imported run is received when it ended.
    fn at_its_time(
        &self,
        record: &UploadRecord,
        received: Received,
        found: &FoundReport,
    ) -> Result<Received, Stop> {
        if record.source != UploadSource::Import {
            return Ok(received);
        }
        let at = time_of_import(record.claims.at, found, received.at, self.limits.history);
        let at = at.map_err(|refused| Stop::Failed(refused.to_string()))?;
        Ok(Received { at, ..received })
    }

    async fn mapped(
        &self,
        record: &UploadRecord,
        received: &Received,
        found: FoundReport,
        rules: &MappingRules,
    ) -> Result<Mapped, Stop> {
        let org = self.context.orgs.find(record.org).await.map_err(Error::from)?;
        let repo =
            self.context.repositories.find(record.org, record.repo).await.map_err(Error::from)?;
        let (Some(org), Some(repo)) = (org, repo) else {
            return Err(Stop::Failed("its repository was deleted".into()));
        };
        Ok(map(record, received, found, (&org.slug, &repo.name), rules))
    }

    async fn take_in(
        &self,
        done: &mut UploadRecord,
        upload: Upload,
        runs: Vec<ReportedRun>,
    ) -> Result<(), Stop> {
        let taken_in = self.parts.sink.take_in(&upload, runs).await?;
        if taken_in.ignored > 0 {
            let kind = WarningKind::IdOfAnotherTest;
            done.warnings.insert(0, UploadWarning { kind, count: taken_in.ignored });
        }
        done.taken_in = Some(taken_in);
        Ok(())
    }
}

/// Keeps the reported facts about the files, files with a problem first.
fn note_files(done: &mut UploadRecord, files: &[FoundFile]) {
    let mut files = files.to_vec();
    files.sort_by_key(|file| file.problem.is_none());
    files.truncate(KEPT_FILES);
    done.files = files;
}

/// What makes two uploads the same report: the commit, the job, the base and what the files hold.
/// Of reports of pull requests also the class, so that none is mistaken for a report of a branch.
fn digest(upload: &Upload, files: ContentHash) -> ContentHash {
    let sha = upload.sha.as_ref().map(ToString::to_string).unwrap_or_default();
    let text = |it: &Option<String>| it.clone().unwrap_or_default();
    let class = (upload.class == BranchClass::PullRequest).then(|| upload.class.as_str());
    let parts = [
        sha,
        class.unwrap_or_default().to_owned(),
        text(&upload.job_url),
        text(&upload.job_name),
        upload.origin.to_string(),
        upload.variant.clone(),
        upload.trust.as_str().to_owned(),
        files.to_string(),
    ];
    ContentHash::of_parts(parts.iter().map(String::as_str))
}
