//! What the types of the settings do not say.

use std::collections::BTreeSet;
use std::path::Path;

use reqwest::Url;
use signalbox_domain::ids::{HostId, OrgSlug};

use super::{Config, GitHub, Host, without_password};

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

impl Config {
    /// Says what cannot be right. Organizations can only come from the file.
    pub(super) fn check(&self, file: Option<&Path>) -> Result<(), String> {
        public_url(&self.public_url())?;
        database_url(&self.database_url())?;
        if !LEVELS.contains(&self.log.level.as_str()) {
            let (level, known) = (&self.log.level, LEVELS.join(", "));
            return Err(format!("log.level: {level:?} must be one of {known}"));
        }
        for (key, value, most) in [
            ("upload_mib", self.flaky.upload_mib, 256),
            ("spool_mib", self.flaky.spool_mib, u32::MAX),
            ("keep_bundles_days", self.flaky.keep_bundles_days, 3_650),
            ("keep_uploads_days", self.flaky.keep_uploads_days, 3_650),
            ("readers", self.flaky.readers, 64),
        ] {
            if value == 0 || value > most {
                return Err(format!("flaky.{key}: must be from 1 to {most}, but is {value}"));
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
                return Err(format!("retention.{key}: must be from 1 to 36500, but is {value}"));
            }
        }
        self.telemetry()?;
        self.flaky()?;
        super::uploads::check(self)?;
        super::webhooks::check(&self.webhooks)?;
        if let Some(oidc) = &self.oidc {
            oidc.check(self).map_err(|rule| format!("oidc.{rule}"))?;
        }
        self.organizations().map_err(|words| match file {
            Some(file) => format!("{}: {words}", file.display()),
            None => words,
        })
    }

    fn telemetry(&self) -> Result<(), String> {
        let percent = self.telemetry.sample_percent;
        if percent > 100 {
            return Err(format!("telemetry.sample_percent: {percent} must be from 0 to 100"));
        }
        let Some(url) = &self.telemetry.otlp_endpoint else { return Ok(()) };
        let key = "telemetry.otlp_endpoint";
        let url = Url::parse(url).map_err(|error| format!("{key}: it is no URL: {error}"))?;
        let web = matches!(url.scheme(), "http" | "https") && url.host().is_some();
        if !web || !url.username().is_empty() || url.password().is_some() {
            return Err(format!("{key}: must be http://HOST or https://HOST, without a user"));
        }
        Ok(())
    }

    fn flaky(&self) -> Result<(), String> {
        let days = self.flaky.history_days;
        if !(8..=3_650).contains(&days) {
            return Err(format!("flaky.history_days: {days} must be from 8 to 3650"));
        }
        let Some(url) = &self.flaky.ticket_url else { return Ok(()) };
        let is_web = url.starts_with("https://") || url.starts_with("http://");
        if !is_web || !url.contains("{id}") {
            return Err(format!(
                "flaky.ticket_url: {url:?} must start with https:// and have {{id}} in it"
            ));
        }
        Ok(())
    }

    fn organizations(&self) -> Result<(), String> {
        let mut slugs = BTreeSet::new();
        for (at, organization) in self.organizations.iter().enumerate() {
            let (slug, place) = (&organization.slug, format!("organizations[{at}]"));
            OrgSlug::new(slug.as_str()).map_err(|error| format!("{place}.slug: {error}"))?;
            if !slugs.insert(slug) {
                return Err(format!("{place}.slug: there is another organization {slug:?}"));
            }
            let mut names = BTreeSet::new();
            for (at, host) in organization.hosts.iter().enumerate() {
                let place = format!("{place}.hosts[{at}]");
                let name = host.name();
                let id = HostId::new(name).map_err(|error| format!("{place}.host: {error}"))?;
                if !names.insert(id) {
                    return Err(format!("{place}.host: {slug} has another host {name:?}"));
                }
                let checks = match host {
                    Host::Git { checks, .. } => checks,
                    Host::GitHub(host) => {
                        github(host).map_err(|words| format!("{place}.{words}"))?;
                        continue;
                    }
                };
                for (key, value) in [
                    ("concurrency", checks.concurrency),
                    ("timeout_minutes", checks.timeout_minutes),
                ] {
                    if value == 0 {
                        return Err(format!("{place}.checks.{key}: must be at least 1"));
                    }
                }
            }
        }
        Ok(())
    }
}

fn github(host: &GitHub) -> Result<(), String> {
    match (host.app_id, &host.private_key_file, &host.token_file) {
        (Some(_), Some(_), None) | (None, None, Some(_)) => {}
        (None, None, None) => {
            return Err("app_id: give app_id and private_key_file, or token_file".to_owned());
        }
        (Some(_), None, _) => return Err("private_key_file: app_id needs it".to_owned()),
        (None, Some(_), _) => return Err("app_id: private_key_file needs it".to_owned()),
        (Some(_), Some(_), Some(_)) => {
            return Err("token_file: cannot be given together with app_id".to_owned());
        }
    }
    let is_web = |url: &String| url.starts_with("https://") || url.starts_with("http://");
    if let Some(url) = host.api_url.as_ref().filter(|url| !is_web(url)) {
        return Err(format!("api_url: {url:?} must start with https:// or http://"));
    }
    if let Some(seconds) = host.reread_seconds.filter(|it| !(5..=86_400).contains(it)) {
        return Err(format!("reread_seconds: {seconds} must be between 5 and 86400"));
    }
    let one_word = |word: &&String| word.is_empty() || word.contains(char::is_whitespace);
    if let Some(prefix) = host.command_prefix.as_ref().filter(one_word) {
        return Err(format!("command_prefix: {prefix:?} must be one word"));
    }
    Ok(())
}

fn public_url(text: &str) -> Result<(), String> {
    let wrong = |words: &str| Err(format!("server.public_url: {text:?} {words}"));
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
        Err(error) => wrong(&format!("is no URL: {error}")),
    }
}

fn database_url(text: &str) -> Result<(), String> {
    let known = ["sqlite://", "postgres://", "postgresql://"];
    if known.iter().any(|scheme| text.len() > scheme.len() && text.starts_with(scheme)) {
        return Ok(());
    }
    let shown = without_password(text);
    Err(format!("database.url: {shown:?} must be sqlite://PATH or postgres://USER@HOST/NAME"))
}

#[cfg(test)]
mod tests {
    use super::super::{Checks, Organization};
    use super::*;

    fn refusal(change: impl FnOnce(&mut Config)) -> String {
        let mut config = Config::default();
        change(&mut config);
        config.check(Some(Path::new("signalbox.toml"))).expect_err("refused")
    }

    #[test]
    fn values_that_cannot_be_right_are_refused() {
        for url in ["ftp://h", "h", "http://", "https://h/?a", "https://u:p@h", "https://h/#x"] {
            let words = refusal(|config| config.server.public_url = Some(url.into()));
            assert!(words.starts_with("server.public_url: "), "{words}");
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
        let host = |name: &str, concurrency| Host::Git {
            host: name.into(),
            root: None,
            checks: Checks { concurrency, ..Checks::default() },
        };
        let organization = |slug: &str, hosts| Organization { slug: slug.into(), hosts };
        for (organizations, wanted) in [
            (vec![organization("A b", vec![])], "organizations[0].slug: "),
            (
                vec![organization("a", vec![]), organization("a", vec![])],
                "organizations[1].slug: there is another",
            ),
            (vec![organization("a", vec![host("a b", 1)])], "organizations[0].hosts[0].host: "),
            (
                vec![organization("a", vec![host("h", 1), host("h", 1)])],
                "organizations[0].hosts[1].host: a has another",
            ),
            (
                vec![organization("a", vec![host("h", 0)])],
                "organizations[0].hosts[0].checks.concurrency: ",
            ),
            (
                vec![organization(
                    "a",
                    vec![Host::GitHub(GitHub {
                        host: "github.com".into(),
                        app_id: Some(1),
                        ..GitHub::default()
                    })],
                )],
                "organizations[0].hosts[0].private_key_file: ",
            ),
            (
                vec![organization(
                    "a",
                    vec![Host::GitHub(GitHub { host: "github.com".into(), ..GitHub::default() })],
                )],
                "organizations[0].hosts[0].app_id: ",
            ),
        ] {
            let words = refusal(|config| config.organizations = organizations);
            assert!(words.starts_with(&format!("signalbox.toml: {wanted}")), "{words}");
        }
    }
}
