//! The hooks of a bare repository: one accepts pushes to `refs/for/…`, the other reports all other
//! pushes.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use signalbox_domain::ports::Repository;
use signalbox_hosts::HookError;

use crate::host::{OWN_REFS, PlainGitHost};

/// The hook that reports pushes.
pub const POST_RECEIVE: &str = "post-receive";
/// Identifies our hook.
const MARK: &str = "# installed by signalbox";

/// What a push may do: propose changes, with options, and bring only objects that git accepts from a
/// clone, too. What has landed could not be cloned otherwise.
const SETTINGS: [(&str, &str); 3] = [
    ("receive.procReceiveRefs", "refs/for"),
    ("receive.advertisePushOptions", "true"),
    ("receive.fsckObjects", "true"),
];

/// The list of refs that a push does not see and cannot write.
pub(crate) const HIDDEN: &str = "receive.hideRefs";

/// The settings of a repository that accepts pushes, and their values; of a list, all values.
pub(crate) fn settings() -> impl Iterator<Item = (&'static str, &'static str)> {
    SETTINGS.into_iter().chain(OWN_REFS.map(|refs| (HIDDEN, refs)))
}

impl PlainGitHost {
    /// Installs a `proc-receive` hook, which accepts pushes to `refs/for/…`, and a `post-receive`
    /// hook, which reports all other pushes; each runs that program with `hook NAME` after its
    /// arguments. Installing again replaces our own hooks; others are never touched. Another
    /// `proc-receive` is an error. Pushes to the refs of the server are refused. Without our
    /// `post-receive` pushes are seen by the next sweep, so for another one the result is only
    /// `false`.
    pub async fn install_hooks(
        &self,
        repository: &Repository,
        program: &[String],
    ) -> Result<bool, HookError> {
        let git = self.git(repository)?;
        let folder = git.dir().join("hooks");
        std::fs::create_dir_all(&folder)?;
        write_hook(&folder, "proc-receive", program)?;
        let told = match write_hook(&folder, POST_RECEIVE, program) {
            Ok(()) => true,
            Err(HookError::Foreign(_)) => false,
            Err(error) => return Err(error),
        };
        // Without --replace-all a second value would be added each time.
        for (key, value) in settings() {
            // A list keeps its other values.
            let same = if key == HIDDEN { format!("^{value}$") } else { String::new() };
            git.ok(&["config", "--replace-all", key, value, &same]).await?;
        }
        Ok(told)
    }
}

fn write_hook(folder: &Path, name: &str, program: &[String]) -> Result<(), HookError> {
    let path = folder.join(name);
    match std::fs::read(&path) {
        Ok(text) if !String::from_utf8_lossy(&text).contains(MARK) => {
            return Err(HookError::Foreign(path.display().to_string()));
        }
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        Ok(_) | Err(_) => {}
    }
    let words = program.iter().map(String::as_str).chain(["hook", name]);
    let quoted: Vec<String> = words.map(shell_quoted).collect();
    let text = format!("#!/bin/sh\n{MARK}\nexec {}\n", quoted.join(" "));
    let new = folder.join(format!(".{name}.signalbox"));
    let mut file = std::fs::File::create(&new)?;
    file.write_all(text.as_bytes())?;
    file.set_permissions(std::fs::Permissions::from_mode(0o755))?;
    file.sync_all()?;
    std::fs::rename(&new, path)?;
    Ok(())
}

/// A word for a shell, taken literally.
pub fn shell_quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_the_shell() {
        assert_eq!(shell_quoted("a b"), "'a b'");
        assert_eq!(shell_quoted("it's $(x)"), r"'it'\''s $(x)'");
    }
}
