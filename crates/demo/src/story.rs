//! Plays a scenario through the API, and prints what happens.

use std::time::Duration;

use serde_json::{Value, json};
use signalbox_domain::ids::{BranchName, OrgSlug, RepoId, RepoName};
use signalbox_domain::ports::Repository;
use signalbox_hosts::OpenRequest;
use signalbox_terminal::say;

use crate::client::Client;
use crate::narrator::{Narrator, Run};
use crate::repository::{Git, HOST, NAME, ORG, OWNER};
use crate::scenario::{Action, Branch, Comes, Cue, Scenario, Sign};
use crate::{DemoError, Running};

/// The time limit of a scenario.
const PATIENCE: Duration = Duration::from_mins(1);

/// A pull request of a scenario.
pub(crate) struct Pr {
    pub(crate) number: u32,
    pub(crate) branch: &'static Branch,
}

/// Finds the pull request of a branch.
pub(crate) fn pr_of<'a>(prs: &'a [Pr], branch: &str) -> Option<&'a Pr> {
    prs.iter().find(|pr| pr.branch.name == branch)
}

/// What all scenarios use: the server, a client, and the repository.
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

    /// Opens the pull requests of a scenario.
    pub(crate) async fn open_pull_requests(
        &self,
        scenario: &'static Scenario,
    ) -> Result<Vec<Pr>, DemoError> {
        let mut prs = Vec::new();
        for branch in scenario.branches {
            let number = self.open(branch.name, scenario.target, None).await?;
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

    /// Drives the scenario's queue until every pull request has left it, and returns the test runs
    /// that were seen. A scenario that does not end within a minute is reported and left
    /// unfinished.
    pub(crate) async fn play(
        &self,
        scenario: &Scenario,
        prs: &[Pr],
    ) -> Result<Vec<Run>, DemoError> {
        self.git.close_gates()?;
        if let Some(enabled) = scenario.quarantine {
            let automatic = if enabled { "flaky" } else { "off" };
            let settings = json!({ "quarantineEnabled": enabled, "autoQuarantine": automatic });
            self.call(scenario, "flaky-tests/update-settings", settings).await?;
            say(if enabled {
                "\nThe repository now quarantines flaky tests automatically."
            } else {
                "\nThe repository now quarantines no tests."
            });
        }
        let create = json!({ "mode": scenario.mode.as_str(), "concurrency": scenario.concurrency });
        self.call(scenario, "createQueue", create).await?;
        let mut settings = (scenario.settings)();
        settings["state"] = json!("PAUSED");
        settings["reason"] = json!("the demo submits its pull requests");
        self.call(scenario, "updateQueue", settings).await?;
        say("\nThe queue is paused while they are submitted, so that their order is fixed.");
        for pr in prs {
            self.enter(scenario, pr).await?;
        }
        let first = prs.first().ok_or_else(|| missing("the scenario has no pull requests"))?;
        let entry = self.client.entry(scenario.target, first.number).await?;
        let reason = entry["reason"].as_str().unwrap_or_default();
        say(&format!("#{} is waiting: {reason}", first.number));
        for pr in prs.iter().filter(|pr| pr.branch.comes == Comes::AndLeaves) {
            self.call(scenario, "cancelPullRequest", of(pr)).await?;
            say(&format!("#{} is cancelled by its author.", pr.number));
        }
        say("The queue is resumed.\n");
        self.call(scenario, "updateQueue", json!({ "state": "RUNNING" })).await?;
        let mut narrator = Narrator::new(scenario, self.client);
        let follow = self.follow(scenario, prs, &mut narrator);
        if let Ok(ended) = tokio::time::timeout(PATIENCE, follow).await {
            ended?;
        } else {
            say("\n  The queue did not become empty within a minute.");
        }
        Ok(narrator.runs)
    }

    async fn call(&self, at: &Scenario, operation: &str, body: Value) -> Result<Value, DemoError> {
        self.client.call(at.target, operation, body).await
    }

    /// Reports the impacted targets of a pull request, and submits it unless it comes later.
    async fn enter(&self, scenario: &Scenario, pr: &Pr) -> Result<(), DemoError> {
        if !pr.branch.targets.is_empty() {
            let mut body = of(pr);
            body["impactedTargets"] = json!(pr.branch.targets);
            self.call(scenario, "setImpactedTargets", body).await?;
            say(&format!(
                "#{} has the impacted targets {}.",
                pr.number,
                pr.branch.targets.join(" and ")
            ));
        }
        match pr.branch.comes {
            Comes::First | Comes::AndLeaves => {
                self.call(scenario, "submitPullRequest", of(pr)).await.map(drop)
            }
            Comes::Urgent | Comes::Later => Ok(()),
        }
    }

    /// Prints events until the queue is empty and all actions are done.
    async fn follow(
        &self,
        scenario: &Scenario,
        prs: &[Pr],
        narrator: &mut Narrator<'_>,
    ) -> Result<(), DemoError> {
        let mut cues = scenario.cues.iter().peekable();
        loop {
            let queue = self.call(scenario, "getQueue", json!({})).await?;
            let empty = queue["enqueuedPullRequests"].as_array().is_some_and(Vec::is_empty);
            narrator.print_news(self.app, prs).await?;
            if empty && cues.peek().is_none() {
                return Ok(());
            }
            if let Some(cue) = cues.peek()
                && self.can_be_seen(scenario, cue, prs).await?
            {
                self.act(scenario, cue.then, prs).await?;
                cues.next();
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    async fn can_be_seen(
        &self,
        scenario: &Scenario,
        cue: &Cue,
        prs: &[Pr],
    ) -> Result<bool, DemoError> {
        for (branch, sign) in cue.when {
            let pr = pr_of(prs, branch)
                .ok_or_else(|| missing("a cue names a branch that its scenario does not have"))?;
            let entry = self.client.entry(scenario.target, pr.number).await?;
            let seen = match sign {
                Sign::Waits(kind) => entry["waitReason"]["kind"] == *kind,
                Sign::Retries(class) => is_retried(&entry, class),
                Sign::Is(state) => entry["state"] == *state,
                Sign::Quarantined(test) => self.is_quarantined(scenario, test).await?,
            };
            if !seen {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a test is quarantined; prints why when it is.
    async fn is_quarantined(&self, scenario: &Scenario, test: &str) -> Result<bool, DemoError> {
        let request = json!({ "org_url_slug": ORG, "page_query": { "page_size": 100 } });
        let page = self.call(scenario, "flaky-tests/list-quarantined-tests", request).await?;
        let tests = page["quarantined_tests"].as_array().cloned().unwrap_or_default();
        let Some(found) = tests.iter().find(|it| it["name"] == test) else { return Ok(false) };
        let why = found["status"].as_str().unwrap_or_default();
        say(&format!("            test \"{test}\" is quarantined: its status is {why}"));
        Ok(true)
    }

    async fn act(&self, scenario: &Scenario, action: Action, prs: &[Pr]) -> Result<(), DemoError> {
        match action {
            Action::Open(gate) => self.git.open(gate),
            Action::Submit(branch) => {
                let pr = pr_of(prs, branch).ok_or_else(|| {
                    missing("a cue names a branch that its scenario does not have")
                })?;
                let mut body = of(pr);
                if pr.branch.comes == Comes::Urgent {
                    body["priority"] = json!("urgent");
                    say(&format!("            #{} is submitted with priority urgent.", pr.number));
                } else {
                    say(&format!("            #{} is submitted.", pr.number));
                }
                self.call(scenario, "submitPullRequest", body).await.map(drop)
            }
        }
    }
}

/// Whether the check of an entry runs again for that class; prints why when it does.
fn is_retried(entry: &Value, class: &str) -> bool {
    let wait = &entry["waitReason"];
    let is_so = wait["kind"] == "retrying" && wait["class"] == class;
    if is_so {
        let reason = entry["reason"].as_str().unwrap_or_default();
        say(&format!("            #{}: {reason}", entry["prNumber"]));
    }
    is_so
}

fn of(pr: &Pr) -> Value {
    json!({ "pr": { "number": pr.number } })
}

fn missing(problem: &str) -> DemoError {
    DemoError::Story(problem.to_owned())
}
