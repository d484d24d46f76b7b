//! Loads a configuration from its sources: file, environment and flags.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use signalbox_hosts::{Kinds, SettingError};
use toml::{Table, Value};

use crate::environment::{Origins, overlay};
use crate::{Config, ConfigError};

/// Flags, which override the environment and the file.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// The configuration file.
    pub config: Option<PathBuf>,
    /// `database.url`.
    pub database: Option<String>,
    /// `data_dir`.
    pub data_dir: Option<PathBuf>,
    /// `server.listen`.
    pub listen: Option<SocketAddr>,
    /// `server.public_url`.
    pub public_url: Option<String>,
}

impl Config {
    /// Reads the configuration of this process. The tables of hosts are read by `kinds`.
    pub fn load(flags: &Flags, kinds: Kinds) -> Result<Self, ConfigError> {
        let file = match &flags.config {
            Some(path) => Some((path.clone(), read(path)?)),
            None => None,
        };
        let named = file.as_ref().map(|(path, text)| (path.as_path(), text.as_str()));
        let mut config = Self::parse(named, std::env::vars_os(), kinds)?;
        config.database.url = flags.database.clone().or(config.database.url);
        config.data_dir = flags.data_dir.clone().or(config.data_dir);
        config.server.listen = flags.listen.unwrap_or(config.server.listen);
        config.server.public_url = flags.public_url.clone().or(config.server.public_url);
        config.check(flags.config.as_deref())?;
        Ok(config)
    }

    /// The settings of the file alone, for processes with another environment.
    pub fn in_file(flags: &Flags, kinds: Kinds) -> Result<Self, ConfigError> {
        let Some(path) = &flags.config else { return Ok(Self::default()) };
        Self::parse(Some((path, &read(path)?)), [], kinds)
    }

    pub(super) fn parse(
        file: Option<(&Path, &str)>,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
        kinds: Kinds,
    ) -> Result<Self, ConfigError> {
        let mut table = Table::new();
        let mut place = "the environment".to_owned();
        if let Some((path, text)) = file {
            place = path.display().to_string();
            table = text.parse().map_err(|error: toml::de::Error| {
                ConfigError::setting("", error.to_string()).at(&place)
            })?;
        }
        let origins = overlay(&mut table, environment)?;
        let whole = Value::Table(table);
        let config: Self = serde_path_to_error::deserialize(whole.clone()).map_err(|error| {
            let key = error.path().to_string();
            complaint(&place, &origins, &whole, &key, error.inner().message())
        })?;
        for (organization, of) in config.organizations.iter().enumerate() {
            for (host, table) in of.hosts.iter().enumerate() {
                kinds.read(table.0.clone()).map_err(|SettingError { key, problem }| {
                    let dot = if key.is_empty() { "" } else { "." };
                    let key = format!("organizations[{organization}].hosts[{host}]{dot}{key}");
                    complaint(&place, &origins, &whole, &key, &problem)
                })?;
            }
        }
        Ok(config)
    }
}

/// Reads a file; errors contain its name.
pub(super) fn read(path: &Path) -> Result<String, ConfigError> {
    let failed = |error| ConfigError::Read { file: path.to_owned(), error };
    std::fs::read_to_string(path).map_err(failed)
}

/// The error for a key: the file or variable, the whole path, and a
/// suggestion.
fn complaint(place: &str, origins: &Origins, whole: &Value, key: &str, words: &str) -> ConfigError {
    let mut names = words.split('`').skip(1).step_by(2);
    let unknown = names.next().filter(|_| words.starts_with("unknown field"));
    let (key, words) = match unknown {
        Some(wrong) => {
            let key = find(whole, "", key, wrong).unwrap_or_else(|| key.to_owned());
            (key, format!("unknown key `{wrong}`{}", suggestion(wrong, names)))
        }
        None => (key.to_owned(), words.to_owned()),
    };
    let place = origins.get(&key).map_or(place, String::as_str);
    let key = if key == "." { String::new() } else { key };
    ConfigError::setting(key, words).at(place)
}

fn suggestion<'a>(wrong: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let likeness = |name: &str| strsim::jaro_winkler(wrong, name);
    let nearest = known.clone().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    match nearest {
        Some(name) if likeness(name) > 0.7 => format!(", did you mean `{name}`?"),
        Some(_) => format!(", expected one of {}", known.collect::<Vec<_>>().join(", ")),
        None => String::new(),
    }
}

/// The path of the first key of that name at or below `from`.
fn find(value: &Value, path: &str, from: &str, wrong: &str) -> Option<String> {
    match value {
        Value::Table(table) => table.iter().find_map(|(key, inner)| {
            let inner_path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            if key == wrong && inner_path.starts_with(from) {
                return Some(inner_path);
            }
            find(inner, &inner_path, from, wrong)
        }),
        Value::Array(list) => list
            .iter()
            .enumerate()
            .find_map(|(index, inner)| find(inner, &format!("{path}[{index}]"), from, wrong)),
        Value::String(_)
        | Value::Integer(_)
        | Value::Float(_)
        | Value::Boolean(_)
        | Value::Datetime(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use signalbox_hosts::{ConnectError, ConnectedHost, HostKind, HostParts, HostSettings};

    use super::*;
    use crate::example;

    /// A kind of host with one setting besides its name.
    #[derive(serde::Deserialize, serde::Serialize)]
    #[serde(deny_unknown_fields)]
    struct Shelf {
        host: String,
        #[serde(default)]
        books: u32,
    }

    impl HostSettings for Shelf {
        fn table(&self) -> Table {
            signalbox_hosts::table(self)
        }

        fn connect(&self, _: HostParts) -> Result<ConnectedHost, ConnectError> {
            let problem = "a shelf is no git host".to_owned();
            Err(ConnectError { host: self.host.clone(), problem })
        }
    }

    fn shelf(table: Table) -> Result<Arc<dyn HostSettings>, SettingError> {
        Ok(Arc::new(signalbox_hosts::parse::<Shelf>(table)?))
    }

    fn example_shelf() -> Table {
        signalbox_hosts::table(&Shelf { host: "shelf.local".into(), books: 3 })
    }

    static SHELVES: [HostKind; 1] = [HostKind {
        kind: "shelf",
        read: shelf,
        example: example_shelf,
        unconfigured: None,
        helper: None,
        recomputer: None,
    }];
    const KINDS: Kinds = Kinds(&SHELVES);

    fn parse(text: &str, environment: &[(&str, &str)]) -> Result<Config, String> {
        let environment: Vec<(OsString, OsString)> =
            environment.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        Config::parse(Some((Path::new("signalbox.toml"), text)), environment, KINDS)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn an_unknown_key_is_an_error_with_its_path_and_a_suggestion() {
        assert_eq!(
            parse("[server]\nlisten_on = \"x\"", &[]).expect_err("unknown"),
            "signalbox.toml: server.listen_on: unknown key `listen_on`, did you mean `listen`?"
        );
    }

    #[test]
    fn a_mistake_in_the_table_of_a_host_has_its_path() {
        let organization = "[[organizations]]\nslug = \"a\"\n[[organizations.hosts]]\n";
        for (host, wanted) in [
            (
                "kind = \"shelf\"\nhost = \"h\"\nboks = 2",
                "boks: unknown key `boks`, did you mean `books`?",
            ),
            (
                "kind = \"shelv\"\nhost = \"h\"",
                "kind: unknown kind \"shelv\", expected one of shelf",
            ),
        ] {
            let error = parse(&format!("{organization}{host}"), &[]).expect_err("refused");
            assert_eq!(error, format!("signalbox.toml: organizations[0].hosts[0].{wanted}"));
        }
        let error = parse(&format!("{organization}host = \"h\""), &[]).expect_err("refused");
        assert_eq!(error, "signalbox.toml: organizations[0].hosts[0]: missing field `kind`");
    }

    #[test]
    fn the_configuration_in_force_has_the_defaults_of_hosts() {
        let text = "[[organizations]]\nslug = \"a\"\n[[organizations.hosts]]\nkind = \"shelf\"\n\
                    host = \"h\"";
        let shown = parse(text, &[]).expect("valid").effective(KINDS).expect("shown");
        assert!(shown.contains("kind = \"shelf\"\nhost = \"h\"\nbooks = 0"), "{shown}");
    }

    #[test]
    fn a_mistake_in_the_environment_is_not_blamed_on_the_file() {
        let error = parse("", &[("SIGNALBOX_SERVER__LISTN", "x")]).expect_err("unknown");
        assert_eq!(
            error,
            "SIGNALBOX_SERVER__LISTN: server.listn: unknown key `listn`, did you mean `listen`?"
        );
        let error = parse("", &[("SIGNALBOX_LISTEN", "here")]).expect_err("no address");
        assert!(error.starts_with("SIGNALBOX_LISTEN: server.listen: "), "{error}");
    }

    #[test]
    fn the_environment_goes_before_the_file() {
        let config = parse(
            "[database]\nurl = \"sqlite://a.db\"",
            &[
                ("SIGNALBOX_DATABASE__URL", "sqlite://b.db"),
                ("SIGNALBOX_LISTEN", "0.0.0.0:1"),
                ("SIGNALBOX_DATA_DIR", "123"),
            ],
        )
        .expect("valid");
        assert_eq!(config.database.url.as_deref(), Some("sqlite://b.db"));
        assert_eq!(config.server.listen, SocketAddr::from(([0, 0, 0, 0], 1)));
        assert_eq!(config.data_dir, Some(PathBuf::from("123")));
        let others = [("SIGNALBOX_TOKEN", "x"), ("SIGNALBOX_PR", "1"), ("HOME", "/")];
        assert!(parse("", &others).is_ok());
    }

    #[test]
    fn a_setting_that_is_set_twice_is_refused() {
        let url = ("SIGNALBOX_DATABASE_URL", "sqlite://a.db");
        for other in ["SIGNALBOX_DATABASE__URL", "SIGNALBOX_DATABASE_URL_FILE"] {
            let error = parse("", &[(other, "x"), url]).expect_err("set twice");
            assert!(error.contains(other) && error.contains("are both set"), "{error}");
        }
    }

    #[test]
    fn values_that_are_not_utf8_are_refused_only_for_settings() {
        use std::os::unix::ffi::OsStringExt;
        let odd = || OsString::from_vec(vec![0xff]);
        assert!(Config::parse(None, [("OTHER".into(), odd()), (odd(), odd())], KINDS).is_ok());
        let error = Config::parse(None, [("SIGNALBOX_LISTEN".into(), odd())], KINDS);
        assert_eq!(error.expect_err("odd").to_string(), "SIGNALBOX_LISTEN: the value is not UTF-8");
    }

    #[test]
    fn files_with_secrets_are_hidden_from_checks() {
        let file = "data_dir = \"/d\"\n[database]\nurl = \"sqlite:///b/s.db\"\n\
                    [uploads]\nstore = \"s3://b\"\ncredentials_file = \"/c/s3\"\n\
                    [[organizations]]\nslug = \"a\"\n[[organizations.hosts]]\nkind = \"x\"\n\
                    host = \"h\"\nprivate_key_file = \"/k/app.pem\"\napi_url = \"https://h\"";
        let config: Config = toml::from_str(file).expect("settings");
        let wanted = ["/d", "/d/webhooks.key", "/b/s.db", "/c/s3", "/k/app.pem"];
        assert_eq!(config.hidden_paths(), wanted.map(PathBuf::from));
    }

    #[test]
    fn the_example_is_valid() {
        let config = parse(&example(KINDS), &[]).expect("valid");
        config.check(None).expect("good");
    }
}
