//! From the sources to a configuration.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::Config;
use super::environment::{Origins, overlay};

/// Flags that go before everything else.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flags {
    pub(crate) config: Option<PathBuf>,
    pub(crate) database: Option<String>,
    pub(crate) data_dir: Option<PathBuf>,
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) public_url: Option<String>,
}

impl Config {
    /// Reads the configuration of this process.
    pub(crate) fn load(flags: &Flags) -> Result<Self, String> {
        let file = match &flags.config {
            Some(path) => Some((path.clone(), read(path)?)),
            None => None,
        };
        let named = file.as_ref().map(|(path, text)| (path.as_path(), text.as_str()));
        let mut config = Self::parse(named, std::env::vars_os())?;
        config.database.url = flags.database.clone().or(config.database.url);
        config.data_dir = flags.data_dir.clone().or(config.data_dir);
        config.server.listen = flags.listen.unwrap_or(config.server.listen);
        config.server.public_url = flags.public_url.clone().or(config.server.public_url);
        config.check(flags.config.as_deref())?;
        Ok(config)
    }

    /// What the file alone says, for those who have another environment.
    pub(crate) fn in_file(flags: &Flags) -> Result<Self, String> {
        let Some(path) = &flags.config else { return Ok(Self::default()) };
        Self::parse(Some((path, &read(path)?)), [])
    }

    pub(super) fn parse(
        file: Option<(&Path, &str)>,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, String> {
        let mut table = Table::new();
        let mut place = "the environment".to_owned();
        if let Some((path, text)) = file {
            place = path.display().to_string();
            table = text.parse().map_err(|error| format!("{place}: {error}"))?;
        }
        let origins = overlay(&mut table, environment)?;
        let whole = Value::Table(table);
        serde_path_to_error::deserialize(whole.clone()).map_err(|error| {
            let key = error.path().to_string();
            complaint(&place, &origins, &whole, &key, error.inner().message())
        })
    }
}

/// Reads a file, whose name is part of the complaint.
pub(super) fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Says what is wrong with a key: the file or variable, the whole path, and what was probably
/// meant.
fn complaint(place: &str, origins: &Origins, whole: &Value, key: &str, words: &str) -> String {
    let mut names = words.split('`').skip(1).step_by(2);
    let unknown = names.next().filter(|_| words.starts_with("unknown field"));
    let (key, words) = match unknown {
        Some(wrong) => {
            // In what is told apart by its kind, only the outermost place is known.
            let key = find(whole, "", key, wrong).unwrap_or_else(|| key.to_owned());
            (key, format!("unknown key `{wrong}`{}", suggestion(wrong, names)))
        }
        None => (key.to_owned(), words.to_owned()),
    };
    match origins.get(&key) {
        Some(variable) => format!("{variable}: {key}: {words}"),
        None if key == "." => format!("{place}: {words}"),
        None => format!("{place}: {key}: {words}"),
    }
}

fn suggestion<'a>(wrong: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let likeness = |name: &str| strsim::jaro_winkler(wrong, name);
    let nearest = known.clone().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    match nearest {
        Some(name) if likeness(name) > 0.7 => format!(", did you mean `{name}`?"),
        Some(_) => format!(", known are {}", known.collect::<Vec<_>>().join(", ")),
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
    use super::super::example;
    use super::*;

    fn parse(text: &str, environment: &[(&str, &str)]) -> Result<Config, String> {
        let environment: Vec<(OsString, OsString)> =
            environment.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        Config::parse(Some((Path::new("signalbox.toml"), text)), environment)
    }

    #[test]
    fn an_unknown_key_is_an_error_with_its_path_and_a_suggestion() {
        assert_eq!(
            parse("[server]\nlisten_on = \"x\"", &[]).expect_err("unknown"),
            "signalbox.toml: server.listen_on: unknown key `listen_on`, did you mean `listen`?"
        );
        let host = "[[organizations]]\nslug = \"a\"\n[[organizations.hosts]]\nkind = \"git\"\n\
                    host = \"h\"\nchecks = { concurency = 2 }";
        assert_eq!(
            parse(host, &[]).expect_err("unknown"),
            "signalbox.toml: organizations[0].hosts[0].checks.concurency: unknown key \
             `concurency`, did you mean `concurrency`?"
        );
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
    fn what_is_no_text_is_refused_only_where_it_is_a_setting() {
        use std::os::unix::ffi::OsStringExt;
        let odd = || OsString::from_vec(vec![0xff]);
        assert!(Config::parse(None, [("OTHER".into(), odd()), (odd(), odd())]).is_ok());
        let error = Config::parse(None, [("SIGNALBOX_LISTEN".into(), odd())]);
        assert_eq!(error.expect_err("odd"), "SIGNALBOX_LISTEN: the value is not UTF-8");
    }

    #[test]
    fn the_example_is_valid() {
        let config = parse(&example(), &[]).expect("valid");
        assert_eq!(config.check(None), Ok(()));
    }
}
