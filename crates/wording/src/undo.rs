//! Commands for a landing that is wrong.

use signalbox_domain::ids::{BranchName, PrNumber};
use signalbox_domain::queue::Mismatch;

use super::shell_word;

/// The digits of a commit in the name of a branch.
const SHORT: usize = 12;

/// The commands that list and show what a wrong landing has changed, in a clone.
pub fn compare_landing(branch: &BranchName, mismatch: &Mismatch) -> String {
    let Mismatch { base, commit, .. } = mismatch;
    let (fetch, _) = fetch(branch);
    format!("{fetch} &&\ngit log --oneline {base}..{commit} &&\ngit diff {base} {commit}")
}

/// The commands that undo a landing in a clone, whatever the merge method was and whatever has landed
/// since. They leave a new branch; each needs the success of the one before it.
pub fn undo_landing(branch: &BranchName, prs: &[PrNumber], mismatch: &Mismatch) -> String {
    let Mismatch { base, commit, .. } = mismatch;
    let (fetch, remote) = fetch(branch);
    let short = commit.as_str().get(..SHORT).unwrap_or_default();
    let prs: Vec<String> = prs.iter().map(|pr| format!("#{pr}")).collect();
    let prs = prs.join(", ");
    format!(
        "{fetch} &&\n\
         git switch --no-track --create undo-{short} {remote} &&\n\
         git diff-tree -p --binary --no-ext-diff --no-textconv --no-color \\\n  \
         --src-prefix=a/ --dst-prefix=b/ {commit} {base} | git apply --index --3way &&\n\
         git commit --message 'Undo the landing of {prs}'"
    )
}

/// The command that fetches a branch, also if a tag has its name, and the fetched ref.
fn fetch(branch: &BranchName) -> (String, String) {
    let remote = shell_word(&format!("refs/remotes/origin/{branch}"));
    let refs = shell_word(&format!("refs/heads/{branch}:refs/remotes/origin/{branch}"));
    (format!("git fetch origin {refs}"), remote)
}
