//! The features of the host beyond git, behind their port.

use async_trait::async_trait;
use reqwest::Method;
use serde_json::json;
use signalbox_domain::ids::{PrNumber, Sha};
use signalbox_domain::ports::{
    Announcement, Comment, Finding, Forge, HostError, LandedNote, Permission, Repository,
    TestPullRequest, WorkflowRun,
};
use signalbox_domain::time::Timestamp;

use crate::client::part;
use crate::host::GitHubHost;
use crate::{markdown, prose, wire};

#[async_trait]
impl Forge for GitHubHost {
    async fn permission(
        &self,
        repository: &Repository,
        login: &str,
    ) -> Result<Permission, HostError> {
        let rest = format!("/collaborators/{}/permission", part(login));
        let found: Option<wire::Granted> = self.client.find(&repository.name, &rest).await?;
        // Finer roles map to the nearest of these.
        Ok(match found.and_then(|it| it.permission).as_deref() {
            Some("admin") => Permission::Admin,
            Some("write" | "maintain") => Permission::Write,
            Some("read" | "triage") => Permission::Read,
            Some(_) | None => Permission::None,
        })
    }

    async fn comment(
        &self,
        repository: &Repository,
        id: u64,
    ) -> Result<Option<Comment>, HostError> {
        let rest = format!("/issues/comments/{id}");
        let found: Option<wire::IssueComment> = self.client.find(&repository.name, &rest).await?;
        Ok(found.and_then(|it| {
            let issue = it.issue_url.as_deref()?.rsplit('/').next()?.parse().ok()?;
            Some(Comment {
                pr: PrNumber(issue),
                author: it.user?.login,
                body: it.body.unwrap_or_default(),
                created_at: Timestamp::parse(it.created_at.as_deref()?)?,
            })
        }))
    }

    async fn comments_since(
        &self,
        repository: &Repository,
        since: Timestamp,
    ) -> Result<Vec<(PrNumber, u64)>, HostError> {
        let since = part(&since.to_string());
        let rest = format!("/issues/comments?sort=updated&direction=asc&since={since}");
        let found: Vec<wire::IssueComment> =
            self.client.list(&repository.name, &rest, None).await?;
        let starts = |it: &wire::IssueComment| {
            // Only comments that may be commands; most are not.
            it.body.as_deref().is_some_and(|body| body.contains(&self.command_prefix))
        };
        let listed = found.iter().filter(|it| starts(it)).filter_map(|it| {
            let issue = it.issue_url.as_deref()?.rsplit('/').next()?.parse().ok()?;
            Some((PrNumber(issue), it.id))
        });
        Ok(listed.take(1_000).collect())
    }

    async fn react(
        &self,
        repository: &Repository,
        comment: u64,
        taken: bool,
    ) -> Result<(), HostError> {
        let rest = format!("/issues/comments/{comment}/reactions");
        let body = json!({ "content": if taken { "+1" } else { "-1" } });
        self.client.call(&repository.name, Method::POST, &rest, Some(&body)).await?;
        Ok(())
    }

    async fn labels(
        &self,
        repository: &Repository,
        pr: PrNumber,
    ) -> Result<Vec<String>, HostError> {
        self.read_labels(&repository.name, pr).await
    }

    async fn announce(
        &self,
        repository: &Repository,
        announcement: &Announcement,
    ) -> Result<(), HostError> {
        let name = &repository.name;
        self.noted(name, showing(announcement), self.show(name, announcement).await)
    }

    async fn close_landed(
        &self,
        repository: &Repository,
        landed: &LandedNote,
    ) -> Result<Option<Sha>, HostError> {
        let name = &repository.name;
        self.noted(name, "closing pull requests", self.close(name, landed).await)
    }

    async fn open_test_pull_request(
        &self,
        repository: &Repository,
        wanted: &TestPullRequest,
    ) -> Result<(), HostError> {
        let name = &repository.name;
        self.noted(name, "opening draft pull requests", self.open_draft(name, wanted).await)
    }

    async fn workflow_run(
        &self,
        repository: &Repository,
        id: u64,
    ) -> Result<Option<WorkflowRun>, HostError> {
        self.read_workflow_run(&repository.name, id).await
    }

    fn command_prefix(&self) -> &str {
        &self.command_prefix
    }

    fn plain_lines(&self, comment: &str) -> Vec<String> {
        prose::plain_lines(comment)
    }

    fn neutral(&self, text: &str) -> String {
        markdown::neutral(text)
    }

    fn checks_hinted(&self, sha: &Sha) {
        self.waiters.hint(sha);
    }

    async fn diagnose(&self, repositories: &[Repository]) -> Vec<Finding> {
        self.findings(repositories).await
    }
}

/// The name of the operation, for operators.
fn showing(announcement: &Announcement) -> &'static str {
    match (&announcement.status, &announcement.comment, &announcement.labels) {
        (Some(_), None, None) => "writing statuses",
        (None, Some(_), None) => "writing comments",
        (None, None, Some(_)) => "writing labels",
        _ => "commenting on and labeling pull requests",
    }
}
