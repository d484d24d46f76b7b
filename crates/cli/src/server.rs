//! What the client commands have in common: the server, the token, the repository and the output.

use clap::Args;
use signalbox_client::{Client, Reply, Repo, Stream, TryStreamExt};
use signalbox_domain::ids::RepoName;
use signalbox_terminal::{Format, Table, is_closed, say_json};

use crate::CliError;

/// The server and the token.
#[derive(Args)]
pub struct Server {
    /// The URL of the server.
    #[arg(long, env = "SIGNALBOX_SERVER", default_value = "http://127.0.0.1:8080")]
    server: String,
    /// The API token.
    #[arg(long, env = "SIGNALBOX_TOKEN", hide_env_values = true)]
    token: Option<String>,
}

impl Server {
    pub(crate) fn client(&self) -> Result<Client, CliError> {
        let token = self.token.as_deref().filter(|token| !token.is_empty());
        Ok(Client::new(&self.server, token.ok_or(CliError::NoToken)?)?)
    }
}

/// The repository.
#[derive(Args)]
pub struct Repository {
    /// HOST/OWNER/NAME.
    #[arg(
        long = "repo",
        env = "SIGNALBOX_REPO",
        value_name = "HOST/OWNER/NAME",
        value_parser = RepoName::parse
    )]
    pub(crate) name: RepoName,
}

impl Repository {
    pub(crate) fn repo(&self) -> Repo {
        repo(&self.name)
    }
}

/// The organization of the token.
#[derive(Args)]
pub struct Organization {
    /// The slug of the token's organization.
    #[arg(long = "org", env = "SIGNALBOX_ORG", value_name = "SLUG")]
    pub(crate) slug: String,
}

/// A repository as the API has it.
pub(crate) fn repo(name: &RepoName) -> Repo {
    let RepoName { host, owner, name } = name.clone();
    Repo { host: host.as_str().to_owned(), owner, name }
}

/// Prints a reply, as JSON or as text.
pub(crate) fn show<T>(reply: &Reply<T>, format: Format, words: impl FnOnce(&T) -> String) {
    format.say(&reply.json, || words(&reply.value));
}

/// Prints all items of a list: as a table when it is complete, or each as JSON when it arrives.
pub(crate) async fn list<T>(
    items: impl Stream<Item = Result<Reply<T>, signalbox_client::ClientError>>,
    format: Format,
    table: &mut Table,
    row: impl Fn(&mut Table, T),
) -> Result<(), CliError> {
    let mut items = std::pin::pin!(items);
    while let Some(item) = items.try_next().await? {
        if !format.is_json() {
            row(table, item.value);
        } else if is_closed() {
            return Ok(());
        } else {
            say_json(&item.json);
        }
    }
    if !format.is_json() {
        table.print();
    }
    Ok(())
}
