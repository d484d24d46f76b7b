//! `signalbox hook`: called by git in a bare repository.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use signalbox_domain::ids::BranchName;
use signalbox_domain::ports::{GitHost, Repository};
use signalbox_domain::queue::Fact;
use signalbox_git::{PushAnswer, answer_push, read_push};

use super::offline::open;
use crate::config::Flags;
use crate::wiring::{App, chain};

#[derive(Clone, Copy, Subcommand)]
pub(crate) enum Hook {
    /// Takes pushes to refs/for/….
    ProcReceive,
    /// Tells the merge queues of a push.
    PostReceive,
}

/// How long a pusher waits at most until the queues know of the push: they notice it by themselves.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) async fn hook(flags: &Flags, hook: Hook) -> Result<(), String> {
    match hook {
        Hook::ProcReceive => proc_receive(flags).await,
        Hook::PostReceive => {
            let told = tokio::time::timeout(PATIENCE, post_receive(flags)).await;
            if let Err(words) = told.unwrap_or_else(|_| Err("it takes too long".into())) {
                signalbox_terminal::complain(&format!(
                    "the merge queue was not told of this push and will notice it by itself: {words}"
                ));
            }
            Ok(())
        }
    }
}

/// Reads which refs have moved, and lets the queues look at those that they know: their targets,
/// and the branches of pull requests.
async fn post_receive(flags: &Flags) -> Result<(), String> {
    let input = std::io::read_to_string(std::io::stdin()).map_err(|error| error.to_string())?;
    let moved: BTreeSet<BranchName> = input
        .lines()
        .filter_map(|line| line.split(' ').nth(2)?.strip_prefix("refs/heads/"))
        .filter_map(|name| BranchName::new(name).ok())
        .collect();
    if moved.is_empty() {
        return Ok(());
    }
    let app = open(flags).await?;
    for repository in here(&app).await? {
        look_at_targets(&app, &repository, &moved).await?;
        let (org, repo) = (repository.org, repository.id);
        let open = app.context.stores.pull_requests.open_ones(org, repo).await;
        for it in open.map_err(|error| chain("pull requests", &error))? {
            if it.head_branch.is_some_and(|branch| moved.contains(&branch)) {
                let hinted = app.queues.pull_request_hinted(org, repo, it.number).await;
                hinted.map_err(|error| chain("merge queue", &error))?;
            }
        }
    }
    Ok(())
}

async fn look_at_targets(
    app: &App,
    repository: &Repository,
    moved: &BTreeSet<BranchName>,
) -> Result<(), String> {
    let host = app.hosts.plain(repository.org, &repository.name.host);
    let queues = app.context.stores.queues.list(Some(repository.org), Some(repository.id)).await;
    for key in queues.map_err(|error| chain("merge queues", &error))? {
        if !moved.contains(&key.branch) {
            continue;
        }
        let read_at = app.context.clock.now();
        let head = host.head(repository, &key.branch).await;
        let fact = match head.map_err(|error| chain("repository", &error))? {
            Some(head) => Fact::TargetSeen { head: head.sha, tree: head.tree, read_at },
            None => Fact::TargetMissing,
        };
        let told = app.queues.absorb(key.queue, fact).await;
        told.map_err(|error| chain("merge queue", &error))?;
    }
    Ok(())
}

async fn proc_receive(flags: &Flags) -> Result<(), String> {
    let (mut input, mut output) = (std::io::stdin(), std::io::stdout());
    let push = read_push(&mut input, &mut output).map_err(|error| error.to_string())?;
    let outcome = async {
        let app = open(flags).await?;
        let repositories = here(&app).await?;
        Ok::<_, String>((app, repositories))
    };
    let answers = match outcome.await {
        Ok((app, repositories)) => take(&app, &repositories, &push).await,
        // Git waits for an answer for each ref, also when nothing could be done.
        Err(words) => push
            .commands
            .iter()
            .map(|it| PushAnswer { refname: it.refname.clone(), outcome: Err(words.clone()) })
            .collect(),
    };
    answer_push(&mut output, &answers).map_err(|error| error.to_string())
}

/// The registered repositories in this folder: one for each organization that shares it.
async fn here(app: &App) -> Result<Vec<Repository>, String> {
    let folder = std::env::var_os("GIT_DIR").map_or_else(|| PathBuf::from("."), PathBuf::from);
    let folder = folder.canonicalize().map_err(|error| error.to_string())?;
    let all = app.context.stores.repos.list(None).await;
    let all = all.map_err(|error| chain("repositories", &error))?;
    let found: Vec<Repository> = all
        .into_iter()
        .filter(|it| {
            it.path.as_ref().is_some_and(|path| folder.as_path() == std::path::Path::new(path))
        })
        .collect();
    if found.is_empty() {
        return Err("this repository is not registered".into());
    }
    Ok(found)
}

async fn take(
    app: &App,
    repositories: &[Repository],
    push: &signalbox_git::PushRequest,
) -> Vec<PushAnswer> {
    let mut answers = Vec::new();
    for repository in repositories {
        let host = app.hosts.plain(repository.org, &repository.name.host);
        answers = host.pushed(repository, push).await;
        for opened in answers.iter().filter_map(|it| it.outcome.as_ref().ok()) {
            // The server finds out by itself if it cannot be told now.
            let (org, repo) = (repository.org, repository.id);
            let hinted = app.queues.pull_request_hinted(org, repo, opened.number).await;
            if let Err(error) = hinted {
                signalbox_terminal::complain(&chain("merge queue", &error));
            }
        }
    }
    answers
}
