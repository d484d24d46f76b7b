//! Checks what other users of this machine and of the network could read: files with secrets, and
//! the rights of the server itself.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use signalbox_config::Config;
use signalbox_domain::ports::Stores;

use super::{Finding, Verdict, network, sandbox};

/// The warnings that a starting server logs.
pub async fn exposures(config: &Config, stores: &Stores) -> Vec<String> {
    let sandbox = sandbox::check(config, stores).await;
    let (url, proxies) = (network::public_url(config), network::proxies(config));
    let found = [user(), sandbox, files(config), url, proxies];
    let warnings = found.into_iter().filter(|it| it.verdict != Verdict::Good);
    warnings.map(|it| it.words).collect()
}

pub(super) fn user() -> Finding {
    of_user(rustix::process::geteuid().is_root())
}

fn of_user(is_root: bool) -> Finding {
    let name = "user";
    if is_root {
        let words = "the server runs as root: run it as a user of its own";
        return Finding::warning(name, words);
    }
    Finding::good(name, "the server does not run as root")
}

/// The database, its journals and copies beside it, backups there and in the data folder, and all files
/// with keys and passwords that the configuration names.
fn secret_files(config: &Config) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        config.hidden_paths().into_iter().filter(|path| path.is_file()).collect();
    let in_data = std::fs::read_dir(config.data_dir()).into_iter().flatten().flatten();
    let is_backup = |path: &PathBuf| path.to_string_lossy().ends_with(".tar.gz");
    found.extend(in_data.map(|entry| entry.path()).filter(is_backup));
    let url = config.database_url();
    if let Some(database) = url.strip_prefix("sqlite://").map(Path::new) {
        let parent = database.parent().filter(|it| !it.as_os_str().is_empty());
        let folder = parent.unwrap_or(Path::new("."));
        let own = database.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        found.extend(entries.map(|entry| entry.path()).filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let of_database = ["", "-wal", "-shm", ".replaced", ".part"];
            let is_own = name.strip_prefix(&own).is_some_and(|end| of_database.contains(&end));
            is_own || name.ends_with(".db") || is_backup(path)
        }));
    }
    found.sort();
    found.dedup();
    found
}

pub(super) fn files(config: &Config) -> Finding {
    let name = "files";
    let is_open = |path: &PathBuf| {
        let mode = std::fs::metadata(path).map_or(0, |it| it.permissions().mode());
        mode & 0o007 != 0
    };
    let open: Vec<String> = secret_files(config)
        .iter()
        .filter(|it| is_open(it))
        .map(|it| it.display().to_string())
        .collect();
    if open.is_empty() {
        return Finding::good(name, "databases and keys are closed to other users");
    }
    let words = format!("accessible to all users: {}: chmod 600", open.join(", "));
    Finding::warning(name, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_must_not_run_as_root() {
        assert_eq!(of_user(true).verdict, Verdict::Warning);
        assert_eq!(of_user(false).verdict, Verdict::Good);
    }

    #[test]
    fn databases_copies_and_keys_must_be_closed_to_other_users() {
        let folder = tempfile::tempdir().expect("a folder");
        let config = Config { data_dir: Some(folder.path().to_owned()), ..Config::default() };
        assert_eq!(files(&config).verdict, Verdict::Good, "nothing is there");
        for name in [
            "signalbox.db",
            "signalbox.db-wal",
            "signalbox.db.replaced",
            "copy.db",
            "webhooks.key",
            "signalbox-2026-11-21.tar.gz",
        ] {
            let path = folder.path().join(name);
            let set = |mode| std::fs::set_permissions(&path, PermissionsExt::from_mode(mode));
            std::fs::write(&path, "secret").expect("written");
            set(0o644).expect("changed");
            let found = files(&config);
            assert_eq!(found.verdict, Verdict::Warning, "{name}");
            assert!(found.words.contains(name), "{}", found.words);
            set(0o640).expect("changed");
            assert_eq!(files(&config).verdict, Verdict::Good, "{name}");
        }
    }
}
