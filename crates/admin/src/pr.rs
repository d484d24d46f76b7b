//! `signalbox pr`: pull requests on a plain git host.

use clap::Subcommand;
use serde_json::json;
use signalbox_domain::ids::{BranchName, PrNumber};
use signalbox_domain::ports::StoredPullRequest;
use signalbox_hosts::OpenRequest;
use signalbox_terminal::{Format, Table, say_json};

use crate::AdminError;
use crate::offline::{RepositoryArg, repository};
use crate::program::{Program, open};

#[derive(Subcommand)]
pub enum Pr {
    /// Open a pull request from a branch.
    #[command(
        after_help = "Example: signalbox pr open --repo git.local/acme/calc --branch fix --target main --json"
    )]
    Open {
        #[command(flatten)]
        repo: RepositoryArg,
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
        #[arg(long, env = "SIGNALBOX_ORG", value_name = "SLUG")]
        org: Option<String>,
        #[command(flatten)]
        format: Format,
    },
    /// Close a pull request.
    // The repository can come before the number.
    #[command(
        allow_missing_positional = true,
        after_help = "Example: signalbox pr close 12 --repo git.local/acme/calc"
    )]
    Close {
        #[command(flatten)]
        repo: RepositoryArg,
        /// The number of the pull request.
        number: u32,
        /// The organization, when several have the repository.
        #[arg(long, env = "SIGNALBOX_ORG", value_name = "SLUG")]
        org: Option<String>,
        #[command(flatten)]
        format: Format,
    },
    /// List pull requests.
    #[command(after_help = "Example: signalbox pr list --repo git.local/acme/calc --all --json")]
    List {
        #[command(flatten)]
        repo: RepositoryArg,
        /// Also list closed and merged pull requests.
        #[arg(long)]
        all: bool,
        /// The organization, when several have the repository.
        #[arg(long, env = "SIGNALBOX_ORG", value_name = "SLUG")]
        org: Option<String>,
        #[command(flatten)]
        format: Format,
    },
}

pub async fn pr(program: &dyn Program, action: Pr) -> Result<(), AdminError> {
    match action {
        Pr::Open { repo, branch, target, title, description, author, org, format } => {
            let (name, app) = (repo.name()?, open(program).await?);
            let repository = repository(&app, &name, org.as_deref()).await?;
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
            format.say(&line, || words);
        }
        Pr::Close { repo, number, org, format } => {
            let (name, app) = (repo.name()?, open(program).await?);
            let repository = repository(&app, &name, org.as_deref()).await?;
            let host = app.hosts.plain(repository.org, &repository.name.host);
            let number = PrNumber(number);
            let closed = host.close_pull_request(&repository, number).await;
            let closed = closed?;
            closed.ok_or_else(|| {
                AdminError::NotFound(format!("pull request {number} of {name} not found"))
            })?;
            let hinted = app.queues.pull_request_hinted(repository.org, repository.id, number);
            hinted.await.map_err(AdminError::failed("merge queue"))?;
            let line = json!({ "number": number.0, "state": "closed" });
            format.say(&line, || format!("pull request {number} is closed"));
        }
        Pr::List { repo, all, org, format } => {
            let (name, app) = (repo.name()?, open(program).await?);
            let repository = repository(&app, &name, org.as_deref()).await?;
            let list =
                app.context.stores.host.pull_requests.list(repository.org, repository.id, !all);
            let mut table = Table::new("no pull requests found", &HEADERS);
            for it in list.await.map_err(AdminError::failed("pull requests"))? {
                list_one(it, format, &mut table);
            }
            table.print_unless(format);
        }
    }
    Ok(())
}

/// The columns of a list of pull requests.
const HEADERS: [&str; 5] = ["NUMBER", "STATE", "BASE", "AUTHOR…", "TITLE…"];

fn list_one(it: StoredPullRequest, format: Format, table: &mut Table) {
    let state = format!("{:?}", it.state).to_lowercase();
    if format.is_json() {
        say_json(&json!({
            "number": it.number.0, "title": it.title, "author": it.author, "state": state,
            "head": it.head.to_string(), "base": it.base.to_string(),
        }));
    } else {
        let (number, base) = (it.number.to_string(), it.base.to_string());
        table.row([number.into(), state.into(), base.into(), it.author.into(), it.title.into()]);
    }
}
