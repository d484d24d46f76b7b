//! Reports that checks of the plain git host wrote.

use async_trait::async_trait;

use crate::flaky::{BranchClass, Trust, UploadId, UploadSource};
use crate::ports::{CheckReports, ChecksJob, ReportFile};
use crate::upload::{Claims, UploadRecord};

use super::{Error, UploadService};

/// Bytes that are copied at once.
const CHUNK: usize = 64 * 1024;

#[async_trait]
impl CheckReports for UploadService {
    async fn collected(
        &self,
        job: &ChecksJob,
        check: &str,
        files: Vec<ReportFile>,
    ) -> Result<(), String> {
        self.take_check(job, check, files).await.map_err(|error| error.to_string())
    }
}

impl UploadService {
    async fn take_check(
        &self,
        job: &ChecksJob,
        check: &str,
        files: Vec<ReportFile>,
    ) -> Result<(), Error> {
        let checks = &job.checks;
        let claims = Claims {
            sha: Some(checks.candidate.sha.to_string()),
            branch: Some(checks.branch.to_string()),
            class: Some(BranchClass::Merge),
            // A run of several pull requests is no run of one of them.
            pr: checks.prs.first().copied().filter(|_| checks.prs.len() == 1),
            job_url: None,
            job_name: Some(format!("{check} of test run {}", checks.run)),
            author: None,
            variant: String::new(),
        };
        let record = UploadRecord::awaited(
            UploadId(self.context.ids.new_id()),
            (job.repository.org, job.repository.id),
            (UploadSource::Checks, Trust::Token),
            claims,
            self.context.clock.now(),
        );
        let mut intake = self.intake(record);
        for file in files {
            self.next_file(&mut intake, &file.name).await?;
            let mut content = file.content;
            let mut chunk = vec![0; CHUNK];
            // A file that cannot be read to its end is told as one that is cut off.
            while let Ok(read @ 1..) = content.read(&mut chunk) {
                intake.write(chunk.get(..read).unwrap_or_default()).await?;
            }
        }
        self.complete(intake).await.map(drop)
    }
}
