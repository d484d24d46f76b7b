//! `signalbox demo`: stories of the queue on a real git repository, through the real API.

mod branches;
mod chapter;
mod chapters;
mod client;
mod report;
mod repository;
mod scene;
mod story;
mod telling;
mod verdict;

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use crate::config::{Checks, Config, Host, LogFormat, Organization};
use crate::serve::{Server, Signals};
use crate::wiring::{App, open_database};
use signalbox_terminal::say;

use chapters::CHAPTERS;
use client::Client;
use repository::{HOST, NAME, ORG, OWNER};
use story::Stage;

/// Runs the demo. With `once` it ends when the last queue is empty.
pub(crate) async fn run(
    once: bool,
    listen: Option<SocketAddr>,
    data_dir: Option<PathBuf>,
) -> Result<ExitCode, String> {
    let temporary = tempfile::tempdir().map_err(|error| error.to_string())?;
    let folder = data_dir.unwrap_or_else(|| temporary.path().to_owned());
    // git is called in several folders.
    let folder = std::path::absolute(folder).map_err(|error| error.to_string())?;
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
    // Two of the checks wait for somebody who looks at the pages.
    let concurrency = if once { 3 } else { 5 };
    let checks = Checks { concurrency, ..Checks::default() };
    let root = Some(folder.join("git"));
    config.organizations = vec![Organization {
        slug: ORG.into(),
        hosts: vec![Host::Git { host: HOST.into(), root, checks }],
    }];
    crate::logs::start(&config)?;

    say("Signalbox demo: a real git repository, real checks, the embedded database.\n");
    let git = repository::make(&folder.join("git"), &folder.join("work")).await?;
    let database = open_database(&config, true).await?;
    let app = Arc::new(App::new(config, database).await?);
    let server = Server::start(app.clone(), listener).await?;
    let client = Client::for_demo(&app, address).await?;
    say(&format!("The server listens on http://{address}; the repository is {}.", git.bare()));
    say("Every candidate is tested with `sh check.sh`; each chapter has a target branch, and so a");
    say("queue, of its own.");

    let stage = Stage::set(&app, &client, &git).await?;
    let scene = if once { Vec::new() } else { scene::set(&stage, &git).await? };
    if !once {
        scene::tell(address, client.token(), &git, &scene);
        say("\nMeanwhile the stories:");
    }
    let mut ended = Vec::new();
    for (number, chapter) in (1..).zip(&CHAPTERS) {
        say(&format!(
            "\n== Chapter {number} of {}, on {}: {} ==\n",
            CHAPTERS.len(),
            chapter.target,
            chapter.shows
        ));
        for line in chapter.preface {
            say(line);
        }
        let prs = stage.open_pull_requests(chapter).await?;
        let runs = stage.play(chapter, &prs).await?;
        ended.push((chapter, report::judge(&stage, chapter, &prs, &runs).await?));
    }
    let good = report::sum_up(&stage, &ended).await?;
    let mut signals = Signals::new()?;
    if once {
        server.stop().await;
        return Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    say("\nThe server stays up until you stop it.");
    scene::tell(address, client.token(), &git, &scene);
    say("\nOr ask the API:\n");
    say(&format!("  export SIGNALBOX_TOKEN={}", client.token()));
    say(&format!(
        "  curl -s http://{address}/v1/getQueue -H \"x-api-token: $SIGNALBOX_TOKEN\" \\\n    \
         -H 'content-type: application/json' \\\n    -d '{{\"repo\":{{\"host\":\"{HOST}\",\
         \"owner\":\"{OWNER}\",\"name\":\"{NAME}\"}},\"targetBranch\":\"main\"}}'"
    ));
    say(&format!("\nOrganization {ORG}, repository {HOST}/{OWNER}/{NAME}."));
    signals.next().await;
    tokio::select! {
        () = server.stop() => {}
        () = signals.next() => {}
    }
    Ok(ExitCode::SUCCESS)
}
