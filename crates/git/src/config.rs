//! `.signalbox.toml`: the configuration of the queue in a repository. Read at the target branch's
//! head and never from a pull request.

use std::collections::BTreeSet;

use serde::Deserialize;
use signalbox_domain::ports::HostError;
use signalbox_hosts::{CONFIG_FILE, TRUNK_FILE, check_statuses, read_config, trunk_statuses};
use signalbox_sandbox::report_pattern_problem;

use crate::git::Git;

/// The most bytes that it may have.
const MAX_BYTES: u64 = 256 * 1024;

/// The file's content.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct RepositoryConfig {
    /// How pull requests are merged.
    pub merge: MergeConfig,
    /// What to run on a candidate.
    pub checks: Vec<CheckConfig>,
}

/// `[merge]`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct MergeConfig {
    /// The statuses that must succeed; without it, those of `.trunk/trunk.yaml`, else every check.
    pub required_statuses: Option<Vec<String>>,
}

/// `[[checks]]`.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct CheckConfig {
    /// Its name, as required statuses name it.
    pub name: String,
    /// The program and its arguments; no shell reads them. Empty for an external check.
    #[serde(default)]
    pub run: Vec<String>,
    /// Whether an external CI runs it and reports its result through the API. It then has only a
    /// name.
    #[serde(default)]
    pub external: bool,
    /// Patterns of the JUnit files that it writes, relative to the checkout: `*` and `?` within a
    /// name, `**` for any number of folders.
    #[serde(default, alias = "junit")]
    pub reports: Vec<String>,
    /// Minutes until it counts as failed; without it the host's setting.
    pub timeout_minutes: Option<u32>,
}

impl RepositoryConfig {
    /// Parses the text of the file; the error names the problem.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |words: String| format!("{CONFIG_FILE}: {words}");
        let config: Self = read_config(text)?;
        config.merge.required_statuses.as_deref().map_or(Ok(()), check_statuses).map_err(wrong)?;
        let mut names = BTreeSet::new();
        for check in &config.checks {
            if check.name.is_empty() || check.name.len() > 255 {
                return Err(wrong("invalid name of a check: expected 1 to 255 bytes".into()));
            }
            if !names.insert(check.name.as_str()) {
                return Err(wrong(format!("duplicate check {:?}", check.name)));
            }
            let name = &check.name;
            if check.external {
                let is_run_here = [
                    ("run", !check.run.is_empty()),
                    ("reports", !check.reports.is_empty()),
                    ("timeout_minutes", check.timeout_minutes.is_some()),
                ];
                if let Some((key, _)) = is_run_here.into_iter().find(|(_, is_set)| *is_set) {
                    return Err(wrong(format!("check {name:?} is external: remove {key}")));
                }
                continue;
            }
            if check.run.first().is_none_or(String::is_empty) {
                return Err(wrong(format!(
                    "check {name:?} has an empty command: set run, or external = true"
                )));
            }
            for pattern in &check.reports {
                if let Some(rule) = report_pattern_problem(pattern) {
                    return Err(wrong(format!("check {name:?}: report {pattern:?} {rule}")));
                }
            }
            if check.timeout_minutes == Some(0) {
                return Err(wrong(format!(
                    "invalid timeout_minutes of check {name:?}: expected at least 1"
                )));
            }
        }
        Ok(config)
    }

    /// The statuses that must succeed: the list, or every check when there is none.
    pub fn required(&self) -> Vec<String> {
        match &self.merge.required_statuses {
            Some(names) => names.clone(),
            None => self.checks.iter().map(|check| check.name.clone()).collect(),
        }
    }

    /// The checks that an external CI runs.
    pub fn external(&self) -> Vec<String> {
        let external = self.checks.iter().filter(|check| check.external);
        external.map(|check| check.name.clone()).collect()
    }
}

/// The required statuses of a repository.
pub(crate) struct Required {
    pub(crate) names: Vec<String>,
    /// The external checks, required or not.
    pub(crate) external: Vec<String>,
}

/// A text file at a commit. `None` without one; the inner error has the reason.
async fn file(
    git: &Git,
    commit: &str,
    path: &str,
) -> Result<Option<Result<String, String>>, HostError> {
    let listed = git.ok(&["ls-tree", "-z", "-l", "--full-tree", commit, "--", path]).await?.text();
    let is_it = |entry: &&str| entry.split_once('\t').is_some_and(|(_, name)| name == path);
    let Some(entry) = listed.split('\0').find(is_it) else { return Ok(None) };
    let mut fields = entry.split_ascii_whitespace().skip(1);
    let (Some("blob"), Some(blob), size) = (fields.next(), fields.next(), fields.next()) else {
        return Ok(Some(Err(format!("{path}: not a file"))));
    };
    if size.and_then(|size| size.parse::<u64>().ok()).is_some_and(|size| size > MAX_BYTES) {
        return Ok(Some(Err(format!("{path}: larger than {MAX_BYTES} bytes"))));
    }
    let done = git.ok(&["cat-file", "blob", blob]).await?;
    Ok(Some(String::from_utf8(done.stdout).map_err(|_| format!("{path}: not UTF-8"))))
}

/// The configuration at a commit. `None` without a file; the inner error names the
/// problem.
pub(crate) async fn read(
    git: &Git,
    commit: &str,
) -> Result<Option<Result<RepositoryConfig, String>>, HostError> {
    let text = file(git, commit, CONFIG_FILE).await?;
    Ok(text.map(|text| text.and_then(|text| RepositoryConfig::parse(&text))))
}

/// The statuses that the repository requires at a commit: the list in its own file, else the list
/// in [`TRUNK_FILE`], else every check. `None` without a file that defines any; the inner error
/// names the problem of a file.
pub(crate) async fn required_statuses(
    git: &Git,
    commit: &str,
) -> Result<Option<Result<Required, String>>, HostError> {
    let own = match read(git, commit).await? {
        Some(Ok(config)) => Some(config),
        Some(Err(words)) => return Ok(Some(Err(words))),
        None => None,
    };
    let external = own.as_ref().map(RepositoryConfig::external).unwrap_or_default();
    if let Some(config) = own.as_ref().filter(|it| it.merge.required_statuses.is_some()) {
        return Ok(Some(Ok(Required { names: config.required(), external })));
    }
    let brought = match file(git, commit, TRUNK_FILE).await? {
        Some(text) => match text.and_then(|text| trunk_statuses(&text)) {
            Ok(names) => names,
            Err(words) => return Ok(Some(Err(words))),
        },
        None => None,
    };
    let names = brought.or_else(|| own.map(|config| config.required()));
    Ok(names.map(|names| Ok(Required { names, external })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_list_every_check_is_required() {
        let text = "[[checks]]\nname = \"test\"\nrun = [\"make\", \"test\"]\n";
        let config = RepositoryConfig::parse(text).expect("valid");
        assert_eq!(config.required(), ["test"]);
        let text = format!("[merge]\nrequired_statuses = [\"lint\"]\n{text}");
        assert_eq!(RepositoryConfig::parse(&text).expect("valid").required(), ["lint"]);
        assert!(RepositoryConfig::parse("").expect("valid").required().is_empty());
    }

    #[test]
    fn an_external_check_has_only_a_name_and_is_required_like_others() {
        let text = "[[checks]]\nname = \"test\"\nexternal = true\n\n[[checks]]\nname = \"lint\"\nrun = [\"make\"]\n";
        let config = RepositoryConfig::parse(text).expect("valid");
        assert_eq!(
            (config.required(), config.external()),
            (vec!["test".to_owned(), "lint".to_owned()], vec!["test".to_owned()])
        );
    }

    #[test]
    fn errors_name_the_problem() {
        for (text, words) in [
            ("[merge]\nrequired = []", "unknown field `required`"),
            ("[merge]\nrequired_statuses = [\"\"]", "merge.required_statuses[0]: must have 1"),
            ("[[checks]]\nname = \"a\"\nrun = []", "check \"a\" has an empty command"),
            ("[[checks]]\nname = \"a\"", "set run, or external = true"),
            ("[[checks]]\nname = \"a\"\nexternal = true\nrun = [\"x\"]", "external: remove run"),
            (
                "[[checks]]\nname = \"a\"\nexternal = true\ntimeout_minutes = 3",
                "external: remove timeout_minutes",
            ),
            ("[[checks]]\nname = \"a\"\nrun = \"make\"", "checks[0].run"),
            ("[[checks]]\nrun = [\"a\"]", "missing field `name`"),
            (
                "[[checks]]\nname = \"a\"\nrun = [\"x\"]\nreports = [\"../x\"]",
                "report \"../x\" must not lead out of the checkout",
            ),
            ("nonsense", "expected"),
        ] {
            let error = RepositoryConfig::parse(text).expect_err(text);
            assert!(error.contains(words) && error.contains(CONFIG_FILE), "{text}: {error}");
        }
    }
}
