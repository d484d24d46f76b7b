//! The forge of the fake host: users, comments, labels and statuses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use signalbox_domain::ids::{BranchName, PrNumber, Sha};
use signalbox_domain::ports::{
    Announcement, Comment, Finding, Forge, HostError, LandedNote, Permission, Repository,
    StatusState, TestPullRequest, WorkflowRun,
};
use signalbox_domain::time::Timestamp;

/// The contents of the forge, a log of what was shown, and the rejected parts.
#[derive(Default)]
struct Board {
    seen: Vec<(PrNumber, &'static str, String)>,
    denied: Vec<&'static str>,
    refused: Vec<&'static str>,
    newer: Option<Sha>,
    permissions: BTreeMap<String, Permission>,
    comments: BTreeMap<u64, Comment>,
    /// The comment of each queue on each pull request.
    own_comments: BTreeMap<(PrNumber, BranchName), u64>,
    reactions: Vec<(u64, bool)>,
    statuses: BTreeMap<(Sha, BranchName), StatusState>,
    labels: BTreeSet<(PrNumber, String)>,
    closed: BTreeSet<PrNumber>,
    drafts: BTreeSet<BranchName>,
    workflow_runs: BTreeMap<u64, WorkflowRun>,
}

impl Board {
    /// Adds a comment. Ids count from 1, and each comment is a second later than the previous one.
    fn write(&mut self, pr: PrNumber, author: &str, body: &str) -> u64 {
        let seconds = u32::try_from(self.comments.len()).unwrap_or(u32::MAX).saturating_add(1);
        let created_at = Timestamp::from_unix_seconds(i64::from(seconds));
        let (author, body) = (author.to_owned(), body.to_owned());
        let id = u64::from(seconds);
        self.comments.insert(id, Comment { pr, author, body, created_at });
        id
    }
}

/// A forge in memory that records what is shown on pull requests.
#[derive(Default)]
pub struct FakeForge(Mutex<Board>);

impl FakeForge {
    fn board(&self) -> MutexGuard<'_, Board> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Rejects these parts as unavailable, and accepts all others.
    pub fn deny(&self, parts: &[&'static str]) {
        self.board().denied = parts.to_vec();
    }

    /// Rejects these parts for good.
    pub fn refuse(&self, parts: &[&'static str]) {
        self.board().refused = parts.to_vec();
    }

    /// Sets the head that pull requests have when they are closed.
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

    /// Sets the permission of a user; the default is none.
    pub fn permit(&self, login: &str, permission: Permission) {
        self.board().permissions.insert(login.to_owned(), permission);
    }

    /// Writes a comment as a user; returns its id.
    pub fn write_comment(&self, pr: PrNumber, author: &str, body: &str) -> u64 {
        self.board().write(pr, author, body)
    }

    /// Adds a label to a pull request as a user.
    pub fn label(&self, pr: PrNumber, label: &str) {
        self.board().labels.insert((pr, label.to_owned()));
    }

    /// Starts a workflow run.
    pub fn start_workflow(&self, id: u64, run: WorkflowRun) {
        self.board().workflow_runs.insert(id, run);
    }

    /// The texts of the comments on a pull request, oldest first.
    pub fn comments_on(&self, pr: PrNumber) -> Vec<String> {
        let board = self.board();
        let on = board.comments.values().filter(|comment| comment.pr == pr);
        on.map(|comment| comment.body.clone()).collect()
    }

    /// The latest status of each queue on a commit.
    pub fn statuses_on(&self, sha: &Sha) -> Vec<StatusState> {
        let board = self.board();
        let on = board.statuses.iter().filter(|((of, _), _)| of == sha);
        on.map(|(_, state)| *state).collect()
    }

    /// The reactions to a comment: whether its command was accepted.
    pub fn reactions_to(&self, comment: u64) -> Vec<bool> {
        let board = self.board();
        let to = board.reactions.iter().filter(|(of, _)| *of == comment);
        to.map(|(_, taken)| *taken).collect()
    }

    /// Whether a pull request is open: it was not closed through the forge.
    pub fn is_open(&self, pr: PrNumber) -> bool {
        !self.board().closed.contains(&pr)
    }

    /// The log of a part, oldest first: `status`, `comment`, `close` or `draft`.
    pub fn shown(&self, part: &str) -> Vec<String> {
        let board = self.board();
        let of = board.seen.iter().filter(|(_, of, _)| *of == part);
        of.map(|(_, _, text)| text.clone()).collect()
    }
}

#[async_trait]
impl Forge for FakeForge {
    async fn permission(&self, _: &Repository, login: &str) -> Result<Permission, HostError> {
        Ok(self.board().permissions.get(login).copied().unwrap_or(Permission::None))
    }

    async fn comment(&self, _: &Repository, id: u64) -> Result<Option<Comment>, HostError> {
        Ok(self.board().comments.get(&id).cloned())
    }

    async fn comments_since(
        &self,
        _: &Repository,
        since: Timestamp,
    ) -> Result<Vec<(PrNumber, u64)>, HostError> {
        let board = self.board();
        let later = board.comments.iter().filter(|(_, comment)| comment.created_at >= since);
        Ok(later.map(|(id, comment)| (comment.pr, *id)).take(1_000).collect())
    }

    async fn react(&self, _: &Repository, comment: u64, taken: bool) -> Result<(), HostError> {
        self.board().reactions.push((comment, taken));
        Ok(())
    }

    async fn labels(&self, _: &Repository, pr: PrNumber) -> Result<Vec<String>, HostError> {
        let board = self.board();
        let of = board.labels.iter().filter(|(on, _)| *on == pr);
        Ok(of.map(|(_, label)| label.clone()).collect())
    }

    async fn announce(&self, _: &Repository, it: &Announcement) -> Result<(), HostError> {
        if let Some(status) = &it.status {
            self.see(it.pr, "status", status.description.clone())?;
            let of = (status.sha.clone(), it.queue.clone());
            self.board().statuses.insert(of, status.state);
        }
        if let Some(text) = &it.comment {
            self.see(it.pr, "comment", text.clone())?;
            let mut board = self.board();
            let of = (it.pr, it.queue.clone());
            let own = board.own_comments.get(&of).copied();
            if let Some(comment) = own.and_then(|id| board.comments.get_mut(&id)) {
                comment.body.clone_from(text);
            } else {
                let id = board.write(it.pr, "signalbox", text);
                board.own_comments.insert(of, id);
            }
        }
        if let Some((wanted, unwanted)) = &it.labels {
            let mut board = self.board();
            board.labels.extend(wanted.iter().map(|label| (it.pr, label.clone())));
            board.labels.retain(|(on, label)| *on != it.pr || !unwanted.contains(label));
        }
        Ok(())
    }

    async fn close_landed(
        &self,
        _: &Repository,
        landed: &LandedNote,
    ) -> Result<Option<Sha>, HostError> {
        self.see(landed.pr, "close", landed.sha.to_string())?;
        let mut board = self.board();
        board.closed.insert(landed.pr);
        Ok(board.newer.clone().filter(|newer| *newer != landed.head))
    }

    async fn open_test_pull_request(
        &self,
        _: &Repository,
        opened: &TestPullRequest,
    ) -> Result<(), HostError> {
        if self.board().drafts.contains(&opened.branch) {
            return Ok(());
        }
        self.see(PrNumber(0), "draft", opened.title.clone())?;
        self.board().drafts.insert(opened.branch.clone());
        Ok(())
    }

    async fn workflow_run(
        &self,
        _: &Repository,
        id: u64,
    ) -> Result<Option<WorkflowRun>, HostError> {
        Ok(self.board().workflow_runs.get(&id).cloned())
    }

    fn command_prefix(&self) -> &'static str {
        "/signalbox"
    }

    /// The only markup is a quote: a line that starts with `>`.
    fn plain_lines(&self, comment: &str) -> Vec<String> {
        let plain = comment.lines().filter(|line| !line.starts_with('>'));
        plain.map(ToOwned::to_owned).collect()
    }

    fn neutral(&self, text: &str) -> String {
        text.replace('\n', " ").replace('@', "(at)").replace(self.command_prefix(), "(command)")
    }

    fn checks_hinted(&self, _: &Sha) {}

    async fn diagnose(&self, _: &[Repository]) -> Vec<Finding> {
        Vec::new()
    }
}
