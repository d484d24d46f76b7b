//! `signalbox backup` and `signalbox restore`.

mod archive;
mod files;
mod postgres;
mod restore;

use std::path::{Path, PathBuf};

use serde_json::json;
use signalbox_config::{Config, without_password};
use signalbox_persistence::{Database, connect};
use signalbox_terminal::{Format, Progress, Signals, say, say_json};

use crate::AdminError;
use crate::database::existing_database;
use crate::program::{Program, config};
use archive::{About, Engine, KEYS};
use files::rename;

pub use restore::{restore, verify};

/// Does work until a signal comes. The temporary files of the work are removed either way.
async fn until_signal<T>(
    work: impl Future<Output = Result<T, AdminError>>,
) -> Result<T, AdminError> {
    let mut signals = Signals::new()?;
    tokio::select! {
        done = work => done,
        () = signals.next() => Err(AdminError::Interrupted),
    }
}

/// Copies the database, while servers run, and the key of webhook secrets into one new archive.
pub async fn backup(program: &dyn Program, file: &Path, format: Format) -> Result<(), AdminError> {
    until_signal(copied(program, file, format)).await
}

async fn copied(program: &dyn Program, file: &Path, format: Format) -> Result<(), AdminError> {
    let config = config(program)?;
    let url = config.database_url();
    let shown = without_password(&url);
    existing_database(&config)?;
    if file.exists() {
        let shown = file.display();
        return Err(AdminError::Exists(format!("{shown} already exists; choose another file")));
    }
    let database = connect(&url).await.map_err(AdminError::failed(shown.clone()))?;
    let engine = engine(&database);
    let folder = file.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = tempfile::Builder::new().prefix(".signalbox-backup-").tempdir_in(folder);
    let folder = folder.map_err(AdminError::file(file))?;
    let copy = folder.path().join(engine.file());
    let progress = Progress::endless("copying the database");
    match engine {
        Engine::Sqlite => {
            database.copy_to(&copy).await.map_err(AdminError::failed(shown.clone()))?;
            whole(&copy).await?;
        }
        Engine::Postgresql => {
            postgres::dump(&url, &copy).await?;
            postgres::entries(&copy).await?;
        }
    }
    let failed = || AdminError::failed(shown.clone());
    let status = database.migration_status().await.map_err(failed())?;
    let webhook_key = database.webhook_key().await.map_err(AdminError::failed(shown.clone()))?;
    let keys = config.webhook_keys();
    drop(progress);
    let mut files = vec![(engine.file(), copy)];
    if keys.exists() {
        files.push((KEYS, keys.clone()));
    }
    let migrations = status.applied.len();
    let about = About {
        created_at: program.clock().now().to_string(),
        engine,
        migrations: status.applied,
        webhook_key: webhook_key.clone(),
    };
    // An archive that is cut off must not look like a whole one.
    let part = folder.path().join("archive");
    archive::write(&part, about, files).await?;
    rename(&part, file)?;
    let size = std::fs::metadata(file).map_or(0, |it| it.len());
    let warning = lost_key(program, &keys, webhook_key.as_deref())?;
    let elsewhere = elsewhere(&config, program, &database).await?;
    if format.is_json() {
        say_json(&json!({
            "file": file, "bytes": size, "engine": engine, "migrations": migrations,
            "warning": warning, "notIncluded": elsewhere,
        }));
        return Ok(());
    }
    say(&format!("{}: {size} bytes; {engine}, {migrations} migrations", file.display()));
    if let Some(lost) = warning {
        say(&format!("warning: {lost}"));
    }
    say("not included; copy separately:");
    for path in elsewhere {
        say(&format!("  {path}"));
    }
    Ok(())
}

fn engine(database: &Database) -> Engine {
    if database.is_embedded() { Engine::Sqlite } else { Engine::Postgresql }
}

/// Why webhooks do not work with a key file, if they do not.
fn lost_key(
    program: &dyn Program,
    keys: &Path,
    known: Option<&str>,
) -> Result<Option<String>, AdminError> {
    let Some(known) = known else { return Ok(None) };
    let own = program.webhook_key_fingerprints(keys).map_err(AdminError::Program)?;
    Ok((!own.iter().any(|it| it == known)).then(|| {
        format!(
            "{} lacks the key {known}, which the webhook secrets are sealed with",
            keys.display()
        )
    }))
}

/// What a server needs besides a backup.
async fn elsewhere(
    config: &Config,
    program: &dyn Program,
    database: &Database,
) -> Result<Vec<String>, AdminError> {
    let repos = database.stores().account.repos.list(None).await;
    let repos = repos.map_err(AdminError::failed("repositories"))?;
    let bare = repos.into_iter().filter_map(|repo| repo.path);
    let mut found: Vec<String> = bare.map(|path| format!("bare repository {path}")).collect();
    let given =
        program.flags().config.iter().map(|path| format!("configuration {}", path.display()));
    found.extend(given);
    let own = [config.data_dir(), config.webhook_keys()].map(absolute);
    let database = config.database_url().strip_prefix("sqlite://").map(PathBuf::from).map(absolute);
    let secrets = config.hidden_paths().into_iter();
    let secrets = secrets.filter(|path| !own.contains(path) && Some(path) != database.as_ref());
    found.extend(secrets.map(|path| format!("secret {}", path.display())));
    found.push(match &config.uploads.store {
        Some(store) => format!("uploads in {}", without_password(store)),
        None => format!("uploads in {}", config.data_dir().join("uploads").display()),
    });
    Ok(found)
}

fn absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}

/// Checks that a file is an intact database that this program can use, and returns how many
/// migrations it has. Does not change the file.
async fn whole(file: &Path) -> Result<(usize, Option<String>), AdminError> {
    let shown = file.display().to_string();
    let size = std::fs::metadata(file).map_err(AdminError::file(file))?.len();
    if size == 0 {
        return Err(AdminError::Refused(format!("{shown} is empty")));
    }
    // Opening it leaves files beside it, which a copy in a folder of its own keeps out of the way.
    let folder = tempfile::tempdir()?;
    let look = folder.path().join("look.db");
    std::fs::copy(file, &look).map_err(AdminError::file(file))?;
    let url = format!("sqlite://{}", look.display());
    let database: Database = connect(&url).await.map_err(AdminError::failed(shown.clone()))?;
    usable(&database, &shown).await
}

/// Checks that a database is intact and one of this program; returns how many migrations it has,
/// and the fingerprint of the key that its secrets are sealed with.
async fn usable(database: &Database, shown: &str) -> Result<(usize, Option<String>), AdminError> {
    let failed = || AdminError::failed(shown.to_owned());
    let problems = database.check().await.map_err(failed())?;
    if let Some(first) = problems.first() {
        return Err(AdminError::Refused(format!("{shown} is damaged: {first}")));
    }
    let status = database.migration_status().await.map_err(AdminError::failed(shown.to_owned()))?;
    if status.applied.is_empty() {
        return Err(AdminError::Refused(format!("not a Signalbox database: {shown}")));
    }
    let key = database.webhook_key().await.map_err(failed())?;
    Ok((status.applied.len(), key))
}
