//! Where a command runs: what the CI system's variables and the clone say.

use std::collections::BTreeMap;
use std::process::Command;

use signalbox_domain::upload::CiRun;

/// The place.
pub(super) struct Place {
    variables: BTreeMap<String, String>,
    pub(super) ci: CiRun,
    /// The head of the pull request, where the CI system has a file about it.
    head: Option<String>,
}

impl Place {
    pub(super) fn of_environment() -> Self {
        let own = std::env::vars_os();
        let text = own.filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        let variables: BTreeMap<String, String> = text.collect();
        let event = variables.get("GITHUB_EVENT_PATH").and_then(|it| std::fs::read(it).ok());
        Self::of(variables, event.as_deref())
    }

    /// `event` is the event that has started a workflow of GitHub.
    fn of(variables: BTreeMap<String, String>, event: Option<&[u8]>) -> Self {
        let ci = CiRun::of(&variables);
        let event: serde_json::Value =
            event.and_then(|it| serde_json::from_slice(it).ok()).unwrap_or_default();
        let head = event["pull_request"]["head"]["sha"].as_str().map(ToOwned::to_owned);
        Self { variables, ci, head }
    }

    pub(super) fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).filter(|value| !value.is_empty()).cloned()
    }

    /// The branch.
    pub(super) fn branch(&self) -> Option<String> {
        let of_git = || git(&["symbolic-ref", "--short", "HEAD"]);
        self.ci.branch.clone().or_else(of_git)
    }

    /// The head of the pull request, or the commit that is checked out.
    pub(super) fn sha(&self) -> Option<String> {
        let of_git = || git(&["rev-parse", "--verify", "HEAD"]);
        self.head.clone().or_else(|| self.ci.revision.clone()).or_else(of_git)
    }

    /// The merge commit that is checked out in place of the head.
    pub(super) fn base(&self) -> Option<String> {
        let checked_out = self.ci.revision.clone();
        checked_out.filter(|it| self.head.as_ref().is_some_and(|head| head != it))
    }

    /// The job with everything that identifies it.
    pub(super) fn job(&self) -> Option<String> {
        let parts: Vec<&str> =
            self.ci.job.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        (!parts.is_empty()).then(|| parts.join(" / "))
    }
}

fn git(args: &[&str]) -> Option<String> {
    let done = Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8(done.stdout).ok()?.trim().to_owned();
    (done.status.success() && !text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pull_request_on_github_is_tested_by_its_merge_commit() {
        let variables = [
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_REF", "refs/pull/7/merge"),
            ("GITHUB_HEAD_REF", "fix"),
            ("GITHUB_SHA", "aaaa"),
            ("GITHUB_JOB", "unit"),
            ("GITHUB_WORKFLOW", "CI"),
            ("RUNNER_OS", "Linux"),
        ];
        let variables: BTreeMap<String, String> =
            variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let event = br#"{"pull_request": {"head": {"sha": "bbbb"}}}"#;
        let place = Place::of(variables.clone(), Some(event));
        assert_eq!(
            (place.branch().as_deref(), place.sha().as_deref()),
            (Some("fix"), Some("bbbb"))
        );
        assert_eq!(place.base().as_deref(), Some("aaaa"));
        assert_eq!(place.job().as_deref(), Some("github / unit / CI / Linux"));
        let push = Place::of(variables, Some(b"not json"));
        assert_eq!((push.sha().as_deref(), push.base()), (Some("aaaa"), None));
    }
}
