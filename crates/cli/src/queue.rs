//! `signalbox queue`: the verbs of the API, for people.

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use signalbox_domain::queue::{PrState, QueueStateName};
use signalbox_wording::Named;

use crate::queue_set;
use crate::server::{Server, repo};
use crate::{CliError, say};

/// Which queue of which server.
#[derive(Args)]
pub struct Place {
    /// HOST/OWNER/NAME.
    #[arg(long)]
    repo: String,
    /// The target branch.
    #[arg(long, default_value = "main")]
    branch: String,
    #[command(flatten)]
    server: Server,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
pub enum Queue {
    /// Create the queue of a branch.
    #[command(
        after_help = "Example: signalbox queue create --repo git.local/acme/calc --branch main --concurrency 3"
    )]
    Create {
        #[command(flatten)]
        place: Place,
        /// Test runs at the same time.
        #[arg(long)]
        concurrency: Option<u32>,
    },
    /// Delete an empty queue.
    #[command(
        after_help = "Example: signalbox queue delete --repo git.local/acme/calc --branch old"
    )]
    Delete {
        #[command(flatten)]
        place: Place,
    },
    /// Show who waits, and why.
    #[command(after_help = "Example: signalbox queue status --repo git.local/acme/calc --json")]
    Status {
        #[command(flatten)]
        place: Place,
    },
    /// Show one pull request.
    #[command(after_help = "Example: signalbox queue show 12 --repo git.local/acme/calc")]
    Show {
        /// Its number.
        number: u32,
        #[command(flatten)]
        place: Place,
    },
    /// Change settings.
    #[command(after_help = queue_set::help())]
    Set {
        /// Settings with their values.
        #[arg(required = true, value_name = "NAME=VALUE")]
        settings: Vec<String>,
        #[command(flatten)]
        place: Place,
    },
    /// Submit a pull request.
    #[command(
        after_help = "Example: signalbox queue submit 12 --priority high --repo git.local/acme/calc"
    )]
    Submit {
        /// Its number.
        number: u32,
        /// urgent, high, medium, low or a number.
        #[arg(long)]
        priority: Option<String>,
        #[command(flatten)]
        place: Place,
    },
    /// Take a pull request out.
    #[command(after_help = "Example: signalbox queue cancel 12 --repo git.local/acme/calc")]
    Cancel {
        /// Its number.
        number: u32,
        #[command(flatten)]
        place: Place,
    },
    /// Test a pull request once more.
    #[command(after_help = "Example: signalbox queue restart 12 --repo git.local/acme/calc")]
    Restart {
        /// Its number.
        number: u32,
        #[command(flatten)]
        place: Place,
    },
    /// Start nothing and merge nothing.
    #[command(
        after_help = "Example: signalbox queue pause --reason 'release day' --repo git.local/acme/calc"
    )]
    Pause {
        /// The reason, shown on every pull request that waits.
        #[arg(long)]
        reason: String,
        #[command(flatten)]
        place: Place,
    },
    /// Finish what is in the line; let nothing new in.
    #[command(after_help = "Example: signalbox queue drain --repo git.local/acme/calc")]
    Drain {
        #[command(flatten)]
        place: Place,
    },
    /// Go on.
    #[command(after_help = "Example: signalbox queue resume --repo git.local/acme/calc")]
    Resume {
        #[command(flatten)]
        place: Place,
    },
}

pub async fn queue(action: Queue) -> Result<(), CliError> {
    let pr = |number: u32| json!({ "pr": { "number": number } });
    match action {
        Queue::Create { place, concurrency } => {
            let body = json!({ "concurrency": concurrency });
            done(&place, "createQueue", body, "created").await
        }
        Queue::Delete { place } => done(&place, "deleteQueue", json!({}), "deleted").await,
        Queue::Set { settings, place } => {
            done(&place, "updateQueue", queue_set::body(&settings)?, "changed").await
        }
        Queue::Status { place } => status(&place).await,
        Queue::Show { number, place } => {
            let entry = call(&place, "getSubmittedPullRequest", pr(number)).await?;
            say(&if place.json { entry.to_string() } else { line(&entry) });
            Ok(())
        }
        Queue::Submit { number, priority, place } => {
            let priority =
                priority.map(|it| it.parse::<u32>().map_or_else(|_| json!(it), |n| json!(n)));
            let body = json!({ "pr": { "number": number }, "priority": priority });
            done(&place, "submitPullRequest", body, "submitted").await
        }
        Queue::Cancel { number, place } => {
            done(&place, "cancelPullRequest", pr(number), "cancelled").await
        }
        Queue::Restart { number, place } => {
            done(&place, "restartTestsOnPullRequest", pr(number), "restarted").await
        }
        Queue::Pause { reason, place } => {
            let body = json!({ "state": "PAUSED", "reason": reason });
            done(&place, "updateQueue", body, "paused").await
        }
        Queue::Drain { place } => {
            done(&place, "updateQueue", json!({ "state": "DRAINING" }), "draining").await
        }
        Queue::Resume { place } => {
            done(&place, "updateQueue", json!({ "state": "RUNNING" }), "running").await
        }
    }
}

async fn done(place: &Place, operation: &str, body: Value, word: &str) -> Result<(), CliError> {
    let reply = call(place, operation, body).await?;
    say(&if place.json { reply.to_string() } else { word.to_owned() });
    Ok(())
}

async fn status(place: &Place) -> Result<(), CliError> {
    let queue = call(place, "getQueue", json!({})).await?;
    if place.json {
        say(&queue.to_string());
        return Ok(());
    }
    let entries = queue["enqueuedPullRequests"].as_array().cloned().unwrap_or_default();
    let text = |key: &str| queue[key].as_str().unwrap_or_default().to_owned();
    let state = text("state");
    let state = QueueStateName::parse(&state.to_uppercase()).map_or(state, |it| label(&it));
    say(&format!("{}: {state}, {} pull requests", text("branch"), entries.len()));
    for entry in &entries {
        say(&format!("  {}", line(entry)));
    }
    Ok(())
}

fn line(entry: &Value) -> String {
    let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
    let position = entry["position"].as_u64().map_or_else(|| "-".into(), |it| it.to_string());
    let (number, state) = (entry["prNumber"].as_u64().unwrap_or(0), text("state"));
    let state = PrState::parse(&state.to_uppercase()).map_or(state, |it| label(&it));
    format!("{position:>3} #{number} {state:28} {} ({})", text("prTitle"), text("reason"))
}

/// How a state is called in front of people.
fn label(state: &impl Named) -> String {
    state.named().label.to_owned()
}

async fn call(place: &Place, operation: &str, mut body: Value) -> Result<Value, CliError> {
    body["repo"] = repo(&place.repo)?;
    body["targetBranch"] = json!(place.branch);
    Ok(place.server.client()?.post(operation, &body).await?)
}
