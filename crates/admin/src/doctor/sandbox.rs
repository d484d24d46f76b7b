//! Checks that the checks of pull requests run isolated from this server.

use std::path::PathBuf;
use std::sync::Arc;

use signalbox_config::Config;
use signalbox_domain::ports::Stores;
use signalbox_sandbox::{Backend, Sandbox};

use super::Finding;

const NAME: &str = "sandbox";

/// The sandbox of a configuration. Its supervisor is this program.
pub fn sandbox(config: &Config) -> Arc<dyn Sandbox> {
    // Also when its file was replaced meanwhile, this is the program that runs.
    let supervisor = PathBuf::from("/proc/self/exe");
    signalbox_sandbox::sandbox(config.sandbox.clone(), supervisor, config.hidden_paths())
}

/// Whether checks run, and what they could reach.
pub(super) async fn check(config: &Config, stores: &Stores) -> Finding {
    let settings = &config.sandbox;
    if settings.backend == Backend::None {
        return Finding::good(NAME, "this server runs no checks: sandbox.backend is none");
    }
    if settings.unsafe_local {
        return Finding::warning(
            NAME,
            "sandbox.unsafe_local is on: every check of a pull request has all rights of the \
             server; it can move branches, read and change the database, read keys, and stop the \
             server",
        );
    }
    let local = stores.account.repos.list(None).await;
    if local.is_ok_and(|repositories| repositories.iter().all(|it| it.path.is_none())) {
        return Finding::good(NAME, "not needed: no repository is on this server's disk");
    }
    let sandbox = sandbox(config);
    match sandbox.ready().await {
        Err(refused) => Finding::bad(NAME, refused.to_string()),
        Ok(ready) if ready.network => Finding::warning(
            NAME,
            format!("{ready}: they can use what they reach without a password, such as a database"),
        ),
        Ok(ready) => Finding::good(NAME, ready.to_string()),
    }
}
