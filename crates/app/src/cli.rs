//! The command line.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use serde_json::json;
use signalbox_config::{Config, Flags};
use signalbox_domain::queue::SharedPolicy;
use signalbox_terminal::{Exit, Format, causes, complain, say, say_json, written};

use crate::error::AppError;
use crate::hosts::KINDS;
use crate::manuals::Manuals;
use crate::program::Signalbox;

/// The configuration file of the server of this machine.
const SYSTEM_CONFIG: &str = "/etc/signalbox/signalbox.toml";

/// The configuration file of the agent of this machine. Its user may not enter the folder of the server's.
const AGENT_CONFIG: &str = "/etc/signalbox-agent/agent.toml";

/// A self-hosted merge queue and flaky-test server: only tested commits reach main.
#[derive(Parser)]
#[command(name = "signalbox", version, max_term_width = 100, after_long_help = Exit::help())]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// Flags of every command.
#[derive(Args)]
struct Global {
    /// The configuration file; default: /etc/signalbox/signalbox.toml, if it exists.
    #[arg(long, global = true, value_name = "FILE", env = "SIGNALBOX_CONFIG")]
    config: Option<PathBuf>,
    /// The database: sqlite://PATH or postgres://USER@HOST/NAME.
    #[arg(long, global = true, value_name = "URL")]
    database: Option<String>,
    /// The folder for the embedded database and for checkouts.
    #[arg(long, global = true, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Command {
    /// Run a demo on a real git repository, without any setup.
    #[command(after_help = "Example: signalbox demo --once")]
    Demo {
        /// Exit when all queues are empty; exit code 0 if every scenario ended as expected.
        #[arg(long)]
        once: bool,
        /// The address to listen on; default with --once: a free port.
        #[arg(long, value_name = "ADDR")]
        listen: Option<SocketAddr>,
    },
    /// Run the server.
    #[command(after_help = "Example: signalbox serve --config signalbox.toml")]
    Serve {
        /// The address to listen on.
        #[arg(long, value_name = "ADDR")]
        listen: Option<SocketAddr>,
        /// The URL by which users reach the server.
        #[arg(long, value_name = "URL")]
        public_url: Option<String>,
        /// Refuse to start when migrations are pending, instead of applying them.
        #[arg(long)]
        no_migrate: bool,
    },
    /// Run the checks of a server as another user. The agent reads `[sandbox]` and `[log]` from its own
    /// file, /etc/signalbox-agent/agent.toml by default.
    #[command(
        after_help = "Example: signalbox agent --allow-user signalbox --data-dir /var/lib/signalbox-agent"
    )]
    Agent(signalbox_admin::Agent),
    /// Set up a first queue: a bare repository, its organization, a queue and a token. Changes
    /// nothing that exists.
    #[command(after_help = "Example: signalbox init calc.git --org acme")]
    Init(signalbox_admin::Init),
    /// Database migrations.
    #[command(after_help = "Example: signalbox migrate status")]
    Migrate {
        #[command(subcommand)]
        action: Option<signalbox_admin::Migrate>,
    },
    /// API tokens.
    #[command(subcommand, after_help = "Example: signalbox token create --org acme --name ci")]
    Token(signalbox_admin::Token),
    /// Organizations.
    #[command(subcommand, after_help = "Example: signalbox org create acme")]
    Org(signalbox_admin::Org),
    /// Repositories.
    #[command(
        subcommand,
        after_help = "Example: signalbox repo add git.local/acme/calc --org acme --path /srv/calc.git"
    )]
    Repo(signalbox_admin::Repo),
    /// Pull requests on a plain git host.
    #[command(
        subcommand,
        after_help = "Example: signalbox pr open --repo git.local/acme/calc --branch fix --json"
    )]
    Pr(signalbox_admin::Pr),
    /// Merge queues of a running server.
    #[command(
        subcommand,
        after_help = "Example: SIGNALBOX_TOKEN=… signalbox queue status --repo git.local/acme/calc"
    )]
    Queue(signalbox_cli::Queue),
    /// Landings: their records, and how to verify them.
    #[command(
        subcommand,
        after_help = "Example: signalbox proof verify 12 --repo git.local/acme/calc --clone ../calc"
    )]
    Proof(signalbox_cli::Proof),
    /// Test results.
    #[command(
        subcommand,
        after_help = "Example: SIGNALBOX_TOKEN=… signalbox tests upload --repo git.local/acme/calc --branch main --sha 1f0c… junit.xml"
    )]
    Tests(signalbox_cli::Tests),
    /// Webhooks of a running server. The token needs the scope queue:admin and all repositories.
    #[command(
        subcommand,
        after_help = "Example: SIGNALBOX_TOKEN=… signalbox webhooks create https://hooks.acme.test/x --event pull_request.merged"
    )]
    Webhooks(Webhooks),
    /// Check everything that a server needs: one line per check; exit code 1 when one fails.
    #[command(after_help = "Example: signalbox doctor --config signalbox.toml --json")]
    Doctor {
        #[command(flatten)]
        format: Format,
        /// Check only this git host, with the configured credentials.
        #[arg(long)]
        host: Option<String>,
    },
    /// Copy the database and the key of webhook secrets into a new archive, also while servers run.
    /// A PostgreSQL database is copied by `pg_dump`.
    #[command(after_help = "Example: signalbox backup /var/backups/signalbox-2026-11-21.tar.gz")]
    Backup {
        /// The new archive.
        file: PathBuf,
        #[command(flatten)]
        format: Format,
    },
    /// Restore a backup into the configured database; no server may be running.
    #[command(after_help = "Example: signalbox restore /var/backups/signalbox-2026-11-21.tar.gz")]
    Restore {
        /// The archive.
        file: PathBuf,
        /// Replace an existing SQLite database and key file; they are kept beside the new ones. A
        /// PostgreSQL database must be empty.
        #[arg(long)]
        replace: bool,
        /// Change nothing: check that the archive is complete and its database can be restored.
        #[arg(long, conflicts_with = "replace")]
        verify: bool,
        #[command(flatten)]
        format: Format,
    },
    /// The audit log.
    #[command(subcommand, after_help = "Example: signalbox audit list --json")]
    Audit(signalbox_admin::Audit),
    /// Events of a running server.
    #[command(
        subcommand,
        after_help = "Example: SIGNALBOX_TOKEN=… signalbox events tail --type pull_request.merged"
    )]
    Events(signalbox_cli::Events),
    /// Simulate a merge queue: compare settings on a stated workload or on the history of a queue, without a
    /// server.
    #[command(
        after_help = "Example: signalbox simulate --per-hour 20 --failing 0.05 --concurrency 10,20 --batch-size 1,4\n\n\
                      Example: signalbox queue history --repo git.local/acme/calc | signalbox simulate --history - --batch-size 1,4"
    )]
    Simulate(signalbox_cli::Simulate),
    /// Check the configuration.
    #[command(after_help = "Example: signalbox check-config --config signalbox.toml")]
    CheckConfig {
        /// Print the effective configuration, without secrets: as TOML, or as JSON.
        #[arg(long)]
        print_effective: bool,
        #[command(flatten)]
        format: Format,
    },
    /// Print the OpenAPI description of the API.
    #[command(after_help = "Example: signalbox openapi > openapi.json")]
    Openapi,
    /// Print the version.
    #[command(after_help = "Example: signalbox version --json")]
    Version {
        #[command(flatten)]
        format: Format,
    },
    #[command(flatten)]
    Manuals(Manuals),
    /// Called by git.
    #[command(subcommand, hide = true)]
    Hook(signalbox_admin::Hook),
}

#[derive(Subcommand)]
enum Webhooks {
    #[command(flatten)]
    Server(signalbox_cli::Webhooks),
    /// Forget which key the secrets in the database are sealed with, when that key is lost. Works
    /// on the database; the next server that starts records its own key. Then rotate every
    /// endpoint's secret.
    // Between `rotate` and `test`.
    #[command(after_help = "Example: signalbox webhooks forget-key", display_order = 5)]
    ForgetKey,
}

/// The command line, for its documentation and the checks of commands in other documents.
pub fn command() -> clap::Command {
    <Cli as clap::CommandFactory>::command()
}

/// Runs the program. The exit codes are those of [`Exit`].
pub fn run() -> ExitCode {
    run_with(SharedPolicy::default())
}

/// Runs the program with a policy of your own for all queues.
pub fn run_with(policy: SharedPolicy) -> ExitCode {
    if let Some(code) = KINDS.help() {
        return code;
    }
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let done = match runtime {
        Ok(runtime) => {
            let done = runtime.block_on(Box::pin(dispatch(cli, policy)));
            runtime.shutdown_timeout(std::time::Duration::from_secs(1));
            done
        }
        Err(error) => Err(error.into()),
    };
    // What a command has printed counts only if it arrived.
    let done = done.and_then(|code| written().map(|()| code).map_err(AppError::Output));
    done.unwrap_or_else(|error| {
        complain(&causes(&error));
        error.exit().into()
    })
}

/// A file that this user may not look for counts as present: its settings must not be missed.
fn unless_missing(file: &Path) -> Option<PathBuf> {
    file.try_exists().unwrap_or(true).then(|| file.to_owned())
}

async fn dispatch(cli: Cli, policy: SharedPolicy) -> Result<ExitCode, AppError> {
    let Global { config, database, data_dir } = cli.global;
    let is_agent = matches!(cli.command, Command::Agent(_));
    let default = if is_agent { AGENT_CONFIG } else { SYSTEM_CONFIG };
    let config = config.or_else(|| unless_missing(Path::new(default)));
    let mut flags = Flags { config, database, data_dir, ..Flags::default() };
    match cli.command {
        Command::Demo { once, listen } => {
            let data_dir = flags.data_dir.clone();
            if !signalbox_demo::run(&Signalbox(flags, policy), once, listen, data_dir).await? {
                return Ok(ExitCode::FAILURE);
            }
        }
        Command::Serve { listen, public_url, no_migrate } => {
            (flags.listen, flags.public_url) = (listen, public_url);
            let config = Config::load(&flags, KINDS)?;
            let exporting = signalbox_telemetry::start(&config)?;
            let served = crate::serve::serve(config, policy, !no_migrate).await;
            if let Some(exporting) = exporting {
                exporting.stop().await;
            }
            served?;
        }
        Command::Agent(action) => {
            let config = Config::load(&flags, KINDS)?;
            let exporting = signalbox_telemetry::start(&config)?;
            let served = signalbox_admin::agent(&config, action).await;
            if let Some(exporting) = exporting {
                exporting.stop().await;
            }
            served?;
        }
        Command::Init(action) => signalbox_admin::init(&Signalbox(flags, policy), action).await?,
        Command::Migrate { action } => {
            signalbox_admin::migrate(&Signalbox(flags, policy), action).await?;
        }
        Command::Token(action) => signalbox_admin::token(&Signalbox(flags, policy), action).await?,
        Command::Org(action) => signalbox_admin::org(&Signalbox(flags, policy), action).await?,
        Command::Repo(action) => signalbox_admin::repo(&Signalbox(flags, policy), action).await?,
        Command::Pr(action) => signalbox_admin::pr(&Signalbox(flags, policy), action).await?,
        Command::Queue(action) => return Ok(signalbox_cli::queue(action).await?),
        Command::Proof(action) => signalbox_cli::proof(action).await?,
        Command::Tests(action) => return Ok(signalbox_cli::tests(action).await?),
        Command::Webhooks(Webhooks::Server(action)) => {
            signalbox_cli::webhooks(action).await?;
        }
        Command::Webhooks(Webhooks::ForgetKey) => {
            signalbox_admin::forget_key(&Signalbox(flags, policy)).await?;
        }
        Command::Doctor { format, host } => {
            if !signalbox_admin::doctor(&Signalbox(flags, policy), format, host.as_deref()).await {
                return Ok(ExitCode::FAILURE);
            }
        }
        Command::Backup { file, format } => {
            signalbox_admin::backup(&Signalbox(flags, policy), &file, format).await?;
        }
        Command::Restore { file, verify: true, format, .. } => {
            signalbox_admin::verify(&Signalbox(flags, policy), &file, format).await?;
        }
        Command::Restore { file, replace, format, .. } => {
            signalbox_admin::restore(&Signalbox(flags, policy), &file, replace, format).await?;
        }
        Command::Audit(action) => signalbox_admin::audit(&Signalbox(flags, policy), action).await?,
        Command::Events(action) => signalbox_cli::events(action).await?,
        Command::Simulate(simulate) => signalbox_cli::simulate(&simulate, &policy)?,
        Command::Manuals(manuals) => {
            let text = manuals.text()?;
            if !text.is_empty() {
                say(&text);
            }
        }
        Command::CheckConfig { print_effective, format } => {
            let config = Config::load(&flags, KINDS)?;
            let (text, shown) = (config.effective(KINDS)?, config.shown(KINDS)?);
            if print_effective {
                format.say(&json!(shown), || text.trim_end().to_owned());
            } else {
                let valid = || "the configuration is valid".to_owned();
                format.say(&json!({ "valid": true }), valid);
            }
        }
        Command::Openapi => say_json(&crate::openapi_document().trim_end()),
        Command::Version { format } => {
            let version = env!("CARGO_PKG_VERSION");
            format.say(&json!({ "version": version }), || format!("signalbox {version}"));
        }
        Command::Hook(action) => signalbox_admin::hook(&Signalbox(flags, policy), action).await?,
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_the_machine_counts_unless_it_is_missing() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("signalbox.toml");
        assert_eq!(unless_missing(&file), None);
        std::fs::write(&file, "").expect("written");
        assert_eq!(unless_missing(&file), Some(file.clone()));
        // The system refuses to look for a name that is too long, as it does in a closed folder.
        let refused = folder.path().join("x".repeat(300));
        assert_eq!(unless_missing(&refused), Some(refused.clone()));
    }
}
