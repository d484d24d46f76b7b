//! All settings, with their defaults.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use signalbox_hosts::{Kinds, Table};
use signalbox_sandbox::SandboxSettings;
use toml::Value;
use url::Url;

use crate::{ConfigError, Uploads, without_password};

/// All settings.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The folder for the embedded database and for checkouts.
    pub data_dir: Option<PathBuf>,
    /// The HTTP server.
    pub server: Server,
    /// The database.
    pub database: Database,
    /// Logs.
    pub log: Log,
    /// Traces.
    pub telemetry: Telemetry,
    /// How checks run on this machine.
    pub sandbox: SandboxSettings,
    /// How long records are kept.
    pub retention: Retention,
    /// Test results and flaky tests.
    pub flaky: Flaky,
    /// The store of uploads.
    pub uploads: Uploads,
    /// The web pages.
    pub pages: Pages,
    /// Webhooks.
    pub webhooks: Webhooks,
    /// The identity provider that users sign in with; without it they sign in with tokens.
    pub oidc: Option<Oidc>,
    /// CI systems whose jobs upload test results without an API token.
    pub ci: Vec<Ci>,
    /// Organizations and the git hosts that they are connected to.
    pub organizations: Vec<Organization>,
}

/// `[server]`.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    /// The address that the API listens on.
    pub listen: SocketAddr,
    /// The URL by which users reach it, for links; default: derived from `listen`.
    pub public_url: Option<String>,
    /// The address for the server's own metrics; default: off.
    pub metrics_listen: Option<SocketAddr>,
    /// Networks of reverse proxies, such as `10.1.0.0/16`. The server uses `x-forwarded-for` only
    /// of requests that come from them; default: none.
    pub trusted_proxies: Vec<String>,
    /// The address for reports of vulnerabilities, `mailto:…` or `https://…`, which the server
    /// publishes in `/.well-known/security.txt`; default: there is no such page.
    pub security_contact: Option<String>,
}

impl Default for Server {
    fn default() -> Self {
        let listen = SocketAddr::from(([127, 0, 0, 1], 8080));
        Self {
            listen,
            public_url: None,
            metrics_listen: None,
            trusted_proxies: Vec::new(),
            security_contact: None,
        }
    }
}

/// `[database]`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Database {
    /// `sqlite://…` or `postgres://…`; default: a SQLite file in the data folder.
    pub url: Option<String>,
}

/// `[log]`.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// `error`, `warn`, `info`, `debug` or `trace`.
    pub level: String,
    /// `auto`, `pretty` or `json`.
    pub format: LogFormat,
}

impl Default for Log {
    fn default() -> Self {
        Self { level: "info".into(), format: LogFormat::Auto }
    }
}

/// `[telemetry]`.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Telemetry {
    /// The address of a collector of traces (OTLP over HTTP), without `/v1/traces`; default: no
    /// traces are sent.
    pub otlp_endpoint: Option<String>,
    /// The percentage of traces that are sent.
    pub sample_percent: u32,
}

impl Default for Telemetry {
    fn default() -> Self {
        Self { otlp_endpoint: None, sample_percent: 100 }
    }
}

/// `[retention]`, in days.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Retention {
    /// The audit log.
    pub audit_days: u32,
    /// Journals of queues, and with them timelines and lists of past tests.
    pub journal_days: u32,
    /// The log of public events.
    pub events_days: u32,
    /// The output of checks.
    pub outputs_days: u32,
}

impl Default for Retention {
    fn default() -> Self {
        Self { audit_days: 400, journal_days: 400, events_days: 400, outputs_days: 45 }
    }
}

/// `[flaky]`.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Flaky {
    /// The largest upload as received, in MiB.
    pub upload_mib: u32,
    /// The total size of all uploads in a folder, in MiB; a bucket has its own limits.
    pub spool_mib: u32,
    /// Days for which the data of uploads is kept.
    pub keep_bundles_days: u32,
    /// Days for which the results of uploads are kept.
    pub keep_uploads_days: u32,
    /// The most uploads that are read at the same time.
    pub readers: u32,
    /// Days for which test results are kept, and tests that are no longer reported; at least 8.
    pub history_days: u32,
    /// The URL of a ticket, with `{id}` in it.
    pub ticket_url: Option<String>,
    /// Whether the pages of tests are public, without a token.
    pub public_pages: bool,
}

impl Default for Flaky {
    fn default() -> Self {
        Self {
            upload_mib: 256,
            spool_mib: 10_240,
            keep_bundles_days: 7,
            keep_uploads_days: 45,
            readers: 1,
            history_days: 45,
            ticket_url: None,
            public_pages: false,
        }
    }
}

/// `[pages]`.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Pages {
    /// Whether the pages are served. Without them only the API is, and a plain page for each test.
    pub enabled: bool,
}

impl Default for Pages {
    fn default() -> Self {
        Self { enabled: true }
    }
}

/// `[webhooks]`.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Webhooks {
    /// The file with the keys that secrets are sealed under; default: `webhooks.key` in the data
    /// folder. It is created when it does not exist.
    pub key_file: Option<PathBuf>,
    /// Networks that messages may be sent to although they are not on the public internet, such as
    /// `10.1.0.0/16`.
    pub allow: Vec<String>,
    /// Whether `http` URLs are allowed.
    pub allow_http: bool,
    /// The most endpoints of an organization.
    pub endpoints: u32,
    /// The most waiting messages of an endpoint; further events wait in their log.
    pub backlog: u32,
    /// The most endpoints that are sent to at the same time.
    pub workers: u32,
    /// The most messages that are sent to an endpoint at the same time.
    pub at_once: u32,
    /// Days for which messages are kept after they ended.
    pub keep_days: u32,
}

impl Default for Webhooks {
    fn default() -> Self {
        Self {
            key_file: None,
            allow: Vec::new(),
            allow_http: false,
            endpoints: 50,
            backlog: 10_000,
            workers: 32,
            at_once: 8,
            keep_days: 30,
        }
    }
}

/// `[oidc]`.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Oidc {
    /// The provider's issuer URL, exactly as in its tokens.
    pub issuer: String,
    /// The client id of this server.
    pub client_id: String,
    /// The file with the client's secret.
    pub client_secret_file: PathBuf,
    /// The organization of the users who sign in with it.
    pub organization: String,
    /// Its label on the sign-in page.
    #[serde(default = "single_sign_on")]
    pub label: String,
    /// The scopes to request besides `openid`.
    #[serde(default = "usual_scopes")]
    pub scopes: Vec<String>,
    /// The claim with groups; dots separate nested claims.
    #[serde(default = "groups")]
    pub groups_claim: String,
    /// Domains of verified email addresses that may sign in; empty: all domains.
    #[serde(default)]
    pub allowed_domains: Vec<String>,
    /// Groups whose members may sign in; empty: all users.
    #[serde(default)]
    pub allowed_groups: Vec<String>,
    /// Groups whose members are administrators.
    #[serde(default)]
    pub admin_groups: Vec<String>,
    /// Groups whose members may submit; other users can only read.
    #[serde(default)]
    pub submitter_groups: Vec<String>,
}

/// `[[ci]]`: a CI system that issues identity tokens to its jobs. A job may then upload results of its
/// repository, and nothing more.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Ci {
    /// `github-actions` or `gitlab-ci`.
    pub kind: String,
    /// The issuer URL, exactly as in its tokens; default: that of github.com or gitlab.com.
    #[serde(default)]
    pub issuer: Option<String>,
    /// The audience that its tokens must have; default: `server.public_url`.
    #[serde(default)]
    pub audience: Option<String>,
    /// The organization whose repositories its jobs test.
    pub organization: String,
    /// The git host of these repositories, such as `github.com`.
    pub host: String,
    /// The repositories whose jobs are accepted: an owner, or `owner/name`.
    pub repositories: Vec<String>,
}

fn single_sign_on() -> String {
    "single sign-on".to_owned()
}

fn usual_scopes() -> Vec<String> {
    vec!["profile".to_owned(), "email".to_owned()]
}

fn groups() -> String {
    "groups".to_owned()
}

/// How logs are written.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// `pretty` on a terminal, `json` otherwise.
    #[default]
    Auto,
    /// Readable lines.
    Pretty,
    /// One JSON object per line.
    Json,
}

/// `[[organizations]]`.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Organization {
    /// Its slug.
    pub slug: String,
    /// The git hosts that it is connected to.
    #[serde(default)]
    pub hosts: Vec<Host>,
}

/// `[[organizations.hosts]]`: a table with `kind`, which selects the crate that reads it, and
/// `host`, the name of the host in the API.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(transparent)]
pub struct Host(pub Table);

impl Host {
    /// Its name in the API; empty when it is missing.
    pub fn name(&self) -> &str {
        self.0.get("host").and_then(Value::as_str).unwrap_or_default()
    }
}

const SQLITE: &str = "sqlite://";

impl Config {
    /// The folder for data.
    pub fn data_dir(&self) -> PathBuf {
        self.data_dir.clone().unwrap_or_else(|| PathBuf::from("signalbox-data"))
    }

    /// The file with the keys of webhook secrets.
    pub fn webhook_keys(&self) -> PathBuf {
        let own = || self.data_dir().join("webhooks.key");
        self.webhooks.key_file.clone().unwrap_or_else(own)
    }

    /// The database's URL.
    pub fn database_url(&self) -> String {
        self.database.url.clone().unwrap_or_else(|| {
            format!("{SQLITE}{}", self.data_dir().join("signalbox.db").display())
        })
    }

    /// Files and folders that no check may see.
    pub fn hidden_paths(&self) -> Vec<PathBuf> {
        let database = self.database_url();
        let database = database.strip_prefix(SQLITE).map(PathBuf::from);
        let secret = self.oidc.as_ref().map(|it| it.client_secret_file.clone());
        let own = [self.data_dir(), self.webhook_keys()].into_iter();
        let further = [database, secret, self.uploads.credentials_file.clone()];
        // By convention a key of a host that names a file with a secret ends so.
        let hosts = self.organizations.iter().flat_map(|it| &it.hosts);
        let of_hosts = hosts.flat_map(|host| &host.0).filter(|(key, _)| key.ends_with("_file"));
        let of_hosts = of_hosts.filter_map(|(_, path)| path.as_str()).map(PathBuf::from);
        let paths = own.chain(further.into_iter().flatten()).chain(of_hosts);
        paths.map(|path| std::path::absolute(&path).unwrap_or(path)).collect()
    }

    /// The database's URL, valid from every working directory.
    pub fn absolute_database_url(&self) -> std::io::Result<String> {
        let url = self.database_url();
        let Some(path) = url.strip_prefix(SQLITE) else { return Ok(url) };
        let path = std::path::absolute(path)?;
        Ok(format!("{SQLITE}{}", path.display()))
    }

    /// Creates the data folder when the database is in it.
    pub fn make_data_dir(&self) -> Result<(), ConfigError> {
        if self.database.url.is_some() {
            return Ok(());
        }
        let folder = self.data_dir();
        // The folder is private to this user.
        let mut made = std::fs::DirBuilder::new();
        let made = std::os::unix::fs::DirBuilderExt::mode(made.recursive(true), 0o750);
        made.create(&folder).map_err(|error| ConfigError::DataDir { folder, error })
    }

    /// The server's own address, without a slash at its end.
    pub fn public_url(&self) -> String {
        let own = || format!("http://{}", self.server.listen);
        let url = self.server.public_url.clone().unwrap_or_else(own);
        url.trim_end_matches('/').to_owned()
    }

    /// Whether users reach the server without encryption, from other machines.
    pub fn is_plain(&self) -> bool {
        let Ok(url) = Url::parse(&self.public_url()) else { return false };
        let is_here = match url.host() {
            Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(url::Host::Ipv4(address)) => address.is_loopback(),
            Some(url::Host::Ipv6(address)) => address.is_loopback(),
            None => true,
        };
        url.scheme() == "http" && !is_here
    }

    /// The effective configuration as TOML, without secrets.
    pub fn effective(&self, kinds: Kinds) -> Result<String, ConfigError> {
        Ok(toml::to_string_pretty(&self.shown(kinds)?)?)
    }

    /// The effective configuration, without secrets.
    pub fn shown(&self, kinds: Kinds) -> Result<Self, ConfigError> {
        let mut shown = self.clone();
        shown.database.url = Some(without_password(&self.database_url()));
        shown.server.public_url = Some(self.public_url());
        shown.data_dir = Some(self.data_dir());
        for Host(table) in shown.organizations.iter_mut().flat_map(|it| &mut it.hosts) {
            *table = kinds
                .complete(table)
                .map_err(|error| ConfigError::setting(error.key, error.problem))?;
        }
        Ok(shown)
    }
}
