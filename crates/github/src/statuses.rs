//! The required statuses of a candidate: from the repository's files, rulesets and classic
//! protection.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quick_cache::sync::Cache;
use serde::Deserialize;
use signalbox_domain::ids::{BranchName, RepoName, Sha};
use signalbox_domain::ports::HostError;
use signalbox_domain::queue::HostStatuses;
use signalbox_domain::time::{Span, Timestamp};
use signalbox_hosts::{
    CONFIG_FILE, MAX_STATUSES, TRUNK_FILE, check_statuses, read_config, trunk_statuses,
};

use crate::client::{Refused, part, path};
use crate::host::GitHubHost;
use crate::wire;

const TRUNK_FOLDER: &str = ".trunk";
/// How long the rules of a branch are taken to hold before they are read again.
const RULES_HOLD_SECONDS: u32 = 60;
/// The most answers that are remembered.
const REMEMBERED: usize = 256;

/// The list in the repository, or its error.
type Listed = Option<Result<Vec<String>, String>>;

/// The requirements of a branch's rules.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    /// The required statuses, each once.
    names: Vec<String>,
    /// The apps that must report them, where rules pin them.
    pub(crate) pins: BTreeMap<String, BTreeSet<u64>>,
}

/// The requirements of a branch's rules, and when they were read.
type RulesRead = (Timestamp, Rules);

/// The cache of recent reads. Files are cached by their commit, and by what the commit has of
/// them, neither of which ever changes.
pub(crate) struct Requirements {
    files: Cache<(RepoName, String), Listed>,
    rules: Cache<(RepoName, BranchName), RulesRead>,
}

impl Default for Requirements {
    fn default() -> Self {
        Self { files: Cache::new(REMEMBERED), rules: Cache::new(REMEMBERED) }
    }
}

impl Requirements {
    fn rules(&self, key: &(RepoName, BranchName), now: Timestamp) -> Option<Rules> {
        let hold = Span::seconds(RULES_HOLD_SECONDS);
        let known = self.rules.get(key);
        known.filter(|(read_at, _)| now.since(*read_at) < hold).map(|(_, rules)| rules)
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Config {
    merge: Option<Merge>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Merge {
    required_statuses: Option<Vec<String>>,
}

impl GitHubHost {
    pub(crate) async fn read_required_statuses(
        &self,
        repo: &RepoName,
        target: &BranchName,
        at: &Sha,
    ) -> Result<HostStatuses, HostError> {
        let listed = self.listed(repo, at).await?;
        let (repository, repository_error) = match listed {
            None => (None, None),
            Some(Ok(names)) => (Some(names), None),
            Some(Err(words)) => (None, Some(words)),
        };
        // The list in the repository wins: branch protection is not read.
        let branch_protection = if repository.is_some() {
            None
        } else {
            Some(self.rules(repo, target).await?.names).filter(|names| !names.is_empty())
        };
        // Its own CI runs all checks; they are read from the host.
        let external = Vec::new();
        Ok(HostStatuses { repository, repository_error, branch_protection, external })
    }

    async fn listed(&self, repo: &RepoName, at: &Sha) -> Result<Listed, HostError> {
        let by_commit = (repo.clone(), at.as_str().to_owned());
        if let Some(known) = self.requirements.files.get(&by_commit) {
            return Ok(known);
        }
        // Most commits leave the files alone: the root of the tree shows that in one call.
        let root: wire::Tree = self.client.get(repo, &format!("/git/trees/{at}")).await?;
        let (own, trunk) = (root.has(CONFIG_FILE, at), root.has(TRUNK_FOLDER, at));
        let by_content = (repo.clone(), format!("{own:?} {trunk:?}"));
        if let Some(known) = self.requirements.files.get(&by_content) {
            self.requirements.files.insert(by_commit, known.clone());
            return Ok(known);
        }
        let mut listed = None;
        if own.is_some()
            && let Some(text) = self.file(repo, CONFIG_FILE, at).await?
        {
            listed = text.and_then(|text| own_list(&text)).transpose();
        }
        if listed.is_none()
            && trunk.is_some()
            && let Some(text) = self.file(repo, TRUNK_FILE, at).await?
        {
            listed = text.and_then(|text| trunk_statuses(&text)).transpose();
        }
        self.requirements.files.insert(by_commit, listed.clone());
        self.requirements.files.insert(by_content, listed.clone());
        Ok(listed)
    }

    /// A text file at a commit. `None` without one; the inner error has the reason.
    async fn file(
        &self,
        repo: &RepoName,
        name: &str,
        at: &Sha,
    ) -> Result<Option<Result<String, String>>, HostError> {
        let rest = format!("/contents/{}?ref={at}", path(name));
        let found: Result<Option<serde_json::Value>, HostError> =
            self.client.find(repo, &rest).await;
        let Some(found) = found? else { return Ok(None) };
        let wrong = |rule: &str| Ok(Some(Err(format!("{name}: {rule}"))));
        let Ok(found) = serde_json::from_value::<wire::Contents>(found) else {
            return wrong("not a file");
        };
        if found.kind.as_deref() != Some("file") || found.encoding.as_deref() != Some("base64") {
            return wrong("not a file of at most 1 MB");
        }
        let packed: String = found.content.unwrap_or_default().split_ascii_whitespace().collect();
        let text = STANDARD.decode(packed).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        Ok(Some(text.ok_or_else(|| format!("{name}: not UTF-8"))))
    }

    /// What rulesets and classic protection ask for together.
    pub(crate) async fn rules(
        &self,
        repo: &RepoName,
        target: &BranchName,
    ) -> Result<Rules, HostError> {
        let key = (repo.clone(), target.clone());
        let now = self.client.clock.now();
        if let Some(rules) = self.requirements.rules(&key, now) {
            return Ok(rules);
        }
        let branch = part(target.as_str());
        let rulesets = format!("/rules/branches/{branch}");
        let found = self.client.list::<wire::Rule>(repo, &rulesets, None).await;
        let mut checks: Vec<wire::RequiredCheck> = self
            .absent(repo, found)
            .await?
            .unwrap_or_default()
            .into_iter()
            .filter(|rule| rule.kind == "required_status_checks")
            .flat_map(|rule| rule.parameters.unwrap_or_default().required_status_checks)
            .collect();
        let classic = format!("/branches/{branch}/protection/required_status_checks");
        let found = self.client.get::<wire::ProtectedChecks>(repo, &classic).await;
        if let Some(classic) = self.absent(repo, found).await? {
            checks.extend(classic.checks);
            let any = |context| wire::RequiredCheck { context, integration_id: None, app_id: None };
            checks.extend(classic.contexts.into_iter().map(any));
        }
        let mut rules = Rules::default();
        for check in checks {
            if let Some(app) = check.pinned() {
                rules.pins.entry(check.context.clone()).or_default().insert(app);
            }
            if !rules.names.contains(&check.context) && rules.names.len() < MAX_STATUSES {
                rules.names.push(check.context);
            }
        }
        self.requirements.rules.insert(key, (now, rules.clone()));
        Ok(rules)
    }

    /// Rules that do not exist or may not be read require nothing: an app without the permission to
    /// read administration settings gets 403, and `doctor` reports it. A repository that cannot be
    /// read at all has unknown rules.
    async fn absent<T>(
        &self,
        repo: &RepoName,
        answer: Result<T, Refused>,
    ) -> Result<Option<T>, HostError> {
        match answer {
            Ok(found) => Ok(Some(found)),
            Err(Refused { status: 404 | 410, .. }) => Ok(None),
            Err(Refused { status: 403, error: HostError::AccessDenied { .. }, .. }) => {
                self.client.visible(repo).await?;
                Ok(None)
            }
            Err(refused) => Err(refused.error),
        }
    }
}

fn own_list(text: &str) -> Result<Option<Vec<String>>, String> {
    let config: Config = read_config(text)?;
    let names = config.merge.and_then(|merge| merge.required_statuses);
    let checked = names.as_deref().map_or(Ok(()), check_statuses);
    checked.map_err(|words| format!("{CONFIG_FILE}: {words}"))?;
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_the_own_file_is_read() {
        let own = "[merge]\nrequired_statuses = [\"test\"]\n[[checks]]\nname = \"x\"\n";
        assert_eq!(own_list(own), Ok(Some(vec!["test".to_owned()])));
        assert_eq!(own_list("[[checks]]\nname = \"x\"\n"), Ok(None));
        assert!(own_list("[merge").is_err_and(|words| words.starts_with(CONFIG_FILE)));
        assert!(own_list("[merge]\nrequired_statuses = [\"\"]").is_err());
    }
}
