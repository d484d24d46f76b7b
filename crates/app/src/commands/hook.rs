//! `signalbox hook`: called by git in a bare repository.

use std::path::PathBuf;

use clap::Subcommand;
use signalbox_domain::ports::Repository;
use signalbox_git::{PushAnswer, answer_push, read_push};

use super::offline::open;
use crate::config::Flags;
use crate::wiring::{App, chain};

#[derive(Clone, Copy, Subcommand)]
pub(crate) enum Hook {
    /// Takes pushes to refs/for/….
    ProcReceive,
}

pub(crate) async fn hook(flags: &Flags, Hook::ProcReceive: Hook) -> Result<(), String> {
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
                crate::terminal::complain(&chain("merge queue", &error));
            }
        }
    }
    answers
}
