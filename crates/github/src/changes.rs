//! The paths that a pull request changes, from a comparison of commits. The list of files of a pull request
//! would be longer, but belongs to the head that it has when the list is read.

use std::collections::BTreeSet;

use signalbox_domain::ids::{RepoName, Sha};
use signalbox_domain::ports::HostError;
use signalbox_domain::queue::{ChangedPaths, MergeMethod};

use crate::client::Refused;
use crate::host::GitHubHost;
use crate::wire;

/// The most files in a comparison. One with that many may lack some.
const MOST_FILES: usize = 300;
/// The most files on a page of a commit; other pages are not read.
const MOST_FILES_READ: usize = 100;
/// The most commits on the first page of a comparison.
const MOST_COMMITS: usize = 100;
/// The most commits whose own files are read.
const MOST_READ: usize = 10;
/// The most merged commits of the target that are checked to be ancestors of the merge base.
const MOST_MERGES: usize = 10;

impl GitHubHost {
    /// The paths that applying a head to a commit of the target can change.
    pub(crate) async fn read_changed_paths(
        &self,
        repo: &RepoName,
        target: &Sha,
        head: &Sha,
        method: MergeMethod,
    ) -> Result<ChangedPaths, HostError> {
        let incomplete = |why: String| Ok(ChangedPaths::Incomplete { why });
        let rest = format!("/compare/{target}...{head}?per_page={MOST_COMMITS}");
        let found: wire::Comparison = match self.client.get(repo, &rest).await {
            Ok(found) => found,
            Err(Refused { status: 404, words, .. }) if words.contains("No common ancestor") => {
                return incomplete("it shares no commit with the target branch".into());
            }
            Err(refused) => return Err(refused.error),
        };
        let Some(mut paths) = names_of(found.files.as_deref(), MOST_FILES) else {
            return incomplete(format!("it changes {MOST_FILES} files or more"));
        };
        if found.total_commits.is_none_or(|total| total > found.commits.len()) {
            return incomplete(format!("it has more than {MOST_COMMITS} commits"));
        }
        // Of a single commit on the merge base, the comparison lists the files.
        if method != MergeMethod::Squash && found.commits.len() > 1 {
            let (merges, own): (Vec<_>, Vec<_>) =
                found.commits.iter().partition(|commit| commit.parents.len() > 1);
            let is_own =
                |parent: &wire::Object| found.commits.iter().any(|it| it.sha == parent.sha);
            if merges.iter().any(|merge| merge.parents.iter().all(is_own)) {
                return incomplete("it merges branches of its own".into());
            }
            if own.len() > MOST_READ {
                return incomplete(format!("it has more than {MOST_READ} commits"));
            }
            for commit in own {
                let rest = format!("/commits/{}?per_page={MOST_FILES_READ}", commit.sha);
                let read: wire::CommitFiles = self.client.get(repo, &rest).await?;
                let Some(names) = names_of(read.files.as_deref(), MOST_FILES_READ) else {
                    let why = format!("one of its commits changes {MOST_FILES_READ} files or more");
                    return incomplete(why);
                };
                paths.extend(names);
            }
        }
        if !self.has_one_merge_base(repo, &found).await? {
            return incomplete("it may have several merge bases with the target branch".into());
        }
        Ok(ChangedPaths::Complete(paths))
    }

    /// Whether the merge base of a comparison is the only one: all commits of the target at which the
    /// compared commits start, or which they merge, are its ancestors.
    async fn has_one_merge_base(
        &self,
        repo: &RepoName,
        found: &wire::Comparison,
    ) -> Result<bool, HostError> {
        let Some(base) = found.merge_base_commit.as_ref().map(|it| it.sha.as_str()) else {
            return Ok(false);
        };
        let own: BTreeSet<&str> = found.commits.iter().map(|it| it.sha.as_str()).collect();
        let parents = found.commits.iter().flat_map(|it| &it.parents).map(|it| it.sha.as_str());
        let others: BTreeSet<&str> =
            parents.filter(|parent| *parent != base && !own.contains(parent)).collect();
        if others.len() > MOST_MERGES {
            return Ok(false);
        }
        for other in others {
            if !self.is_ancestor(repo, other, base).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The names of listed files, also former ones; `None` if there are as many as a list can have.
fn names_of(files: Option<&[wire::ChangedFile]>, most: usize) -> Option<Vec<String>> {
    let files = files.filter(|files| files.len() < most)?;
    Some(files.iter().flat_map(wire::ChangedFile::names).map(ToOwned::to_owned).collect())
}
