//! The hook that makes a bare repository take pushes to `refs/for/…`.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use signalbox_domain::ports::{HostError, Repository};
use thiserror::Error;

use crate::host::PlainGitHost;

/// Tells our hook from others.
const MARK: &str = "# installed by signalbox";

/// Why a hook was not installed.
#[derive(Debug, Error)]
pub enum HookError {
    /// There is another hook.
    #[error("{0} is there already and not ours; move it away, or register with --no-hooks")]
    Foreign(String),
    /// The file could not be written.
    #[error("the hook cannot be written: {0}")]
    Io(#[from] std::io::Error),
    /// The repository could not be configured.
    #[error(transparent)]
    Host(#[from] HostError),
}

impl PlainGitHost {
    /// Installs a `proc-receive` hook that runs that program with those arguments, and tells git to
    /// use it. Installing again replaces our own hook; another one is never touched.
    pub async fn install_hook(
        &self,
        repository: &Repository,
        program: &[String],
    ) -> Result<(), HookError> {
        let git = self.git(repository)?;
        let folder = git.dir().join("hooks");
        std::fs::create_dir_all(&folder)?;
        write_hook(&folder.join("proc-receive"), program)?;
        // Without --replace-all a second value would be added each time.
        for (key, value) in
            [("receive.procReceiveRefs", "refs/for"), ("receive.advertisePushOptions", "true")]
        {
            git.ok(&["config", "--replace-all", key, value]).await?;
        }
        Ok(())
    }
}

fn write_hook(path: &Path, program: &[String]) -> Result<(), HookError> {
    if let Ok(text) = std::fs::read_to_string(path)
        && !text.contains(MARK)
    {
        return Err(HookError::Foreign(path.display().to_string()));
    }
    let quoted: Vec<String> = program.iter().map(|word| quote(word)).collect();
    let text = format!("#!/bin/sh\n{MARK}\nexec {}\n", quoted.join(" "));
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    let new = folder.join(".proc-receive.signalbox");
    let mut file = std::fs::File::create(&new)?;
    file.write_all(text.as_bytes())?;
    file.set_permissions(std::fs::Permissions::from_mode(0o755))?;
    file.sync_all()?;
    std::fs::rename(&new, path)?;
    Ok(())
}

/// A word for a shell, taken literally.
fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_the_shell() {
        assert_eq!(quote("a b"), "'a b'");
        assert_eq!(quote("it's $(x)"), r"'it'\''s $(x)'");
    }
}
