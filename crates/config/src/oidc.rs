//! Rules for `[oidc]`.

use crate::{Config, ConfigError, Oidc};

/// The rule for the address of an issuer.
pub(super) const ISSUER: &str = "must be an https URL; http is allowed for this machine only";

pub(super) fn is_issuer(text: &str) -> bool {
    let own = |url: &url::Url| matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    url::Url::parse(text)
        .is_ok_and(|url| url.scheme() == "https" || (url.scheme() == "http" && own(&url)))
}

impl Oidc {
    /// Checks these settings together with the others.
    pub(super) fn check(&self, config: &Config) -> Result<(), ConfigError> {
        let must = |good: bool, key: &str, problem: &str| {
            if good { Ok(()) } else { Err(ConfigError::setting(format!("oidc.{key}"), problem)) }
        };
        let known = config.organizations.iter().any(|it| it.slug == self.organization);
        must(known, "organization", "must be one of the organizations")?;
        must(!self.client_id.is_empty(), "client_id", "must not be empty")?;
        must(!self.groups_claim.is_empty(), "groups_claim", "must not be empty")?;
        must(!self.label.is_empty(), "label", "must not be empty")?;
        must(is_issuer(&self.issuer), "issuer", ISSUER)?;
        must(config.server.public_url.is_some(), "issuer", "needs server.public_url")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Organization;

    fn refusal(change: impl FnOnce(&mut Oidc, &mut Config)) -> String {
        let mut config = Config {
            organizations: vec![Organization { slug: "acme".into(), hosts: Vec::new() }],
            ..Config::default()
        };
        config.server.public_url = Some("https://box.example".into());
        let mut oidc = Oidc {
            issuer: "https://id.example".into(),
            client_id: "box".into(),
            client_secret_file: "secret".into(),
            organization: "acme".into(),
            label: "x".into(),
            scopes: Vec::new(),
            groups_claim: "groups".into(),
            allowed_domains: Vec::new(),
            allowed_groups: Vec::new(),
            admin_groups: Vec::new(),
            submitter_groups: Vec::new(),
        };
        change(&mut oidc, &mut config);
        oidc.check(&config).err().map(|it| it.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_provider_that_cannot_be_used_is_refused_at_the_start() {
        assert_eq!(refusal(|_, _| ()), "");
        assert_eq!(refusal(|it, _| it.issuer = "http://localhost:9/x".into()), "");
        for wrong in ["", "id.example", "http://id.example", "ftp://id.example"] {
            let refusal = refusal(|it, _| it.issuer = wrong.into());
            assert!(refusal.starts_with("oidc.issuer: "), "{wrong}");
        }
        assert!(
            refusal(|it, _| it.organization = "other".into()).starts_with("oidc.organization: ")
        );
        assert!(refusal(|it, _| it.client_id = String::new()).starts_with("oidc.client_id: "));
        assert!(refusal(|_, it| it.server.public_url = None).contains("public_url"));
    }
}
