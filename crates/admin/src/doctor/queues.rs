//! Checks that every waiting pull request has a known wait reason, and which uploads can excuse a
//! failed check.

use signalbox_config::Config;
use signalbox_domain::identity::CiSystem;
use signalbox_domain::ids::RepoName;
use signalbox_domain::ports::{Loaded, Org, StoreError, Stores};
use signalbox_domain::queue::{Settings, SharedPolicy, unjustified};
use signalbox_terminal::chain;
use signalbox_wording::settings_warning;

use super::Finding;

/// Checks every stored queue.
pub(super) async fn check(config: &Config, stores: &Stores, policy: &SharedPolicy) -> Vec<Finding> {
    let name = "queues";
    let read = async {
        let account = &stores.account;
        let keys = stores.queue.queues.list(None, None).await?;
        Ok::<_, StoreError>((keys, account.orgs.list().await?, account.repos.list(None).await?))
    };
    let (keys, orgs, repos) = match read.await {
        Ok(read) => read,
        Err(error) => return vec![Finding::bad(name, chain("queues", &error))],
    };
    // A problem of theirs is reported with the configuration.
    let trusted = config.ci_systems().unwrap_or_default();
    let mut found = Vec::new();
    for key in &keys {
        match stores.queue.queues.load(key.queue, None).await {
            Ok(Some(Loaded::Fresh(queue, _))) => {
                let queue = queue.with_policy(policy.clone());
                found.extend(unjustified(&queue).into_iter().map(|(pr, why)| {
                    let words = format!(
                        "branch `{}`: #{pr} waits for no known reason; please report this: {why}",
                        key.branch
                    );
                    Finding::warning(name, words)
                }));
                found.extend(queue.header.settings.warnings().into_iter().map(|warning| {
                    let warning = settings_warning(warning);
                    Finding::warning(name, format!("branch `{}`: {warning}", key.branch))
                }));
                let org = orgs.iter().find(|it| it.id == key.queue.org);
                let repo = repos.iter().find(|it| it.id == key.repo);
                if let Some((org, repo)) = org.zip(repo) {
                    let is_trusted = trusted.iter().any(|it| trusts(it, org, &repo.name));
                    let warning = identity_warning(is_trusted, &queue.header.settings);
                    found.extend(warning.map(|words| {
                        let queue = format!("{}, branch `{}`", repo.name, key.branch);
                        Finding::warning(name, format!("{queue}: {words}"))
                    }));
                }
            }
            Ok(Some(Loaded::Current) | None) => {}
            Err(error) => found.push(Finding::bad(name, chain("a queue", &error))),
        }
    }
    if found.is_empty() {
        found.push(Finding::good(
            name,
            format!("every wait in {} queues has a known reason", keys.len()),
        ));
    }
    found
}

/// Whether a CI system can prove the commits of a repository's jobs.
fn trusts(ci: &CiSystem, org: &Org, repo: &RepoName) -> bool {
    ci.org == org.slug
        && ci.host == repo.host
        && ci.accepts(&format!("{}/{}", repo.owner, repo.name))
}

/// The problem with `evidenceChecks` and `evidenceNeedsIdentity`, if there is one.
fn identity_warning(is_trusted: bool, settings: &Settings) -> Option<&'static str> {
    if settings.evidence_checks.is_empty() {
        None
    } else if !settings.evidence_needs_identity {
        Some(
            "evidenceNeedsIdentity is false: a copy of a token with tests:upload is enough to have \
             a failed check excused; where CI can issue identity tokens, accept them with [[ci]] \
             and set it to true",
        )
    } else if !is_trusted {
        Some(
            "evidenceChecks excuses no check, because no CI can prove its commits: add [[ci]] for \
             the repository, or set evidenceNeedsIdentity to false",
        )
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use signalbox_domain::identity::CiKind;
    use signalbox_domain::ids::{HostId, OrgId, OrgSlug};
    use signalbox_domain::time::Timestamp;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn results_without_proof_and_without_effect_are_reported() {
        let mut settings = Settings::default();
        assert_eq!(identity_warning(false, &settings), None, "no check waits for results");
        settings.evidence_checks = vec!["test".into()];
        let words = identity_warning(false, &settings).expect("a warning");
        assert!(words.contains("excuses no check"), "{words}");
        assert_eq!(identity_warning(true, &settings), None);
        settings.evidence_needs_identity = false;
        let words = identity_warning(true, &settings).expect("a warning");
        assert!(words.contains("a copy of a token"), "{words}");
    }

    #[test]
    fn a_ci_system_proves_commits_of_its_own_repositories_only() {
        let slug = |text: &str| OrgSlug::new(text).expect("a slug");
        let ci = CiSystem {
            kind: CiKind::Actions,
            issuer: "https://ci.example".into(),
            audience: "https://signalbox.example".into(),
            org: slug("acme"),
            host: HostId::new("github.com").expect("a host"),
            repositories: vec!["Acme".into(), "other/calc".into()],
        };
        let trusts = |org: &str, repo: &str| {
            let (id, created_at) = (OrgId(Uuid::nil()), Timestamp::from_unix_seconds(0));
            let org = Org { id, slug: slug(org), created_at };
            trusts(&ci, &org, &RepoName::parse(repo).expect("a name"))
        };
        assert!(trusts("acme", "github.com/acme/calc") && trusts("acme", "github.com/other/calc"));
        assert!(
            !trusts("acme", "github.com/other/shop") && !trusts("acme", "gitlab.com/acme/calc")
        );
        assert!(!trusts("other", "github.com/acme/calc"));
    }
}
