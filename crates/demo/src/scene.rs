//! A queue whose pull requests wait, so that the pages have something to show.

use std::time::Duration;

use serde_json::json;
use signalbox_domain::queue::Mode;
use signalbox_terminal::say;

use crate::DemoError;
use crate::repository::{Git, NAME, ORG, OWNER};
use crate::story::Stage;

/// The target branch.
const TARGET: &str = "waiting";
/// How long the first one may take to merge.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often that is checked.
const LOOK: Duration = Duration::from_millis(100);

/// A branch: its name, the subject of its commit, its author, its target branch, and a file.
struct Change {
    branch: &'static str,
    title: &'static str,
    author: &'static str,
    target: &'static str,
    file: (&'static str, &'static str),
}

/// The first one merges, so that estimates have a basis; then the gate is closed.
static CHANGES: [Change; 6] = [
    Change {
        branch: "greet",
        title: "Greet by name",
        author: "ada",
        target: TARGET,
        file: ("lib/greet.sh", "greet() { echo \"Hello, $1\"; }\n"),
    },
    Change {
        branch: "round",
        title: "Round halves to even",
        author: "grace",
        target: TARGET,
        file: ("lib/round.sh", "round() { echo $((($1 + 5) / 10)); }\n"),
    },
    Change {
        branch: "comma",
        title: "Read numbers with a comma",
        author: "linus",
        target: TARGET,
        file: ("lib/comma.sh", "comma() { echo \"${1%,*}\"; }\n"),
    },
    Change {
        branch: "memory",
        title: "Remember the last result",
        author: "ada",
        target: TARGET,
        file: ("lib/memory.sh", "remember() { last=$1; }\n"),
    },
    Change {
        branch: "memory-too",
        title: "Remember the last ten results",
        author: "grace",
        target: TARGET,
        file: ("lib/memory.sh", "remember() { last=\"$1 $last\"; }\n"),
    },
    Change {
        branch: "elsewhere",
        title: "Print with two digits",
        author: "linus",
        target: "main",
        file: ("lib/print.sh", "show() { printf '%.2f\\n' \"$1\"; }\n"),
    },
];

/// Creates the queue with pull requests that wait for different reasons, and returns their numbers.
pub(crate) async fn set(stage: &Stage<'_>, git: &Git) -> Result<Vec<u32>, DemoError> {
    git.hold(TARGET).await?;
    let mut numbers = Vec::new();
    for it in &CHANGES {
        git.grow("main", it.branch, it.title, &[it.file]).await?;
        numbers.push(stage.open(it.branch, it.target, Some(it.author)).await?);
    }
    let call = async |operation: &str, body| stage.client.call(TARGET, operation, body).await;
    let submit = async |pr: u32| call("submitPullRequest", json!({ "pr": { "number": pr } })).await;
    call("createQueue", json!({ "mode": Mode::Single.as_str(), "concurrency": 2 })).await?;
    git.release()?;
    let Some((first, others)) = numbers.split_first() else { return Ok(numbers) };
    submit(*first).await?;
    let merged = async {
        while stage.client.entry(TARGET, *first).await?["state"] != "MERGED" {
            tokio::time::sleep(LOOK).await;
        }
        Ok::<_, DemoError>(())
    };
    let merged = tokio::time::timeout(PATIENCE, merged).await;
    let late = || format!("#{first} did not merge within {} s", PATIENCE.as_secs());
    merged.map_err(|_| DemoError::Story(late()))??;
    git.withhold()?;
    for pr in others {
        submit(*pr).await?;
    }
    Ok(others.to_vec())
}

/// Prints the token, the pages and the gate.
pub(crate) fn print_links(address: std::net::SocketAddr, token: &str, git: &Git, numbers: &[u32]) {
    let repo = format!("{}/{OWNER}/{NAME}", crate::repository::HOST).replace('/', "%2F");
    let queue = format!("http://{address}/{ORG}/queue?repo={repo}&branch={TARGET}");
    say("\nOpen one of these pages and sign in with the token:\n");
    say(&format!("  token   {token}"));
    say(&format!("  home    http://{address}/"));
    say(&format!("  queue   {queue}"));
    if let Some(last) = numbers.get(2) {
        let page = queue.replace("/queue?", "/queue/pr?");
        say(&format!("  #{last} waits: {page}&pr={last}"));
    }
    say(&format!("\nThe checks of the queue {TARGET} wait for a file. To let them finish:\n"));
    say(&format!("  touch {}", git.gate()));
}
