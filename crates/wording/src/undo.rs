//! Commands for a landing that is wrong.

use signalbox_domain::ids::{BranchName, PrNumber};
use signalbox_domain::queue::Mismatch;

/// The command that shows what a wrong landing has changed, in a clone.
pub fn compare_landing(branch: &BranchName, mismatch: &Mismatch) -> String {
    let Mismatch { base, commit, .. } = mismatch;
    format!("git fetch origin {}\ngit diff --stat --patch {base} {commit}", quoted(branch.as_str()))
}

/// The commands that undo a landing in a clone, whatever the merge method was and whatever has landed
/// since. They leave a new branch.
pub fn undo_landing(branch: &BranchName, pr: PrNumber, mismatch: &Mismatch) -> String {
    let Mismatch { base, commit, .. } = mismatch;
    let (branch, remote) = (quoted(branch.as_str()), quoted(&format!("origin/{branch}")));
    format!(
        "git fetch origin {branch}\n\
         git switch --no-track --create undo-{pr} {remote}\n\
         git diff --binary {commit} {base} | git apply --index --3way\n\
         git commit --message 'Undo the landing of #{pr}'"
    )
}

/// A word of a command, quoted if the shell would change it.
fn quoted(word: &str) -> String {
    if word.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c)) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
