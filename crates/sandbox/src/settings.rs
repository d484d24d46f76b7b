//! The settings of the sandbox: `[sandbox]` of the configuration.

use std::path::{Component, Path, PathBuf};

use serde::de::{Error as _, Unexpected};
use serde::{Deserialize, Deserializer, Serialize};

/// Folders that are never shown to a check as a whole: they have what it must not reach.
const NEVER_SHOWN: [&str; 9] =
    ["/", "/dev", "/etc", "/home", "/proc", "/root", "/run", "/sys", "/var"];
/// Folders of the sandbox itself.
const OWN: [&str; 4] = ["/checkout", "/home/check", "/tmp", "/var/tmp"];

/// How checks are isolated.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// The first one that works here.
    #[default]
    Auto,
    /// The program `bwrap`.
    Bubblewrap,
    /// A container of Podman or Docker.
    Container,
    /// `signalbox agent`, which is another user.
    Agent,
    /// Nothing: no check runs on this machine.
    None,
}

impl Backend {
    /// Whether checks see the programs of an image, and not those of this machine.
    pub(crate) const fn has_images(self) -> bool {
        matches!(self, Self::Container)
    }
}

/// `[sandbox]`: how checks run on this machine.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct SandboxSettings {
    /// What isolates checks: `bubblewrap`, `container`, or `agent`, with which the program
    /// `signalbox agent` runs them as another user; `auto` is bubblewrap; `none`: this machine runs
    /// no checks.
    pub backend: Backend,
    /// With `agent`: the socket of the agent, whose own settings are the limits of checks.
    pub agent_socket: PathBuf,
    /// With `container`: the engine, `podman` or `docker`; `auto` is the first one that is installed.
    pub container_engine: String,
    /// With `container`: the image in which checks run. It is never pulled.
    pub container_image: String,
    /// With `container`: the API of the engine, `unix:///path` or `tcp://host:port` with TLS.
    /// Checkouts are sent to it, so it may be on another machine. Empty: the program of an engine on
    /// this machine.
    pub container_host: String,
    /// With `tcp://` in `container_host`: the folder with `ca.pem`, by which the server recognizes
    /// the engine, and `cert.pem` and `key.pem`, by which the engine recognizes the server.
    pub container_tls: PathBuf,
    /// Whether checks run without isolation, with all rights of the server.
    #[serde(deserialize_with = "boolean")]
    pub unsafe_local: bool,
    /// Whether checks share the network of this machine, with all that listens on it.
    #[serde(deserialize_with = "boolean")]
    pub network: bool,
    /// The most memory of all processes of a check, in MiB; 0: no limit.
    pub memory_mib: u32,
    /// The most processes and threads of a check, at least 16.
    pub processes: u32,
    /// The most that a check may print, in MiB, at least 1.
    pub output_mib: u32,
    /// The free space that a check must leave on the disk of its folder, in MiB; 0: none.
    pub keep_free_mib: u32,
    /// Further folders and files of this machine that checks can read, such as those of compilers.
    pub read_only_paths: Vec<PathBuf>,
    /// On a server that runs as root, and with `container_host`: the user and group id of a check. Checks at the same time
    /// have this one and the next ones.
    pub first_user_id: u32,
}

impl Default for SandboxSettings {
    fn default() -> Self {
        Self {
            backend: Backend::Auto,
            agent_socket: PathBuf::from(crate::AGENT_SOCKET),
            container_engine: "auto".to_owned(),
            container_image: String::new(),
            container_host: String::new(),
            container_tls: PathBuf::new(),
            unsafe_local: false,
            network: false,
            memory_mib: 8_192,
            processes: 2_048,
            output_mib: 256,
            keep_free_mib: 1_024,
            read_only_paths: Vec::new(),
            // In a range that neither Debian nor systemd gives to users.
            first_user_id: 60_800,
        }
    }
}

/// `true` or `false`, also as the text of an environment variable.
fn boolean<'de, D: Deserializer<'de>>(value: D) -> Result<bool, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Given {
        Boolean(bool),
        Text(String),
    }
    match Given::deserialize(value).map_err(|_| D::Error::custom("expected true or false"))? {
        Given::Boolean(value) => Ok(value),
        Given::Text(text) => text
            .parse()
            .map_err(|_| D::Error::invalid_value(Unexpected::Str(&text), &"true or false")),
    }
}

/// An invalid setting: its key below `sandbox`, and the rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingProblem {
    /// Its key.
    pub key: &'static str,
    /// The rule, and the value that breaks it.
    pub problem: String,
}

impl SandboxSettings {
    /// The first setting that breaks a rule.
    pub fn problem(&self) -> Option<SettingProblem> {
        let wrong = |key, problem| Some(SettingProblem { key, problem });
        if self.unsafe_local && !matches!(self.backend, Backend::Auto | Backend::Bubblewrap) {
            let problem = "must be false with a backend other than auto and bubblewrap".to_owned();
            return wrong("unsafe_local", problem);
        }
        if !self.agent_socket.is_absolute() {
            return wrong("agent_socket", "must be an absolute path".to_owned());
        }
        if !["auto", "podman", "docker"].contains(&self.container_engine.as_str()) {
            let engine = &self.container_engine;
            let problem = format!("must be auto, podman or docker, but is {engine:?}");
            return wrong("container_engine", problem);
        }
        if let Some(rule) = image_problem(self.backend, &self.container_image) {
            return wrong("container_image", rule.to_owned());
        }
        if let Some((key, rule)) = self.host_problem() {
            return wrong(key, rule);
        }
        if self.memory_mib != 0 && self.memory_mib < 16 {
            let problem = format!("must be 0 or at least 16, but is {}", self.memory_mib);
            return wrong("memory_mib", problem);
        }
        if self.processes < 16 {
            return wrong("processes", format!("must be at least 16, but is {}", self.processes));
        }
        if self.output_mib == 0 {
            return wrong("output_mib", "must be at least 1".to_owned());
        }
        // The last thousand of a range is kept: checks at the same time count on from here.
        if !(1_000..=4_000_000_000).contains(&self.first_user_id) {
            let problem = format!("must be from 1000 to 4000000000, but is {}", self.first_user_id);
            return wrong("first_user_id", problem);
        }
        for path in &self.read_only_paths {
            if let Some(rule) = unshowable(path) {
                return wrong("read_only_paths", format!("{:?} {rule}", path.display()));
            }
        }
        None
    }
}

impl SandboxSettings {
    /// The setting of an engine's API that breaks a rule, and the rule.
    fn host_problem(&self) -> Option<(&'static str, String)> {
        let (host, tls) = (self.container_host.as_str(), self.container_tls.as_path());
        let has_tls = !tls.as_os_str().is_empty();
        if has_tls && !tls.is_absolute() {
            return Some(("container_tls", "must be an absolute path".to_owned()));
        }
        let is_tcp = match (host.strip_prefix("unix://"), host.strip_prefix("tcp://")) {
            (Some(path), _) if path.starts_with('/') => false,
            (_, Some(address)) if is_address(address) => true,
            _ if host.is_empty() => false,
            _ => {
                let rule = format!("must be unix:///path or tcp://host:port, but is {host:?}");
                return Some(("container_host", rule));
            }
        };
        if is_tcp != has_tls {
            let rule = if is_tcp {
                "must be set with a container_host of tcp://: without TLS, every machine of the network \
                 could use the engine"
            } else {
                "must be empty without a container_host of tcp://"
            };
            return Some(("container_tls", rule.to_owned()));
        }
        if !host.is_empty() && self.backend != Backend::Container {
            let rule = "must be empty with a backend other than container";
            return Some(("container_host", rule.to_owned()));
        }
        if !host.is_empty() && !self.read_only_paths.is_empty() {
            let rule = "must be empty with container_host: the engine may be on another machine";
            return Some(("read_only_paths", rule.to_owned()));
        }
        None
    }
}

/// Whether this is `host:port`.
fn is_address(text: &str) -> bool {
    let is_host = |host: &str| {
        !host.is_empty()
            && host.chars().all(|it| it.is_ascii_alphanumeric() || "-.[]:".contains(it))
    };
    text.rsplit_once(':').is_some_and(|(host, port)| is_host(host) && port.parse::<u16>().is_ok())
}

/// The rule that an image breaks. Its name is an argument of the engine.
fn image_problem(backend: Backend, image: &str) -> Option<&'static str> {
    if image.is_empty() {
        return backend.has_images().then_some("must be set with backend = \"container\"");
    }
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-._/:@".contains(it);
    let is_name = image.starts_with(|it: char| it.is_ascii_alphanumeric());
    (!is_name || !image.chars().all(is_plain)).then_some(
        "must be the name of an image: a letter or digit, then letters, digits and -._/:@",
    )
}

/// Why a path cannot be shown to checks.
fn unshowable(path: &Path) -> Option<String> {
    let is_plain =
        path.components().all(|it| matches!(it, Component::RootDir | Component::Normal(_)));
    if !path.is_absolute() || !is_plain {
        return Some("must be an absolute path without `..`".to_owned());
    }
    if NEVER_SHOWN.iter().any(|it| path == Path::new(it)) {
        return Some("has more than a check may read: name the folders below it".to_owned());
    }
    for start in ["/proc", "/dev", "/sys", "/run"] {
        if path.starts_with(start) {
            return Some(format!("must not be in {start}"));
        }
    }
    let own = OWN.iter().find(|own| path.starts_with(own) || Path::new(own).starts_with(path));
    own.map(|own| format!("must not overlap {own}, which the sandbox has itself"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(change: impl FnOnce(&mut SandboxSettings)) -> String {
        let mut settings = SandboxSettings::default();
        change(&mut settings);
        settings.problem().map(|it| format!("{}: {}", it.key, it.problem)).unwrap_or_default()
    }

    #[test]
    fn settings_that_cannot_be_right_are_refused_with_their_rule() {
        assert_eq!(refusal(|_| ()), "");
        assert_eq!(refusal(|it| it.memory_mib = 0), "", "no limit");
        let said = refusal(|it| it.memory_mib = 8);
        assert_eq!(said, "memory_mib: must be 0 or at least 16, but is 8");
        assert!(refusal(|it| it.processes = 2).starts_with("processes: must be at least 16"));
        assert!(refusal(|it| it.output_mib = 0).starts_with("output_mib: "));
        for backend in [Backend::None, Backend::Agent, Backend::Container] {
            let both = |it: &mut SandboxSettings| (it.backend, it.unsafe_local) = (backend, true);
            assert!(refusal(both).starts_with("unsafe_local: must be false"), "{backend:?}");
        }
        let said = refusal(|it| it.backend = Backend::Container);
        assert_eq!(said, "container_image: must be set with backend = \"container\"");
        for image in ["--privileged", "a b", "a;b", ""] {
            let said = refusal(|it| {
                (it.backend, it.container_image) = (Backend::Container, image.to_owned());
            });
            assert!(said.starts_with("container_image: must be "), "{image:?}: {said}");
        }
        let image = "registry.acme.test:5000/ci/rust:1.95@sha256:0123".to_owned();
        assert_eq!(refusal(|it| it.container_image = image), "");
        assert!(refusal(|it| it.container_engine = "lxc".to_owned()).contains("lxc"));
        let at = |host: &str, tls: &str| {
            let (host, tls) = (host.to_owned(), PathBuf::from(tls));
            refusal(move |it| {
                it.backend = Backend::Container;
                it.container_image = "rust:1.95".to_owned();
                (it.container_host, it.container_tls) = (host, tls);
            })
        };
        assert_eq!(at("unix:///run/podman/podman.sock", ""), "");
        assert_eq!(at("tcp://builder.acme.test:2376", "/etc/signalbox/engine"), "");
        assert_eq!(at("tcp://[fd00::7]:2376", "/etc/signalbox/engine"), "");
        for host in ["podman", "unix://run", "http://a:2375", "tcp://a", "tcp://a:b", "ssh://a"] {
            assert!(at(host, "").starts_with("container_host: must be unix:///path"), "{host}");
        }
        let said = at("tcp://builder:2375", "");
        assert!(said.starts_with("container_tls: must be set"), "{said}");
        let said = at("unix:///run/podman.sock", "/etc/engine");
        assert!(said.starts_with("container_tls: must be empty"), "{said}");
        let said = at("tcp://builder:2376", "engine");
        assert_eq!(said, "container_tls: must be an absolute path");
        let said = refusal(|it| it.container_host = "unix:///run/podman.sock".to_owned());
        assert!(said.starts_with("container_host: must be empty"), "{said}");
        let said = refusal(|it| it.agent_socket = PathBuf::from("agent.sock"));
        assert_eq!(said, "agent_socket: must be an absolute path");
        for id in [0, 999, u32::MAX] {
            assert!(refusal(|it| it.first_user_id = id).starts_with("first_user_id: "), "{id}");
        }
    }

    #[test]
    fn what_would_show_more_than_tools_is_refused() {
        for path in
            ["/", "/etc", "/home", "/proc/1", "/run/postgresql", "tools", "/opt/../etc", "/tmp/x"]
        {
            let said = refusal(|it| it.read_only_paths = vec![path.into()]);
            assert!(said.starts_with("read_only_paths: "), "{path}: {said}");
        }
        let good = ["/opt/rust", "/home/ci/.cargo/bin", "/nix/store", "/var/lib/toolchains"];
        let good = good.map(PathBuf::from).to_vec();
        assert_eq!(refusal(|it| it.read_only_paths = good), "");
    }
}
