//! `signalbox agent`: runs the checks of a server as another user.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use clap::Args;
use signalbox_config::Config;
use signalbox_sandbox::{AGENT_SOCKET, Agent as Runner, Backend};
use signalbox_terminal::{Signals, say};

use crate::doctor::sandbox;
use crate::error::AdminError;
use crate::lock;

/// `signalbox agent`.
#[derive(Args)]
pub struct Agent {
    /// The socket to listen on. The folder must exist, and only the agent's user should write to it.
    #[arg(long, value_name = "PATH", default_value = AGENT_SOCKET)]
    socket: PathBuf,
    /// A user whose server may send checks, as a name or an id; can be repeated; default: the agent's own
    /// user.
    #[arg(long, value_name = "USER")]
    allow_user: Vec<String>,
}

/// Runs the agent until it is signalled to end.
pub async fn agent(config: &Config, action: Agent) -> Result<(), AdminError> {
    let Agent { socket, allow_user } = action;
    if matches!(config.sandbox.backend, Backend::Agent | Backend::None) {
        let words = "sandbox.backend must be auto, bubblewrap or container for an agent";
        return Err(AdminError::Refused(words.to_owned()));
    }
    let mut users = BTreeSet::new();
    for user in &allow_user {
        users.insert(id_of(user)?);
    }
    if users.is_empty() {
        users.insert(rustix::process::geteuid().as_raw());
    }
    let folder = config.data_dir().join("checks");
    std::fs::create_dir_all(&folder).map_err(AdminError::file(&folder))?;
    let folder = folder.canonicalize().map_err(AdminError::file(&folder))?;
    let Some(_lock) = lock::hold(&folder.with_extension("lock"))? else {
        let words = format!("another agent runs its checks in {}", folder.display());
        return Err(AdminError::Refused(words));
    };
    let mut signals = Signals::new()?;
    let listener = Runner::listen(&socket).map_err(AdminError::file(&socket))?;
    let sandbox = sandbox(config);
    let ready = match sandbox.ready().await {
        Ok(ready) => ready.to_string(),
        // Each check looks again.
        Err(refused) => refused.to_string(),
    };
    let runner = Arc::new(Runner::new(sandbox, folder, users));
    say(&format!("listening on {}: {ready}", socket.display()));
    runner.serve(listener, async move { signals.next().await }).await;
    let removed = std::fs::remove_file(&socket);
    removed.map_err(AdminError::file(&socket))
}

/// The id of a user, by its name or as it is.
fn id_of(user: &str) -> Result<u32, AdminError> {
    if let Ok(id) = user.parse() {
        return Ok(id);
    }
    let unknown = || AdminError::Argument(format!("there is no user {user:?} on this machine"));
    // Users may come from a directory, which only the system knows how to ask.
    let done = Command::new("id").args(["-u", "--", user]).stdin(Stdio::null()).output()?;
    let text = String::from_utf8_lossy(&done.stdout);
    text.trim().parse().map_err(|_| unknown())
}
