//! `signalbox hook`: called by git in a bare repository.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use signalbox_domain::ids::BranchName;
use signalbox_domain::ports::Repository;
use signalbox_domain::queue::Fact;
use signalbox_git::{answer_push, read_push};
use signalbox_hosts::{PushAnswer, PushCommand, PushRequest};
use signalbox_terminal::{causes, chain, complain};

use crate::AdminError;
use crate::program::{Offline, Program, open};

#[derive(Clone, Copy, Subcommand)]
pub enum Hook {
    /// Accepts pushes to refs/for/….
    ProcReceive,
    /// Notifies the merge queues of a push.
    PostReceive,
}

/// How long a push waits at most until the queues are notified. Later they find it on their own.
const PATIENCE: Duration = Duration::from_secs(5);

pub async fn hook(program: &dyn Program, hook: Hook) -> Result<(), AdminError> {
    match hook {
        Hook::ProcReceive => proc_receive(program).await,
        Hook::PostReceive => {
            let notified = tokio::time::timeout(PATIENCE, post_receive(program)).await;
            let problem = match notified {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(error)) => causes(&error),
                Err(_) => "timed out".to_owned(),
            };
            complain(&format!(
                "could not notify the merge queue of this push; it finds the push within a minute: {problem}"
            ));
            Ok(())
        }
    }
}

/// Reads which refs have moved, and notifies the queues of the refs that they use: their targets,
/// and the branches of pull requests.
async fn post_receive(program: &dyn Program) -> Result<(), AdminError> {
    let input = std::io::read_to_string(std::io::stdin())?;
    let moved: BTreeSet<BranchName> = input
        .lines()
        .filter_map(|line| line.split(' ').nth(2)?.strip_prefix("refs/heads/"))
        .filter_map(|name| BranchName::new(name).ok())
        .collect();
    if moved.is_empty() {
        return Ok(());
    }
    let app = open(program).await?;
    for repository in here(&app).await? {
        look_at_targets(&app, &repository, &moved).await?;
        let (org, repo) = (repository.org, repository.id);
        let open = app.context.stores.host.pull_requests.open_ones(org, repo).await;
        for it in open.map_err(AdminError::failed("pull requests"))? {
            if it.head_branch.is_some_and(|branch| moved.contains(&branch)) {
                let hinted = app.queues.pull_request_hinted(org, repo, it.number).await;
                hinted.map_err(AdminError::failed("merge queue"))?;
            }
        }
    }
    Ok(())
}

async fn look_at_targets(
    app: &Offline,
    repository: &Repository,
    moved: &BTreeSet<BranchName>,
) -> Result<(), AdminError> {
    let host = app.hosts.plain(repository.org, &repository.name.host);
    let queues =
        app.context.stores.queue.queues.list(Some(repository.org), Some(repository.id)).await;
    for key in queues.map_err(AdminError::failed("merge queues"))? {
        if !moved.contains(&key.branch) {
            continue;
        }
        let read_at = app.context.clock.now();
        let head = host.git().head(repository, &key.branch).await;
        let fact = match head.map_err(AdminError::failed("repository"))? {
            Some(head) => Fact::TargetSeen { head: head.sha, tree: head.tree, read_at },
            None => Fact::TargetMissing,
        };
        let absorbed = app.queues.absorb(key.queue, fact).await;
        absorbed.map_err(AdminError::failed("merge queue"))?;
    }
    Ok(())
}

async fn proc_receive(program: &dyn Program) -> Result<(), AdminError> {
    let (mut input, mut output) = (std::io::stdin(), std::io::stdout());
    let push = read_push(&mut input, &mut output)?;
    let outcome = async {
        let app = open(program).await?;
        let repositories = here(&app).await?;
        Ok::<_, AdminError>((app, repositories))
    };
    let answers = match outcome.await {
        Ok((app, repositories)) => take(&app, &repositories, &push).await,
        // Git waits for an answer for each ref, also when nothing could be done.
        Err(error) => {
            let refused = |it: &PushCommand| PushAnswer {
                refname: it.refname.clone(),
                outcome: Err(causes(&error)),
            };
            push.commands.iter().map(refused).collect()
        }
    };
    Ok(answer_push(&mut output, &answers)?)
}

/// The registered repositories in this folder: one for each organization that shares it.
async fn here(app: &Offline) -> Result<Vec<Repository>, AdminError> {
    let folder = std::env::var_os("GIT_DIR").map_or_else(|| PathBuf::from("."), PathBuf::from);
    let folder = folder.canonicalize()?;
    let all = app.context.stores.account.repos.list(None).await;
    let all = all.map_err(AdminError::failed("repositories"))?;
    let found: Vec<Repository> = all
        .into_iter()
        .filter(|it| {
            it.path.as_ref().is_some_and(|path| folder.as_path() == std::path::Path::new(path))
        })
        .collect();
    if found.is_empty() {
        return Err(AdminError::NotFound("this repository is not registered".to_owned()));
    }
    Ok(found)
}

async fn take(app: &Offline, repositories: &[Repository], push: &PushRequest) -> Vec<PushAnswer> {
    let mut answers = Vec::new();
    for repository in repositories {
        let host = app.hosts.plain(repository.org, &repository.name.host);
        answers = host.pushed(repository, push).await;
        for opened in answers.iter().filter_map(|it| it.outcome.as_ref().ok()) {
            // If this fails, the next sweep of the server finds the push.
            let (org, repo) = (repository.org, repository.id);
            let hinted = app.queues.pull_request_hinted(org, repo, opened.number).await;
            if let Err(error) = hinted {
                complain(&chain("merge queue", &error));
            }
        }
    }
    answers
}
