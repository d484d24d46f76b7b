//! `signalbox queue`: the queue operations of the API.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use signalbox_client::{
    Client, ClientError, Done, Priority, QueueChange, QueueRef, Reply, RequestedState,
};
use signalbox_domain::ids::RepoName;
use signalbox_terminal::{Format, say_json};
use signalbox_wording::shell_word;

use crate::server::{Repository, Server, repo, show};
use crate::{
    CliError, queue_history, queue_set, queue_status, queue_targets, queue_watch, queue_why,
};

/// The server and the queue.
#[derive(Args)]
pub struct QueueArgs {
    #[command(flatten)]
    repo: Repository,
    /// The target branch.
    #[arg(long, default_value = "main")]
    branch: String,
    #[command(flatten)]
    pub(crate) server: Server,
    #[command(flatten)]
    pub(crate) format: Format,
}

#[derive(Subcommand)]
pub enum Queue {
    /// List the queues that the token may see.
    #[command(after_help = "Example: signalbox queue list --repo git.local/acme/calc")]
    List {
        /// List only the queues of this repository.
        #[arg(
            long = "repo",
            value_name = "HOST/OWNER/NAME",
            value_parser = RepoName::parse
        )]
        only: Option<RepoName>,
        #[command(flatten)]
        server: Server,
        #[command(flatten)]
        format: Format,
    },
    /// Create the queue of a branch.
    #[command(
        after_help = "Example: signalbox queue create --repo git.local/acme/calc --branch main --concurrency 3"
    )]
    Create {
        #[command(flatten)]
        place: QueueArgs,
        /// Concurrency: the most test runs at the same time.
        #[arg(long)]
        concurrency: Option<u32>,
    },
    /// Delete an empty queue.
    #[command(
        after_help = "Example: signalbox queue delete --repo git.local/acme/calc --branch old"
    )]
    Delete {
        #[command(flatten)]
        place: QueueArgs,
    },
    /// Show the pull requests of a queue, why each one waits, and what failed in the last 24 hours.
    #[command(after_help = "Example: signalbox queue status --repo git.local/acme/calc --json")]
    Status {
        #[command(flatten)]
        place: QueueArgs,
    },
    /// Follow a queue until interrupted: on a terminal the whole queue, elsewhere a line for each
    /// change.
    #[command(after_help = "Example: signalbox queue watch --repo git.local/acme/calc")]
    Watch {
        /// Exit when the queue is empty.
        #[arg(long)]
        until_empty: bool,
        #[command(flatten)]
        place: QueueArgs,
    },
    /// Show a pull request.
    #[command(after_help = "Example: signalbox queue show 12 --repo git.local/acme/calc")]
    Show {
        /// The number of the pull request.
        number: u32,
        #[command(flatten)]
        place: QueueArgs,
    },
    /// Print the history of a queue as JSON Lines, for signalbox simulate --history: its settings, and when
    /// each pull request entered the line and left the queue. It has no other output format.
    #[command(
        after_help = "Example: signalbox queue history --repo git.local/acme/calc --since 14d > history.jsonl"
    )]
    History {
        /// Only pull requests that left the queue at or after this time: a duration before now, such as 14d
        /// or 12h, or a time, such as 2026-09-01T00:00:00Z.
        #[arg(long, value_name = "TIME", default_value = "14d")]
        since: String,
        #[command(flatten)]
        place: QueueArgs,
    },
    /// Show why a pull request failed: the failed checks with the end of their output, the failed
    /// tests, and what to do next.
    #[command(after_help = "Example: signalbox queue why 12 --repo git.local/acme/calc")]
    Why {
        /// The number of the pull request.
        number: u32,
        #[command(flatten)]
        place: QueueArgs,
    },
    /// Change settings of a queue.
    #[command(after_help = queue_set::help())]
    Set {
        /// Settings and their values.
        #[arg(required = true, value_name = "NAME=VALUE")]
        settings: Vec<String>,
        #[command(flatten)]
        place: QueueArgs,
    },
    /// Show the impacted targets that rules compute for changed paths. Reads the paths from standard input,
    /// separated by line breaks or NUL characters. Needs no server.
    #[command(after_help = "Example: git diff -z --name-only --no-renames origin/main... | \
                      signalbox queue targets --rules rules.txt")]
    Targets {
        /// A file with rules in the syntax of the setting impactedTargetRules, one per line.
        #[arg(long, value_name = "FILE")]
        rules: PathBuf,
        #[command(flatten)]
        format: Format,
    },
    /// Submit a pull request.
    #[command(
        after_help = "Exit codes with --wait: 0 merged, 3 failed, 4 cancelled; others as signalbox --help lists. \
                      An interrupted wait changes nothing.\n\n\
                      Example: signalbox queue submit 12 --wait --repo git.local/acme/calc"
    )]
    Submit {
        /// The number of the pull request.
        number: u32,
        /// urgent, high, medium, low, or a number; lower numbers go first.
        #[arg(long)]
        priority: Option<String>,
        /// Wait until it is merged, failed or cancelled, and print each change.
        #[arg(long)]
        wait: bool,
        #[command(flatten)]
        place: QueueArgs,
    },
    /// Remove a pull request from the queue.
    #[command(after_help = "Example: signalbox queue cancel 12 --repo git.local/acme/calc")]
    Cancel {
        /// The number of the pull request.
        number: u32,
        #[command(flatten)]
        place: QueueArgs,
    },
    /// Restart the tests of a pull request.
    #[command(after_help = "Example: signalbox queue restart 12 --repo git.local/acme/calc")]
    Restart {
        /// The number of the pull request.
        number: u32,
        #[command(flatten)]
        place: QueueArgs,
    },
    /// Pause a queue: no test run starts and no pull request merges.
    #[command(
        after_help = "Example: signalbox queue pause --reason 'release day' --repo git.local/acme/calc"
    )]
    Pause {
        /// The reason, shown on every waiting pull request.
        #[arg(long)]
        reason: String,
        #[command(flatten)]
        place: QueueArgs,
    },
    /// Drain a queue: pull requests in the line finish, and new ones wait.
    #[command(after_help = "Example: signalbox queue drain --repo git.local/acme/calc")]
    Drain {
        #[command(flatten)]
        place: QueueArgs,
    },
    /// Resume a paused or draining queue.
    #[command(after_help = "Example: signalbox queue resume --repo git.local/acme/calc")]
    Resume {
        #[command(flatten)]
        place: QueueArgs,
    },
}

/// Runs a command. The exit code of a wait is its outcome.
pub async fn queue(action: Queue) -> Result<ExitCode, CliError> {
    let awaited = run(action).await?;
    match awaited {
        Some((place, number)) => queue_watch::wait(&place, number).await,
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Runs a command; returns the pull request to wait for.
async fn run(action: Queue) -> Result<Option<(QueueArgs, u32)>, CliError> {
    match action {
        Queue::Submit { number, priority, wait, place } => {
            let read = |text: String| text.parse().map_or(Priority::Name(text), Priority::Number);
            let priority = priority.map(read);
            let submitted = done(&place, "submitted", async |client, queue| {
                client.submit(&queue, number, priority).await
            });
            submitted.await?;
            return Ok(wait.then_some((place, number)));
        }
        Queue::Create { place, concurrency } => {
            done(&place, "created", async |client, queue| {
                client.create_queue(&queue, concurrency).await
            })
            .await
        }
        Queue::Delete { place } => {
            done(&place, "deleted", async |client, queue| client.delete_queue(&queue).await).await
        }
        Queue::Set { settings, place } => {
            let settings = queue_set::settings(&settings)?;
            change(&place, QueueChange { settings, ..QueueChange::default() }, "changed").await
        }
        Queue::Targets { rules, format } => queue_targets::targets(&rules, format),
        Queue::Status { place } => queue_status::status(&place).await,
        Queue::Watch { until_empty, place } => queue_watch::watch(&place, until_empty).await,
        Queue::Show { number, place } => {
            let entry = place.server.client()?.entry(&place.queue(), number).await?;
            show(&entry, place.format, queue_status::line);
            Ok(())
        }
        Queue::List { only, server, format } => {
            let reply = server.client()?.list_queues(only.as_ref().map(repo).as_ref()).await?;
            if format.is_json() {
                say_json(&reply.json);
            } else {
                queue_status::listed(reply.value).print();
            }
            Ok(())
        }
        Queue::History { since, place } => queue_history::history(&place, &since).await,
        Queue::Why { number, place } => queue_why::why(&place, number).await,
        Queue::Cancel { number, place } => {
            done(&place, "cancelled", async |client, queue| client.cancel(&queue, number).await)
                .await
        }
        Queue::Restart { number, place } => {
            done(&place, "restarted", async |client, queue| client.restart(&queue, number).await)
                .await
        }
        Queue::Pause { reason, place } => {
            let pause = go_to(RequestedState::Paused);
            change(&place, QueueChange { reason: Some(reason), ..pause }, "paused").await
        }
        Queue::Drain { place } => change(&place, go_to(RequestedState::Draining), "draining").await,
        Queue::Resume { place } => change(&place, go_to(RequestedState::Running), "running").await,
    }?;
    Ok(None)
}

impl QueueArgs {
    pub(crate) fn branch(&self) -> &str {
        &self.branch
    }

    /// The flags that name this queue in another command.
    pub(crate) fn flags(&self) -> String {
        let repo = shell_word(&self.repo.name.to_string());
        match self.branch.as_str() {
            "main" => format!("--repo {repo}"),
            branch => format!("--repo {repo} --branch {}", shell_word(branch)),
        }
    }

    pub(crate) fn queue(&self) -> QueueRef {
        QueueRef { repo: self.repo.repo(), target_branch: self.branch.clone() }
    }
}

fn go_to(state: RequestedState) -> QueueChange {
    QueueChange { state: Some(state), ..QueueChange::default() }
}

async fn change(place: &QueueArgs, change: QueueChange, word: &str) -> Result<(), CliError> {
    done(place, word, async |client, queue| client.update_queue(&queue, &change).await).await
}

/// Calls an operation whose response has no content.
async fn done(
    place: &QueueArgs,
    word: &str,
    call: impl AsyncFnOnce(Client, QueueRef) -> Result<Reply<Done>, ClientError>,
) -> Result<(), CliError> {
    let reply = call(place.server.client()?, place.queue()).await?;
    show(&reply, place.format, |_| word.to_owned());
    Ok(())
}
