//! Plays a chapter through the API, and prints what happens.

use std::time::Duration;

use serde_json::{Value, json};
use signalbox_domain::ids::{BranchName, OrgSlug, RepoId, RepoName};
use signalbox_domain::ports::Repository;
use signalbox_hosts::OpenRequest;
use signalbox_terminal::say;

use crate::chapter::{Action, Branch, Chapter, Comes, Cue, Sign};
use crate::client::Client;
use crate::narrator::{Narrator, Run};
use crate::repository::{Git, HOST, NAME, ORG, OWNER};
use crate::{DemoError, Running};

/// The time limit of a chapter.
const PATIENCE: Duration = Duration::from_mins(1);

/// A pull request of a chapter.
pub(crate) struct Pr {
    pub(crate) number: u32,
    pub(crate) branch: &'static Branch,
}

/// Finds the pull request of a branch.
pub(crate) fn pr_of<'a>(prs: &'a [Pr], branch: &str) -> Option<&'a Pr> {
    prs.iter().find(|pr| pr.branch.name == branch)
}

/// What all chapters use: the server, a client, and the repository.
pub(crate) struct Stage<'a> {
    app: &'a dyn Running,
    pub(crate) client: &'a Client,
    pub(crate) git: &'a Git,
    repository: Repository,
}

impl<'a> Stage<'a> {
    /// Registers the repository.
    pub(crate) async fn set(
        app: &'a dyn Running,
        client: &'a Client,
        git: &'a Git,
    ) -> Result<Self, DemoError> {
        let slug = OrgSlug::new(ORG)?;
        let org = app.context().stores.account.orgs.find_by_slug(&slug).await?;
        let org = org.ok_or_else(|| missing("the organization is missing"))?.id;
        let name = RepoName::new(HOST, OWNER, NAME)?;
        let host = app.hosts().plain(org, &name.host);
        let mut repository = Repository {
            id: RepoId(app.context().ids.new_id()),
            org,
            name,
            path: None,
            created_at: app.context().clock.now(),
        };
        repository.path = host.git().locate(&repository).await?;
        let repository = app.context().stores.account.repos.register(&repository, false).await;
        let repository = repository?;
        Ok(Self { app, client, git, repository })
    }

    /// Opens a pull request, and returns its number.
    pub(crate) async fn open(
        &self,
        branch: &str,
        target: &str,
        author: Option<&str>,
    ) -> Result<u32, DemoError> {
        let host = self.app.hosts().plain(self.repository.org, &self.repository.name.host);
        let name = |text: &str| BranchName::new(text);
        let request = OpenRequest {
            branch: name(branch)?,
            target: name(target)?,
            title: None,
            body: None,
            author: author.map(ToOwned::to_owned),
        };
        let opened = host.open_pull_request(&self.repository, request).await;
        Ok(opened?.number.0)
    }

    /// Opens the pull requests of a chapter.
    pub(crate) async fn open_pull_requests(
        &self,
        chapter: &'static Chapter,
    ) -> Result<Vec<Pr>, DemoError> {
        let mut prs = Vec::new();
        for branch in chapter.branches {
            let number = self.open(branch.name, chapter.target, None).await?;
            let head = format!("refs/pull/{number}/head");
            self.git
                .read(&["rev-parse", "--verify", "--quiet", &head])
                .await
                .map_err(|_| DemoError::Story(format!("pull request #{number} has no head")))?;
            say(&format!("  #{number} {}", branch.title));
            prs.push(Pr { number, branch });
        }
        Ok(prs)
    }

    /// Drives the chapter's queue until every pull request has left it, and returns the test runs
    /// that were seen. A chapter that does not end within a minute is reported and left unfinished.
    pub(crate) async fn play(&self, chapter: &Chapter, prs: &[Pr]) -> Result<Vec<Run>, DemoError> {
        self.git.close_gates()?;
        if chapter.quarantines {
            let settings = json!({ "quarantineEnabled": true, "autoQuarantine": "flaky" });
            self.call(chapter, "flaky-tests/update-settings", settings).await?;
            say("\nThe repository now quarantines flaky tests automatically.");
        }
        let create = json!({ "mode": chapter.mode.as_str(), "concurrency": chapter.concurrency });
        self.call(chapter, "createQueue", create).await?;
        let mut settings = (chapter.settings)();
        settings["state"] = json!("PAUSED");
        settings["reason"] = json!("the demo submits its pull requests");
        self.call(chapter, "updateQueue", settings).await?;
        say("\nThe queue is paused while they are submitted, so that their order is fixed.");
        for pr in prs {
            self.enter(chapter, pr).await?;
        }
        let first = prs.first().ok_or_else(|| missing("the chapter has no pull requests"))?;
        let entry = self.client.entry(chapter.target, first.number).await?;
        let reason = entry["reason"].as_str().unwrap_or_default();
        say(&format!("#{} is waiting: {reason}", first.number));
        for pr in prs.iter().filter(|pr| pr.branch.comes == Comes::AndLeaves) {
            self.call(chapter, "cancelPullRequest", of(pr)).await?;
            say(&format!("#{} is cancelled by its author.", pr.number));
        }
        say("The queue is resumed.\n");
        self.call(chapter, "updateQueue", json!({ "state": "RUNNING" })).await?;
        let mut narrator = Narrator::new(chapter, self.client);
        let follow = self.follow(chapter, prs, &mut narrator);
        if let Ok(ended) = tokio::time::timeout(PATIENCE, follow).await {
            ended?;
        } else {
            say("\n  The queue did not become empty within a minute.");
        }
        Ok(narrator.runs)
    }

    async fn call(&self, at: &Chapter, operation: &str, body: Value) -> Result<Value, DemoError> {
        self.client.call(at.target, operation, body).await
    }

    /// Reports the impacted targets of a pull request, and submits it unless it comes later.
    async fn enter(&self, chapter: &Chapter, pr: &Pr) -> Result<(), DemoError> {
        if !pr.branch.targets.is_empty() {
            let mut body = of(pr);
            body["impactedTargets"] = json!(pr.branch.targets);
            self.call(chapter, "setImpactedTargets", body).await?;
            say(&format!(
                "#{} has the impacted targets {}.",
                pr.number,
                pr.branch.targets.join(" and ")
            ));
        }
        match pr.branch.comes {
            Comes::First | Comes::AndLeaves => {
                self.call(chapter, "submitPullRequest", of(pr)).await.map(drop)
            }
            Comes::Urgent | Comes::Later => Ok(()),
        }
    }

    /// Prints events until the queue is empty and all actions are done.
    async fn follow(
        &self,
        chapter: &Chapter,
        prs: &[Pr],
        narrator: &mut Narrator<'_>,
    ) -> Result<(), DemoError> {
        let mut cues = chapter.cues.iter().peekable();
        loop {
            let queue = self.call(chapter, "getQueue", json!({})).await?;
            let empty = queue["enqueuedPullRequests"].as_array().is_some_and(Vec::is_empty);
            narrator.print_news(self.app, prs).await?;
            if empty && cues.peek().is_none() {
                return Ok(());
            }
            if let Some(cue) = cues.peek()
                && self.can_be_seen(chapter, cue, prs).await?
            {
                self.act(chapter, cue.then, prs).await?;
                cues.next();
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    async fn can_be_seen(
        &self,
        chapter: &Chapter,
        cue: &Cue,
        prs: &[Pr],
    ) -> Result<bool, DemoError> {
        for (branch, sign) in cue.when {
            let pr = pr_of(prs, branch)
                .ok_or_else(|| missing("a cue names a branch that its chapter does not have"))?;
            let entry = self.client.entry(chapter.target, pr.number).await?;
            let seen = match sign {
                Sign::Waits(kind) => entry["waitReason"]["kind"] == *kind,
                Sign::Is(state) => entry["state"] == *state,
                Sign::Quarantined(test) => self.is_quarantined(chapter, test).await?,
            };
            if !seen {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a test is quarantined; prints why when it is.
    async fn is_quarantined(&self, chapter: &Chapter, test: &str) -> Result<bool, DemoError> {
        let request = json!({ "org_url_slug": ORG, "page_query": { "page_size": 100 } });
        let page = self.call(chapter, "flaky-tests/list-quarantined-tests", request).await?;
        let tests = page["quarantined_tests"].as_array().cloned().unwrap_or_default();
        let Some(found) = tests.iter().find(|it| it["name"] == test) else { return Ok(false) };
        let why = found["status"].as_str().unwrap_or_default();
        say(&format!("            test \"{test}\" is quarantined: its status is {why}"));
        Ok(true)
    }

    async fn act(&self, chapter: &Chapter, action: Action, prs: &[Pr]) -> Result<(), DemoError> {
        match action {
            Action::Open(gate) => self.git.open(gate),
            Action::Submit(branch) => {
                let pr = pr_of(prs, branch).ok_or_else(|| {
                    missing("a cue names a branch that its chapter does not have")
                })?;
                let mut body = of(pr);
                if pr.branch.comes == Comes::Urgent {
                    body["priority"] = json!("urgent");
                    say(&format!("            #{} is submitted with priority urgent.", pr.number));
                } else {
                    say(&format!("            #{} is submitted.", pr.number));
                }
                self.call(chapter, "submitPullRequest", body).await.map(drop)
            }
        }
    }
}

fn of(pr: &Pr) -> Value {
    json!({ "pr": { "number": pr.number } })
}

fn missing(problem: &str) -> DemoError {
    DemoError::Story(problem.to_owned())
}
