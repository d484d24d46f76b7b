//! Finds the changes of a repository with one call of git, however many pull requests there
//! are.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use quick_cache::sync::Cache;
use signalbox_domain::ids::{BranchName, PrNumber};
use signalbox_domain::ports::{HostError, Repository, Snapshot};

use crate::git::{Git, parse_sha};
use crate::host::{PlainGitHost, TEST_BRANCHES, silent};

/// The most branches that are remembered.
const REMEMBERED: usize = 4_096;

/// Which pull requests a branch contains, and the head at which that was computed. Computed again
/// when the branch moves.
pub(crate) struct MergedSets(Cache<(PathBuf, BranchName), MergedAt>);

type MergedAt = (String, Arc<BTreeSet<PrNumber>>);

impl MergedSets {
    pub(crate) fn new() -> Self {
        Self(Cache::new(REMEMBERED))
    }

    async fn of(
        &self,
        git: &Git,
        base: &BranchName,
        head: &str,
    ) -> Result<Arc<BTreeSet<PrNumber>>, HostError> {
        let key = (git.dir().to_owned(), base.clone());
        let known = self.0.get(&key);
        if let Some((_, merged)) = known.filter(|(at, _)| at == head) {
            return Ok(merged);
        }
        let args = ["for-each-ref", "--merged", head, "--format=%(refname)", "refs/pull"];
        let text = git.ok(&args).await?.text();
        let number = |name: &str| {
            let number = name.strip_prefix("refs/pull/")?.strip_suffix("/head")?;
            number.parse().ok().map(PrNumber)
        };
        let merged = Arc::new(text.lines().filter_map(number).collect::<BTreeSet<_>>());
        self.0.insert(key, (head.to_owned(), merged.clone()));
        Ok(merged)
    }
}

/// Reads all refs with one command, and the stored open pull requests. A fingerprint covers
/// everything that a pull request is computed from: when its row was last updated, the head of its
/// branch, and whether its target contains it.
pub(crate) async fn take(
    host: &PlainGitHost,
    git: &Git,
    repository: &Repository,
) -> Result<Snapshot, HostError> {
    let args = ["for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/pull"];
    let text = git.ok(&args).await?.text();
    let refs: BTreeMap<&str, &str> = text
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(_, name)| !TEST_BRANCHES.iter().any(|prefix| name.starts_with(prefix)))
        .map(|(sha, name)| (name, sha))
        .collect();
    let mut snapshot = Snapshot::default();
    for (name, sha) in &refs {
        let branch = name.strip_prefix("refs/heads/").map(BranchName::new);
        if let Some(Ok(branch)) = branch {
            snapshot.heads.insert(branch, parse_sha(sha)?);
        }
    }
    let open = host.store.open_ones(repository.org, repository.id).await.map_err(silent)?;
    for it in open {
        let followed = match &it.head_branch {
            Some(branch) => format!("refs/heads/{branch}"),
            None => format!("refs/pull/{}/head", it.number),
        };
        let head = refs.get(followed.as_str()).copied().unwrap_or("none");
        let base = refs.get(format!("refs/heads/{}", it.base).as_str());
        let is_merged = match base {
            Some(base) => host.merged.of(git, &it.base, base).await?.contains(&it.number),
            None => false,
        };
        let fingerprint = format!("{} {head} {is_merged}", it.updated_at.unix_micros());
        snapshot.fingerprints.insert(it.number, fingerprint);
    }
    Ok(snapshot)
}
