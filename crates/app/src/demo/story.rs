//! What happens in the demo, told as it happens.

use std::time::Duration;

use serde_json::json;
use signalbox_domain::ids::{BranchName, RepoId, RepoName};
use signalbox_domain::ports::{GitHost, LoggedEvent, Repository};
use signalbox_domain::queue::EventKind;
use signalbox_git::OpenRequest;

use super::client::Client;
use super::repository::{BRANCHES, Git, HOST, NAME, ORG, OWNER};
use crate::terminal::say;
use crate::wiring::App;

/// The longest that the story may take.
const PATIENCE: Duration = Duration::from_mins(2);

/// A pull request of the story.
pub(super) struct Pr {
    pub(super) number: u32,
    pub(super) branch: &'static str,
    pub(super) title: &'static str,
}

/// Registers the repository and opens its pull requests.
pub(super) async fn open_pull_requests(app: &App, git: &Git) -> Result<Vec<Pr>, String> {
    let slug = signalbox_domain::ids::OrgSlug::new(ORG).map_err(|it| it.to_string())?;
    let org = app.context.stores.orgs.find_by_slug(&slug).await.map_err(|it| it.to_string())?;
    let org = org.ok_or("the organization is missing")?.id;
    let name = RepoName::new(HOST, OWNER, NAME).map_err(|it| it.to_string())?;
    let host = app.hosts.plain(org, &name.host);
    let mut repository = Repository {
        id: RepoId(app.context.ids.new_id()),
        org,
        name,
        path: None,
        created_at: app.context.clock.now(),
    };
    repository.path = host.locate(&repository).await.map_err(|it| it.to_string())?;
    let repository = app.context.stores.repos.register(&repository, false).await;
    let repository = repository.map_err(|it| it.to_string())?;
    let mut prs = Vec::new();
    for branch in &BRANCHES {
        let name = |text: &str| BranchName::new(text).map_err(|it| it.to_string());
        let request = OpenRequest {
            branch: name(branch.name)?,
            target: name("main")?,
            title: None,
            body: None,
            author: None,
        };
        let opened = host.open_pull_request(&repository, request).await;
        let number = opened.map_err(|it| it.to_string())?.number.0;
        say(&format!("  #{number} {}", branch.title));
        prs.push(Pr { number, branch: branch.name, title: branch.title });
    }
    let heads = git.read(&["for-each-ref", "--format=%(refname)", "refs/pull"]).await?;
    if heads.lines().count() != prs.len() {
        return Err("not every pull request has a head".into());
    }
    Ok(prs)
}

/// Drives the queue through the API until every pull request has left it.
pub(super) async fn tell(app: &App, client: &Client, prs: &[Pr]) -> Result<(), String> {
    client.call("createQueue", json!({ "mode": "SINGLE", "concurrency": 3 })).await?;
    let pause = json!({ "state": "PAUSED", "reason": "the demo submits all at once" });
    client.call("updateQueue", pause).await?;
    say("\nThe queue is paused while all of them are submitted, so that their order is certain.");
    for pr in prs {
        client.call("submitPullRequest", json!({ "pr": { "number": pr.number } })).await?;
    }
    let first = prs.first().ok_or("no pull requests")?;
    let entry = client.entry(first.number).await?;
    let reason = entry["reason"].as_str().unwrap_or_default();
    say(&format!("#{} waits: {reason}", first.number));
    let draft = prs.iter().find(|pr| pr.branch == "draft").ok_or("no draft")?;
    client.call("cancelPullRequest", json!({ "pr": { "number": draft.number } })).await?;
    say(&format!("#{} is taken out again. Now the queue runs.\n", draft.number));
    client.call("updateQueue", json!({ "state": "RUNNING" })).await?;
    let follow = follow(app, client, prs);
    tokio::time::timeout(PATIENCE, follow)
        .await
        .map_err(|_| "the queue did not become empty in two minutes".to_owned())?
}

/// Prints events until nobody is left in the queue.
async fn follow(app: &App, client: &Client, prs: &[Pr]) -> Result<(), String> {
    let mut after = 0;
    loop {
        let queue = client.call("getQueue", json!({})).await?;
        let empty = queue["enqueuedPullRequests"].as_array().is_some_and(Vec::is_empty);
        let events = app.context.stores.reads.events(client.org, after, 1_000).await;
        for event in events.map_err(|it| it.to_string())? {
            after = event.position;
            if let Some(line) = line(&event, prs) {
                say(&line);
            }
        }
        if empty {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn line(event: &LoggedEvent, prs: &[Pr]) -> Option<String> {
    let it = &event.event;
    let number = it.pr?.0;
    let title = prs.iter().find(|pr| pr.number == number).map_or("", |pr| pr.title);
    let reason = it.reason.as_deref().unwrap_or_default();
    let words = match it.kind {
        EventKind::Queued if reason == "MERGE_ITEM_NOW_READY" => "is in the line".to_owned(),
        EventKind::Queued => format!("goes back to the line: {reason}"),
        EventKind::Testing => "is tested on top of what is ahead".to_owned(),
        EventKind::PendingFailure => format!("failed, but the fault may be ahead: {reason}"),
        EventKind::Failed => format!("FAILED: {reason}"),
        EventKind::Canceled => format!("CANCELLED: {reason}"),
        EventKind::Merged => "MERGED".to_owned(),
        EventKind::Submitted | EventKind::QueueStateChanged | EventKind::QueueConfigChanged => {
            return None;
        }
    };
    let time = it.at.to_string();
    let time = time.get(11..19).unwrap_or_default();
    Some(format!("  {time}  #{number} {title:30} {words}"))
}
