//! Rules of settings beyond their types.

use std::collections::BTreeSet;
use std::path::Path;

use signalbox_domain::ids::{HostId, OrgSlug};
use signalbox_sandbox::SettingProblem;
use url::Url;

use crate::{Config, ConfigError, without_password};

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

impl Config {
    /// Checks all settings. Organizations can only come from the file.
    pub(super) fn check(&self, file: Option<&Path>) -> Result<(), ConfigError> {
        public_url(&self.public_url())?;
        if let Some(contact) = &self.server.security_contact {
            security_contact(contact)?;
        }
        database_url(&self.database_url())?;
        if !LEVELS.contains(&self.log.level.as_str()) {
            let (level, known) = (&self.log.level, LEVELS.join(", "));
            let problem = format!("{level:?} must be one of {known}");
            return Err(ConfigError::setting("log.level", problem));
        }
        for (key, value, most) in [
            ("upload_mib", self.flaky.upload_mib, 256),
            ("spool_mib", self.flaky.spool_mib, u32::MAX),
            ("keep_bundles_days", self.flaky.keep_bundles_days, 3_650),
            ("keep_uploads_days", self.flaky.keep_uploads_days, 3_650),
            ("readers", self.flaky.readers, 64),
        ] {
            if value == 0 || value > most {
                let problem = format!("must be from 1 to {most}, but is {value}");
                return Err(ConfigError::setting(format!("flaky.{key}"), problem));
            }
        }
        let kept = &self.retention;
        for (key, value) in [
            ("audit_days", kept.audit_days),
            ("journal_days", kept.journal_days),
            ("events_days", kept.events_days),
            ("outputs_days", kept.outputs_days),
        ] {
            if !(1..=36_500).contains(&value) {
                let problem = format!("must be from 1 to 36500, but is {value}");
                return Err(ConfigError::setting(format!("retention.{key}"), problem));
            }
        }
        if let Some(SettingProblem { key, problem }) = self.sandbox.problem() {
            return Err(ConfigError::setting(format!("sandbox.{key}"), problem));
        }
        self.telemetry()?;
        self.flaky()?;
        super::uploads::check(self)?;
        self.server.proxies()?;
        super::webhooks::check(&self.webhooks)?;
        if let Some(oidc) = &self.oidc {
            oidc.check(self)?;
        }
        self.ci_systems()?;
        self.organizations().map_err(|error| match file {
            Some(file) => error.at(&file.display().to_string()),
            None => error,
        })
    }

    fn telemetry(&self) -> Result<(), ConfigError> {
        let percent = self.telemetry.sample_percent;
        if percent > 100 {
            let problem = format!("{percent} must be from 0 to 100");
            return Err(ConfigError::setting("telemetry.sample_percent", problem));
        }
        let Some(url) = &self.telemetry.otlp_endpoint else { return Ok(()) };
        let key = "telemetry.otlp_endpoint";
        let url = Url::parse(url)
            .map_err(|error| ConfigError::setting(key, format!("invalid URL: {error}")))?;
        let web = matches!(url.scheme(), "http" | "https") && url.host().is_some();
        if !web || !url.username().is_empty() || url.password().is_some() {
            let problem = "must be http://HOST or https://HOST, without a user";
            return Err(ConfigError::setting(key, problem));
        }
        Ok(())
    }

    fn flaky(&self) -> Result<(), ConfigError> {
        let days = self.flaky.history_days;
        if !(8..=3_650).contains(&days) {
            let problem = format!("{days} must be from 8 to 3650");
            return Err(ConfigError::setting("flaky.history_days", problem));
        }
        let Some(url) = &self.flaky.ticket_url else { return Ok(()) };
        let is_web = url.starts_with("https://") || url.starts_with("http://");
        if !is_web || !url.contains("{id}") {
            let problem = format!("{url:?} must start with https:// and contain {{id}}");
            return Err(ConfigError::setting("flaky.ticket_url", problem));
        }
        Ok(())
    }

    fn organizations(&self) -> Result<(), ConfigError> {
        let mut slugs = BTreeSet::new();
        for (at, organization) in self.organizations.iter().enumerate() {
            let (slug, place) = (&organization.slug, format!("organizations[{at}]"));
            let wrong = |key: &str, problem: String| {
                Err(ConfigError::setting(format!("{place}.{key}"), problem))
            };
            if let Err(error) = OrgSlug::new(slug.as_str()) {
                return wrong("slug", error.to_string());
            }
            if !slugs.insert(slug) {
                return wrong("slug", format!("duplicate slug {slug:?}"));
            }
            let mut names = BTreeSet::new();
            for (at, host) in organization.hosts.iter().enumerate() {
                let (name, key) = (host.name(), format!("hosts[{at}].host"));
                match HostId::new(name) {
                    Err(error) => return wrong(&key, error.to_string()),
                    Ok(id) => {
                        if !names.insert(id) {
                            return wrong(
                                &key,
                                format!("duplicate host {name:?} in organization {slug}"),
                            );
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

fn public_url(text: &str) -> Result<(), ConfigError> {
    let wrong = |problem: &str| {
        Err(ConfigError::setting("server.public_url", format!("{text:?} {problem}")))
    };
    match Url::parse(text) {
        Ok(url) if !matches!(url.scheme(), "http" | "https") => {
            wrong("must start with http:// or https://")
        }
        Ok(url) if url.query().is_some() || url.fragment().is_some() => {
            wrong("must end before '?' and '#'")
        }
        Ok(url) if !url.username().is_empty() || url.password().is_some() => {
            wrong("must not name a user")
        }
        Ok(_) => Ok(()),
        Err(error) => wrong(&format!("invalid URL: {error}")),
    }
}

/// A contact by RFC 9116. It becomes a line of `security.txt`, so it has no white space.
fn security_contact(text: &str) -> Result<(), ConfigError> {
    let url = Url::parse(text).ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_graphic()));
    let is_contact = url.is_some_and(|url| match url.scheme() {
        "mailto" => url.path().split_once('@').is_some_and(|(user, host)| {
            !user.is_empty() && !host.is_empty() && !host.contains('@')
        }),
        "https" => url.username().is_empty() && url.password().is_none(),
        _ => false,
    });
    if is_contact {
        return Ok(());
    }
    let problem = format!("{text:?} must be mailto:USER@HOST or an https:// address");
    Err(ConfigError::setting("server.security_contact", problem))
}

fn database_url(text: &str) -> Result<(), ConfigError> {
    let known = ["sqlite://", "postgres://", "postgresql://"];
    if known.iter().any(|scheme| text.len() > scheme.len() && text.starts_with(scheme)) {
        return Ok(());
    }
    let shown = without_password(text);
    let problem = format!("{shown:?} must be sqlite://PATH or postgres://USER@HOST/NAME");
    Err(ConfigError::setting("database.url", problem))
}

#[cfg(test)]
mod tests {
    use signalbox_hosts::Table;

    use super::*;
    use crate::{Host, Organization};

    fn refusal(change: impl FnOnce(&mut Config)) -> String {
        let mut config = Config::default();
        change(&mut config);
        config.check(Some(Path::new("signalbox.toml"))).expect_err("refused").to_string()
    }

    #[test]
    fn values_that_cannot_be_right_are_refused() {
        for url in ["ftp://h", "h", "http://", "https://h/?a", "https://u:p@h", "https://h/#x"] {
            let words = refusal(|config| config.server.public_url = Some(url.into()));
            assert!(words.starts_with("server.public_url: "), "{words}");
        }
        for contact in [
            "",
            "security@example.org",
            "mailto:",
            "mailto:security",
            "mailto:@example.org",
            "mailto:a@b@c",
            "http://example.org/security",
            "https://",
            "https://u:p@example.org/",
            "javascript:alert(1)",
            "mailto:a@b\nExpires: 2000-01-01T00:00:00Z",
            "https://example.org/a b",
        ] {
            let words = refusal(|config| config.server.security_contact = Some(contact.into()));
            assert!(words.starts_with("server.security_contact: "), "{contact:?}: {words}");
        }
        for contact in ["mailto:security@example.org", "https://example.org/security"] {
            let mut config = Config::default();
            config.server.security_contact = Some(contact.into());
            config.check(None).expect("valid");
        }
        for url in ["mysql://h/d", "sqlite://", "file.db"] {
            let words = refusal(|config| config.database.url = Some(url.into()));
            assert!(words.starts_with("database.url: "), "{words}");
        }
        let words = refusal(|config| config.flaky.keep_bundles_days = 0);
        assert!(words.starts_with("flaky.keep_bundles_days: "), "{words}");
        let words = refusal(|config| config.flaky.upload_mib = 257);
        assert_eq!(words, "flaky.upload_mib: must be from 1 to 256, but is 257");
        for url in ["https://tickets.example/", "javascript:{id}"] {
            let words = refusal(|config| config.flaky.ticket_url = Some(url.into()));
            assert!(words.starts_with("flaky.ticket_url: "), "{words}");
        }
        for days in [0, 7, 3_651] {
            let words = refusal(|config| config.flaky.history_days = days);
            assert!(words.starts_with("flaky.history_days: "), "{words}");
        }
        let words = refusal(|config| config.log.level = "loud".into());
        assert!(words.starts_with("log.level: "), "{words}");
    }

    #[test]
    fn organizations_and_hosts_are_checked_where_they_stand() {
        let host = |name: &str| Host(Table::from_iter([("host".to_owned(), name.into())]));
        let organization = |slug: &str, hosts| Organization { slug: slug.into(), hosts };
        for (organizations, wanted) in [
            (vec![organization("A b", vec![])], "organizations[0].slug: "),
            (
                vec![organization("a", vec![]), organization("a", vec![])],
                "organizations[1].slug: duplicate slug \"a\"",
            ),
            (vec![organization("a", vec![host("a b")])], "organizations[0].hosts[0].host: "),
            (
                vec![organization("a", vec![host("h"), host("h")])],
                "organizations[0].hosts[1].host: duplicate host",
            ),
        ] {
            let words = refusal(|config| config.organizations = organizations);
            assert!(words.starts_with(&format!("signalbox.toml: {wanted}")), "{words}");
        }
    }
}
