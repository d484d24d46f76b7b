//! Checks that every waiting pull request has a known wait reason, and whose results excuse checks.

use signalbox_config::Config;
use signalbox_domain::ports::{Loaded, Org, Stores};
use signalbox_domain::queue::{Settings, SharedPolicy, unjustified};
use signalbox_terminal::chain;
use signalbox_wording::settings_warning;

use super::Finding;

/// Checks every stored queue.
pub(super) async fn check(config: &Config, stores: &Stores, policy: &SharedPolicy) -> Vec<Finding> {
    let name = "queues";
    let (keys, orgs) = (stores.queue.queues.list(None, None), stores.account.orgs.list());
    let (keys, orgs) = match (keys.await, orgs.await) {
        (Ok(keys), Ok(orgs)) => (keys, orgs),
        (Err(error), _) | (_, Err(error)) => {
            return vec![Finding::bad(name, chain("queues", &error))];
        }
    };
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
                let voucher = voucher(config, org, &queue.header.settings);
                found.extend(voucher.map(|words| {
                    Finding::warning(name, format!("branch `{}`: {words}", key.branch))
                }));
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

/// What is unsafe, or has no effect, about whose test results have failed checks excused.
fn voucher(config: &Config, org: Option<&Org>, settings: &Settings) -> Option<&'static str> {
    let is_trusted = |org: &Org| config.ci.iter().any(|it| it.organization == org.slug.as_str());
    if settings.evidence_checks.is_empty() {
        None
    } else if !settings.evidence_needs_identity {
        Some(
            "evidenceNeedsIdentity is false: a copy of a token with tests:upload is enough to have \
             a failed check excused; where CI can issue identity tokens, accept them with [[ci]] \
             and set it to true",
        )
    } else if org.is_some_and(|org| !is_trusted(org)) {
        Some(
            "evidenceChecks excuses no check, because no CI can prove its commits: add [[ci]] for \
             the organization, or set evidenceNeedsIdentity to false",
        )
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use signalbox_domain::ids::{OrgId, OrgSlug};
    use signalbox_domain::time::Timestamp;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn results_without_proof_and_without_effect_are_reported() {
        let org = Org {
            id: OrgId(Uuid::nil()),
            slug: OrgSlug::new("acme").expect("a slug"),
            created_at: Timestamp::from_unix_seconds(0),
        };
        let mut config = Config::default();
        let mut settings = Settings::default();
        let found = |config: &Config, settings: &Settings| voucher(config, Some(&org), settings);
        assert_eq!(found(&config, &settings), None, "no check waits for results");
        settings.evidence_checks = vec!["test".into()];
        let words = found(&config, &settings).expect("a warning");
        assert!(words.contains("excuses no check"), "{words}");
        settings.evidence_needs_identity = false;
        let words = found(&config, &settings).expect("a warning");
        assert!(words.contains("a copy of a token"), "{words}");
        settings.evidence_needs_identity = true;
        config.ci.push(signalbox_config::Ci {
            kind: "github-actions".into(),
            issuer: None,
            audience: None,
            organization: "acme".into(),
            host: "github.com".into(),
            repositories: vec!["acme".into()],
        });
        assert_eq!(found(&config, &settings), None);
    }
}
