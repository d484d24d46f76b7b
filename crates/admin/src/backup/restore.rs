//! `signalbox restore`: puts a backup in the place of a database, or tries it out.

use std::path::{Path, PathBuf};

use serde_json::json;
use signalbox_config::{Config, without_password};
use signalbox_persistence::connect;
use signalbox_terminal::{Format, Progress, causes, say, say_json};

use super::archive::{Engine, Unpacked};
use super::files::{beside, copy_private, remove, rename};
use super::{lost_key, postgres, until_signal, usable, whole};
use crate::AdminError;
use crate::lock::take;
use crate::program::{Program, config};

/// Puts a backup in the place of the configured database, and its key in the place of the key file.
/// With `replace` an existing embedded database and key file are replaced, and kept beside the new
/// ones. A PostgreSQL database must be empty.
pub async fn restore(
    program: &dyn Program,
    file: &Path,
    replace: bool,
    format: Format,
) -> Result<(), AdminError> {
    until_signal(restored(program, file, replace, format)).await
}

async fn restored(
    program: &dyn Program,
    file: &Path,
    replace: bool,
    format: Format,
) -> Result<(), AdminError> {
    let config = config(program)?;
    config.make_data_dir()?;
    let url = config.database_url();
    let embedded = url.strip_prefix("sqlite://").map(PathBuf::from);
    let folder = embedded.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
    let folder =
        if folder.as_os_str().is_empty() { std::env::temp_dir() } else { folder.to_owned() };
    let unpacked = Unpacked::new(file, &folder).await?;
    let (engine, shown) = (unpacked.manifest.engine, without_password(&url));
    let wanted = if embedded.is_some() { Engine::Sqlite } else { Engine::Postgresql };
    if engine != wanted {
        return Err(AdminError::Refused(format!(
            "{} has a {engine} database, but database.url names a {wanted} database",
            file.display()
        )));
    }
    let keys = config.webhook_keys();
    let own = std::fs::read(&keys).ok();
    let new = unpacked.keys().map(std::fs::read).transpose()?;
    let new = new.filter(|new| own.as_ref() != Some(new));
    if new.is_some() && own.is_some() && !replace {
        return Err(exists(&keys));
    }
    // As long as this is held no server can start on an embedded database.
    let _lock = take(&config)?;
    let progress = Progress::endless("restoring the database");
    let mut kept = Vec::new();
    let migrations = match &embedded {
        Some(path) => sqlite(&config, &unpacked, path, replace, &mut kept).await?,
        None => postgresql(&unpacked, &url, &shown).await?,
    };
    drop(progress);
    let mut keys_restored = false;
    if let (Some(_), Some(from)) = (new, unpacked.keys()) {
        let part = beside(&keys, "part");
        remove(&part)?;
        if let Some(folder) = keys.parent() {
            std::fs::create_dir_all(folder).map_err(AdminError::file(folder))?;
        }
        copy_private(&from, &part)?;
        if own.is_some() {
            kept.push(keep(&keys)?);
        }
        rename(&part, &keys)?;
        keys_restored = true;
    }
    let created_at = &unpacked.manifest.created_at;
    let warning = lost_key(program, &keys, unpacked.manifest.webhook_key.as_deref())?;
    let warning = warning.map(|lost| format!("{lost}: the server will start with webhooks off"));
    if format.is_json() {
        say_json(&json!({
            "database": shown, "migrations": migrations, "createdAt": created_at, "kept": kept,
            "keysRestored": keys_restored, "warning": warning,
        }));
        return Ok(());
    }
    for path in kept {
        say(&format!("kept the previous one as {}", path.display()));
    }
    if keys_restored {
        say(&format!("restored {}", keys.display()));
    }
    say(&format!("restored {shown}, {migrations} migrations, from {created_at}"));
    if let Some(warning) = warning {
        say(&format!("warning: {warning}"));
    }
    Ok(())
}

async fn sqlite(
    config: &Config,
    unpacked: &Unpacked,
    path: &Path,
    replace: bool,
    kept: &mut Vec<PathBuf>,
) -> Result<usize, AdminError> {
    let (migrations, _) = whole(&unpacked.database()).await?;
    if path.exists() && !replace {
        return Err(exists(path));
    }
    if path.exists() {
        // A journal beside it belongs to the old database.
        let url = config.database_url();
        let old = connect(&url).await.map_err(AdminError::failed(url.clone()))?;
        old.fold().await.map_err(AdminError::failed(url.clone()))?;
        drop(old);
        kept.push(keep(path)?);
    }
    for end in ["-wal", "-shm"] {
        remove(&PathBuf::from(format!("{}{end}", path.display())))?;
    }
    rename(&unpacked.database(), path)?;
    Ok(migrations)
}

async fn postgresql(unpacked: &Unpacked, url: &str, shown: &str) -> Result<usize, AdminError> {
    let database = connect(url).await.map_err(AdminError::failed(shown.to_owned()))?;
    let status = database.migration_status().await;
    let status = status.map_err(AdminError::failed(shown.to_owned()))?;
    if !status.applied.is_empty() {
        return Err(AdminError::Refused(format!(
            "{shown} has a Signalbox database; create an empty one with createdb, and name it in \
             database.url"
        )));
    }
    postgres::restore(&unpacked.database(), url).await?;
    Ok(usable(&database, shown).await?.0)
}

/// Tries a backup without changing anything: unpacks it, compares the checksums, opens the
/// database, and checks that the key opens the secrets in it. A dump of PostgreSQL is restored into
/// a database that exists as long as the trial, on the server of the configured database.
pub async fn verify(program: &dyn Program, file: &Path, format: Format) -> Result<(), AdminError> {
    until_signal(tried(program, file, format)).await
}

async fn tried(program: &dyn Program, file: &Path, format: Format) -> Result<(), AdminError> {
    let say = |words: &str| {
        if !format.is_json() {
            say(words);
        }
    };
    let folder = std::env::temp_dir();
    let unpacked = Unpacked::new(file, &folder).await?;
    let engine = unpacked.manifest.engine;
    say(&format!("{}: complete, made at {}", file.display(), unpacked.manifest.created_at));
    let (migrations, known) = match engine {
        Engine::Sqlite => whole(&unpacked.database()).await?,
        Engine::Postgresql => {
            let url = config(program)?.database_url();
            try_postgresql(program, &unpacked, &url, &say).await?
        }
    };
    say(&format!("database: {engine}, {migrations} migrations, intact"));
    let keys = unpacked.keys();
    let missing = PathBuf::from("the backup");
    if let Some(lost) = lost_key(program, keys.as_ref().unwrap_or(&missing), known.as_deref())? {
        return Err(AdminError::Refused(lost));
    }
    say("webhook key: opens the secrets of this database");
    if format.is_json() {
        let created_at = &unpacked.manifest.created_at;
        say_json(&json!({
            "file": file, "createdAt": created_at, "engine": engine, "migrations": migrations,
        }));
    }
    Ok(())
}

async fn try_postgresql(
    program: &dyn Program,
    unpacked: &Unpacked,
    url: &str,
    say: &(impl Fn(&str) + Sync),
) -> Result<(usize, Option<String>), AdminError> {
    let dump = unpacked.database();
    let entries = postgres::entries(&dump).await?;
    let listed = || (unpacked.manifest.migrations.len(), unpacked.manifest.webhook_key.clone());
    if url.starts_with("sqlite://") {
        say(&format!("only listed, {entries} entries: database.url names no PostgreSQL server"));
        return Ok(listed());
    }
    let name = format!("signalbox_verify_{}", program.clock().now().unix_micros());
    let trial = match postgres::Trial::create(url, &name).await {
        Ok(trial) => trial,
        Err(error) => {
            let error = causes(&error);
            say(&format!("only listed, {entries} entries: could not create a database: {error}"));
            return Ok(listed());
        }
    };
    let tried = async {
        postgres::restore(&dump, &trial.url).await?;
        let shown = without_password(&trial.url);
        let database = connect(&trial.url).await.map_err(AdminError::failed(shown.clone()))?;
        usable(&database, &shown).await
    };
    let tried = tried.await;
    trial.drop().await?;
    tried
}

fn exists(path: &Path) -> AdminError {
    let shown = path.display();
    AdminError::Exists(format!("{shown} already exists; move it away or pass --replace"))
}

/// Renames a file that is replaced; returns its new name.
fn keep(path: &Path) -> Result<PathBuf, AdminError> {
    let kept = beside(path, "replaced");
    remove(&kept)?;
    rename(path, &kept)?;
    Ok(kept)
}
