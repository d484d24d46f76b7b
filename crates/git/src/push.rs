//! Pushing to `refs/for/<target>`: git's proc-receive protocol, and what becomes of such a push.
//!
//! `git push origin HEAD:refs/for/main -o topic=fix -o title="…"` opens a pull request; pushing
//! again under the same topic updates it. The hook submits it with `-o submit`.

use std::io::{Read, Write};

use signalbox_domain::ids::BranchName;
use signalbox_domain::ports::{HostError, Repository};
use signalbox_hosts::{PushAnswer, PushCommand, PushOptions, PushRequest, PushedPullRequest};

use crate::git::{Git, parse_sha};
use crate::host::{PlainGitHost, silent};
use crate::pull_requests::{Proposal, clean_body, clean_title, keep_head};

/// The most lines of a request, and bytes of all of them.
const MAX_REQUEST: (usize, usize) = (1_000, 1024 * 1024);
const NAMESPACE: &str = "refs/for/";

/// Reads a push in git's pkt-line form, after agreeing on the version.
pub fn read_push(input: &mut impl Read, output: &mut impl Write) -> std::io::Result<PushRequest> {
    let greeting = read_lines(input)?;
    let offered = greeting.first().map(String::as_str).unwrap_or_default();
    if !offered.starts_with("version=1") {
        return Err(std::io::Error::other("unsupported version of the proc-receive protocol"));
    }
    let with_options = offered.contains("push-options");
    write_line(output, if with_options { "version=1\0push-options" } else { "version=1" })?;
    output.write_all(b"0000")?;
    output.flush()?;
    let commands = read_lines(input)?
        .iter()
        .filter_map(|line| {
            let mut parts = line.splitn(3, ' ').skip(1);
            let (new, refname) = (parts.next()?.to_owned(), parts.next()?.to_owned());
            Some(PushCommand { new, refname })
        })
        .collect();
    let options = if with_options { read_lines(input)? } else { Vec::new() };
    Ok(PushRequest { commands, options })
}

/// Reports the result of a push to git.
pub fn answer_push(output: &mut impl Write, answers: &[PushAnswer]) -> std::io::Result<()> {
    for answer in answers {
        match &answer.outcome {
            Ok(PushedPullRequest { pull_request: opened, .. }) => {
                write_line(output, &format!("ok {}", answer.refname))?;
                write_line(output, &format!("option refname refs/pull/{}/head", opened.number))?;
                write_line(output, &format!("option new-oid {}", opened.head))?;
            }
            Err(words) => {
                let words = clean_title(words);
                write_line(output, &format!("ng {} {words}", answer.refname))?;
            }
        }
    }
    output.write_all(b"0000")?;
    output.flush()
}

/// Reads lines up to a flush packet.
fn read_lines(input: &mut impl Read) -> std::io::Result<Vec<String>> {
    let (most_lines, most_bytes) = MAX_REQUEST;
    let (mut lines, mut bytes) = (Vec::new(), 0);
    loop {
        let mut length = [0; 4];
        input.read_exact(&mut length)?;
        let length = std::str::from_utf8(&length)
            .ok()
            .and_then(|text| usize::from_str_radix(text, 16).ok())
            .ok_or_else(|| std::io::Error::other("malformed packet: no length"))?;
        if length < 4 {
            return Ok(lines);
        }
        bytes += length;
        if lines.len() >= most_lines || bytes > most_bytes {
            return Err(std::io::Error::other("the push is too large"));
        }
        let mut line = vec![0; length - 4];
        input.read_exact(&mut line)?;
        lines.push(String::from_utf8_lossy(&line).trim_end_matches('\n').to_owned());
    }
}

fn write_line(output: &mut impl Write, line: &str) -> std::io::Result<()> {
    writeln!(output, "{:04x}{line}", line.len() + 5)
}

impl PlainGitHost {
    /// Opens or updates a pull request for each ref of a push.
    pub async fn pushed(
        &self,
        repository: &Repository,
        commands: &[PushCommand],
        options: &PushOptions,
    ) -> Vec<PushAnswer> {
        let mut answers = Vec::new();
        for command in commands {
            let outcome = self.pushed_one(repository, command, options).await;
            answers.push(PushAnswer {
                refname: command.refname.clone(),
                outcome: outcome.map_err(|error| error.to_string()),
            });
        }
        answers
    }

    async fn pushed_one(
        &self,
        repository: &Repository,
        command: &PushCommand,
        options: &PushOptions,
    ) -> Result<PushedPullRequest, HostError> {
        let git = self.git(repository)?;
        let refused = |words: &str| HostError::Rejected { words: words.to_owned() };
        if command.new.bytes().all(|byte| byte == b'0') {
            return Err(refused("deleting a ref does not close a pull request"));
        }
        let head = parse_sha(&command.new)?;
        if git.ok(&["cat-file", "-t", &command.new]).await?.text() != "commit" {
            return Err(refused("only a commit can be proposed, not a tag, a tree or a file"));
        }
        let path = command.refname.strip_prefix(NAMESPACE).unwrap_or_default();
        let (target, rest) = split_target(&git, path).await?.ok_or_else(|| {
            HostError::NotFound { what: format!("a branch for `{}`", command.refname) }
        })?;
        let topic = options.topic.clone().or(rest).map(|topic| clean_title(&topic));
        let topic = topic.ok_or_else(|| {
            refused("missing topic: push with -o topic=NAME, or to refs/for/TARGET/NAME")
        })?;
        let (title, body) = (options.title.clone(), options.description.clone());
        let (org, repo) = (repository.org, repository.id);
        let known = self.store.find_open_by_topic(org, repo, &topic, &target).await;
        let Some(mut known) = known.map_err(silent)? else {
            let proposal = Proposal {
                head: command.new.clone(),
                head_branch: None,
                topic: Some(topic),
                target: &target,
                title,
                body,
                author: None,
            };
            let pull_request = self.propose(repository, &git, proposal).await?;
            return Ok(PushedPullRequest { pull_request, is_new: true });
        };
        known.head = head;
        known.title = title.map_or(known.title, |title| clean_title(&title));
        known.body = body.map_or(known.body, |body| clean_body(&body));
        keep_head(&git, known.number, &command.new).await?;
        self.keep(&mut known).await?;
        Ok(PushedPullRequest { pull_request: known, is_new: false })
    }
}

/// Splits `main/topic` at the longest branch that exists.
async fn split_target(
    git: &Git,
    path: &str,
) -> Result<Option<(BranchName, Option<String>)>, HostError> {
    let mut end = path.len();
    loop {
        let (name, rest) = path.split_at(end);
        if let Ok(branch) = BranchName::new(name)
            && git.tip(&format!("refs/heads/{branch}")).await?.is_some()
        {
            let rest = rest.trim_start_matches('/');
            return Ok(Some((branch, (!rest.is_empty()).then(|| rest.to_owned()))));
        }
        match name.rfind('/') {
            Some(at) => end = at,
            None => return Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets(lines: &[&str]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for line in lines {
            write_line(&mut bytes, line).expect("written");
        }
        bytes.extend(b"0000");
        bytes
    }

    #[test]
    fn a_push_is_read_with_its_options() {
        let zero = "0".repeat(40);
        let mut input = packets(&["version=1\0push-options atomic"]);
        input.extend(packets(&[&format!("{zero} {} refs/for/main", "a".repeat(40))]));
        input.extend(packets(&["topic=fix", "title=fix it"]));
        let mut output = Vec::new();
        let push = read_push(&mut input.as_slice(), &mut output).expect("read");
        assert_eq!(push.commands[0].refname, "refs/for/main");
        assert_eq!(push.options, ["topic=fix", "title=fix it"]);
        assert!(output.starts_with(b"001bversion=1\0push-options"), "{output:?}");
    }

    #[test]
    fn a_push_that_never_ends_is_refused() {
        let mut input = packets(&["version=1"]);
        input.extend("0008abcd".repeat(2_000).into_bytes());
        assert!(read_push(&mut input.as_slice(), &mut Vec::new()).is_err());
        assert!(read_push(&mut &b"zzzz"[..], &mut Vec::new()).is_err());
    }
}
