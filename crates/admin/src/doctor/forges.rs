//! Checks code hosts such as GitHub with the configured credentials: permissions, events, and
//! whether refs can be written.

use signalbox_domain::ids::OrgSlug;
use signalbox_domain::ports::{Finding as Seen, Repository, Severity, Stores};
use signalbox_terminal::causes;

use super::Finding;
use super::hosts::{Connections, Tried};
use crate::AdminError;

/// Checks every code host, or only the one with that name.
pub(super) async fn hosts(
    hosts: &Connections,
    stores: &Stores,
    only: Option<&str>,
) -> Vec<Finding> {
    let mut found = Vec::new();
    for Tried { slug, host, connected } in &hosts.configured {
        if only.is_some_and(|only| only != host) {
            continue;
        }
        let forge = match connected {
            Ok(connected) => connected.forge.as_ref().map(Ok),
            Err(error) => Some(Err(error)),
        };
        let Some(forge) = forge else { continue };
        match (repositories(stores, slug, host).await, forge) {
            (Ok(listed), Ok(forge)) => {
                found.extend(forge.diagnose(&listed).await.iter().map(|it| shown(host, it)));
            }
            (Ok(_), Err(error)) => found.push(Finding::bad("host", error.to_string())),
            (Err(error), _) => found.push(Finding::bad("host", causes(&error))),
        }
    }
    if let Some(only) = only.filter(|_| found.is_empty()) {
        let words = format!("unknown host {only:?}: expected a configured host with credentials");
        found.push(Finding::bad("host", words));
    }
    found
}

async fn repositories(
    stores: &Stores,
    slug: &str,
    host: &str,
) -> Result<Vec<Repository>, AdminError> {
    let slug = OrgSlug::new(slug)?;
    let org = stores
        .account
        .orgs
        .find_by_slug(&slug)
        .await
        .map_err(AdminError::failed("organizations"))?;
    let Some(org) = org else { return Ok(Vec::new()) };
    let listed = stores.account.repos.list(Some(org.id)).await;
    let listed = listed.map_err(AdminError::failed("repositories"))?;
    Ok(listed.into_iter().filter(|it| it.name.host.as_str() == host).collect())
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
