//! `signalbox hook`: called by git in a bare repository.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use signalbox_domain::ids::{BranchName, OrgSlug};
use signalbox_domain::ports::Repository;
use signalbox_domain::queue::Fact;
use signalbox_git::{answer_push, read_push};
use signalbox_hosts::{PushAnswer, PushCommand, PushOptions, PushedPullRequest};
use signalbox_terminal::{causes, chain, complain, note};
use signalbox_wording::shell_word;
use url::form_urlencoded;

use crate::AdminError;
use crate::offline::slugs;
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
        let options = PushOptions::parse(&push.options);
        let options = options.map_err(|error| AdminError::Argument(error.to_string()))?;
        let app = open(program).await?;
        let repositories = here(&app).await?;
        Ok::<_, AdminError>((options, app, repositories))
    };
    let answers = match outcome.await {
        Ok((options, app, repositories)) => {
            take(&app, &repositories, &push.commands, &options).await
        }
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

async fn take(
    app: &Offline,
    repositories: &[Repository],
    commands: &[PushCommand],
    options: &PushOptions,
) -> Vec<PushAnswer> {
    let mut answers = Vec::new();
    for repository in repositories {
        let host = app.hosts.plain(repository.org, &repository.name.host);
        answers = host.pushed(repository, commands, options).await;
        for pushed in answers.iter().filter_map(|it| it.outcome.as_ref().ok()) {
            // If this fails, the next sweep of the server finds the push.
            let (org, repo) = (repository.org, repository.id);
            let hinted =
                app.queues.pull_request_hinted(org, repo, pushed.pull_request.number).await;
            if let Err(error) = hinted {
                complain(&chain("merge queue", &error));
            }
            report(app, repository, pushed, options.submit).await;
        }
    }
    answers
}

/// Tells the pusher about the pull request, and submits it if wanted. Git shows the error output
/// of the hook as `remote: …`.
async fn report(app: &Offline, repository: &Repository, pushed: &PushedPullRequest, submit: bool) {
    let PushedPullRequest { pull_request, is_new } = pushed;
    let (number, target) = (pull_request.number, &pull_request.base);
    let change = if *is_new { "opened" } else { "updated" };
    note(&format!("pull request {number} {change}: {}", pull_request.title));
    let of_queue = match target.as_str() {
        "main" => format!("--repo {}", repository.name),
        other => format!("--repo {} --branch {}", repository.name, shell_word(other)),
    };
    match queue_page(app, repository, target).await {
        Ok(Some(page)) => note(&format!("  {page}&pr={number}")),
        Ok(None) => {
            let not = if submit { "not submitted: " } else { "" };
            note(&format!("  {not}`{target}` has no merge queue; create one:"));
            note(&format!("    signalbox queue create {of_queue}"));
            return;
        }
        Err(error) => return complain(&causes(&error)),
    }
    if !submit {
        note("  submit it to the merge queue by a push with -o submit, or with:");
        return note(&format!("    signalbox queue submit {number} {of_queue}"));
    }
    match app.queues.submit_for_pusher(repository, target, number, &pusher()).await {
        Ok(()) => note(&format!("  submitted to the merge queue of `{target}`")),
        Err(error) => note(&format!("  not submitted: {}", causes(&error))),
    }
}

/// The page of a queue; `None` if the branch has no queue.
async fn queue_page(
    app: &Offline,
    repository: &Repository,
    target: &BranchName,
) -> Result<Option<String>, AdminError> {
    let (org, queues) = (repository.org, &app.context.stores.queue.queues);
    let queue = queues.find(org, repository.id, target).await;
    if queue.map_err(AdminError::failed("merge queue"))?.is_none() {
        return Ok(None);
    }
    let all = slugs(app).await?;
    let slug = all.get(&org).map(OrgSlug::as_str).unwrap_or_default();
    let value = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let (repo, branch) = (value(&repository.name.to_string()), value(target.as_str()));
    let server = app.config.public_url();
    Ok(Some(format!("{server}/{slug}/queue/pr?repo={repo}&branch={branch}")))
}

/// The user that git runs for: of its HTTP server, or of this machine.
fn pusher() -> String {
    let known = ["REMOTE_USER", "LOGNAME", "USER"].into_iter();
    let name = known.filter_map(|name| std::env::var(name).ok()).find(|name| !name.is_empty());
    name.unwrap_or_else(|| "git".to_owned())
}
