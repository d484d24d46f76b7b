//! Reports that checks of the plain git host wrote.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};

use async_trait::async_trait;

use signalbox_domain::flaky::{
    AskedTest, BranchClass, Excuse, FailedCheck, ReportedRun, RunOutcome, TestKey, Trust, UploadId,
    UploadSource,
};
use signalbox_domain::ports::{CheckReports, ChecksJob, LeftReports, ReportFile};
use signalbox_domain::upload::{Claims, Received, UploadRecord, map};

use super::{Error, Intake, UploadError, UploadService};

/// Bytes that are copied per step.
const CHUNK: usize = 64 * 1024;

#[async_trait]
impl CheckReports for UploadService {
    async fn collected(
        &self,
        job: &ChecksJob,
        check: &str,
        left: LeftReports,
    ) -> Result<Option<Excuse>, String> {
        self.take_check(job, check, left).await.map_err(|error| error.to_string())
    }
}

/// Passes reports on to a service that is created after the hosts that send them.
#[derive(Default)]
pub struct DeferredReports(OnceLock<Weak<UploadService>>);

impl DeferredReports {
    /// Sets the receiver. Only the first call has an effect.
    pub fn go_to(&self, uploads: &Arc<UploadService>) {
        self.0.get_or_init(|| Arc::downgrade(uploads));
    }
}

#[async_trait]
impl CheckReports for DeferredReports {
    async fn collected(
        &self,
        job: &ChecksJob,
        check: &str,
        left: LeftReports,
    ) -> Result<Option<Excuse>, String> {
        match self.0.get().and_then(Weak::upgrade) {
            Some(uploads) => uploads.collected(job, check, left).await,
            None => Err("the server is starting or stopping".into()),
        }
    }
}

impl UploadService {
    async fn take_check(
        &self,
        job: &ChecksJob,
        check: &str,
        left: LeftReports,
    ) -> Result<Option<Excuse>, Error> {
        let checks = &job.checks;
        let claims = Claims {
            sha: Some(checks.candidate.sha.to_string()),
            branch: Some(checks.branch.to_string()),
            class: Some(BranchClass::Merge),
            // A run of several pull requests is no run of one of them.
            pr: checks.prs.first().copied().filter(|_| checks.prs.len() == 1),
            job_name: Some(format!("{check} of test run {}", checks.run)),
            check: Some(check.to_owned()),
            ..Claims::default()
        };
        let record = UploadRecord::awaited(
            UploadId(self.context.ids.new_id()),
            (job.repository.org, job.repository.id),
            (UploadSource::Checks, Trust::Token),
            claims,
            self.context.clock.now(),
        );
        let mut intake = self.intake(record);
        for file in left.files {
            self.next_file(&mut intake, &file.name).await?;
            let mut content = file.content;
            let mut chunk = vec![0; CHUNK];
            // A file that cannot be read completely is reported as truncated.
            while let Ok(read @ 1..) = content.read(&mut chunk) {
                intake.write(chunk.get(..read).unwrap_or_default()).await?;
            }
        }
        let excuse = if left.failed {
            Some(self.excuse_check(job, &mut intake, left.whole).await?)
        } else {
            None
        };
        self.complete(intake).await?;
        Ok(excuse)
    }

    /// Judges a failed check by its reports before they are stored, because the results of this run
    /// must not affect its own judgement. The excused tests are recorded.
    async fn excuse_check(
        &self,
        job: &ChecksJob,
        intake: &mut Intake,
        whole: bool,
    ) -> Result<Excuse, Error> {
        let failing = if whole { self.failing(job, intake).await? } else { None };
        let Some(failing) = failing else { return Ok(Excuse::Unexplained) };
        let (org, repo) = (job.repository.org, job.repository.id);
        let check = FailedCheck { failing: &failing, complete: true };
        let excuse = self.parts.quarantine.excuse(org, repo, check).await;
        if matches!(excuse, Excuse::Excused(_)) {
            let ids = failing.iter().map(|test| test.id.clone());
            intake.record_mut().claims.excused = ids.collect();
        }
        Ok(excuse)
    }

    /// The tests that failed in the end, or `None` when not all reports can be read.
    async fn failing(
        &self,
        job: &ChecksJob,
        intake: &mut Intake,
    ) -> Result<Option<Vec<AskedTest>>, Error> {
        intake.close_file().await?;
        let received = Received { at: self.context.clock.now(), parts: intake.parts().to_vec() };
        let mut files = Vec::with_capacity(received.parts.len());
        for part in &received.parts {
            let content = self.parts.blobs.open(&part.key).await.map_err(UploadError::from)?;
            let Some(content) = content else { return Ok(None) };
            files.push(ReportFile { name: part.name.clone(), content });
        }
        let read = self.parts.reader.read(UploadSource::Checks, files, self.limits.runs).await;
        let Ok(found) = read else { return Ok(None) };
        if found.files.iter().any(|file| file.problem.is_some()) {
            return Ok(None);
        }
        let Some(org) = self.context.orgs.find(job.repository.org).await? else {
            return Ok(None);
        };
        let place = (&org.slug, &job.repository.name);
        let (org_id, repo_id) = (job.repository.org, job.repository.id);
        let rules = self.mapping_rules(org_id, repo_id, received.at).await?;
        let mapped = map(intake.record_mut(), &received, found, place, &rules);
        Ok(Some(failed_in_the_end(mapped.runs)))
    }
}

/// The tests whose last attempt that ran failed.
fn failed_in_the_end(mut runs: Vec<ReportedRun>) -> Vec<AskedTest> {
    runs.sort_by_key(|run| run.attempt);
    let mut last: BTreeMap<TestKey, bool> = BTreeMap::new();
    for run in runs {
        match run.outcome {
            RunOutcome::Passed => last.insert(run.key, false),
            RunOutcome::Failed => last.insert(run.key, true),
            RunOutcome::Skipped => None,
        };
    }
    let failed = last.into_iter().filter(|(_, failed)| *failed);
    failed.map(|(key, _)| AskedTest { id: key.id().to_string(), key }).collect()
}
