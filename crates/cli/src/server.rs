//! The server and the token.

use clap::Args;
use signalbox_client::{Client, Reply, Repo};
use signalbox_domain::ids::RepoName;

use crate::{CliError, say};

/// The flags of every client command.
#[derive(Args)]
pub struct Server {
    /// The URL of the server.
    #[arg(long, env = "SIGNALBOX_SERVER", default_value = "http://127.0.0.1:8080")]
    server: String,
    /// The API token.
    #[arg(long, env = "SIGNALBOX_TOKEN", hide_env_values = true)]
    token: String,
}

impl Server {
    pub(crate) fn client(&self) -> Result<Client, CliError> {
        Ok(Client::new(&self.server, &self.token)?)
    }
}

/// Reads `HOST/OWNER/NAME`.
pub(crate) fn repo(text: &str) -> Result<Repo, CliError> {
    let repo = RepoName::parse(text)?;
    Ok(Repo { host: repo.host.as_str().to_owned(), owner: repo.owner, name: repo.name })
}

/// Prints a reply, as JSON or as text.
pub(crate) fn show<T>(reply: &Reply<T>, as_json: bool, words: impl FnOnce(&T) -> String) {
    say(&if as_json { reply.json.to_string() } else { words(&reply.value) });
}
