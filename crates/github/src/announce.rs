//! The state of a pull request on the host: a status, one comment that is edited, labels.

use std::sync::{Mutex, PoisonError};

use quick_cache::sync::Cache;
use reqwest::Method;
use serde_json::json;
use signalbox_domain::ids::{PrNumber, RepoName, Sha};
use signalbox_domain::ports::{
    Announcement, HostError, LandedNote, StatusNote, StatusState, TestPullRequest,
};

use signalbox_domain::time::{Span, Timestamp};

use crate::client::{Refused, part};
use crate::host::{GitHubHost, sha};
use crate::wire;

/// The most characters of a status's description that the host takes.
const MAX_DESCRIPTION: usize = 140;
/// The most bytes of a comment that the host takes.
const MAX_COMMENT: usize = 65_000;
/// How long a pull request without comments is taken to have none, so that ours need not be looked
/// for.
const BARE_SECONDS: u32 = 60;
/// The most comments that are remembered.
const REMEMBERED: usize = 10_000;

/// Where our comments are, so that they need not be looked for.
pub(crate) struct Shown {
    comments: Cache<(RepoName, PrNumber, String), u64>,
    own_login: Mutex<Option<String>>,
    /// Pull requests that had no comment at all when they were read, and when that was.
    bare: Cache<(RepoName, PrNumber), Timestamp>,
}

impl Default for Shown {
    fn default() -> Self {
        Self {
            comments: Cache::new(REMEMBERED),
            own_login: Mutex::default(),
            bare: Cache::new(REMEMBERED),
        }
    }
}

impl Shown {
    /// A pull request was read; whether it had a comment then.
    pub(crate) fn seen(&self, repo: &RepoName, pr: PrNumber, is_bare: bool, at: Timestamp) {
        let key = (repo.clone(), pr);
        if is_bare {
            self.bare.insert(key, at);
        } else {
            self.bare.remove(&key);
        }
    }

    /// Whether it had no comment a moment ago.
    fn is_bare(&self, repo: &RepoName, pr: PrNumber, now: Timestamp) -> bool {
        let at = self.bare.get(&(repo.clone(), pr));
        at.is_some_and(|at| now.since(at) <= Span::seconds(BARE_SECONDS))
    }
}

impl GitHubHost {
    pub(crate) async fn show(
        &self,
        repo: &RepoName,
        announcement: &Announcement,
    ) -> Result<(), HostError> {
        let queue = announcement.queue.as_str();
        if let Some(status) = &announcement.status {
            self.show_status(repo, queue, status).await?;
        }
        if let Some(text) = &announcement.comment {
            self.show_comment(repo, announcement.pr, queue, text).await?;
        }
        if let Some((wanted, unwanted)) = &announcement.labels {
            self.show_labels(repo, announcement.pr, wanted, unwanted).await?;
        }
        Ok(())
    }

    async fn show_status(
        &self,
        repo: &RepoName,
        queue: &str,
        status: &StatusNote,
    ) -> Result<(), HostError> {
        let state = match status.state {
            StatusState::Pending => "pending",
            StatusState::Success => "success",
            StatusState::Failure => "failure",
        };
        let description: String = status.description.chars().take(MAX_DESCRIPTION).collect();
        let mut body = json!({
            "state": state,
            "context": format!("signalbox/{queue}"),
            "description": description,
        });
        if self.public_url.starts_with("https://") {
            body["target_url"] = json!(self.public_url);
        }
        let rest = format!("/statuses/{}", status.sha);
        self.client.call(repo, Method::POST, &rest, Some(&body)).await?;
        Ok(())
    }

    async fn show_comment(
        &self,
        repo: &RepoName,
        pr: PrNumber,
        queue: &str,
        text: &str,
    ) -> Result<(), HostError> {
        let marker = format!("<!-- signalbox queue {} -->", part(queue));
        let mut text = text.to_owned();
        text.truncate(text.floor_char_boundary(MAX_COMMENT));
        let body = json!({ "body": format!("{marker}\n{text}") });
        let key = (repo.clone(), pr, queue.to_owned());
        let known = self.shown.comments.get(&key);
        let id = match known {
            Some(id) => Some(id),
            None if self.shown.is_bare(repo, pr, self.client.clock.now()) => None,
            None => self.own_comment(repo, pr, &marker).await?,
        };
        if let Some(id) = id {
            let rest = format!("/issues/comments/{id}");
            match self.client.call(repo, Method::PATCH, &rest, Some(&body)).await {
                Ok(_) => {
                    self.shown.comments.insert(key, id);
                    return Ok(());
                }
                // A user has deleted it.
                Err(Refused { status: 404, .. }) => {
                    self.shown.comments.remove(&key);
                }
                Err(refused) => return Err(refused.error),
            }
        }
        let rest = format!("/issues/{pr}/comments");
        let made: wire::IssueComment = self.client.make(repo, Method::POST, &rest, &body).await?;
        self.shown.comments.insert(key, made.id);
        Ok(())
    }

    /// Our comment of an earlier life: it carries the marker, and we wrote it.
    async fn own_comment(
        &self,
        repo: &RepoName,
        pr: PrNumber,
        marker: &str,
    ) -> Result<Option<u64>, HostError> {
        let rest = format!("/issues/{pr}/comments");
        let found: Vec<wire::IssueComment> = self.client.list(repo, &rest, None).await?;
        for comment in found {
            let carries = comment.body.as_deref().is_some_and(|body| body.starts_with(marker));
            if carries && self.is_own(&comment).await? {
                return Ok(Some(comment.id));
            }
        }
        Ok(None)
    }

    async fn is_own(&self, comment: &wire::IssueComment) -> Result<bool, HostError> {
        if let Some(app) = self.client.app_id() {
            let by = comment.performed_via_github_app.as_ref().and_then(|app| app.id);
            return Ok(by == Some(app));
        }
        let known = self.shown.own_login.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let own = if let Some(login) = known {
            login
        } else {
            let (user, _) = self.client.get_own("user").await?;
            let login = user["login"].as_str().unwrap_or_default().to_owned();
            let mut known = self.shown.own_login.lock().unwrap_or_else(PoisonError::into_inner);
            *known = Some(login.clone());
            login
        };
        Ok(comment.user.as_ref().is_some_and(|user| user.login.eq_ignore_ascii_case(&own)))
    }

    async fn show_labels(
        &self,
        repo: &RepoName,
        pr: PrNumber,
        wanted: &[String],
        unwanted: &[String],
    ) -> Result<(), HostError> {
        let now = self.read_labels(repo, pr).await?;
        let has = |label: &String| now.iter().any(|it| it.eq_ignore_ascii_case(label));
        let missing: Vec<&String> = wanted.iter().filter(|label| !has(label)).collect();
        if !missing.is_empty() {
            let rest = format!("/issues/{pr}/labels");
            let body = json!({ "labels": missing });
            self.client.call(repo, Method::POST, &rest, Some(&body)).await?;
        }
        for label in unwanted.iter().filter(|label| has(label)) {
            let rest = format!("/issues/{pr}/labels/{}", part(label));
            match self.client.call(repo, Method::DELETE, &rest, None).await {
                Ok(_) | Err(Refused { error: HostError::NotFound { .. }, .. }) => {}
                Err(refused) => return Err(refused.error),
            }
        }
        Ok(())
    }

    /// Closes a pull request whose changes have landed as other commits: the host marks only those
    /// as merged whose own head is on the target. Returns its head if it is a newer one.
    pub(crate) async fn close(
        &self,
        repo: &RepoName,
        landed: &LandedNote,
    ) -> Result<Option<Sha>, HostError> {
        let rest = format!("/pulls/{}", landed.pr);
        let seen: Result<wire::Pull, Refused> = if landed.rewritten && landed.head != landed.sha {
            let body = json!({ "state": "closed" });
            self.client.make(repo, Method::PATCH, &rest, &body).await
        } else {
            self.client.get(repo, &rest).await
        };
        let seen = match seen {
            Ok(seen) => seen,
            Err(Refused { error: HostError::NotFound { .. }, .. }) => return Ok(None),
            Err(refused) => return Err(refused.error),
        };
        let head = sha(&seen.head.sha)?;
        Ok(Some(head).filter(|head| *head != landed.head))
    }

    pub(crate) async fn read_labels(
        &self,
        repo: &RepoName,
        pr: PrNumber,
    ) -> Result<Vec<String>, HostError> {
        let rest = format!("/issues/{pr}/labels");
        let labels: Vec<wire::Label> = self.client.list(repo, &rest, None).await?;
        Ok(labels.into_iter().map(|label| label.name).collect())
    }

    /// Opens a draft pull request for a test branch unless it has one. The host closes it when the
    /// branch is deleted.
    pub(crate) async fn open_draft(
        &self,
        repo: &RepoName,
        wanted: &TestPullRequest,
    ) -> Result<(), HostError> {
        let body = json!({
            "title": wanted.title,
            "body": wanted.body,
            "head": wanted.branch.as_str(),
            "base": wanted.target.as_str(),
            "draft": true,
        });
        match self.client.call(repo, Method::POST, "/pulls", Some(&body)).await {
            Ok(_) => Ok(()),
            Err(Refused { status: 422, words, .. }) if words.contains("already exists") => Ok(()),
            Err(refused) => Err(refused.error),
        }
    }
}
