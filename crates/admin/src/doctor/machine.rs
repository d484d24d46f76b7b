//! Checks this machine: files, folders, free disk space and programs.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use signalbox_config::{Config, Flags, has_password};

use super::Finding;

/// The oldest git that can merge without a working tree.
const OLDEST_GIT: (u32, u32) = (2, 38);
const MIB: u64 = 1024 * 1024;
/// Below this free space the server is about to stop working.
const NO_ROOM: u64 = 200 * MIB;
/// Below this free space the operator should act.
const LITTLE_ROOM: u64 = 2_048 * MIB;

/// The configuration is already read; this checks who else can read it.
pub(super) fn config(flags: &Flags, config: &Config) -> Finding {
    let name = "config";
    let Some(file) = &flags.config else {
        return Finding::good(name, "no file; the defaults apply");
    };
    let shown = file.display();
    let mode = std::fs::metadata(file).map_or(0, |it| it.permissions().mode());
    if mode & 0o004 != 0 && has_password(&config.database_url()) {
        let words = format!("{shown} contains a password and is readable by all users: chmod 640");
        return Finding::warning(name, words);
    }
    Finding::good(name, format!("{shown} is valid"))
}

/// A folder if it exists, or its nearest existing parent.
fn nearest(folder: &Path) -> Option<PathBuf> {
    let folder = std::path::absolute(folder).ok()?;
    folder.ancestors().find(|it| it.is_dir()).map(Path::to_owned)
}

pub(super) fn data_folder(config: &Config) -> Finding {
    let (name, folder) = ("data_folder", config.data_dir());
    let shown = folder.display().to_string();
    let Some(nearest) = nearest(&folder) else {
        return Finding::bad(name, format!("{shown}: no parent folder exists"));
    };
    // A file is the only proof: modes say little about file systems that are mounted read-only.
    if let Err(error) = tempfile::tempfile_in(&nearest) {
        let words = format!("{} is not writable: {error}", nearest.display());
        return Finding::bad(name, words);
    }
    if !folder.is_dir() {
        return Finding::good(name, format!("{shown} is created when the server starts"));
    }
    let mode = std::fs::metadata(&folder).map_or(0, |it| it.permissions().mode());
    if mode & 0o007 != 0 {
        let words =
            format!("{shown} is accessible to all users (mode {:03o}): chmod 750", mode & 0o777);
        return Finding::warning(name, words);
    }
    Finding::good(name, format!("{shown} is writable"))
}

pub(super) fn disk_space(config: &Config) -> Finding {
    let (name, folder) = ("disk_space", config.data_dir());
    let Some(nearest) = nearest(&folder) else {
        return Finding::bad(name, format!("{}: no such folder", folder.display()));
    };
    let state = match rustix::fs::statvfs(&nearest) {
        Ok(state) => state,
        Err(error) => return Finding::warning(name, format!("{}: {error}", nearest.display())),
    };
    let free = state.f_bavail.saturating_mul(state.f_frsize);
    let share = state.f_bavail.saturating_mul(100).checked_div(state.f_blocks).unwrap_or(0);
    let words = format!("{} MiB ({share} %) free at {}", free / MIB, nearest.display());
    if free < NO_ROOM {
        Finding::bad(name, words)
    } else if free < LITTLE_ROOM || share < 5 {
        Finding::warning(name, words)
    } else {
        Finding::good(name, words)
    }
}

pub(super) async fn git() -> Finding {
    let name = "git";
    let asked = tokio::process::Command::new("git")
        .arg("version")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let answer = match asked.await {
        Ok(answer) => String::from_utf8_lossy(&answer.stdout).trim().to_owned(),
        Err(error) => return Finding::bad(name, format!("could not run git: {error}")),
    };
    match version(&answer) {
        Some(found) if found >= OLDEST_GIT => Finding::good(name, answer),
        Some(_) => {
            let (major, minor) = OLDEST_GIT;
            Finding::bad(name, format!("{answer} is too old: expected {major}.{minor} or newer"))
        }
        None => Finding::warning(name, format!("unexpected output of git --version: {answer:?}")),
    }
}

/// Major and minor of `git version 2.39.5`.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.strip_prefix("git version ")?.split(['.', ' ', '-']);
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    #[test]
    fn versions_of_git_are_read() {
        assert_eq!(version("git version 2.39.5"), Some((2, 39)));
        assert_eq!(version("git version 2.50.1 (Apple Git-155)"), Some((2, 50)));
        assert_eq!(version("git version 3.0-rc1"), Some((3, 0)));
        assert_eq!(version("hub version 2"), None);
    }

    #[test]
    fn a_folder_that_others_can_read_is_a_warning_and_one_below_a_file_fails() {
        let folder = tempfile::tempdir().expect("a folder");
        let check = |path: PathBuf| {
            data_folder(&Config { data_dir: Some(path), ..Config::default() }).verdict
        };
        let open = folder.path().join("open");
        std::fs::create_dir(&open).expect("made");
        let set = |mode| std::fs::set_permissions(&open, PermissionsExt::from_mode(mode));
        set(0o755).expect("changed");
        assert_eq!(check(open.clone()), Verdict::Warning);
        set(0o750).expect("changed");
        assert_eq!(check(open.clone()), Verdict::Good);
        assert_eq!(check(open.join("not/yet")), Verdict::Good);
    }
}
