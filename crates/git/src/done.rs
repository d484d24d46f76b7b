//! The outcome of a call of git, and its meaning.
//!
//! A failed call is the fault of this machine or this repository, unless the error is known
//! to be about the change: a full disk, a missing folder, an unreadable object and
//! an existing lock all end with the same exit code as a bad name.

use signalbox_domain::ports::HostError;

/// The most characters of git's own words that are kept.
const MAX_WORDS: usize = 1_000;

/// How a call ended.
#[derive(Debug)]
pub(crate) struct Done {
    /// Which command of git it was.
    pub(crate) what: String,
    /// Its exit code; `None` when a signal has ended it.
    pub(crate) code: Option<i32>,
    /// The signal.
    pub(crate) signal: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Done {
    /// The output as text, without the newline at its end.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).trim_end_matches('\n').to_owned()
    }

    /// What git complains of, line by line; no warnings and no advice.
    pub(crate) fn complaints(&self) -> impl Iterator<Item = &str> {
        let is_complaint = |line: &&str| line.starts_with("error:") || line.starts_with("fatal:");
        self.stderr.lines().map(str::trim).filter(is_complaint)
    }

    /// The error of git, on one line.
    pub(crate) fn words(&self) -> String {
        let complaints: Vec<&str> = self.complaints().collect();
        let words = match (complaints.as_slice(), self.signal, self.code) {
            (_, Some(signal), _) => format!("was killed by signal {signal}"),
            ([], None, code) if self.stderr.trim().is_empty() => {
                format!(
                    "ended with exit code {} without an error message",
                    code.unwrap_or_default()
                )
            }
            ([], None, _) => self.stderr.trim().replace('\n', "; "),
            (complaints, None, _) => complaints.join("; "),
        };
        words.chars().take(MAX_WORDS).collect()
    }

    /// This outcome as an error that is not the fault of a change.
    pub(crate) fn trouble(&self) -> HostError {
        HostError::Unavailable { words: format!("git {}: {}", self.what, self.words()) }
    }

    /// Itself if it is a success.
    pub(crate) fn succeeded(self) -> Result<Self, HostError> {
        if self.code == Some(0) { Ok(self) } else { Err(self.trouble()) }
    }

    /// The answer of a command that answers by its exit code. A no with a complaint is none: some
    /// versions of git also print it for unreadable objects.
    pub(crate) fn yes_or_no(&self) -> Result<bool, HostError> {
        match self.code {
            Some(0) => Ok(true),
            Some(1) if self.complaints().next().is_none() => Ok(false),
            Some(_) | None => Err(self.trouble()),
        }
    }

    /// Whether git cannot put the content of a commit into any folder: names that are too long, or
    /// that it never writes, links without a target, two files in one place. Every complaint must be of
    /// that kind.
    pub(crate) fn cannot_be_checked_out(&self) -> bool {
        let of_content = |line: &str| {
            let of_place = [": File name too long", ": File exists", ": Is a directory"];
            let ends = |ends: &[&str]| ends.iter().any(|end| line.ends_with(end));
            line.starts_with("error: invalid path ")
                || (line.starts_with("error: unable to create ")
                    && (ends(&of_place) || ends(&[": Not a directory"])))
                || (line.starts_with("error: unable to create symlink ")
                    && ends(&[": No such file or directory"]))
        };
        self.signal.is_none()
            && self.complaints().next().is_some()
            && self.complaints().all(of_content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(code: Option<i32>, stderr: &str) -> Done {
        let signal = code.is_none().then_some(9);
        let what = "merge-base".to_owned();
        Done { what, code, signal, stdout: Vec::new(), stderr: stderr.to_owned() }
    }

    #[test]
    fn failures_are_the_machines_fault_and_have_a_cause() {
        let words = |done: &Done| match done.trouble() {
            HostError::Unavailable { words } => words,
            other => panic!("{other}"),
        };
        let full =
            ended(Some(128), "error: x: No space left on device\nhint: tidy up\nfatal: no\n");
        let said = "git merge-base: error: x: No space left on device; fatal: no";
        assert_eq!(words(&full), said);
        assert_eq!(words(&ended(None, "")), "git merge-base: was killed by signal 9");
        let silent = "git merge-base: ended with exit code 3 without an error message";
        assert_eq!(words(&ended(Some(3), "")), silent);
    }

    #[test]
    fn a_no_counts_only_without_complaints() {
        assert!(matches!(ended(Some(0), "").yes_or_no(), Ok(true)));
        assert!(matches!(ended(Some(1), "warning: slow\n").yes_or_no(), Ok(false)));
        assert!(ended(Some(1), "error: Could not read 1234\n").yes_or_no().is_err());
        assert!(ended(Some(128), "").yes_or_no().is_err());
        assert!(ended(None, "").yes_or_no().is_err());
    }

    #[test]
    fn only_names_and_links_are_the_contents_fault() {
        let long = "error: unable to create file aaa: File name too long\n";
        let link = "error: unable to create symlink docs/latest: No such file or directory\n";
        let twice = "error: unable to create file a/b: Not a directory\n";
        assert!(ended(Some(1), &[long, link, twice].concat()).cannot_be_checked_out());
        let gone = "error: unable to create file a: No such file or directory\n";
        assert!(!ended(Some(1), gone).cannot_be_checked_out());
        let locked = "fatal: Unable to create '/x/.git/index.lock': File exists.\n";
        assert!(!ended(Some(128), locked).cannot_be_checked_out());
        assert!(ended(Some(1), long).cannot_be_checked_out());
        assert!(ended(Some(128), "error: invalid path '.git'\n").cannot_be_checked_out());
        let full = format!("{long}error: unable to write file b: No space left on device\n");
        assert!(!ended(Some(1), &full).cannot_be_checked_out());
        assert!(!ended(Some(128), "").cannot_be_checked_out());
        assert!(!ended(None, long).cannot_be_checked_out());
    }
}
