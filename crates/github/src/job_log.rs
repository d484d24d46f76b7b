//! What the failed jobs of workflows printed.

use signalbox_domain::ids::RepoName;
use signalbox_domain::ports::{MAX_CHECK_OUTPUT, omission};
use signalbox_domain::queue::CheckReport;

use crate::host::GitHubHost;

/// How much of the end of a log is read.
const MAX_LOG: usize = MAX_CHECK_OUTPUT / 2;
/// What the first and the last line of the text of a step's script begin with, after their times.
const SCRIPT: (&str, &str) = ("##[group]Run ", "##[endgroup]");
/// What the line of an error begins with.
const ERROR: &str = "##[error]";

impl GitHubHost {
    /// The log of the job that a check stands for, up to its last error; `None` if it is not a job of
    /// a workflow, or its log cannot be read now.
    pub(crate) async fn job_log(&self, repo: &RepoName, check: &CheckReport) -> Option<String> {
        let job = job(&check.url)?;
        let rest = format!("/actions/jobs/{job}/logs");
        match self.client.tail(repo, &rest, MAX_LOG).await {
            Ok(tail) if tail.bytes.is_empty() => None,
            Ok(tail) => Some(readable(&String::from_utf8_lossy(&tail.bytes), tail.before)),
            // Without a log the failure counts as it is.
            Err(error) => {
                tracing::debug!(%repo, job, %error, "could not read the log of a job");
                None
            }
        }
    }
}

/// The number of the job that the page of a check run is about.
fn job(url: &str) -> Option<u64> {
    let (_, rest) = url.split_once("/actions/runs/")?;
    let (_, rest) = rest.split_once("/job/")?;
    rest.split(['/', '?', '#']).next()?.parse().ok()
}

/// A log without the times of its lines, without the texts of scripts, which are no output, and without
/// what follows its last error: steps that clean up. `before` is how many bytes are missing at its beginning.
fn readable(log: &str, before: usize) -> String {
    let log = log.trim_start_matches('\u{feff}');
    // The first line of the end of a log may be cut, and so may a script.
    let (cut, log) = if before > 0 { log.split_once('\n').unwrap_or((log, "")) } else { ("", log) };
    let lines = log.lines().map(without_time);
    let first_mark = lines.clone().find(|it| it.starts_with(SCRIPT.0) || it.starts_with(SCRIPT.1));
    let mut in_script = before > 0 && first_mark.is_some_and(|it| it.starts_with(SCRIPT.1));
    let lines: Vec<&str> = lines
        .filter(|line| {
            let was_in_script = in_script;
            in_script =
                if in_script { !line.starts_with(SCRIPT.1) } else { line.starts_with(SCRIPT.0) };
            !(was_in_script || in_script)
        })
        .collect();
    let last_error = lines.iter().rposition(|line| line.starts_with(ERROR));
    let end = last_error.map_or(lines.len(), |at| at + 1);
    let first = (before > 0).then(|| omission(before + cut.len()));
    let shown = lines.get(..end).unwrap_or_default().iter().copied();
    let all: Vec<&str> = first.iter().map(String::as_str).chain(shown).collect();
    all.join("\n") + "\n"
}

/// A line without `2026-01-02T03:04:05.1234567Z ` at its beginning.
fn without_time(line: &str) -> &str {
    let Some((time, rest)) = line.split_once(' ') else { return line };
    let is_time = time.len() >= 20
        && time.ends_with('Z')
        && time.char_indices().all(|(at, found)| match at {
            4 | 7 => found == '-',
            10 => found == 'T',
            13 | 16 => found == ':',
            _ => found.is_ascii_digit() || matches!(found, '.' | 'Z'),
        });
    if is_time { rest } else { line }
}

#[cfg(test)]
mod tests {
    use signalbox_testkit::fuzz::{committed, fuzz};

    use super::*;

    /// What is shown consists of lines of the log, in their order, and ends with its last error.
    #[test]
    fn fuzz_logs() {
        let words = [
            "##[group]Run ",
            "##[endgroup]",
            "##[error]",
            "2026-01-02T03:04:05.1Z ",
            "\r\n",
            "\n",
            "é",
        ];
        fuzz("job-log", &committed("job-log"), &words, |input| {
            let text = String::from_utf8_lossy(input);
            let whole = readable(&text, 0);
            assert!(whole.len() <= text.len() + 1, "{whole:?}");
            let mut lines = text.lines();
            let mut shown = whole.lines().filter(|line| !line.is_empty());
            let is_in_order = shown.all(|shown| {
                lines
                    .any(|line| line.trim_end_matches('\r').ends_with(shown.trim_end_matches('\r')))
            });
            assert!(is_in_order, "{whole:?}");
            if whole.lines().any(|line| line.starts_with(ERROR)) {
                assert!(whole.lines().last().is_some_and(|line| line.starts_with(ERROR)));
            }
            let cut = readable(&text, 1_000);
            assert!(cut.starts_with('[') && cut.len() <= text.len() + 40, "{cut:?}");
            assert!(job(&text).is_none_or(|id| text.contains(&id.to_string())));
        });
    }

    #[test]
    fn a_job_is_found_by_its_page() {
        assert_eq!(job("https://github.com/acme/calc/actions/runs/77/job/5"), Some(5));
        assert_eq!(
            job("https://github.com/acme/calc/actions/runs/77/job/5?pr=1#step:3:1"),
            Some(5)
        );
        assert_eq!(job("https://github.com/acme/calc/runs/5"), None);
        assert_eq!(job("https://github.com/acme/calc/actions/runs/77"), None);
        assert_eq!(job("https://ci.example/actions/runs/1/job/x"), None);
        assert_eq!(job(""), None);
    }

    #[test]
    fn a_log_ends_with_its_last_error_and_has_no_scripts() {
        let log = "\u{feff}2026-01-02T03:04:05.1234567Z ##[group]Run grep 'No space left'\n\
                   2026-01-02T03:04:05.1234567Z shell: /usr/bin/bash -e {0}\n\
                   2026-01-02T03:04:05.1234567Z ##[endgroup]\n\
                   2026-01-02T03:04:06.1234567Z FAILED: 1 test\n\
                   a line of its own\n\
                   2026-01-02T03:04:07.1234567Z ##[error]Process completed with exit code 1.\n\
                   2026-01-02T03:04:08.1234567Z Post job cleanup.\n";
        let shown = "FAILED: 1 test\na line of its own\n\
                     ##[error]Process completed with exit code 1.\n";
        assert_eq!(readable(log, 0), shown);
        let cut = readable("half a line\nthe end\n", 1_000);
        assert_eq!(cut, "[1011 bytes omitted]\nthe end\n");
        let in_script = "cut\ngrep 'No space left'\n##[endgroup]\nthe end\n";
        assert_eq!(readable(in_script, 1_000), "[1003 bytes omitted]\nthe end\n");
        let plain = "no error\n2026-01-02 is no time\n";
        assert_eq!(readable(plain, 0), plain);
    }
}
