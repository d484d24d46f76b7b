//! Rules for `[[ci]]`.

use signalbox_domain::identity::{CiKind, CiSystem};
use signalbox_domain::ids::{HostId, OrgSlug};

use crate::oidc::{ISSUER, is_issuer};
use crate::{Ci, Config, ConfigError};

impl Config {
    /// The CI systems whose jobs are accepted.
    pub fn ci_systems(&self) -> Result<Vec<CiSystem>, ConfigError> {
        self.ci.iter().map(|ci| ci.system(self)).collect()
    }
}

fn problem(key: &str, problem: &str) -> ConfigError {
    ConfigError::setting(format!("ci.{key}"), problem)
}

impl Ci {
    /// Checks these settings together with the others.
    fn system(&self, config: &Config) -> Result<CiSystem, ConfigError> {
        let kind = CiKind::parse(&self.kind).ok_or_else(|| {
            problem("kind", &format!("must be one of {}", CiKind::NAMES.join(", ")))
        })?;
        let issuer = self.issuer.as_deref().unwrap_or(match kind {
            CiKind::Actions => "https://token.actions.githubusercontent.com",
            CiKind::Pipelines => "https://gitlab.com",
        });
        if !is_issuer(issuer) {
            return Err(problem("issuer", ISSUER));
        }
        // Clients name the server without a slash at its end.
        let own = config.server.public_url.as_deref().map(|url| url.trim_end_matches('/'));
        let audience = self.audience.as_deref().or(own).filter(|it| !it.is_empty());
        let audience = audience.map(ToOwned::to_owned).ok_or_else(|| {
            problem("audience", "must not be empty; its default is server.public_url")
        })?;
        if !config.organizations.iter().any(|it| it.slug == self.organization) {
            return Err(problem("organization", "must be one of the organizations"));
        }
        let org = OrgSlug::new(self.organization.as_str())
            .map_err(|error| problem("organization", &error.to_string()))?;
        let host =
            HostId::new(self.host.as_str()).map_err(|error| problem("host", &error.to_string()))?;
        // A public CI system issues tokens to the jobs of every user.
        let is_path =
            |path: &String| path.split('/').all(|part| !part.is_empty() && !part.contains('*'));
        if self.repositories.is_empty() || !self.repositories.iter().all(is_path) {
            return Err(problem("repositories", "must have owners, or repositories as owner/name"));
        }
        let (issuer, repositories) = (issuer.to_owned(), self.repositories.clone());
        Ok(CiSystem { kind, issuer, audience, org, host, repositories })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Organization;

    fn read(change: impl FnOnce(&mut Ci, &mut Config)) -> Result<CiSystem, ConfigError> {
        let mut config = Config {
            organizations: vec![Organization { slug: "acme".into(), hosts: Vec::new() }],
            ..Config::default()
        };
        config.server.public_url = Some("https://box.example/".into());
        let mut ci = Ci {
            kind: "github-actions".into(),
            issuer: None,
            audience: None,
            organization: "acme".into(),
            host: "github.com".into(),
            repositories: vec!["acme".into(), "other/calc".into()],
        };
        change(&mut ci, &mut config);
        ci.system(&config)
    }

    fn refusal(change: impl FnOnce(&mut Ci, &mut Config)) -> String {
        read(change).err().map(|it| it.to_string()).unwrap_or_default()
    }

    #[test]
    fn the_audience_is_the_server_unless_another_is_given() {
        let audience = |change: fn(&mut Ci, &mut Config)| read(change).expect("good").audience;
        assert_eq!(audience(|_, _| ()), "https://box.example");
        assert_eq!(audience(|it, _| it.audience = Some("box/".into())), "box/");
    }

    #[test]
    fn a_ci_system_that_every_user_could_use_is_refused_at_the_start() {
        assert_eq!(refusal(|_, _| ()), "");
        assert_eq!(refusal(|it, _| it.issuer = Some("http://127.0.0.1:9".into())), "");
        let refused = |change: fn(&mut Ci, &mut Config), key: &str| {
            let refusal = refusal(change);
            assert!(refusal.starts_with(&format!("ci.{key}: ")), "{key}: {refusal}");
        };
        refused(|it, _| it.issuer = Some("http://ci.example".into()), "issuer");
        refused(|it, _| it.kind = "bamboo".into(), "kind");
        refused(|it, _| it.organization = "other".into(), "organization");
        refused(|it, _| it.host = "no host".into(), "host");
        refused(|_, config| config.server.public_url = None, "audience");
        refused(|it, _| it.repositories.clear(), "repositories");
        refused(|it, _| it.repositories = vec!["*".into()], "repositories");
        refused(|it, _| it.repositories = vec!["acme/".into()], "repositories");
    }
}
