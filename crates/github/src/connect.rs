//! A GitHub host from its settings: `kind = "github"`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use signalbox_domain::time::Span;
use signalbox_hosts::{
    ConnectError, ConnectedHost, HostKind, HostParts, HostSettings, SettingError, Table,
};

use crate::{Credentials, CredentialsError, GitHubChecks, GitHubConfig, GitHubHost, Verify};

/// GitHub and GitHub Enterprise as a kind of host.
pub const KIND: HostKind =
    HostKind { kind: "github", read, example, unconfigured: None, helper: None, recomputer: None };

/// Candidates whose checks are followed at the same time.
const FOLLOWED: usize = 256;

/// The settings of one host. Either an app with its key, or a token.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// The name by which clients call it: `github.com`.
    host: String,
    /// The URL of the API; default: derived from the host.
    api_url: Option<String>,
    /// The number of the GitHub App.
    app_id: Option<u64>,
    /// The file with the app's private key, in PEM form.
    private_key_file: Option<PathBuf>,
    /// The file with a personal token, instead of an app.
    token_file: Option<PathBuf>,
    /// The file with the webhook secret: one line, or two while the secret is changed.
    webhook_secret_file: Option<PathBuf>,
    /// Seconds after which the host is read again for changes that it has not reported, from 5 to
    /// 86,400; default: 600 with a webhook secret and 60 without.
    reread_seconds: Option<u32>,
    /// The prefix of commands in comments; default: `/signalbox`.
    command_prefix: Option<String>,
    /// Whether candidates are checked to be their base with the changes of their pull requests:
    /// `diff`, `local` or `off`; default: `diff`. `local` keeps mirrors of the repositories below
    /// `checks` in the server's `data_dir`.
    verify: Option<Verify>,
    /// Whether writes are kept below the limits that GitHub publishes beside the quota; default: `true`
    /// for the API of github.com and ghe.com, `false` for others, whose limits are off by default.
    pace_writes: Option<bool>,
}

fn read(table: Table) -> Result<Arc<dyn HostSettings>, SettingError> {
    let settings: Settings = signalbox_hosts::parse(table)?;
    check(&settings)?;
    Ok(Arc::new(settings))
}

fn example() -> Table {
    signalbox_hosts::table(&Settings {
        host: "github.com".into(),
        api_url: Some("https://api.github.com".into()),
        app_id: Some(12_345),
        private_key_file: Some(PathBuf::from("/etc/signalbox/github-app.pem")),
        token_file: None,
        webhook_secret_file: Some(PathBuf::from("/etc/signalbox/github-webhook")),
        reread_seconds: Some(600),
        command_prefix: Some("/signalbox".into()),
        verify: Some(Verify::Diff),
        pace_writes: Some(true),
    })
}

fn check(settings: &Settings) -> Result<(), SettingError> {
    let wrong = |key: &str, problem: &str| Err(SettingError::new(key, problem));
    match (settings.app_id, &settings.private_key_file, &settings.token_file) {
        (Some(_), Some(_), None) | (None, None, Some(_)) => {}
        (None, None, None) => {
            return wrong("app_id", "set app_id and private_key_file, or token_file");
        }
        (Some(_), None, _) => return wrong("private_key_file", "required with app_id"),
        (None, Some(_), _) => return wrong("app_id", "required with private_key_file"),
        (Some(_), Some(_), Some(_)) => {
            return wrong("token_file", "not allowed together with app_id");
        }
    }
    let is_web = |url: &String| url.starts_with("https://") || url.starts_with("http://");
    if let Some(url) = settings.api_url.as_ref().filter(|url| !is_web(url)) {
        return wrong("api_url", &format!("{url:?} must start with https:// or http://"));
    }
    if let Some(seconds) = settings.reread_seconds.filter(|it| !(5..=86_400).contains(it)) {
        return wrong("reread_seconds", &format!("{seconds} must be between 5 and 86400"));
    }
    let one_word = |word: &&String| word.is_empty() || word.contains(char::is_whitespace);
    if let Some(prefix) = settings.command_prefix.as_ref().filter(one_word) {
        return wrong("command_prefix", &format!("{prefix:?} must be one word"));
    }
    Ok(())
}

impl HostSettings for Settings {
    fn table(&self) -> Table {
        signalbox_hosts::table(self)
    }

    fn connect(&self, parts: HostParts) -> Result<ConnectedHost, ConnectError> {
        // The only TLS provider of this process; another part may have installed it already.
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let reread_after = Span::seconds(self.reread_seconds());
        let api_url = self.api_url.clone().unwrap_or_else(|| api_url(&self.host));
        let config = GitHubConfig {
            host: self.host.clone(),
            pace_writes: self.pace_writes.unwrap_or_else(|| has_published_limits(&api_url)),
            api_url,
            credentials: self.credentials()?,
            credentials_file: self
                .private_key_file
                .clone()
                .filter(|_| self.app_id.is_some())
                .or_else(|| self.token_file.clone()),
            webhook_secrets: self.secrets()?,
            reread_after,
            command_prefix: self.command_prefix.clone().unwrap_or_else(|| "/signalbox".to_owned()),
            public_url: parts.public_url,
            verify: self.verify.unwrap_or_default(),
        };
        let mut host =
            GitHubHost::new(config, parts.clock).map_err(|error| self.failed(error.to_string()))?;
        if let Some(recomputer) = parts.recomputer {
            host = host.recomputing(recomputer, parts.folder.join("mirrors"));
        }
        let host = Arc::new(host);
        Ok(ConnectedHost {
            git: host.clone(),
            checks: Arc::new(GitHubChecks::new(host.clone())),
            concurrent_checks: FOLLOWED,
            forge: Some(host.clone()),
            decoder: Some(host),
            local: None,
            reread_after: Some(reread_after),
        })
    }
}

impl Settings {
    fn credentials(&self) -> Result<Credentials, ConnectError> {
        let unfit = |file: &Path, error: CredentialsError| self.of_file(file, &error);
        match (self.app_id, &self.private_key_file, &self.token_file) {
            (Some(id), Some(file), _) => {
                Credentials::app(id, &self.bytes(file)?).map_err(|error| unfit(file, error))
            }
            (_, _, Some(file)) => {
                Credentials::token(&self.text(file)?).map_err(|error| unfit(file, error))
            }
            (_, _, None) => {
                Err(self.failed("set app_id and private_key_file, or token_file".to_owned()))
            }
        }
    }

    /// The secrets that deliveries may be signed with, one a line.
    fn secrets(&self) -> Result<Vec<String>, ConnectError> {
        let Some(file) = &self.webhook_secret_file else { return Ok(Vec::new()) };
        let text = self.text(file)?;
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let secrets: Vec<String> = lines.map(ToOwned::to_owned).collect();
        if secrets.is_empty() || secrets.len() > 2 {
            return Err(self.of_file(file, &"must contain one or two secrets"));
        }
        Ok(secrets)
    }

    fn bytes(&self, file: &Path) -> Result<Vec<u8>, ConnectError> {
        std::fs::read(file).map_err(|error| self.of_file(file, &error))
    }

    fn text(&self, file: &Path) -> Result<String, ConnectError> {
        String::from_utf8(self.bytes(file)?).map_err(|_| self.of_file(file, &"not UTF-8"))
    }

    /// An error that names the file, never its content.
    fn of_file(&self, file: &Path, problem: &dyn std::fmt::Display) -> ConnectError {
        self.failed(format!("{}: {problem}", file.display()))
    }

    fn failed(&self, problem: String) -> ConnectError {
        ConnectError { host: self.host.clone(), problem }
    }

    fn reread_seconds(&self) -> u32 {
        let reports = self.webhook_secret_file.is_some();
        self.reread_seconds.unwrap_or(if reports { 600 } else { 60 })
    }
}

/// Where the API of a host is: on a name of its own, or below the Enterprise server's.
fn api_url(host: &str) -> String {
    if host == "github.com" {
        return "https://api.github.com".to_owned();
    }
    format!("https://{host}/api/v3")
}

/// Whether GitHub itself runs an API, and publishes its limits.
fn has_published_limits(api_url: &str) -> bool {
    let url = url::Url::parse(api_url).ok();
    let host = url.as_ref().and_then(url::Url::host_str).unwrap_or_default();
    host == "api.github.com" || host.ends_with(".ghe.com")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_is_where_the_host_has_it() {
        assert_eq!(api_url("github.com"), "https://api.github.com");
        assert_eq!(api_url("git.acme.example"), "https://git.acme.example/api/v3");
    }

    #[test]
    fn writes_are_paced_where_limits_are_published() {
        for (url, is_paced) in [
            ("https://api.github.com", true),
            ("https://API.github.com/", true),
            ("https://api.acme.ghe.com", true),
            ("https://git.acme.example/api/v3", false),
            ("https://api.github.com.evil.example", false),
            ("http://127.0.0.1:3000", false),
        ] {
            assert_eq!(has_published_limits(url), is_paced, "{url}");
        }
    }

    #[test]
    fn an_app_with_its_key_or_a_token_is_needed_and_not_both() {
        let refusal = |text: &str| {
            let table: Table = format!("host = \"github.com\"\n{text}").parse().expect("TOML");
            read(table).err().map(|it| it.key).unwrap_or_default()
        };
        assert_eq!(refusal("token_file = \"t\""), "");
        assert_eq!(refusal("app_id = 1\nprivate_key_file = \"k\""), "");
        assert_eq!(refusal(""), "app_id");
        assert_eq!(refusal("app_id = 1"), "private_key_file");
        assert_eq!(refusal("private_key_file = \"k\""), "app_id");
        assert_eq!(
            refusal("app_id = 1\nprivate_key_file = \"k\"\ntoken_file = \"t\""),
            "token_file"
        );
        assert_eq!(refusal("token_file = \"t\"\nreread_seconds = 4"), "reread_seconds");
        assert_eq!(refusal("token_file = \"t\"\ncommand_prefix = \"a b\""), "command_prefix");
    }
}
