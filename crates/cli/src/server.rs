//! Which server, and as whom.

use clap::Args;
use serde_json::{Value, json};
use signalbox_client::Client;
use signalbox_domain::ids::RepoName;

use crate::CliError;

/// The flags of every command that talks to a server.
#[derive(Args)]
pub(crate) struct Server {
    /// The server.
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

/// `HOST/OWNER/NAME` as the API calls a repository.
pub(crate) fn repo(text: &str) -> Result<Value, CliError> {
    let repo = RepoName::parse(text)?;
    Ok(json!({ "host": repo.host.as_str(), "owner": repo.owner, "name": repo.name }))
}
