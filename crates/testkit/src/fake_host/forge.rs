//! What people see on the host.

use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use signalbox_domain::ids::{PrNumber, Sha};
use signalbox_domain::ports::{
    Announcement, Comment, Finding, Forge, HostError, LandedNote, Permission, Repository,
    TestPullRequest, WorkflowRun,
};
use signalbox_domain::time::Timestamp;

/// What people have seen, and what they are not let see.
#[derive(Default)]
struct Board {
    seen: Vec<(PrNumber, &'static str, String)>,
    denied: Vec<&'static str>,
    refused: Vec<&'static str>,
    newer: Option<Sha>,
}

/// A host's people: what they see is written down.
#[derive(Default)]
pub struct FakeForge(Mutex<Board>);

impl FakeForge {
    fn board(&self) -> MutexGuard<'_, Board> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps those parts from being shown for now, and lets all others be shown.
    pub fn deny(&self, parts: &[&'static str]) {
        self.board().denied = parts.to_vec();
    }

    /// Refuses those parts for good.
    pub fn refuse(&self, parts: &[&'static str]) {
        self.board().refused = parts.to_vec();
    }

    /// The head that pull requests have when they are closed.
    pub fn set_newer_head(&self, head: Sha) {
        self.board().newer = Some(head);
    }

    fn see(&self, pr: PrNumber, part: &'static str, text: String) -> Result<(), HostError> {
        let mut board = self.board();
        let words = format!("no {part}");
        if board.denied.contains(&part) {
            return Err(HostError::AccessDenied { words });
        }
        board.seen.push((pr, part, text));
        if board.refused.contains(&part) {
            return Err(HostError::Rejected { words });
        }
        Ok(())
    }

    /// What was shown of that part, oldest first: `status`, `comment`, `close` or `draft`.
    pub fn shown(&self, part: &str) -> Vec<String> {
        let board = self.board();
        let of = board.seen.iter().filter(|(_, of, _)| *of == part);
        of.map(|(_, _, text)| text.clone()).collect()
    }
}

#[async_trait]
impl Forge for FakeForge {
    async fn permission(&self, _: &Repository, _: &str) -> Result<Permission, HostError> {
        Ok(Permission::None)
    }

    async fn comment(&self, _: &Repository, _: u64) -> Result<Option<Comment>, HostError> {
        Ok(None)
    }

    async fn comments_since(
        &self,
        _: &Repository,
        _: Timestamp,
    ) -> Result<Vec<(PrNumber, u64)>, HostError> {
        Ok(Vec::new())
    }

    async fn react(&self, _: &Repository, _: u64, _: bool) -> Result<(), HostError> {
        Ok(())
    }

    async fn labels(&self, _: &Repository, _: PrNumber) -> Result<Vec<String>, HostError> {
        Ok(Vec::new())
    }

    async fn announce(&self, _: &Repository, it: &Announcement) -> Result<(), HostError> {
        if let Some(status) = &it.status {
            self.see(it.pr, "status", status.description.clone())?;
        }
        if let Some(comment) = &it.comment {
            self.see(it.pr, "comment", comment.clone())?;
        }
        Ok(())
    }

    async fn close_landed(
        &self,
        _: &Repository,
        landed: &LandedNote,
    ) -> Result<Option<Sha>, HostError> {
        self.see(landed.pr, "close", landed.sha.to_string())?;
        Ok(self.board().newer.clone())
    }

    async fn open_test_pull_request(
        &self,
        _: &Repository,
        opened: &TestPullRequest,
    ) -> Result<(), HostError> {
        self.see(PrNumber(0), "draft", opened.title.clone())
    }

    async fn workflow_run(&self, _: &Repository, _: u64) -> Result<Option<WorkflowRun>, HostError> {
        Ok(None)
    }

    fn command_prefix(&self) -> &'static str {
        "/signalbox"
    }

    fn plain_lines(&self, comment: &str) -> Vec<String> {
        comment.lines().map(ToOwned::to_owned).collect()
    }

    fn neutral(&self, text: &str) -> String {
        text.to_owned()
    }

    fn checks_hinted(&self, _: &Sha) {}

    async fn diagnose(&self, _: &[Repository]) -> Vec<Finding> {
        Vec::new()
    }
}
