#![doc = include_str!("../README.md")]

mod branches;
mod client;
mod error;
mod launch;
mod narrator;
mod report;
mod repository;
mod scenario;
mod scenarios;
mod scene;
mod story;
mod verdict;

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use signalbox_config::{Config, Host, LogFormat, Organization};
use signalbox_hosts::{Table, Value};
use signalbox_terminal::{Signals, say};

pub use error::DemoError;
pub use launch::{Launch, Running};

use client::Client;
use repository::{HOST, NAME, ORG, OWNER};
use scenarios::SCENARIOS;
use story::Stage;

/// The demo's git host, with bare repositories in a folder.
fn host(root: &Path, concurrency: i64) -> Host {
    let checks = Table::from_iter([("concurrency".to_owned(), Value::Integer(concurrency))]);
    let mut host = Table::new();
    host.insert("kind".to_owned(), "git".into());
    host.insert("host".to_owned(), HOST.into());
    host.insert("root".to_owned(), root.to_string_lossy().into_owned().into());
    host.insert("checks".to_owned(), Value::Table(checks));
    Host(host)
}

/// Runs the demo. With `once` it ends when the last queue is empty. Returns `true` when every
/// scenario ended as expected, or the demo was stopped.
pub async fn run(
    program: &dyn Launch,
    once: bool,
    listen: Option<SocketAddr>,
    data_dir: Option<PathBuf>,
) -> Result<bool, DemoError> {
    let temporary = tempfile::tempdir()?;
    let folder = data_dir.unwrap_or_else(|| temporary.path().to_owned());
    // git is called in several folders.
    let folder = std::path::absolute(folder)?;
    std::fs::create_dir_all(&folder).map_err(DemoError::file(&folder))?;
    let any = if once { 0 } else { 8080 };
    let address = listen.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], any)));
    let listener = TcpListener::bind(address);
    let listener = listener.map_err(|error| DemoError::Listen { address, error })?;
    let address = listener.local_addr()?;
    let mut config = Config { data_dir: Some(folder.clone()), ..Config::default() };
    config.server.listen = address;
    // The demo's checks are its own.
    config.sandbox.unsafe_local = true;
    config.log.level = "warn".into();
    config.log.format = LogFormat::Pretty;
    // Two of the checks wait until the user opens their gate.
    let concurrency = if once { 3 } else { 5 };
    let hosts = vec![host(&folder.join("git"), concurrency)];
    config.organizations = vec![Organization { slug: ORG.into(), hosts }];

    say("Signalbox demo: a real git repository, real checks, the embedded database.\n");
    let git = repository::make(&folder.join("git"), &folder.join("work")).await?;
    let server = program.launch(config, listener).await.map_err(DemoError::Launch)?;
    let client = Client::for_demo(&*server, address).await?;
    say(&format!("The server listens on http://{address}; the repository is {}.", git.bare()));
    say(
        "Every candidate is tested with `sh check.sh`. Each scenario has its own target branch and",
    );
    say("queue.");

    let stage = Stage::set(&*server, &client, &git).await?;
    let scene = if once { Vec::new() } else { scene::set(&stage, &git).await? };
    if !once {
        scene::print_links(address, client.token(), &git, &scene);
        say(&format!(
            "\n{} scenarios follow; each ends with a table of what was expected and what happened.",
            SCENARIOS.len(),
        ));
    }
    let mut ended = Vec::new();
    for (number, scenario) in (1..).zip(&SCENARIOS) {
        say(&format!(
            "\n== Scenario {number} of {}, on {}: {} ==\n",
            SCENARIOS.len(),
            scenario.target,
            scenario.shows
        ));
        for line in scenario.preface {
            say(line);
        }
        let prs = stage.open_pull_requests(scenario).await?;
        let runs = stage.play(scenario, &prs).await?;
        let (good, totals) = report::judge(&stage, scenario, &prs, &runs).await?;
        ended.push((scenario, good, totals));
    }
    let good = report::sum_up(&stage, &ended).await?;
    let mut signals = Signals::new()?;
    if once {
        server.stop().await;
        return Ok(good);
    }
    say("\nThe server runs until you stop it with Ctrl-C.");
    scene::print_links(address, client.token(), &git, &scene);
    say("\nTo call the API:\n");
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
    Ok(true)
}
