//! The repository of the double for git itself: smart HTTP, by git's own `http-backend`.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::state::State;
use crate::double::{RawAnswer, Request};

/// The settings of the repository, as GitHub has them.
const SETTINGS: [(&str, &str); 2] =
    [("uploadpack.allowFilter", "true"), ("uploadpack.allowAnySHA1InWant", "true")];

impl State {
    /// Whether a request is one of git, and if so, how it is refused or where its repository is.
    pub(super) fn git_request(&self, request: &Request) -> Option<Result<GitRequest, RawAnswer>> {
        let (repository, rest) = request.path.split_once(".git/")?;
        let is_known = |name: &str| repository.trim_matches('/').eq_ignore_ascii_case(name);
        let credential = basic(request.header("authorization")).unwrap_or_default();
        let refused = if self.caller(&credential, request.seconds).is_err() {
            Some(401)
        } else if !is_known(&self.full_name()) {
            self.former_name
                .as_deref()
                .filter(|name| is_known(name))
                .map_or(Some(404), |_| Some(301))
        } else {
            let access = self.access.refuse("GET", "/repos/");
            access.map(|(reply, _)| reply.status)
        };
        Some(match refused {
            Some(status) => Err(refusal(status, &self.url(rest))),
            None => Ok(GitRequest {
                file: self.git.folder.join(rest),
                only_refs: self.serves_only_refs,
            }),
        })
    }
}

/// A request that `http-backend` answers.
pub(super) struct GitRequest {
    /// The requested file of the repository.
    file: PathBuf,
    only_refs: bool,
}

/// The token of a Basic authorization, in the form in which the API gets it.
fn basic(authorization: &str) -> Option<String> {
    let encoded = authorization.strip_prefix("Basic ")?;
    let text = String::from_utf8(STANDARD.decode(encoded).ok()?).ok()?;
    let token = text.strip_prefix("x-access-token:")?;
    Some(format!("token {token}"))
}

/// An answer of that status without content.
pub(super) fn refusal(status: u16, location: &str) -> RawAnswer {
    let headers = match status {
        401 => vec![("www-authenticate".to_owned(), "Basic realm=\"GitHub\"".to_owned())],
        300..=399 => vec![("location".to_owned(), location.to_owned())],
        _ => Vec::new(),
    };
    RawAnswer { status, headers, body: Vec::new() }
}

impl GitRequest {
    /// Runs `http-backend`.
    pub(super) fn answer(&self, request: &Request) -> RawAnswer {
        let mut command = Command::new("git");
        command
            .arg("http-backend")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_HTTP_EXPORT_ALL", "1")
            .env("PATH_TRANSLATED", &self.file)
            .env("REQUEST_METHOD", &request.method)
            .env("QUERY_STRING", &request.query)
            .env("CONTENT_TYPE", request.header("content-type"))
            .env("REMOTE_ADDR", "127.0.0.1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let settings = if self.only_refs {
            &[][..]
        } else {
            // Version 2 of the protocol serves every commit.
            command.env("GIT_PROTOCOL", request.header("git-protocol"));
            &SETTINGS[..]
        };
        command.env("GIT_CONFIG_COUNT", settings.len().to_string());
        if request.body.starts_with(&[0x1f, 0x8b]) {
            command.env("HTTP_CONTENT_ENCODING", "gzip");
        }
        for (number, (key, value)) in settings.iter().enumerate() {
            command.env(format!("GIT_CONFIG_KEY_{number}"), key);
            command.env(format!("GIT_CONFIG_VALUE_{number}"), value);
        }
        let mut child = command.spawn().expect("git can be run");
        let mut input = child.stdin.take().expect("a pipe");
        // It reads all of a request before it answers.
        input.write_all(&request.body).expect("git reads the request");
        drop(input);
        let output = child.wait_with_output().expect("git answers").stdout;
        parsed(&output)
    }
}

/// Headers and body of a CGI program.
fn parsed(output: &[u8]) -> RawAnswer {
    let end = output.windows(4).position(|it| it == b"\r\n\r\n").expect("headers");
    let (head, body) = (String::from_utf8_lossy(&output[..end]), output[end + 4..].to_vec());
    let mut answer = RawAnswer { status: 200, headers: Vec::new(), body };
    for (name, value) in head.lines().filter_map(|line| line.split_once(": ")) {
        if name.eq_ignore_ascii_case("status") {
            answer.status = value.get(..3).and_then(|it| it.parse().ok()).expect("a status");
        } else {
            answer.headers.push((name.to_lowercase(), value.to_owned()));
        }
    }
    answer
}
