//! `signalbox doctor`: checks everything that a server needs, and advises how to fix what fails.

mod database;
mod effects;
mod exposure;
mod forges;
mod hosts;
mod machine;
mod network;
mod queues;
mod sandbox;
mod tokens;
mod uploads;
mod webhook_key;

use serde_json::json;
use signalbox_config::Config;
use signalbox_terminal::{Format, say, say_json};

use crate::Program;

pub use exposure::exposures;
pub use sandbox::sandbox;

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// Passed.
    Good,
    /// It works, but needs attention.
    Warning,
    /// Failed.
    Bad,
}

impl Verdict {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Warning => "warn",
            Self::Bad => "fail",
        }
    }
}

/// A finding of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Finding {
    name: &'static str,
    verdict: Verdict,
    words: String,
}

impl Finding {
    fn good(name: &'static str, words: impl Into<String>) -> Self {
        Self { name, verdict: Verdict::Good, words: words.into() }
    }

    fn warning(name: &'static str, words: impl Into<String>) -> Self {
        Self { name, verdict: Verdict::Warning, words: words.into() }
    }

    fn bad(name: &'static str, words: impl Into<String>) -> Self {
        Self { name, verdict: Verdict::Bad, words: words.into() }
    }
}

/// Runs every check, or only the checks of one git host. Changes nothing: it applies no migration
/// and creates no folder. Returns `true` when no check failed.
pub async fn doctor(program: &dyn Program, format: Format, host: Option<&str>) -> bool {
    let mut found = Vec::new();
    let (flags, clock) = (program.flags(), program.clock());
    match Config::load(flags, program.kinds()) {
        Ok(config) if host.is_some() => {
            let (findings, stores) = database::checks(&config, &*clock).await;
            match stores {
                Some(stores) => {
                    let hosts = hosts::connect(program, &config, &stores);
                    found.extend(forges::hosts(&hosts, &stores, host).await);
                }
                None => found.extend(findings),
            }
        }
        Ok(config) => {
            found.push(machine::config(flags, &config));
            found.push(machine::data_folder(&config));
            found.push(exposure::user());
            found.push(exposure::files(&config));
            found.push(machine::disk_space(&config));
            found.push(machine::git().await);
            found.extend(network::listeners(&config).await);
            found.push(network::public_url(&config));
            found.push(network::proxies(&config));
            found.extend(network::hsts(&config).await);
            found.push(uploads::check(program, &config).await);
            let (findings, stores) = database::checks(&config, &*clock).await;
            found.extend(findings);
            found.extend(webhook_key::check(program, &config).await);
            if let Some(stores) = stores {
                let hosts = hosts::connect(program, &config, &stores);
                found.push(sandbox::check(&config, &stores).await);
                found.extend(tokens::powers(&stores, clock.now()).await);
                found.extend(queues::check(&config, &stores, &program.policy()).await);
                found.extend(hosts::repositories(&hosts, &stores).await);
                found.extend(effects::failing(&stores, clock.now()).await);
                found.extend(forges::hosts(&hosts, &stores, None).await);
            }
        }
        Err(error) => found.push(Finding::bad("config", error.to_string())),
    }
    let worst = found.iter().map(|it| it.verdict).fold(Verdict::Good, |worst, verdict| {
        match (worst, verdict) {
            (Verdict::Bad, _) | (_, Verdict::Bad) => Verdict::Bad,
            (Verdict::Warning, _) | (_, Verdict::Warning) => Verdict::Warning,
            (Verdict::Good, Verdict::Good) => Verdict::Good,
        }
    });
    if format.is_json() {
        let checks = found.iter().map(
            |it| json!({ "name": it.name, "status": it.verdict.as_str(), "detail": it.words }),
        );
        let report = json!({ "status": worst.as_str(), "checks": checks.collect::<Vec<_>>() });
        say_json(&report);
    } else {
        for Finding { name, verdict, words } in &found {
            say(&format!("{:4} {name}: {words}", verdict.as_str()));
        }
    }
    worst != Verdict::Bad
}
