//! Checks whose outcome is a function of the files.

use async_trait::async_trait;
use signalbox_domain::ports::{CheckOutput, ChecksJob, ChecksRunner, ChecksSink, HostError};
use signalbox_domain::queue::{Check, CheckConclusion, CheckReport, CheckStatus};

use super::{Call, FakeHost};

#[async_trait]
impl ChecksRunner for FakeHost {
    /// Every required name counts as configured.
    async fn run(&self, job: &ChecksJob, sink: &dyn ChecksSink) -> Result<(), HostError> {
        let (files, hang, lost) = {
            let mut state = self.state();
            let lost = state.faults.meet(Call::RunChecks)?;
            let name = &job.repository.name;
            let what = || HostError::NotFound { what: format!("repository {name}") };
            let repo = state.repos.get(name).ok_or_else(what)?;
            (repo.tree(&job.checks.candidate.sha), state.checks_hang, lost)
        };
        let required = &job.checks.required;
        let ends = |name: &String| (self.judge)(name, &files);
        let report = |status, has_ended: bool| -> Vec<CheckReport> {
            let conclusion = |name| has_ended.then(|| ends(name));
            required.iter().map(|name| self.check(name, status, conclusion(name))).collect()
        };
        if sink.report(report(CheckStatus::InProgress, false)).await.is_err() {
            return Ok(());
        }
        if hang {
            sink.closed().await;
            return Ok(());
        }
        for name in required {
            let output = CheckOutput {
                org: job.repository.org,
                run: job.checks.run,
                check: name.clone(),
                text: format!("{name}: {}\n", ends(name).as_str()),
                at: self.clock.now(),
            };
            if sink.output(output).await.is_err() {
                return Ok(());
            }
        }
        if sink.report(report(CheckStatus::Completed, true)).await.is_err() {
            return Ok(());
        }
        lost.map_or(Ok(()), Err)
    }
}

impl FakeHost {
    fn check(&self, name: &str, status: CheckStatus, conclusion: Option<CheckConclusion>) -> Check {
        Check {
            name: name.to_owned(),
            status,
            conclusion,
            url: String::new(),
            summary: None,
            at: self.clock.now(),
            excused: Vec::new(),
        }
    }
}
