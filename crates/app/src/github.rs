//! A host with `kind = "github"`, from its settings.

use std::path::Path;
use std::sync::Arc;

use signalbox_domain::ports::Clock;
use signalbox_domain::time::Span;
use signalbox_github::{Credentials, GitHubChecks, GitHubConfig, GitHubHost};

use crate::config::GitHub as Settings;

/// A host, and what follows its checks.
pub(crate) struct GitHub {
    pub(crate) host: Arc<GitHubHost>,
    pub(crate) checks: Arc<GitHubChecks>,
}

impl GitHub {
    /// Reads the secrets' files; the complaint names the file, never its content.
    pub(crate) fn new(
        settings: &Settings,
        public_url: String,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, String> {
        // The only TLS provider of this process; somebody may have installed it already.
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let name = &settings.host;
        let config = GitHubConfig {
            host: name.clone(),
            api_url: settings.api_url.clone().unwrap_or_else(|| api_url(name)),
            credentials: credentials(settings).map_err(|words| format!("{name}: {words}"))?,
            credentials_file: settings
                .private_key_file
                .clone()
                .filter(|_| settings.app_id.is_some())
                .or_else(|| settings.token_file.clone()),
            webhook_secrets: match &settings.webhook_secret_file {
                Some(file) => secrets(file).map_err(|words| format!("{name}: {words}"))?,
                None => Vec::new(),
            },
            reread_after: Span::seconds(settings.reread_seconds()),
            command_prefix: settings
                .command_prefix
                .clone()
                .unwrap_or_else(|| "/signalbox".to_owned()),
            public_url,
        };
        let host = GitHubHost::new(config, clock).map_err(|error| format!("{name}: {error}"))?;
        let host = Arc::new(host);
        Ok(Self { checks: Arc::new(GitHubChecks::new(host.clone())), host })
    }
}

/// Where the API of a host is: on a name of its own, or below the Enterprise server's.
fn api_url(host: &str) -> String {
    if host == "github.com" {
        return "https://api.github.com".to_owned();
    }
    format!("https://{host}/api/v3")
}

fn credentials(settings: &Settings) -> Result<Credentials, String> {
    match (settings.app_id, &settings.private_key_file, &settings.token_file) {
        (Some(id), Some(file), _) => Credentials::app(id, &read(file)?)
            .map_err(|error| format!("{}: {error}", file.display())),
        (_, _, Some(file)) => {
            let text = text(file)?;
            Credentials::token(&text).map_err(|error| format!("{}: {error}", file.display()))
        }
        (_, _, None) => Err("give app_id and private_key_file, or token_file".to_owned()),
    }
}

/// One secret a line.
fn secrets(file: &Path) -> Result<Vec<String>, String> {
    let text = text(file)?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let secrets: Vec<String> = lines.map(ToOwned::to_owned).collect();
    if secrets.is_empty() || secrets.len() > 2 {
        return Err(format!("{}: there must be one secret, or two", file.display()));
    }
    Ok(secrets)
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))
}

fn text(file: &Path) -> Result<String, String> {
    String::from_utf8(read(file)?).map_err(|_| format!("{}: it is not UTF-8", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_is_where_the_host_has_it() {
        assert_eq!(api_url("github.com"), "https://api.github.com");
        assert_eq!(api_url("git.acme.example"), "https://git.acme.example/api/v3");
    }
}
