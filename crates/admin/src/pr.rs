//! `signalbox pr`: pull requests on a plain git host.

use clap::Subcommand;
use serde_json::json;
use signalbox_domain::ids::{BranchName, PrNumber};
use signalbox_domain::ports::StoredPullRequest;
use signalbox_hosts::OpenRequest;
use signalbox_terminal::say;

use crate::AdminError;
use crate::offline::repository;
use crate::program::{Program, open};

#[derive(Subcommand)]
pub enum Pr {
    /// Open a pull request from a branch.
    #[command(
        after_help = "Example: signalbox pr open git.local/acme/calc --branch fix --target main --json"
    )]
    Open {
        /// HOST/OWNER/NAME.
        repo: String,
        /// The source branch; later pushes to it update the pull request.
        #[arg(long)]
        branch: String,
        /// The target branch.
        #[arg(long, default_value = "main")]
        target: String,
        /// The title; default: the subject of the head commit.
        #[arg(long)]
        title: Option<String>,
        /// The description.
        #[arg(long)]
        description: Option<String>,
        /// The author; default: the author of the head commit.
        #[arg(long)]
        author: Option<String>,
        /// The organization, when several have the repository.
        #[arg(long, value_name = "SLUG")]
        org: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Close a pull request.
    #[command(after_help = "Example: signalbox pr close git.local/acme/calc 12")]
    Close {
        /// HOST/OWNER/NAME.
        repo: String,
        /// The number of the pull request.
        number: u32,
        /// The organization, when several have the repository.
        #[arg(long, value_name = "SLUG")]
        org: Option<String>,
    },
    /// List pull requests.
    #[command(after_help = "Example: signalbox pr list git.local/acme/calc --all --json")]
    List {
        /// HOST/OWNER/NAME.
        repo: String,
        /// Also list closed and merged pull requests.
        #[arg(long)]
        all: bool,
        /// The organization, when several have the repository.
        #[arg(long, value_name = "SLUG")]
        org: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

pub async fn pr(program: &dyn Program, action: Pr) -> Result<(), AdminError> {
    let app = open(program).await?;
    match action {
        Pr::Open { repo, branch, target, title, description, author, org, json } => {
            let repository = repository(&app, &repo, org.as_deref()).await?;
            let name = |text: String| BranchName::new(text);
            let request = OpenRequest {
                branch: name(branch)?,
                target: name(target)?,
                title,
                body: description,
                author,
            };
            let host = app.hosts.plain(repository.org, &repository.name.host);
            let opened = host.open_pull_request(&repository, request).await;
            let opened = opened?;
            let (org, repo) = (repository.org, repository.id);
            let hinted = app.queues.pull_request_hinted(org, repo, opened.number).await;
            hinted.map_err(AdminError::failed("merge queue"))?;
            let line = json!({ "number": opened.number.0, "head": opened.head.to_string() });
            let words = format!("pull request {}: {}", opened.number, opened.title);
            say(&if json { line.to_string() } else { words });
        }
        Pr::Close { repo, number, org } => {
            let repository = repository(&app, &repo, org.as_deref()).await?;
            let host = app.hosts.plain(repository.org, &repository.name.host);
            let number = PrNumber(number);
            let closed = host.close_pull_request(&repository, number).await;
            let closed = closed?;
            closed.ok_or_else(|| {
                AdminError::NotFound(format!("pull request {number} of {repo} not found"))
            })?;
            let hinted = app.queues.pull_request_hinted(repository.org, repository.id, number);
            hinted.await.map_err(AdminError::failed("merge queue"))?;
            say(&format!("pull request {number} is closed"));
        }
        Pr::List { repo, all, org, json } => {
            let repository = repository(&app, &repo, org.as_deref()).await?;
            let list =
                app.context.stores.host.pull_requests.list(repository.org, repository.id, !all);
            for it in list.await.map_err(AdminError::failed("pull requests"))? {
                list_one(&it, json);
            }
        }
    }
    Ok(())
}

fn list_one(it: &StoredPullRequest, json: bool) {
    let state = format!("{:?}", it.state).to_lowercase();
    let line = json!({
        "number": it.number.0, "title": it.title, "author": it.author, "state": state,
        "head": it.head.to_string(), "base": it.base.to_string(),
    });
    let words = format!("#{} {state} {} ({})", it.number, it.title, it.author);
    say(&if json { line.to_string() } else { words });
}
