//! The paths that a pull request changes.

use signalbox_domain::ids::Sha;
use signalbox_domain::ports::HostError;
use signalbox_domain::queue::{ChangedPaths, MAX_CHANGED_PATHS, MergeMethod};

use crate::git::Git;

/// The most bytes of a list of paths. A small repository can have a tree with billions of paths.
const MAX_LISTED: usize = 4 * 1024 * 1024;

/// The paths that applying a head to a commit of the target can change. Bytes that are not UTF-8 become
/// replacement characters.
pub(crate) async fn paths(
    git: &Git,
    target: &Sha,
    head: &Sha,
    method: MergeMethod,
) -> Result<ChangedPaths, HostError> {
    let incomplete = |why: &str| Ok(ChangedPaths::Incomplete { why: why.to_owned() });
    let (target, head) = (target.as_str(), head.as_str());
    let found = git.call(&["merge-base", "--all", target, head]).await?;
    if !found.yes_or_no()? {
        return incomplete("it shares no commit with the target branch");
    }
    let bases = found.text();
    let [base] = bases.lines().collect::<Vec<_>>()[..] else {
        return incomplete("it has several merge bases with the target branch");
    };
    let options = ["-z", "--name-only", "--no-renames", "--ignore-submodules=none"];
    let net = [&["diff-tree", "-r"], &options[..], &[base, head]].concat();
    // A rebase skips merges, and so can restore what a merge has undone. When a part of the commits lands
    // with another pull request, the merge base moves, and the rest can undo that part, also in a merge
    // that differs from all of its parents.
    let range = format!("{target}..{head}");
    let merges = if method == MergeMethod::Rebase { "--no-merges" } else { "-c" };
    let log = ["-c", "log.showRoot=true", "log", merges, "--no-show-signature", "--format="];
    let each = [&log, &options[..], &[&range]].concat();
    let calls = match method {
        MergeMethod::Squash => vec![net],
        MergeMethod::Rebase | MergeMethod::MergeCommit => vec![net, each],
    };
    let mut paths = Vec::new();
    for call in calls {
        let Some(listed) = git.ok_up_to(&call, MAX_LISTED).await? else {
            return incomplete("its list of changed files is longer than 4 MiB");
        };
        let listed = listed.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        paths.extend(listed.map(|path| String::from_utf8_lossy(path).into_owned()));
        paths.sort_unstable();
        paths.dedup();
        if paths.len() > MAX_CHANGED_PATHS {
            break;
        }
    }
    Ok(ChangedPaths::Complete(paths))
}
