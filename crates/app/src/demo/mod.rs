//! `signalbox demo`: the whole story on a real git repository, through the real API.

mod client;
mod repository;
mod story;
mod verdict;

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use crate::config::{Checks, Config, Host, LogFormat, Organization};
use crate::serve::Server;
use crate::terminal::say;
use crate::wiring::{App, open_database};

use client::Client;
use repository::{HOST, NAME, ORG, OWNER};

/// Runs the demo. With `once` it ends when the queue is empty.
pub(crate) async fn run(
    once: bool,
    listen: Option<SocketAddr>,
    data_dir: Option<PathBuf>,
) -> Result<ExitCode, String> {
    let temporary = tempfile::tempdir().map_err(|error| error.to_string())?;
    let folder = data_dir.unwrap_or_else(|| temporary.path().to_owned());
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let any = if once { 0 } else { 8080 };
    let listen = listen.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], any)));
    let listener =
        TcpListener::bind(listen).map_err(|error| format!("cannot listen on {listen}: {error}"))?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let mut config = Config { data_dir: Some(folder.clone()), ..Config::default() };
    config.server.listen = address;
    config.log.level = "warn".into();
    config.log.format = LogFormat::Pretty;
    let checks = Checks { concurrency: 3, ..Checks::default() };
    let root = Some(folder.join("git"));
    config.organizations = vec![Organization {
        slug: ORG.into(),
        hosts: vec![Host::Git { host: HOST.into(), root, checks }],
    }];
    crate::logs::start(&config.log);

    say("Signalbox demo: a real git repository, real checks, the embedded database.\n");
    let git = repository::make(&folder.join("git"), &folder.join("work")).await?;
    let database = open_database(&config, true).await?;
    let app = Arc::new(App::new(config, database).await?);
    let server = Server::start(app.clone(), listener).await?;
    let client = Client::for_demo(&app, address).await?;
    say(&format!("The server listens on http://{address}; the repository is {}.", git.bare()));
    say("Its target branch is main, every candidate is tested with `sh check.sh`,");
    say("and up to three candidates are tested at the same time, each on top of those ahead.\n");

    let prs = story::open_pull_requests(&app, &git).await?;
    story::tell(&app, &client, &prs).await?;
    let good = verdict::judge(&client, &git, &prs).await?;
    if once {
        server.stop().await;
        return Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    say("\nThe server stays up until you stop it. Try:\n");
    say(&format!("  export SIGNALBOX_TOKEN={}", client.token()));
    say(&format!(
        "  curl -s http://{address}/v1/getQueue -H \"x-api-token: $SIGNALBOX_TOKEN\" \\\n    \
         -H 'content-type: application/json' \\\n    -d '{{\"repo\":{{\"host\":\"{HOST}\",\
         \"owner\":\"{OWNER}\",\"name\":\"{NAME}\"}},\"targetBranch\":\"main\"}}'"
    ));
    say(&format!("\nOrganization {ORG}, repository {HOST}/{OWNER}/{NAME}."));
    let stop = tokio::signal::ctrl_c().await;
    stop.map_err(|error| error.to_string())?;
    server.stop().await;
    Ok(ExitCode::SUCCESS)
}
