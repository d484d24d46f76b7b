//! The remote of a mirror: access for git without a trace in arguments or files, fetching by id,
//! and what git's errors mean.

use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use signalbox_domain::ports::HostError;
use signalbox_domain::time::{Span, Timestamp};
use signalbox_hosts::Remote;

use crate::bounded::finish_within;
use crate::done::Done;
use crate::git::Git;
use crate::mirror::{Limits, measured};

/// The name of the remote in the configuration of git.
const NAME: &str = "origin";
/// How long to wait when the host limits requests.
const PAUSE_SECONDS: u32 = 60;
/// A time after every limit.
const LONGEST: Duration = Duration::from_hours(24);
/// How often the size of a mirror is measured while git fetches into it.
const MEASURED_EVERY: Duration = Duration::from_secs(1);
/// The waits before a commit is fetched again that the host has just made and does not serve yet.
const WAITS: [Duration; 2] = [Duration::from_millis(300), Duration::from_secs(2)];
/// Variables of the server that lead to the network, for git as for the server's other calls.
const PROXIES: [&str; 7] =
    ["http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"];
/// Variables of the server for trusted certificates, and git's names for them.
const CERTIFICATES: [(&str, &str); 2] =
    [("SSL_CERT_FILE", "GIT_SSL_CAINFO"), ("SSL_CERT_DIR", "GIT_SSL_CAPATH")];

/// Why something could not be done in a mirror.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The host or the network is the cause, or the candidate itself.
    Host(HostError),
    /// The repository exceeds the limits of a mirror.
    TooLarge(String),
    /// The mirror may be damaged.
    Mirror(HostError),
}

/// The variables with which git reaches a remote. The credential is among them, and nowhere else:
/// only processes of the same user can read the environment of git.
pub(crate) struct Access {
    variables: Vec<(String, OsString)>,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Access")
    }
}

impl Access {
    /// Access for the mirror in a folder.
    pub(crate) fn new(remote: &Remote, mirror: &Path) -> Self {
        let own = |key: &str| format!("remote.{NAME}.{key}");
        let settings = [
            (own("url"), remote.url.clone()),
            // Contents are fetched when a merge needs them.
            (own("promisor"), "true".to_owned()),
            (own("partialclonefilter"), "blob:none".to_owned()),
            ("http.extraHeader".to_owned(), format!("Authorization: {}", remote.authorization)),
            // Another host would get the credential.
            ("http.followRedirects".to_owned(), "false".to_owned()),
            ("http.lowSpeedLimit".to_owned(), "1000".to_owned()),
            ("http.lowSpeedTime".to_owned(), "30".to_owned()),
            ("protocol.version".to_owned(), "2".to_owned()),
            ("credential.helper".to_owned(), String::new()),
            ("core.askPass".to_owned(), String::new()),
            ("gc.auto".to_owned(), "0".to_owned()),
            ("maintenance.auto".to_owned(), "false".to_owned()),
        ];
        let mut variables =
            vec![("GIT_CONFIG_COUNT".to_owned(), settings.len().to_string().into())];
        for (number, (key, value)) in settings.into_iter().enumerate() {
            variables.push((format!("GIT_CONFIG_KEY_{number}"), key.into()));
            variables.push((format!("GIT_CONFIG_VALUE_{number}"), value.into()));
        }
        let scheme = remote.url.split_once("://").map_or("https", |(scheme, _)| scheme);
        let scheme = if scheme == "http" { "http" } else { "https" };
        variables.push(("GIT_ALLOW_PROTOCOL".to_owned(), scheme.into()));
        // No passwords of the user that the server runs as.
        variables.push(("HOME".to_owned(), mirror.into()));
        let passed = PROXIES.map(|name| (name, name)).into_iter().chain(CERTIFICATES);
        for (name, passed_as) in passed {
            if let Some(value) = std::env::var_os(name) {
                variables.push((passed_as.to_owned(), value));
            }
        }
        Self { variables }
    }

    pub(crate) fn variables(&self) -> impl Iterator<Item = (&str, &OsString)> {
        self.variables.iter().map(|(name, value)| (name.as_str(), value))
    }
}

/// Fetches commits with their history, but without the contents of files, into no ref.
pub(crate) async fn fetch(
    git: &Git,
    commits: &[&str],
    limits: &Limits,
    now: Timestamp,
) -> Result<(), Failure> {
    let mut waits = WAITS.into_iter();
    loop {
        let done = within(git, commits, limits).await?;
        if done.code == Some(0) {
            let is_bounded = measured(git.dir()).await.bytes <= limits.bytes;
            return if is_bounded { Ok(()) } else { Err(too_large(limits)) };
        }
        match waits.next().filter(|_| is_missing(&done.words())) {
            Some(wait) => tokio::time::sleep(wait).await,
            None => return Err(failure(done.trouble(), now)),
        }
    }
}

/// Runs `git fetch`, unless it takes too long or the mirror becomes too large.
async fn within(git: &Git, commits: &[&str], limits: &Limits) -> Result<Done, Failure> {
    let mut command = git.command();
    command.args(["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-gc"]);
    command.args(["--no-recurse-submodules", NAME]).args(commits);
    tokio::select! {
        done = finish_within(LONGEST, command, "fetch", None) => done.map_err(Failure::Host),
        // A fetch without data ends earlier, by `http.lowSpeedTime`.
        () = tokio::time::sleep(limits.time) => {
            let seconds = limits.time.as_secs();
            Err(Failure::TooLarge(format!("git fetch took more than {seconds} s")))
        }
        () = outgrown(git.dir(), limits.bytes) => Err(too_large(limits)),
    }
}

fn too_large(limits: &Limits) -> Failure {
    Failure::TooLarge(format!("the mirror of the repository exceeds {} bytes", limits.bytes))
}

/// Waits until a folder has more than so many bytes.
async fn outgrown(folder: &Path, bytes: u64) {
    loop {
        tokio::time::sleep(MEASURED_EVERY).await;
        if measured(folder).await.bytes > bytes {
            return;
        }
    }
}

/// What an error of git in a mirror means. Git has the exit code 128 for all of them.
pub(crate) fn failure(error: HostError, now: Timestamp) -> Failure {
    let HostError::Unavailable { words } = error else {
        return match error {
            // Every commit was fetched.
            HostError::NotFound { .. } => Failure::Mirror(error),
            _ => Failure::Host(error),
        };
    };
    let lower = words.to_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| lower.contains(part));
    // A merge that git cannot end in time, also because it fetches contents.
    if has(&["did not end within"]) {
        return Failure::TooLarge(words);
    }
    let host = match status(&lower) {
        _ if has(&["no space left", "disk quota exceeded"]) => HostError::Unavailable { words },
        // A git that is too old.
        _ if has(&["unknown option", "usage: git"]) => HostError::Rejected { words },
        _ if is_missing(&lower) => HostError::Rejected { words },
        Some(401) => HostError::CredentialRejected { words },
        _ if has(&["could not read username", "authentication failed"]) => {
            HostError::CredentialRejected { words }
        }
        Some(403 | 451) => HostError::AccessDenied { words },
        Some(300..=399 | 404 | 410) => HostError::NotFound { what: words },
        _ if has(&["' not found"]) => HostError::NotFound { what: words },
        Some(429) => HostError::RateLimited { retry_at: now.plus(Span::seconds(PAUSE_SECONDS)) },
        Some(408 | 425 | 500..) => HostError::Unavailable { words },
        Some(_) => HostError::Rejected { words },
        None if has(&NETWORK) => HostError::Unavailable { words },
        None => return Failure::Mirror(HostError::Unavailable { words }),
    };
    Failure::Host(host)
}

/// Parts of git's errors about the network or the host.
const NETWORK: [&str; 9] = [
    "unable to access",
    "rpc failed",
    "early eof",
    "remote error",
    "hung up",
    "unexpected disconnect",
    "expected flush",
    "protocol error",
    "could not start git",
];

/// Whether the host has no commit of an id.
fn is_missing(words: &str) -> bool {
    words.contains("not our ref") || words.contains("unadvertised object")
}

/// The HTTP status in an error of git.
fn status(words: &str) -> Option<u16> {
    let (_, rest) = words.split_once("returned error: ")?;
    rest.get(..3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meaning(words: &str) -> String {
        let now = Timestamp::from_unix_seconds(0);
        let error = HostError::Unavailable { words: format!("git fetch: fatal: {words}") };
        match failure(error, now) {
            Failure::Host(HostError::CredentialRejected { .. }) => "credential",
            Failure::Host(HostError::AccessDenied { .. }) => "access",
            Failure::Host(HostError::NotFound { .. }) => "not found",
            Failure::Host(HostError::RateLimited { .. }) => "limited",
            Failure::Host(HostError::Unavailable { .. }) => "down",
            Failure::Host(HostError::Rejected { .. }) => "lasting",
            Failure::Host(HostError::Conflict { .. }) => "conflict",
            Failure::TooLarge(_) => "too large",
            Failure::Mirror(_) => "mirror",
        }
        .to_owned()
    }

    #[test]
    fn errors_of_git_are_distinguished() {
        let at = |rest: &str| format!("unable to access 'https://github.com/a/b.git/': {rest}");
        let url = |status: u16| at(&format!("The requested URL returned error: {status}"));
        for (words, expected) in [
            (url(401), "credential"),
            ("could not read Username for 'https://github.com': x".to_owned(), "credential"),
            ("Authentication failed for 'https://github.com/a/b.git/'".to_owned(), "credential"),
            (url(403), "access"),
            (url(301), "not found"),
            ("repository 'https://github.com/a/b.git/' not found".to_owned(), "not found"),
            (url(429), "limited"),
            (url(502), "down"),
            (url(422), "lasting"),
            (at("Could not resolve host: github.com"), "down"),
            ("early EOF".to_owned(), "down"),
            ("remote error: upload-pack: not our ref 1234".to_owned(), "lasting"),
            ("git merge-tree did not end within 120 s and was killed".to_owned(), "too large"),
            ("write error: No space left on device".to_owned(), "down"),
            ("error: unknown option `write-tree'".to_owned(), "lasting"),
            ("not a git repository: '/x'".to_owned(), "mirror"),
            ("bad object refs/seen/1234".to_owned(), "mirror"),
        ] {
            assert_eq!(meaning(&words), expected, "{words}");
        }
    }

    #[test]
    fn the_credential_is_not_shown() {
        let remote = Remote {
            url: "https://github.com/a/b.git".to_owned(),
            authorization: "Basic c2VjcmV0".to_owned(),
        };
        let access = Access::new(&remote, Path::new("/mirror"));
        let git = Git::at("/mirror".into()).reaching(&std::sync::Arc::new(access));
        let command = git.command();
        let args: Vec<_> = command.as_std().get_args().collect();
        let shown = format!("{remote:?} {git:?} {args:?}");
        assert!(!shown.contains("c2VjcmV0"), "{shown}");
    }
}
