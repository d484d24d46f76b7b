//! Configuration: defaults, then a TOML file, then the environment, then flags.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use signalbox_domain::ids::{HostId, OrgSlug};
use toml::{Table, Value};

/// Everything that can be configured.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
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
    /// Organizations and the git hosts that they are connected to.
    pub organizations: Vec<Organization>,
}

/// `[server]`.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    /// Where the API listens.
    pub listen: SocketAddr,
    /// The address by which others reach it, for links; made from `listen` when it is left out.
    pub public_url: Option<String>,
    /// Where the server's own metrics are, if anywhere.
    pub metrics_listen: Option<SocketAddr>,
}

impl Default for Server {
    fn default() -> Self {
        let listen = SocketAddr::from(([127, 0, 0, 1], 8080));
        Self { listen, public_url: None, metrics_listen: None }
    }
}

/// `[database]`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Database {
    /// `sqlite://…` or `postgres://…`; a SQLite file in the data folder when it is left out.
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

/// How logs are written.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people on a terminal, JSON otherwise.
    #[default]
    Auto,
    /// For people.
    Pretty,
    /// One JSON object a line.
    Json,
}

/// `[[organizations]]`.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Organization {
    /// Its slug.
    pub slug: String,
    /// The git hosts that it is connected to.
    #[serde(default)]
    pub hosts: Vec<Host>,
}

/// `[[organizations.hosts]]`.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Host {
    /// Bare repositories in folders.
    Git {
        /// The name by which clients call it.
        host: String,
        /// The folder with `OWNER/NAME.git`.
        root: Option<PathBuf>,
        /// How checks are run.
        #[serde(default)]
        checks: Checks,
    },
}

/// `checks = { … }`.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Checks {
    /// Candidates that are checked at the same time.
    pub concurrency: u32,
    /// Minutes that a check may take if it does not say.
    pub timeout_minutes: u32,
    /// Variables of the server's environment that checks get.
    pub pass_env: Vec<String>,
}

impl Default for Checks {
    fn default() -> Self {
        Self { concurrency: 2, timeout_minutes: 60, pass_env: Vec::new() }
    }
}

/// Flags that go before everything else.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flags {
    pub(crate) config: Option<PathBuf>,
    pub(crate) database: Option<String>,
    pub(crate) data_dir: Option<PathBuf>,
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) public_url: Option<String>,
}

const PREFIX: &str = "SIGNALBOX_";
const SHORT: [(&str, &str); 4] = [
    ("LISTEN", "SERVER__LISTEN"),
    ("DATABASE_URL", "DATABASE__URL"),
    ("DATA_DIR", "DATA_DIR"),
    ("PUBLIC_URL", "SERVER__PUBLIC_URL"),
];

impl Config {
    /// Reads the configuration of this process.
    pub(crate) fn load(flags: &Flags) -> Result<Self, String> {
        let environment = std::env::vars().collect();
        let file = match &flags.config {
            Some(path) => Some((path.clone(), read(path)?)),
            None => None,
        };
        let named = file.as_ref().map(|(path, text)| (path.as_path(), text.as_str()));
        let mut config = Self::parse(named, environment)?;
        if let Some(database) = &flags.database {
            config.database.url = Some(database.clone());
        }
        config.data_dir = flags.data_dir.clone().or(config.data_dir);
        config.server.listen = flags.listen.unwrap_or(config.server.listen);
        config.server.public_url = flags.public_url.clone().or(config.server.public_url);
        config.check()?;
        Ok(config)
    }

    fn parse(
        file: Option<(&Path, &str)>,
        environment: Vec<(String, String)>,
    ) -> Result<Self, String> {
        let mut table = Table::new();
        let mut place = "the environment".to_owned();
        if let Some((path, text)) = file {
            place = path.display().to_string();
            table = text.parse().map_err(|error| format!("{place}: {error}"))?;
        }
        overlay(&mut table, environment)?;
        serde_path_to_error::deserialize(Value::Table(table)).map_err(|error| {
            let key = error.path().to_string();
            let words = error.inner().message().to_owned();
            let key = if key == "." { String::new() } else { format!(" {key}:") };
            format!("{place}:{key} {}", with_suggestion(&words))
        })
    }

    fn check(&self) -> Result<(), String> {
        let url = self.public_url();
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return Err(format!("server.public_url: {url:?} must start with http:// or https://"));
        }
        for organization in &self.organizations {
            OrgSlug::new(organization.slug.as_str()).map_err(|error| error.to_string())?;
            for host in &organization.hosts {
                let Host::Git { host, checks, .. } = host;
                HostId::new(host.as_str()).map_err(|error| error.to_string())?;
                if checks.concurrency == 0 || checks.timeout_minutes == 0 {
                    return Err(format!(
                        "checks of host {host}: concurrency and timeout_minutes must be at least 1"
                    ));
                }
            }
        }
        Ok(())
    }

    /// The folder for data.
    pub(crate) fn data_dir(&self) -> PathBuf {
        self.data_dir.clone().unwrap_or_else(|| PathBuf::from("signalbox-data"))
    }

    /// The database's URL; the data folder is made when the database is in it.
    pub(crate) fn database_url(&self) -> Result<String, String> {
        if let Some(url) = &self.database.url {
            return Ok(url.clone());
        }
        let folder = self.data_dir();
        std::fs::create_dir_all(&folder)
            .map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(format!("sqlite://{}", folder.join("signalbox.db").display()))
    }

    /// The server's own address, without a slash at its end.
    pub(crate) fn public_url(&self) -> String {
        let own = || format!("http://{}", self.server.listen);
        let url = self.server.public_url.clone().unwrap_or_else(own);
        url.trim_end_matches('/').to_owned()
    }

    /// The configuration in force, without secrets.
    pub(crate) fn effective(&self) -> Result<String, String> {
        let mut shown = self.clone();
        shown.database.url = Some(without_password(&self.database_url()?));
        shown.server.public_url = Some(self.public_url());
        shown.data_dir = Some(self.data_dir());
        toml::to_string_pretty(&shown).map_err(|error| error.to_string())
    }
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// A URL without its password.
pub(crate) fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    match rest.split_once('@') {
        Some((user, place)) if user.contains(':') => {
            let user = user.split(':').next().unwrap_or_default();
            format!("{scheme}://{user}:…@{place}")
        }
        Some(_) | None => url.to_owned(),
    }
}

/// Puts `SIGNALBOX_A__B=value` into the table as `a.b`, and `SIGNALBOX_A__B_FILE=path` as the
/// content of that file.
fn overlay(table: &mut Table, environment: Vec<(String, String)>) -> Result<(), String> {
    for (variable, value) in environment {
        let Some(name) = variable.strip_prefix(PREFIX) else { continue };
        let (name, from_file) = match name.strip_suffix("_FILE") {
            Some(name) => (name, true),
            None => (name, false),
        };
        let short = SHORT.iter().find(|(short, _)| *short == name).map(|(_, long)| *long);
        let Some(path) = short.or(name.contains("__").then_some(name)) else { continue };
        let value = if from_file { read(Path::new(&value))?.trim_end().to_owned() } else { value };
        let keys: Vec<String> = path.split("__").map(str::to_lowercase).collect();
        insert(table, &keys, typed(&value)).map_err(|words| format!("{variable}: {words}"))?;
    }
    Ok(())
}

fn typed(text: &str) -> Value {
    let number = || text.parse().ok().map(Value::Integer);
    let switch = || text.parse().ok().map(Value::Boolean);
    number().or_else(switch).unwrap_or_else(|| Value::String(text.to_owned()))
}

fn insert(table: &mut Table, keys: &[String], value: Value) -> Result<(), String> {
    match keys {
        [] => Ok(()),
        [key] => {
            table.insert(key.clone(), value);
            Ok(())
        }
        [key, rest @ ..] => {
            let inner = table.entry(key.clone()).or_insert_with(|| Value::Table(Table::new()));
            let inner = inner.as_table_mut().ok_or_else(|| format!("{key} has no parts"))?;
            insert(inner, rest, value)
        }
    }
}

/// Adds what was probably meant to a complaint about an unknown field.
fn with_suggestion(words: &str) -> String {
    let mut names = words.split('`').skip(1).step_by(2);
    let Some(wrong) = names.next().filter(|_| words.starts_with("unknown field")) else {
        return words.to_owned();
    };
    let nearest = names
        .max_by(|a, b| strsim::jaro_winkler(wrong, a).total_cmp(&strsim::jaro_winkler(wrong, b)));
    match nearest {
        Some(name) if strsim::jaro_winkler(wrong, name) > 0.7 => {
            format!("unknown key `{wrong}`, did you mean `{name}`?")
        }
        Some(_) | None => words.replace("unknown field", "unknown key"),
    }
}

/// A file with every setting and its default.
pub fn example() -> String {
    let config = Config {
        data_dir: Some(PathBuf::from("signalbox-data")),
        database: Database { url: Some("sqlite://signalbox-data/signalbox.db".into()) },
        server: Server {
            public_url: Some("http://127.0.0.1:8080".into()),
            metrics_listen: Some(SocketAddr::from(([127, 0, 0, 1], 9090))),
            ..Server::default()
        },
        log: Log::default(),
        organizations: vec![Organization {
            slug: "acme".into(),
            hosts: vec![Host::Git {
                host: "git.local".into(),
                root: Some(PathBuf::from("/srv/git")),
                checks: Checks::default(),
            }],
        }],
    };
    let text = toml::to_string_pretty(&config).unwrap_or_default();
    format!("# Every setting of Signalbox. Generated: do not edit.\n\n{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, environment: &[(&str, &str)]) -> Result<Config, String> {
        let environment =
            environment.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        Config::parse(Some((Path::new("signalbox.toml"), text)), environment)
    }

    #[test]
    fn an_unknown_key_is_an_error_with_a_suggestion() {
        let error = parse("[server]\nlisten_on = \"x\"", &[]).expect_err("unknown");
        assert_eq!(
            error,
            "signalbox.toml: server.listen_on: unknown key `listen_on`, did you mean `listen`?"
        );
    }

    #[test]
    fn the_environment_goes_before_the_file() {
        let config = parse(
            "[database]\nurl = \"sqlite://a.db\"",
            &[("SIGNALBOX_DATABASE__URL", "sqlite://b.db"), ("SIGNALBOX_LISTEN", "0.0.0.0:1")],
        )
        .expect("valid");
        assert_eq!(config.database.url.as_deref(), Some("sqlite://b.db"));
        assert_eq!(config.server.listen, SocketAddr::from(([0, 0, 0, 0], 1)));
        assert!(parse("", &[("SIGNALBOX_TOKEN", "x"), ("HOME", "/")]).is_ok());
    }

    #[test]
    fn the_example_is_valid_and_passwords_are_not_shown() {
        assert!(parse(&example(), &[]).is_ok());
        assert_eq!(without_password("postgres://u:secret@h/d"), "postgres://u:…@h/d");
    }
}
