//! Hosts with people on them, tried with the operator's own credentials: permissions, events,
//! whether refs can be written.

use std::sync::Arc;

use signalbox_domain::ids::OrgSlug;
use signalbox_domain::ports::{Finding as Seen, Forge as _, Repository, Severity, Stores};

use super::Finding;
use crate::adapters::SystemClock;
use crate::config::{Config, GitHub as Settings, Host};
use crate::github::GitHub;
use crate::wiring::chain;

/// Tries every such host, or the one of that name.
pub(super) async fn hosts(config: &Config, stores: &Stores, only: Option<&str>) -> Vec<Finding> {
    let mut found = Vec::new();
    for organization in &config.organizations {
        for host in &organization.hosts {
            let Host::GitHub(settings) = host else { continue };
            if only.is_some_and(|only| only != settings.host) {
                continue;
            }
            match repositories(stores, &organization.slug, &settings.host).await {
                Ok(listed) => found.extend(tried(config, settings, &listed).await),
                Err(words) => found.push(Finding::bad("host", words)),
            }
        }
    }
    if let Some(only) = only.filter(|_| found.is_empty()) {
        found.push(Finding::bad("host", format!("{only} is no host with kind = \"github\"")));
    }
    found
}

async fn repositories(stores: &Stores, slug: &str, host: &str) -> Result<Vec<Repository>, String> {
    let slug = OrgSlug::new(slug).map_err(|error| error.to_string())?;
    let org = stores.orgs.find_by_slug(&slug).await.map_err(|it| chain("organizations", &it))?;
    let Some(org) = org else { return Ok(Vec::new()) };
    let listed = stores.repos.list(Some(org.id)).await;
    let listed = listed.map_err(|error| chain("repositories", &error))?;
    Ok(listed.into_iter().filter(|it| it.name.host.as_str() == host).collect())
}

async fn tried(config: &Config, settings: &Settings, listed: &[Repository]) -> Vec<Finding> {
    match GitHub::new(settings, config.public_url(), Arc::new(SystemClock)) {
        Ok(github) => {
            let seen = github.host.diagnose(listed).await;
            seen.iter().map(|it| shown(&settings.host, it)).collect()
        }
        Err(words) => vec![Finding::bad("host", words)],
    }
}

fn shown(host: &str, seen: &Seen) -> Finding {
    let advice = if seen.fix.is_empty() { String::new() } else { format!(": {}", seen.fix) };
    let words = format!("{host}: {}: {}{advice}", seen.id, seen.sentence);
    match seen.severity {
        Severity::Fine => Finding::good("host", words),
        Severity::Warning => Finding::warning("host", words),
        Severity::Problem => Finding::bad("host", words),
    }
}
